//! A venue takes checkpoints while it works, and hands them out in pieces.
//!
//! ```text
//!            due, no peer is at it        paced pieces: a tenth of the time, 16 MiB/s at most
//!  resting ------------------------> taking ----------------------------------------> resting
//!            head and hash are fixed    | books, in order of id; changed ones first kept
//!                                       +--> own log --> recorders --> files
//! ```
//! | it fails where | then |
//! |---|---|
//! | this venue dies | recorders have a part, which the venue's next checkpoint replaces |
//! | the shard is lost and restored, or a request has too many books kept at once | nothing more is sent; as above |
//! | the log is full | the piece waits; books continue to be kept |
//! | the state is 4 GiB or more | the checkpoint is given up; joining means a longer replay |
//!
//! The pace goes by all shards of the system, not only by those that the venue executes: who starts, a gateway too, reads the record from
//! the oldest of the newest checkpoints, so those of a quiet lane have to follow a busy one.
//!
//! Two checkpoints at one time would disturb twice as much, so a venue looks at what its peers' counters say, those that execute
//! a shard of its own. That is a hint: a peer
//! that died in the middle says the same for ever, so one whose bytes stand still does not count.

use std::time::Duration;

use pares_config::{NodeId, Placement, SystemConfig};
use pares_log::{AppendError, LogWriter, Offset};
use pares_sequencer::Sequencer;
use pares_types::{Epoch, Position, ShardId, VenueId, VenueSet};
use pares_venue::{Pacing, Piece, PiecePacing};
use pares_wire::record::{self, CheckpointChunk};
use zerocopy::IntoBytes;

use super::Counter;
use super::out::Out;
use super::seat::{ShardSeat, ShardStep, executed};
use crate::NodeError;
use crate::world::{Counters, World};

const PIECE_BYTES: usize = 16 << 10;
/// Bytes of a buffer that is kept between checkpoints; a large book needs more for a while.
const SPARE_BYTES: usize = 1 << 20;

/// Between two looks at how far the shards of other lanes have come.
pub(super) const LOOK_NS: u64 = 50_000_000;

pub(super) struct Checkpointing<W: World> {
    world: W,
    pacing: Pacing,
    elsewhere: Elsewhere<W>,
    pieces: PiecePacing,
    outgoing: Option<Outgoing>,
    /// A buffer for the next one.
    spare: Vec<u8>,
    peers: Vec<Peer>,
    /// The venue's part of all positions, as of the last look.
    count: u64,
}

/// The shards that others execute and this venue does not.
struct Elsewhere<W: World> {
    windows: Vec<W::Window>,
    /// The positions recorded there, as of the last look.
    recorded: u64,
    look_ns: u64,
}

impl<W: World> Elsewhere<W> {
    fn new(world: &W, id: VenueId, placement: &Placement) -> Self {
        let windows =
            placement.shards_without(id).filter_map(|shard| world.open_window(shard).ok().flatten());
        let mut elsewhere = Self { windows: windows.collect(), recorded: 0, look_ns: 0 };
        elsewhere.look(world.mono_ns());
        elsewhere
    }

    fn look(&mut self, now_ns: u64) {
        if now_ns >= self.look_ns {
            self.look_ns = now_ns + LOOK_NS;
            let recorded = self.windows.iter().map(|window| window.recorded().0).sum();
            assert!(recorded >= self.recorded, "what is recorded stays so");
            self.recorded = recorded;
        }
    }

    /// The venue's part of all positions, by its part of the shards: all lanes together take as many checkpoints as one would.
    fn count(&self, seats: &[ShardSeat<W>]) -> u64 {
        let (all, own) = (executed(seats) + self.recorded, seats.len() as u128);
        let part = u128::from(all) * own / (own + self.windows.len() as u128);
        u64::try_from(part).expect("a part is no more than the whole")
    }
}

/// A checkpoint being taken and handed out.
struct Outgoing {
    seat: usize,
    shard: ShardId,
    epoch: Epoch,
    position: Position,
    began_ns: u64,
    /// Written and not handed out, from `ready_from` on.
    ready: Vec<u8>,
    ready_from: usize,
    /// Bytes handed out.
    sent: u64,
    /// Whether `ready` ends with the checkpoint's last byte.
    is_whole: bool,
}

/// Another venue's counters, and how many bytes it had handed out when last looked at.
struct Peer {
    name: String,
    bytes: u64,
}

impl Peer {
    /// Whether it is taking a checkpoint, as far as can be seen.
    fn is_busy<W: World>(&mut self, world: &W) -> bool {
        let of = |counter: Counter| world.counter(&self.name, counter.name()).unwrap_or_default();
        let (bytes, taking) = (of(Counter::CheckpointBytes), of(Counter::Checkpointing) > 0);
        let moved = std::mem::replace(&mut self.bytes, bytes) != bytes;
        taking && moved
    }

    /// Whether it is restoring its shards, as far as can be seen: that disturbs as much as a checkpoint does.
    fn is_joining<W: World>(&self, world: &W) -> bool {
        world.counter(&self.name, Counter::Resynced.name()) == Some(0)
    }
}

impl<W: World> Checkpointing<W> {
    /// Nothing under way; `seats` are as restored.
    pub(super) fn new(
        world: &W,
        id: VenueId,
        (config, placement): (&SystemConfig, &Placement),
        seats: &[ShardSeat<W>],
    ) -> Self {
        let mut pacing = Pacing::new(config.checkpoint_every, turn(id, placement), seats.len());
        let elsewhere = Elsewhere::new(world, id, placement);
        let count = elsewhere.count(seats);
        for (shard, seat) in seats.iter().enumerate() {
            pacing.on_checkpoint(shard, seat.restored_reach.0, count);
        }
        Self {
            world: world.clone(),
            pacing,
            elsewhere,
            pieces: PiecePacing::default(),
            outgoing: None,
            spare: Vec::new(),
            peers: peers(id, placement),
            count,
        }
    }

    /// The venue executes other shards than `before`, or with others. A checkpoint under way continues, unless its shard has left. What comes is
    /// covered by the others' checkpoints up to now.
    pub(super) fn follow(
        &mut self,
        id: VenueId,
        placement: &Placement,
        (before, seats): (&[ShardId], &[ShardSeat<W>]),
        (reach, out): (Offset, &Out<W>),
    ) {
        if let Some(outgoing) = &mut self.outgoing {
            match seats.binary_search_by_key(&outgoing.shard, |seat| seat.id) {
                Ok(index) => outgoing.seat = index,
                Err(_) => self.end(out),
            }
        }
        let old = self.count;
        self.elsewhere = Elsewhere::new(&self.world, id, placement);
        self.count = self.elsewhere.count(seats);
        let places = seats.iter().map(|seat| before.binary_search(&seat.id).ok());
        self.pacing.follow(turn(id, placement), places, (reach.0, old, self.count));
        self.peers = peers(id, placement);
    }

    /// A recorder has stored a checkpoint of the shard at that seat, of a position executed here; `reach` is how far
    /// into the committed stream that notice was.
    pub(super) fn on_stored(&mut self, seat: usize, reach: Offset, seats: &[ShardSeat<W>]) {
        let count = self.elsewhere.count(seats);
        self.pacing.on_checkpoint(seat, reach.0, count);
    }

    /// Begins a checkpoint if one is due; `reach` is how far the committed stream is read.
    pub(super) fn consider(&mut self, seats: &mut [ShardSeat<W>], reach: Offset, out: &Out<W>) {
        if self.outgoing.is_some() {
            return;
        }
        let now = self.world.mono_ns();
        self.elsewhere.look(now);
        let count = self.elsewhere.count(seats);
        self.count = count;
        let behind = || seats.iter().any(ShardSeat::is_behind);
        let is_here = |shard: usize| seats[shard].bench.is_some();
        let Some(index) = self.pacing.due((now, count), is_here, behind) else { return };
        if self.peers.iter_mut().any(|peer| peer.is_busy(&self.world)) {
            return;
        }
        // One that died as it joined says so for ever.
        if !self.pacing.is_long(count) && self.peers.iter().any(|peer| peer.is_joining(&self.world)) {
            return;
        }
        let seat = &mut seats[index];
        let Some(bench) = &mut seat.bench else { return };
        let mut ready = std::mem::take(&mut self.spare);
        assert!(ready.is_empty(), "a buffer is emptied before it is kept");
        let position = bench.shard.begin_checkpoint(&mut ready);
        assert_eq!(position, seat.reached, "a checkpoint is of all that is handed out, and no more");
        self.pacing.on_checkpoint(index, reach.0, count);
        self.outgoing = Some(Outgoing {
            seat: index,
            shard: seat.id,
            epoch: bench.order.epoch(),
            position,
            began_ns: now,
            ready,
            ready_from: 0,
            sent: 0,
            is_whole: false,
        });
        out.counters.set(Counter::Checkpointing, 1);
        let ended = self.world.mono_ns();
        self.pieces.on_piece(now, ended, 0);
    }

    /// Hands out the next piece of the checkpoint under way, if it is time for it.
    pub(super) fn send_piece(
        &mut self,
        seats: &mut [ShardSeat<W>],
        out: &mut Out<W>,
    ) -> Result<usize, NodeError> {
        let Some(outgoing) = &mut self.outgoing else { return Ok(0) };
        assert_eq!(seats[outgoing.seat].id, outgoing.shard, "a checkpoint is of the shard at its seat");
        let began = self.world.mono_ns();
        if self.pieces.pause_ns(began) > 0 {
            return Ok(0);
        }
        if !outgoing.write_more(seats) {
            if let Some(bench) = &mut seats[outgoing.seat].bench {
                bench.shard.abandon_checkpoint();
            }
            self.end(out);
            return Ok(0);
        }
        let sent = out.piece(outgoing)?;
        assert!(sent <= PIECE_BYTES as u64, "no more than a piece of a checkpoint is handed out at once");
        let is_over = sent > 0 && outgoing.is_over();
        self.pieces.on_piece(began, self.world.mono_ns(), sent);
        out.counters.add(Counter::CheckpointBytes, sent);
        if is_over {
            out.counters.add(Counter::Checkpoints, 1);
            self.end(out);
        }
        Ok(usize::from(sent > 0))
    }

    fn end(&mut self, out: &Out<W>) {
        let Some(outgoing) = self.outgoing.take() else { return };
        self.pacing.on_handed_out(outgoing.began_ns, self.world.mono_ns());
        self.spare = outgoing.ready;
        self.spare.clear();
        self.spare.shrink_to(SPARE_BYTES);
        out.counters.set(Counter::Checkpointing, 0);
    }

    /// How long the venue may sleep at most, so that the next piece is in time.
    pub(super) fn sleep_max(&self, most: Duration) -> Duration {
        match self.outgoing {
            Some(_) => most.min(Duration::from_nanos(self.pieces.pause_ns(self.world.mono_ns()))),
            None => most,
        }
    }
}

/// A venue's place among those with which it takes turns.
fn turn(id: VenueId, placement: &Placement) -> (u64, u64) {
    let all = placement.peers_of(id);
    (all.iter().take_while(|&peer| peer < id).count() as u64, all.len().into())
}

fn peers(id: VenueId, placement: &Placement) -> Vec<Peer> {
    let others = placement.peers_of(id).without(VenueSet::one(id));
    others.iter().map(|peer| Peer { name: NodeId::Venue(peer).to_string(), bytes: 0 }).collect()
}

impl Outgoing {
    /// Sees to it that something is ready to be handed out; `false` if the checkpoint cannot continue.
    fn write_more<W: World>(&mut self, seats: &mut [ShardSeat<W>]) -> bool {
        if self.ready_from < self.ready.len() {
            return true;
        }
        assert!(!self.is_whole, "nothing follows the last piece of a checkpoint");
        self.ready.clear();
        self.ready_from = 0;
        let Some(ShardStep { world, shard, .. }) = seats[self.seat].bench.as_deref_mut() else {
            return false;
        };
        self.is_whole = match shard.checkpoint_piece(&mut self.ready, PIECE_BYTES, &mut || world.give_way()) {
            Piece::Part => false,
            Piece::Last => true,
            Piece::NoCheckpoint => return false,
        };
        u32::try_from(self.sent + self.ready.len() as u64).is_ok()
    }

    fn is_over(&self) -> bool {
        assert!(self.ready_from <= self.ready.len(), "no more is handed out than is ready");
        self.is_whole && self.ready_from == self.ready.len()
    }
}

impl<W: World> Out<W> {
    /// Appends the next piece; says how many bytes of the checkpoint that were, 0 if there is no room for them.
    fn piece(&mut self, outgoing: &mut Outgoing) -> Result<u64, NodeError> {
        let end = outgoing.ready.len().min(outgoing.ready_from + PIECE_BYTES);
        let piece = &outgoing.ready[outgoing.ready_from..end];
        let bytes = piece.len() as u64;
        assert!(bytes > 0, "a piece is handed out while something is ready");
        let field = |value: u64| u32::try_from(value).expect("checked when it was written").into();
        let is_last = outgoing.is_whole && end == outgoing.ready.len();
        let head = CheckpointChunk {
            schema: record::CHECKPOINT_CHUNK,
            version: record::VERSION,
            shard: outgoing.shard.0.into(),
            epoch: outgoing.epoch.0.into(),
            position: outgoing.position.0.into(),
            total_bytes: field(if is_last { outgoing.sent + bytes } else { 0 }),
            start: field(outgoing.sent),
        };
        let appended = self.writer.append_with(size_of::<CheckpointChunk>() + piece.len(), |out| {
            let (head_bytes, rest) = out.split_at_mut(size_of::<CheckpointChunk>());
            head_bytes.copy_from_slice(head.as_bytes());
            rest.copy_from_slice(piece);
        });
        match appended {
            Ok(_) => {}
            Err(AppendError::Full) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        self.appended = true;
        outgoing.sent += bytes;
        outgoing.ready_from = end;
        Ok(bytes)
    }
}
