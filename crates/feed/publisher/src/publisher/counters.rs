//! What a publisher counts.

use pares_roles::counters;

counters! {
    Messages "messages" "Messages put into the log and sent."
    Packets "packets" "Packets sent, heartbeats among them."
    Unsent "packets_unsent" "Packets that could not be sent; receivers request them again."
    Sessions "sessions" "Sessions begun."
    States "states" "States stored, to resume from after a restart."
    BeatNs "beat_ns" "When it last had sent all committed messages, by the host's monotonic clock, nanoseconds; replayers send heartbeats only while this is recent."
    CatchingUp "catching_up" "Shards that do not send yet, while it regenerates earlier messages."
    UnreadableLogs "unreadable_logs" "Logs of recorders that cannot be read just now."
}
