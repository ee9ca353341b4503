//! What a recorder counts.

use crate::counters::counters;

counters! {
    Records "records" "Results recorded."
    Known "known" "Results that were recorded already."
    Waits "waits" "Times a result waited for an earlier one."
    Checkpoints "checkpoints" "Checkpoints stored."
    Batches "batches" "Batches published."
    HaltedShards "halted_shards" "Shards in which nothing is recorded any more, since venues differ and none has most votes."
    CheckpointFailures "checkpoint_failures" "Checkpoints that could not be stored."
    ShutOutVenues "shut_out_venues" "Venues from which nothing is taken."
    Disputed "disputed" "Positions taken from a venue alone that was then shut out."
    UnreadableLogs "unreadable_logs" "Logs of others that cannot be read just now."
    Day "day" "The last business day that ended in all shards, days since the Unix epoch."
    Damaged "damaged" "Records of others passed over because they could not be read."
    ShardsIncomplete "shards_incomplete" "Shards of which this recorder lacks records, or a checkpoint in the place of those that are dropped."
}

/// The counter that tells which business day ended last in all shards.
pub const DAY_COUNTER: &str = "day";
