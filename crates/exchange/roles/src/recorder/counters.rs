//! What a recorder counts.

use crate::counters::counters;

counters! {
    Records "records" "Results recorded."
    Known "known" "Results that were already recorded."
    Waits "waits" "Times a result waited for an earlier one."
    Checkpoints "checkpoints" "Checkpoints stored."
    Batches "batches" "Batches published."
    HaltedShards "halted_shards" "Shards where recording stopped, because venues differ without a majority."
    CheckpointFailures "checkpoint_failures" "Checkpoints that could not be stored."
    ShutOutVenues "shut_out_venues" "Venues that are shut out."
    Disputed "disputed" "Positions recorded from a single venue that was then shut out."
    UnreadableLogs "unreadable_logs" "Logs of others that cannot be read just now."
    Day "day" "The last business day that ended in all shards, days since the Unix epoch."
    Damaged "damaged" "Records of others skipped because they could not be read."
    Lanes "lanes" "The number of the placement whose venues' statements count, with no dispute open in a shard that moves."
    ShardsIncomplete "shards_incomplete" "Shards of which this recorder lacks records, or a checkpoint in the place of those that are dropped."
}

/// The counter that tells which business day ended last in all shards.
pub const DAY_COUNTER: &str = "day";
