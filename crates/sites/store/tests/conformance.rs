//! One suite over every store: what holds for the obviously right one must hold for all.
#![allow(clippy::unwrap_used)] // a test may, in its helpers too

mod common;
#[path = "conformance/crash.rs"]
mod crash;
#[path = "conformance/damage.rs"]
mod damage;
#[path = "conformance/history.rs"]
mod history;
#[path = "conformance/place.rs"]
mod place;
#[path = "conformance/suite.rs"]
mod suite;
#[path = "conformance/transfer.rs"]
mod transfer;

use place::{Kind, Place};

/// Each case as a test of each store.
macro_rules! for_every_store {
    (all: $($module:ident::$case:ident),*; outside this process: $($also:ident::$outside:ident),* $(,)?) => {
        for_every_store!(@ memory Memory $($module::$case)*);
        for_every_store!(@ redb Redb $($module::$case)* $($also::$outside)*);
        for_every_store!(@ postgres Postgres $($module::$case)* $($also::$outside)*);
    };
    (@ $store:ident $kind:ident $($module:ident::$case:ident)*) => {
        mod $store {
            use super::*;
            $(#[test]
            fn $case() {
                if let Some(place) = Place::new(Kind::$kind) {
                    $module::$case(&place);
                }
            })*
        }
    };
}

for_every_store!(
    all:
    suite::a_new_store_is_empty,
    suite::versions_are_applied_one_after_the_other,
    suite::of_an_item_that_a_batch_changes_twice_the_last_value_stays,
    suite::a_snapshot_stays_as_it_was,
    suite::ranges_come_in_order_and_end_where_they_should,
    suite::a_store_is_found_as_it_was_flushed,
    suite::what_stands_beside_the_items_belongs_to_a_version,
    suite::readers_see_whole_batches_while_the_writer_writes,
    history::any_history_reads_as_in_memory,
    transfer::a_store_arrives_as_it_was_sent,
    transfer::pieces_are_bounded,
    transfer::pieces_out_of_order_are_refused,
    transfer::only_an_empty_store_takes_a_transfer,
    transfer::a_store_half_transferred_is_of_no_use;
    outside this process:
    suite::two_processes_cannot_write_the_same_store,
    crash::a_process_that_dies_leaves_a_prefix,
);
