//! The local stream at one server: items that wait, are decided, are kept, and may be told.
//!
//! ```text
//!  submissions of all servers --> lanes --propose--> window --decided--> next record --append--> own log
//!                                                                          ^
//!                            a peer's records, below the recorded mark ----+
//! ```
//! A position has one item, decided by the window. A server takes it from the window while it keeps up, and from a peer's log when it does
//! not (started again, too far behind, bytes released meanwhile). Both end in the same [`LocalStream::take`]; which of them
//! brought it does not show in the log. As at a recorder of the exchange each position is taken once, from the first that has it
//! (`pares_recorder::Acceptance`), and told once a quorum of servers has it (`pares_recorder::Quorum`).

use std::collections::BTreeMap;

use pares_recorder::{Acceptance, NOBODY, Offer, Quorum, Source, Statement, Verdict};
use pares_sequencer::{ProposeError, Sequencer};
use pares_types::{Epoch, GatewayId, Position, RecorderId, RequestId, VenueId, VenueSet};

use crate::item::{ItemError, OrderedItem, SubmittedItem, TraderId};
use crate::lanes::Lanes;
use crate::names::{ItemNames, SubmissionState};

/// Positions proposed for in one go.
const PROPOSED_MAX: usize = 256;
/// Decided positions known and not taken, at most.
const DECIDED_MAX: usize = 512;

/// The local stream at one server.
#[derive(Clone, Debug)]
pub struct LocalStream {
    server: u16,
    epoch: Epoch,
    lanes: Lanes,
    names: ItemNames,
    acceptance: Acceptance,
    quorum: Quorum,
    /// The highest number of each shard's reports that any server has submitted.
    reported: BTreeMap<TraderId, u64>,
    batch: Vec<RequestId>,
    decided: Vec<RequestId>,
}

/// What became of a peer's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Append it, then [`LocalStream::take`] it.
    Take,
    /// It is here already.
    Known,
    /// Earlier ones must come first.
    Early,
    /// It is not recorded, as far as this server knows: the window brings it.
    Unrecorded,
    /// It contradicts what is here.
    Contradicts,
}

impl LocalStream {
    /// An empty stream at `server` of so many, told once so many have it.
    ///
    /// # Panics
    /// Unless `1 <= quorum <= servers <= 16`, and the server is one of them.
    #[must_use]
    pub fn new(server: u16, servers: u16, quorum: u16, epoch: Epoch) -> Self {
        assert!(server < servers, "server {server} of {servers}");
        Self {
            server,
            epoch,
            lanes: Lanes::new(servers),
            names: ItemNames::default(),
            acceptance: Acceptance::new(epoch, VenueSet::first(servers)),
            quorum: Quorum::new(servers.into(), quorum.into()),
            reported: BTreeMap::new(),
            batch: Vec::new(),
            decided: Vec::new(),
        }
    }

    /// The next position to take: all below lies in the server's own log.
    #[must_use]
    pub fn next(&self) -> Position {
        self.lanes.next()
    }

    /// Traders may be told of positions below.
    #[must_use]
    pub fn told(&self) -> Position {
        self.quorum.committed().min(self.next())
    }

    /// The names ordered so far.
    #[must_use]
    pub fn names(&self) -> &ItemNames {
        &self.names
    }

    /// Submitted and not ordered, as far as this server knows.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.lanes.waiting()
    }

    /// Whether nothing more should be taken in.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.lanes.is_full()
    }

    /// The highest sequence of a server that was ordered.
    #[must_use]
    pub fn through(&self, server: GatewayId) -> u64 {
        self.lanes.through(server)
    }

    /// Learns a record of the server's own log as it starts, in the log's order.
    ///
    /// # Errors
    /// If it is none, or not the next one: the log is damaged.
    pub fn recover(&mut self, record: &[u8]) -> Result<(), ItemError> {
        let ordered = OrderedItem::read(record)?;
        if ordered.position != self.next() {
            return Err(ItemError::Field("position"));
        }
        if !self.fits(&ordered) {
            return Err(ItemError::Field("flags"));
        }
        self.acceptance.recover(&offer(&ordered, record, Source::Peer, NOBODY));
        self.note(&ordered);
        Ok(())
    }

    /// All below `recorded` was recorded by a quorum before this server started.
    pub fn start_at(&mut self, recorded: Position) {
        self.quorum.start_at(recorded);
    }

    /// What that server submitted under sequences up to `through` and no server ordered is void. Before anything of it is taken in.
    pub fn void(&mut self, server: GatewayId, through: u64) {
        self.lanes.start_after(server, through);
    }

    /// Takes in a record of any server's log of submissions. Says whether it was new.
    ///
    /// # Errors
    /// If it is none.
    pub fn on_submitted(&mut self, record: &[u8]) -> Result<bool, ItemError> {
        let item = SubmittedItem::read(record)?;
        let is_new = self.lanes.on_submitted(item.request, record);
        if is_new && !item.name.trader.is_trader() {
            let reported = self.reported.entry(item.name.trader).or_default();
            *reported = item.name.number.max(*reported);
        }
        Ok(is_new)
    }

    /// The highest number of a shard's reports that a server has submitted, ordered or not: it is ordered soon.
    #[must_use]
    pub fn reported(&self, shard: TraderId) -> u64 {
        self.names.through(shard).max(self.reported.get(&shard).copied().unwrap_or(0))
    }

    /// Proposes what waits and learns what is decided. Says how much that was.
    ///
    /// # Errors
    /// As [`Sequencer::propose`]; what was learnt before it stands.
    pub fn order(&mut self, window: &mut impl Sequencer) -> Result<usize, ProposeError> {
        let Self { lanes, batch, decided, .. } = self;
        lanes.proposals(PROPOSED_MAX, batch);
        decided.clear();
        let room = DECIDED_MAX.saturating_sub(lanes.decided());
        let proposed = window.propose(lanes.first_undecided(), batch, room, decided);
        lanes.on_decided(decided);
        proposed.map(|()| decided.len())
    }

    /// The record of the next position, if that is decided and its bytes are here, into `record` (emptied first).
    pub fn next_record(&self, record: &mut Vec<u8>) -> bool {
        let Some((_, Some(bytes))) = self.lanes.front() else { return false };
        record.clear();
        let item = SubmittedItem::read(bytes).expect("it was read when it was taken in");
        let repeats = self.names.find(item.name).map(|stands| stands.position());
        let item = if repeats.is_some() { SubmittedItem { body: &[], ..item } } else { item };
        let ordered = OrderedItem { epoch: self.epoch, position: self.next(), repeats, item };
        ordered.write(record);
        true
    }

    /// Whether the next position is decided for an item whose bytes are not here. If they stay away, a peer's log has them.
    #[must_use]
    pub fn lacks_bytes(&self) -> bool {
        matches!(self.lanes.front(), Some((_, None)))
    }

    /// Judges a record of the log of server `peer`; all below `recorded` is recorded. Above, the window decides: the record of the next position
    /// is taken if it is what was decided there, since its bytes may be nowhere else any more.
    ///
    /// # Errors
    /// If it is none.
    pub fn on_peer_record(
        &mut self,
        peer: u16,
        record: &[u8],
        recorded: Position,
    ) -> Result<Offered, ItemError> {
        let ordered = OrderedItem::read(record)?;
        if ordered.position >= recorded && !self.is_decided(&ordered) {
            return Ok(Offered::Unrecorded);
        }
        let offer = offer(&ordered, record, Source::Peer, VenueId(peer));
        Ok(match self.acceptance.offer(&offer) {
            Verdict::Take if !self.fits(&ordered) => Offered::Contradicts,
            Verdict::Take => Offered::Take,
            Verdict::Known | Verdict::Void => Offered::Known,
            Verdict::Wait => Offered::Early,
            Verdict::Found | Verdict::Halted => Offered::Contradicts,
        })
    }

    fn is_decided(&self, ordered: &OrderedItem<'_>) -> bool {
        let decided = self.lanes.front().map(|(request, _)| request);
        (ordered.epoch, ordered.position, Some(ordered.item.request)) == (self.epoch, self.next(), decided)
    }

    /// Whether a record of the next position says what this server would say there: what the window decided, as far as that is known, and
    /// whether its name stands earlier.
    fn fits(&self, ordered: &OrderedItem<'_>) -> bool {
        let repeats = self.names.find(ordered.item.name).map(SubmissionState::position);
        let decided = self.lanes.front().map(|(request, _)| request);
        ordered.repeats == repeats && decided.is_none_or(|decided| decided == ordered.item.request)
    }

    /// The record of the next position is in the server's own log now.
    ///
    /// # Panics
    /// If it is not the next.
    pub fn take(&mut self, record: &[u8]) {
        let ordered = OrderedItem::read(record).expect("only what was read is taken");
        self.acceptance.take(&offer(&ordered, record, Source::Venue, VenueId(self.server)));
        self.note(&ordered);
    }

    fn note(&mut self, ordered: &OrderedItem<'_>) {
        assert_eq!(ordered.position, self.next(), "records are taken in order");
        if ordered.repeats.is_none() {
            self.names.note(ordered.item.name, ordered.position);
        }
        self.lanes.take(ordered.item.request);
        self.count(self.server, ordered.position.next());
    }

    /// A server says that it has all below `next`.
    pub fn on_have(&mut self, server: u16, next: Position) {
        if server < self.lanes.servers() && server != self.server {
            self.count(server, next);
        }
    }

    fn count(&mut self, server: u16, next: Position) {
        let Some(last) = next.0.checked_sub(1) else { return };
        let recorder = RecorderId(server);
        self.quorum.on_record(recorder, Position(last));
        // What it has beyond counts too: one position after the other, as long as a quorum has each. A claim beyond what is here waits until
        // that comes: whatever a peer says, no more is counted than this server took.
        let end = next.min(self.next());
        while self.quorum.committed() < end && self.quorum.on_record(recorder, self.quorum.committed()) {}
    }
}

fn offer(ordered: &OrderedItem<'_>, record: &[u8], source: Source, by: VenueId) -> Offer {
    let said = Statement { request: ordered.item.request, content: digest(record), state_hash: None };
    Offer { source, venue: by, epoch: ordered.epoch, position: ordered.position, said }
}

/// A digest of a record's bytes (FNV-1a).
fn digest(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, &byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests;
