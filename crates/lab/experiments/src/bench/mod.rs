//! `pares bench`: what this machine does.

pub mod book;
pub mod checkpoint;
pub mod end_to_end;
pub mod feed;
pub mod fix;
mod fronts;
pub mod http;
pub mod kill_switch;
pub mod ouch;
pub mod overload;
pub mod peer;
mod processor;
pub mod sequencer;
pub mod site;
pub mod stages;
pub mod start;
pub mod tpcc;
pub mod ws;

use clap::Subcommand;
use pares_load::LabResult;

/// Arguments of `pares bench`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// One order book beside those of others: ten streams of orders, million messages per second, latency
    Book(book::Args),
    /// Agreeing on an order: time per position, alone and against another process, beside a bare compare-and-swap
    Sequencer(sequencer::Args),
    /// A whole exchange under load: throughput, and latency from the scheduled send time to the answer
    EndToEnd(end_to_end::Args),
    /// The same, and what a request costs: nanoseconds of processor time by role and by stage of its way
    Stages(stages::Args),
    /// Twice what the exchange takes: how much is answered, how long that waits, what a refusal costs
    Overload(overload::Args),
    /// Market data: records to messages, messages to books, beside what others publish
    Feed(feed::Args),
    /// Orders over FIX through a whole exchange: codec, latency, highest rate, beside its own protocol and QuickFIX/J
    Fix(fix::Args),
    /// Orders over OUCH through a whole exchange: translation, latency, highest rate, beside its own protocol
    Ouch(ouch::Args),
    /// Orders over HTTP through a whole exchange: highest rate, latency at 10,000/s
    Http(http::Args),
    /// Books over WebSocket through a whole exchange, a thousand subscribers: deliveries, latency, slow readers
    Ws(ws::Args),
    /// How long it takes to cancel ten thousand orders of a member that has run away
    KillSwitch(kill_switch::Args),
    /// Members' latency while a venue takes a checkpoint of a large state, and while one joins with it
    Checkpoint(checkpoint::Args),
    /// How long a gateway takes to start, however long the record is
    Start(start::Args),
    /// A broker's transactions at one site of a cluster: as fast as they go, and at a rate; where the time goes
    Site(site::Args),
    /// TPC-C's transactions on clusters of sites, far apart: throughput, latency, processor time; are its consistency conditions kept?
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
        Bench::Stages(args) => stages::run(args),
        Bench::Overload(args) => overload::run(args),
        Bench::Feed(args) => feed::run(args),
        Bench::Fix(args) => fix::run(args),
        Bench::Ouch(args) => ouch::run(args),
        Bench::Http(args) => http::run(args),
        Bench::Ws(args) => ws::run(args),
        Bench::KillSwitch(args) => kill_switch::run(args),
        Bench::Checkpoint(args) => checkpoint::run(args),
        Bench::Start(args) => start::run(args),
        Bench::Site(args) => site::run(args),
        Bench::Tpcc(args) => tpcc::run(args),
        Bench::Peer(peer) => peer::run(peer),
    }
}
