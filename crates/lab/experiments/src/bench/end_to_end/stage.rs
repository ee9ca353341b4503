//! Which stage of a request's way a function belongs to.
//!
//! By the function that was met, not by who called it: what all stages use (checksums, copies, the kernel) is a stage of its own. A
//! function that the compiler has put into its caller counts as its caller.

use pares_node::NodeId;
use serde::Serialize;

/// Whose processor time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Who {
    /// The load generator.
    Client,
    Gateway,
    Venue,
    Recorder,
}

impl Who {
    /// The role of a node that requests pass.
    pub(super) fn of(node: NodeId) -> Option<Self> {
        match node {
            NodeId::Gateway(_) => Some(Self::Gateway),
            NodeId::Venue(_) => Some(Self::Venue),
            NodeId::Recorder(_) => Some(Self::Recorder),
            _ => None,
        }
    }
}

/// A stage of a request's way, in the order of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stage {
    /// Making a request and its frame.
    ClientSend,
    /// Reading frames, admission, numbering, journalling.
    GatewayIntake,
    /// Looking names up, at gateways and venues.
    Names,
    /// Queueing, proposing, learning what was decided.
    Propose,
    /// The book, and what the shard counts.
    Match,
    /// Results and records into logs.
    LogAppend,
    /// Records out of logs, and the committed stream.
    LogRead,
    /// Judging results.
    Record,
    /// From a committed record to frames.
    Report,
    /// Frames to answers.
    ClientReceive,
    /// Of records, at each log.
    Checksum,
    /// Copying and clearing memory.
    Copy,
    /// Reading clocks.
    Clock,
    /// A recorder's index of names.
    Index,
    /// Sockets, files, syncs, pages, sleeping and waking.
    Kernel,
    /// Threads beside the duty cycle, and what has no name.
    Other,
}

/// Parts of functions' names that tell the stage, for all threads.
const ANYWHERE: [(Stage, &[&str]); 5] = [
    (Stage::Checksum, &["crc32c"]),
    (Stage::Copy, &["memmove", "memcpy", "memset"]),
    (Stage::Clock, &["clock_gettime", "mono_ns", "clock::nanoseconds"]),
    (
        Stage::LogAppend,
        &["LogWriter", "log::writer", "log::segment", "record::seal", "write_result", "venue::out"],
    ),
    (
        Stage::LogRead,
        &["LogReader", "log::reader", "roles::tail", "committed", "quorum", "roles::inlet", "record::decode"],
    ),
];
const OF_CLIENT: [(Stage, &[&str]); 1] = [(
    Stage::ClientSend,
    &["pares_flow", "Client::send", "Outbox", "frame::request", "to_request", "send_due"],
)];
const OF_GATEWAY: [(Stage, &[&str]); 2] = [
    (Stage::Names, &["index::Index", "gateway::names"]),
    (
        Stage::GatewayIntake,
        &[
            "intake",
            "route",
            "permits",
            "pace",
            "connection",
            "take_frames",
            "decode",
            "write_request",
            "sockets",
        ],
    ),
];
const OF_VENUE: [(Stage, &[&str]); 2] = [
    (Stage::Names, &["venue::names"]),
    (Stage::Propose, &["sequencer", "window", "ordering", "atomic128", "venue::requests", "RequestRecord"]),
];

impl Stage {
    /// The stage of a thread's function; a name of the kernel's begins with `kernel:`.
    pub(super) fn of(who: Who, thread: &str, function: &str) -> Self {
        if function.starts_with("kernel:") {
            return Self::Kernel;
        }
        if thread == "index" {
            return Self::Index;
        }
        let is_duty = thread == "load" || thread.starts_with("turns") || thread.starts_with("pares");
        if !is_duty {
            return Self::Other;
        }
        let (own, rest): (&[(Self, &[&str])], _) = match who {
            Who::Client => (&OF_CLIENT, Self::ClientReceive),
            Who::Gateway => (&OF_GATEWAY, Self::Report),
            Who::Venue => (&OF_VENUE, Self::Match),
            Who::Recorder => (&[], Self::Record),
        };
        let tells = |(_, parts): &&(Self, &[&str])| parts.iter().any(|part| function.contains(part));
        ANYWHERE.iter().chain(own).find(tells).map_or(rest, |(stage, _)| *stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_tells_the_stage_and_the_rest_is_its_roles() {
        for (who, thread, function, stage) in [
            (Who::Client, "load", "pares_client::client::Client::send", Stage::ClientSend),
            (Who::Client, "load", "pares_client::buffers::Inbox::next", Stage::ClientReceive),
            (Who::Gateway, "pares", "pares_gateway::index::Index::find", Stage::Names),
            (Who::Gateway, "pares", "pares_gateway::intake::<impl Gateway>::journal", Stage::GatewayIntake),
            (Who::Gateway, "pares", "pares_stream::outbound::Told::read_answer", Stage::Report),
            (Who::Venue, "turns-0", "pares_book::fast::FastBook::apply_any", Stage::Match),
            (Who::Venue, "turns-1", "pares_sequencer::window::Window<M>::settle", Stage::Propose),
            (Who::Venue, "turns-1", "crc32c::hw_x86_64::crc32c", Stage::Checksum),
            (Who::Recorder, "pares", "pares_recorder::acceptance::Acceptance::offer", Stage::Record),
            (Who::Recorder, "index", "crc32c::hw_x86_64::crc32c", Stage::Index),
            (Who::Recorder, "log-prepare", "kernel:block_commit_write", Stage::Kernel),
            (Who::Recorder, "days", "pares_archive::days", Stage::Other),
        ] {
            assert_eq!(Stage::of(who, thread, function), stage, "{function}");
        }
    }
}
