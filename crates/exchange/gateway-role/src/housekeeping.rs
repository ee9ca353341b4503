//! What a gateway does at the end of each turn: its log is released, its counters are set, the silent are looked for.

use pares_log::{LogWriter, Offset};
use pares_roles::inlet::LogCursor;
use pares_roles::world::{Counters, Sockets, World};

use crate::GatewayNode;
use crate::counters::Counter;
use crate::tap;

/// Between two looks for connections that went silent.
const SWEEP_EVERY_NS: u64 = 1_000_000_000;

impl<W: World, S: Sockets> GatewayNode<W, S> {
    /// Releases what is answered, and says in counters how it goes.
    pub(crate) fn housekeep(&mut self) {
        let edge = &mut self.edge;
        let answered = self.rules.answered_offset(edge.writer.tail().0);
        assert!(answered <= edge.writer.tail().0, "nothing is answered that is not in the log");
        edge.counters.set(Counter::AnsweredOffset, answered);
        edge.counters.set(Counter::ShardsNotRecorded, self.rules.standing_still() as u64);
        let released =
            self.marks.keep_behind(answered, edge).min(self.spent_logons.keep_behind(answered, edge));
        assert!(released <= answered, "a log is released up to what is answered, at most");
        edge.writer.release_before(Offset(released));
        edge.counters.set(Counter::Sessions, edge.connections.len() as u64);
        edge.counters.set(Counter::InFlight, self.rules.in_flight() as u64);
        edge.counters.set(Counter::Room, self.rules.room() as u64);
        edge.counters.set(Counter::Resuming, self.resuming.len() as u64);
        edge.counters.set(Counter::Names, self.rules.names() as u64);
        edge.counters.set(Counter::NamesNeeded, self.rules.names_needed() as u64);
        let turned_away = edge.connections.turned_away();
        edge.counters.set(Counter::FailedHandshakes, turned_away.failed);
        edge.counters.set(Counter::RefusedConnections, edge.connections.refused + turned_away.crowded);
        edge.counters.set(Counter::MalformedConnections, edge.connections.malformed);
        edge.counters.set(Counter::SlowConnections, edge.connections.slow);
        edge.counters.set(Counter::SilentConnections, edge.connections.silent + turned_away.silent);
        edge.counters.set(Counter::SlowedReads, edge.connections.parkings);
        if let Some(tally) = edge.connections.tap_turn() {
            edge.counters.set(Counter::TapBytes, tally.bytes);
            edge.counters.set(Counter::TapLostEntries, tally.lost_entries);
            edge.counters.set(Counter::TapLostBytes, tally.lost_bytes);
            tap::keep_untold(&edge.counters, tally.untold);
        }
        let unreadable = self.peers.iter().filter(|peer| peer.tail.is_unreadable()).count();
        edge.counters.set(Counter::UnreadableLogs, (unreadable + self.committed.unreadable()) as u64);
        edge.counters.set(Counter::Damaged, self.peers.iter().map(LogCursor::damaged).sum());
        let mono_ns = edge.world.mono_ns();
        if mono_ns.saturating_sub(self.swept_ns) >= SWEEP_EVERY_NS {
            if edge.connections.sweep(mono_ns) {
                self.swept_ns = mono_ns;
            }
            if let Some(syncer) = &self.syncer {
                syncer.request();
            }
        }
    }
}
