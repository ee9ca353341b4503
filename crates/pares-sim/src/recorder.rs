//! A recorder's process: the wiring of `pares_node::recorder` over logs in memory.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use pares_recorder::{Acceptance, Assembly, Divergence, Fit, Offer, Source, Statement, Verdict};
use pares_types::{Epoch, Position, ShardId, VenueId};

use crate::bug::Bug;
use crate::log::Log;
use crate::record::{Piece, Record, RecorderEntry, StoredCheckpoint, VenueEntry};

/// Positions between two remembered offsets of a shard.
const INDEX_EVERY: u64 = 4;
/// All venues speak with one voice here, so that any difference halts the shard: shutting out is not simulated.
const ANY: VenueId = VenueId(0);

struct ShardRecord {
    acceptance: Acceptance,
    /// Some positions and where their records lie, oldest first.
    index: Vec<(Position, u64)>,
    checkpoint: Position,
}

impl ShardRecord {
    fn remember(&mut self, position: Position, offset: u64) {
        if position.0.is_multiple_of(INDEX_EVERY) {
            self.index.push((position, offset));
        }
    }

    fn replay_from(&self, position: Position) -> u64 {
        let after = self.index.partition_point(|(at, _)| *at <= position);
        after.checked_sub(1).map_or(0, |before| self.index[before].1)
    }
}

/// A recorder's memory: gone when its process dies.
pub(crate) struct RecorderNode {
    epoch: Epoch,
    shards: Vec<ShardRecord>,
    /// Next offset in each venue's log.
    pub(crate) venues: Vec<u64>,
    /// Next offset in each recorder's log; its own is not read.
    pub(crate) peers: Vec<u64>,
    /// Checkpoints on their way, and what has come of them.
    assemblies: BTreeMap<(usize, ShardId), (Assembly, StoredCheckpoint)>,
    /// Checkpoints complete and not stored yet: at most one of each shard, the newest.
    complete: BTreeMap<ShardId, StoredCheckpoint>,
    /// A sync is under way; the process waits for it.
    pub(crate) syncing: bool,
    /// Whether the log takes more.
    room: bool,
    bug: Option<Bug>,
}

impl RecorderNode {
    /// Reads the recorder's own log through.
    pub(crate) fn open(
        log: &Log<RecorderEntry>,
        epoch: Epoch,
        shards: usize,
        venues: usize,
        recorders: usize,
        bug: Option<Bug>,
    ) -> Self {
        let new =
            || ShardRecord { acceptance: Acceptance::new(epoch, 1), index: vec![], checkpoint: Position(0) };
        let mut shards: Vec<_> = (0..shards).map(|_| new()).collect();
        for (offset, entry) in (0..).zip(log.range(0, log.end())) {
            match entry {
                RecorderEntry::Result(record) => {
                    let shard = &mut shards[usize::from(record.shard().0)];
                    shard.acceptance.recover(&offer(Source::Peer, record));
                    shard.remember(record.position, offset);
                }
                RecorderEntry::CheckpointStored { shard, position } => {
                    shards[usize::from(shard.0)].checkpoint = *position;
                }
            }
        }
        Self {
            epoch,
            shards,
            venues: vec![0; venues],
            peers: vec![0; recorders],
            assemblies: BTreeMap::new(),
            complete: BTreeMap::new(),
            syncing: false,
            room: true,
            bug,
        }
    }

    /// The first shard that is halted, and why.
    pub(crate) fn halted(&self) -> Option<(usize, Divergence)> {
        let shards = self.shards.iter().enumerate();
        shards.filter_map(|(shard, of)| Some((shard, of.acceptance.divergence()?))).next()
    }

    /// One duty cycle. Records lie in `log` afterwards, unpublished.
    pub(crate) fn step(
        &mut self,
        (own, room): (usize, bool),
        log: &mut Log<RecorderEntry>,
        venues: &[(&Log<VenueEntry>, u64)],
        peers: &[(&Log<RecorderEntry>, u64)],
    ) {
        self.room = room;
        let mut waiting = false;
        for (venue, (source, readable)) in venues.iter().enumerate() {
            waiting |= self.poll_venue(venue, log, source, *readable);
        }
        // Peers are asked also when nothing waits: what lies at one recorder alone no venue will send again.
        if waiting || self.bug != Some(Bug::PeersOnlyOnWait) {
            for (peer, (source, readable)) in peers.iter().enumerate().filter(|(peer, _)| *peer != own) {
                self.poll_peer(peer, log, source, *readable);
            }
        }
    }

    fn poll_venue(
        &mut self,
        venue: usize,
        log: &mut Log<RecorderEntry>,
        source: &Log<VenueEntry>,
        readable: u64,
    ) -> bool {
        while self.venues[venue] < readable {
            match source.get(self.venues[venue]) {
                VenueEntry::Result(record) => {
                    if self.accept(log, Source::Venue, record) == Verdict::Wait {
                        return true;
                    }
                }
                VenueEntry::Piece(piece) => self.assemble(venue, piece),
            }
            self.venues[venue] += 1;
        }
        false
    }

    fn poll_peer(
        &mut self,
        peer: usize,
        log: &mut Log<RecorderEntry>,
        source: &Log<RecorderEntry>,
        readable: u64,
    ) {
        let readable = source.whole_until(self.peers[peer], readable.max(self.peers[peer]));
        while self.peers[peer] < readable {
            if let RecorderEntry::Result(record) = source.get(self.peers[peer])
                && self.accept(log, Source::Peer, record) == Verdict::Wait
            {
                return;
            }
            self.peers[peer] += 1;
        }
    }

    fn accept(
        &mut self,
        log: &mut Log<RecorderEntry>,
        source: Source,
        record: &std::rc::Rc<Record>,
    ) -> Verdict {
        let shard = &mut self.shards[usize::from(record.shard().0)];
        let mut offer = offer(source, record);
        if self.bug == Some(Bug::IgnoreResults) {
            (offer.said.content, offer.said.state_hash) = (0, None);
        }
        let verdict = shard.acceptance.offer(&offer);
        if verdict == Verdict::Take && !self.room && self.bug == Some(Bug::TakeWithoutRoom) {
            shard.acceptance.take(&offer);
            return Verdict::Take;
        }
        if verdict == Verdict::Take && !self.room {
            return Verdict::Wait; // nothing is lost: it stays where it comes from until there is room
        }
        if verdict == Verdict::Take {
            let offset = log.append(RecorderEntry::Result(std::rc::Rc::clone(record)));
            shard.acceptance.take(&offer);
            shard.remember(offer.position, offset);
        }
        if verdict == Verdict::Wait && source == Source::Venue && self.bug == Some(Bug::RecordAGap) {
            log.append(RecorderEntry::Result(std::rc::Rc::clone(record)));
            return Verdict::Known;
        }
        verdict
    }

    fn assemble(&mut self, venue: usize, piece: &Piece) {
        let shard = &self.shards[usize::from(piece.shard.0)];
        if piece.epoch != self.epoch || piece.position <= shard.checkpoint {
            return;
        }
        let (shard, position) = (piece.shard, piece.position);
        let new =
            || (Assembly::new(), StoredCheckpoint { shard, position, replay_from: 0, state: Vec::new() });
        let (assembly, gathered) = self.assemblies.entry((venue, shard)).or_insert_with(new);
        let (start, bytes) = (piece.start as u64, piece.bytes.len() as u64);
        let fit = assembly.on_piece(position, start, bytes, piece.total_bytes.map(|total| total as u64));
        match fit {
            Fit::Nowhere => return,
            Fit::First => {
                let replay_from = self.shards[usize::from(shard.0)].replay_from(position);
                *gathered = StoredCheckpoint { shard, position, replay_from, state: piece.bytes.clone() };
            }
            Fit::Next | Fit::Last => gathered.state.extend_from_slice(&piece.bytes),
        }
        if fit == Fit::Last {
            self.complete.insert(shard, gathered.clone());
        }
    }

    /// Checkpoints that may be stored now that all of the log is safe: those the log reaches. One that it does not
    /// reach would outlive a power failure that its records do not, and bring back what then never happened.
    pub(crate) fn take_storable(&mut self, unreached_too: bool) -> Vec<StoredCheckpoint> {
        let shards = &self.shards;
        let storable = |shard: &ShardId, checkpoint: &StoredCheckpoint| {
            unreached_too || checkpoint.position <= shards[usize::from(shard.0)].acceptance.next()
        };
        self.complete
            .extract_if(.., |shard, checkpoint| storable(shard, checkpoint))
            .map(|(_, one)| one)
            .collect()
    }

    /// A checkpoint is stored: tells the readers of `log`.
    pub(crate) fn on_stored(&mut self, log: &mut Log<RecorderEntry>, shard: ShardId, position: Position) {
        let stored = &mut self.shards[usize::from(shard.0)].checkpoint;
        *stored = position.max(*stored);
        log.append(RecorderEntry::CheckpointStored { shard, position });
    }
}

/// The next position of each shard in a recorder's log below offset `to`, and the latest epoch met there.
pub(crate) fn recorded(log: &Log<RecorderEntry>, to: u64, shards: usize) -> (Vec<Position>, Epoch) {
    let mut next = vec![Position(0); shards];
    let mut epoch = Epoch(0);
    for entry in log.range(0, to) {
        if let RecorderEntry::Result(record) = entry {
            next[usize::from(record.shard().0)] = record.position.next();
            epoch = epoch.max(record.epoch);
        }
    }
    (next, epoch)
}

/// A record on offer, with a digest of its result.
fn offer(source: Source, record: &Record) -> Offer {
    let mut digest = std::hash::DefaultHasher::new();
    (record.outcome, &record.events).hash(&mut digest);
    let content = digest.finish() as u32;
    let said = Statement { request: record.request.id, content, state_hash: record.state_hash };
    Offer { source, venue: ANY, epoch: record.epoch, position: record.position, said }
}
