//! What a publisher counts.

use pares_roles::counters;

counters! {
    Messages "messages" "Messages put into the log and sent."
    Packets "packets" "Packets sent, heartbeats among them."
    Unsent "packets_unsent" "Packets that the network did not take; receivers ask for them again."
    Sessions "sessions" "Sessions begun."
    States "states" "States stored, from which it goes on after a restart."
    BeatNs "beat_ns" "When it last had sent all that is committed, by the host's clock that never goes back, nanoseconds; replayers beat only while it is recent."
    CatchingUp "catching_up" "Shards that do not send yet: it makes again what it sent before."
    UnreadableLogs "unreadable_logs" "Logs of recorders that cannot be read just now."
}
