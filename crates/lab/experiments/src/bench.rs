//! `pares bench`: what this machine does.

pub mod book;
pub mod checkpoint;
pub mod end_to_end;
pub mod entry;
pub mod feed;
pub mod hosts;
pub mod kill_switch;
pub mod mirror;
pub mod peer;
pub mod sequencer;
pub mod site;
pub mod start;
pub mod tpcc;

use clap::Subcommand;
use pares_load::{LabResult, processor};

/// Arguments of `pares bench`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// The order book, compared with other engines: ten order streams, million messages per second, latency
    Book(book::Args),
    /// Agreement on an order: time per position, alone and against another process, compared with a bare compare-and-swap
    Sequencer(sequencer::Args),
    /// A whole exchange under load: throughput, and latency from the scheduled send time to the answer; or what a request costs, stage by stage
    EndToEnd(end_to_end::Args),
    /// Market data: records to messages, messages to books, beside what others publish
    Feed(feed::Args),
    /// Orders over FIX, OUCH or HTTP, or books over WebSocket, through a whole exchange: latency, highest rate, beside its own protocol
    Entry(entry::Args),
    /// How long it takes to cancel ten thousand orders of a member that has run away
    KillSwitch(kill_switch::Args),
    /// An exchange over several hosts: decisions, answers, the highest rate
    Hosts(hosts::Args),
    /// A log at another host, over TCP on loopback: records per second, and the delay until one is there
    Mirror(mirror::Args),
    /// Members' latency while a venue takes a checkpoint of a large state, and while a venue joins from it
    Checkpoint(checkpoint::Args),
    /// Start time of a gateway, by length of the record
    Start(start::Args),
    /// A broker's transactions at one site of a cluster: highest rate, a fixed rate, and processor time
    Site(site::Args),
    /// TPC-C's transactions on distant clusters of sites: throughput, latency, processor time, consistency conditions
    Tpcc(tpcc::Args),
    /// The other process of a benchmark
    #[command(subcommand, hide = true)]
    Peer(peer::Peer),
}

/// Runs one benchmark.
///
/// # Errors
/// If it cannot run.
pub fn run(args: &Args) -> LabResult {
    match &args.bench {
        Bench::Book(args) => book::run(args),
        Bench::Sequencer(args) => sequencer::run(args),
        Bench::EndToEnd(args) => end_to_end::run(args),
        Bench::Entry(args) => entry::run(args),
        Bench::Feed(args) => feed::run(args),
        Bench::KillSwitch(args) => kill_switch::run(args),
        Bench::Hosts(args) => hosts::run(args),
        Bench::Mirror(args) => mirror::run(args),
        Bench::Checkpoint(args) => checkpoint::run(args),
        Bench::Start(args) => start::run(args),
        Bench::Site(args) => site::run(args),
        Bench::Tpcc(args) => tpcc::run(args),
        Bench::Peer(peer) => peer::run(peer),
    }
}
