//! What a gateway counts.

use crate::counters::counters;

counters! {
    AnsweredOffset "answered_offset" "Where joining venues start to read this gateway's log; of the epoch in `epoch` only."
    Requests "requests" "Requests journalled."
    Answers "answers" "Answers sent."
    Rejected "rejected" "Requests rejected."
    Sessions "sessions" "Connections."
    InFlight "in_flight" "Requests journalled and not committed."
    Room "room" "Orders that may wait: fewer than may be in flight while requests wait too long."
    Names "names" "Names known."
    NamesNeeded "names_needed" "Names that cannot make room for others: requests in flight, and orders that live."
    RefusedConnections "refused_connections" "Connections refused because there were too many."
    MalformedConnections "malformed_connections" "Connections closed because of what they sent."
    SlowConnections "slow_connections" "Connections closed because they did not read."
    SilentConnections "silent_connections" "Connections closed because nothing useful came for too long."
    FailedHandshakes "failed_handshakes" "Connections closed because their TLS handshake failed."
    Trades "trades" "Trades told."
    SlowedReads "slowed_reads" "How often a connection was left unread for a while."
    ShardsNotRecorded "shards_not_recorded" "Shards for which nothing is taken in because nothing is recorded."
    Epoch "epoch" "The epoch that the answered offset belongs to."
    UnreadableLogs "unreadable_logs" "Logs of others that cannot be read just now."
    WrongKeys "wrong_keys" "Sign-ons refused because of what was to prove them."
    Resuming "resuming" "Sessions being told from the record what they missed, each shard for itself."
    RecordsResumed "records_resumed" "Records read to tell sessions what they missed."
    LookedUp "looked_up" "Names looked for on disk."
    TapBytes "tap_bytes" "Bytes that the tap has taken."
    TapLostEntries "tap_lost_entries" "Entries that it has lost."
    TapLostBytes "tap_lost_bytes" "Bytes in them."
    Damaged "damaged" "Records of other gateways passed over because they could not be read."
}
