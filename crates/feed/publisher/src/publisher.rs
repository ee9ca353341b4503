//! A publisher: the committed record becomes messages, which go into its log and onto the lines.
//!
//! ```text
//!  committed stream --> Publication (per shard) --> own log --> lines --> ring replayers
//!                         |  made before: compared, not sent
//!                         +-- now and then, and before each business day: a state, into the log
//! ```
//! What is sent is in the log first, so that a replayer can send it again. Nothing waits for a batch to fill: a packet goes out with what there is.

pub(crate) mod counters;
mod recover;
mod shard;

use std::collections::BTreeMap;
use std::time::Duration;

use pares_config::{NodeId, SystemConfig};
use pares_feed::publisher::{HEARTBEAT_NS, Line};
use pares_log::{Config, LogWriter, Offset};
use pares_roles::committed::{Committed, CommittedStream};
use pares_roles::duty::{Duty, SLEEP_MAX};
use pares_roles::repair_asked::{self, RepairWatch};
use pares_roles::world::{Counters, Ring};
use pares_roles::{NodeError, World};
use pares_types::{Event, Position, PublisherId, ShardId};
use pares_wire::record::ResultRecord;
use zerocopy::IntoBytes;

use crate::lines::Lines;
use crate::logged::{HEAD_BYTES, Published, Reached};
use crate::scan::Stored;
use crate::state::{self, Places};
use counters::{COUNTERS, Counter};
use shard::{ShardFeed, Stretch, begins_day};

/// Records read from each recorder before what came of them is sent.
const BATCH_MAX: usize = 512;
/// A state is stored after so many bytes of messages, and no earlier than after so many times its own.
const STATE_EVERY_BYTES: usize = 16 << 20;
const STATE_SHARE: usize = 32;
/// How far the recorders' logs are read is marked after so many bytes of messages.
const MARK_EVERY_BYTES: usize = 1 << 20;

/// A publisher.
pub struct PublisherNode<W: World, L> {
    id: PublisherId,
    world: W,
    stream: CommittedStream<W>,
    feeds: BTreeMap<ShardId, ShardFeed>,
    outlet: Outlet<W, L>,
    marks: Marks,
    events: Vec<Event>,
    lookout: RepairWatch,
    /// Whether it has read all that the record had when it started.
    has_caught_up: bool,
    /// When the next heartbeat is due, nanoseconds.
    beat_ns: u64,
}

/// Where messages go.
struct Outlet<W: World, L> {
    writer: W::Writer,
    lines: L,
    counters: W::Counters,
    ringer: W::Ringer,
    replayers: Vec<NodeId>,
    /// Where the last session and the one before begin in the log, by shard.
    sessions: BTreeMap<ShardId, [Offset; 2]>,
    bytes_max: usize,
    /// Bytes of messages since the last mark.
    since_mark: usize,
}

/// From where in the recorders' logs all is read that is not committed yet.
///
/// A record may be shown by one recorder and not be committed. So a place counts once all that was shown up to it is.
#[derive(Default)]
struct Marks {
    settled: Places,
    coming: Option<(Places, BTreeMap<ShardId, Position>)>,
    shown: BTreeMap<ShardId, Position>,
}

/// The log of a publisher.
pub(crate) fn log_config(config: &SystemConfig) -> Config {
    Config::default().segment_bytes(config.segment_mib << 20)
}

impl<W: World, L: Lines> PublisherNode<W, L> {
    /// Opens the publisher's log and finds where to continue; a log that is damaged is rebuilt.
    ///
    /// # Errors
    /// If the log cannot be written, or the record does not reach back to where a shard must continue.
    pub fn open(id: PublisherId, config: &SystemConfig, world: W, lines: L) -> Result<Self, NodeError> {
        let recovered = recover::recover(&world, id, config)?;
        let log = NodeId::Publisher(id);
        let lookout = repair_asked::done(&world, log);
        let counters = world.create_counters(&log.to_string(), COUNTERS);
        let outlet: Outlet<W, L> = Outlet {
            writer: recovered.writer,
            lines,
            counters: counters.map_err(NodeError::io("making the publisher's counters"))?,
            ringer: world.ringer(),
            replayers: config.replayer_ids().map(NodeId::Replayer).collect(),
            sessions: recovered.sessions,
            bytes_max: recover::bytes_max(config),
            since_mark: 0,
        };
        outlet.counters.set(Counter::CatchingUp, 1);
        let (stream, feeds) = (recovered.stream, recovered.feeds);
        let (marks, events, has_caught_up, beat_ns) = (Marks::default(), Vec::new(), false, 0);
        Ok(Self { id, world, stream, feeds, outlet, marks, events, lookout, has_caught_up, beat_ns })
    }

    /// Reads what is committed, and makes messages of it.
    fn read(&mut self) -> Result<usize, NodeError> {
        let Self { stream, feeds, outlet, marks, events, world, .. } = self;
        let now_ns = world.mono_ns();
        stream.poll(BATCH_MAX, |item| match item {
            Committed::Result { record, .. } => {
                let Some(feed) = feeds.get_mut(&record.shard()) else { return Ok(()) };
                on_record(feed, &record, events, outlet, (&marks.settled, now_ns))
            }
            Committed::Shown { record } => {
                let shown = marks.shown.entry(record.shard()).or_default();
                *shown = record.position().next().max(*shown);
                Ok(())
            }
            Committed::Moved { .. } | Committed::CheckpointStored { .. } => Ok(()),
        })
    }

    /// Puts what was made into the log and sends it.
    fn send(&mut self) -> Result<usize, NodeError> {
        let now_ns = self.world.mono_ns();
        let mut sent = 0;
        for (&shard, feed) in &mut self.feeds {
            sent += feed.making.waiting.len();
            self.outlet.put(shard, feed, now_ns)?;
        }
        if let Some((&shard, _)) = self.feeds.iter().find(|(_, feed)| feed.making.differs) {
            self.begin_anew(shard)?;
        }
        if sent > 0 {
            self.outlet.ring();
        }
        Ok(sent)
    }

    /// Stores the states that are due.
    fn store(&mut self) -> Result<(), NodeError> {
        if self.outlet.since_mark < MARK_EVERY_BYTES {
            return Ok(());
        }
        if self.marks.settle(&self.stream) {
            self.outlet.since_mark = 0;
        }
        for (&shard, feed) in &mut self.feeds {
            let due = STATE_EVERY_BYTES.max(feed.state_bytes.saturating_mul(STATE_SHARE));
            if feed.since_state >= due {
                self.outlet.store(shard, feed, &self.marks.settled)?;
                self.outlet.writer.publish();
            }
        }
        Ok(())
    }

    /// Whether a shard does not send yet.
    fn is_behind(&self) -> bool {
        self.outlet.counters.get(Counter::CatchingUp) > 0
    }

    /// Shards that have made again all that the log holds send from now on.
    fn go_live(&mut self) {
        let was_caught_up = std::mem::replace(&mut self.has_caught_up, true);
        let mut behind = 0;
        for (shard, feed) in &mut self.feeds {
            match feed.making.before.back() {
                None if feed.sender.is_live() => {}
                None => feed.go_live(),
                Some(before) => {
                    behind += 1;
                    if !was_caught_up {
                        self.world.complain(&format_args!(
                            "shard {shard}: messages of session {} up to {} were already sent, but the \
                             record does not contain them yet: publishing waits for the record",
                            before.session, before.next
                        ));
                    }
                }
            }
        }
        self.outlet.counters.set(Counter::CatchingUp, behind);
    }

    /// The log is of a past that is no more: the next life rebuilds it.
    fn begin_anew(&self, shard: ShardId) -> Result<(), NodeError> {
        self.world.complain(&format_args!(
            "shard {shard}: the record contradicts messages already sent, after a power loss or a restored \
             backup. Receivers of those messages must restart the session"
        ));
        repair_asked::ask(&self.world, NodeId::Publisher(self.id));
        Err(NodeError::RepairAsked)
    }

    /// Heartbeats.
    fn beat(&mut self) {
        let now_ns = self.world.mono_ns();
        if !self.has_caught_up || now_ns < self.beat_ns {
            return;
        }
        for (&shard, feed) in &mut self.feeds {
            feed.sender.on_time(now_ns, &mut self.outlet.line(shard));
        }
        if !self.is_behind() {
            self.outlet.counters.set(Counter::BeatNs, now_ns);
        }
        let next_ns = self.feeds.values().filter_map(|feed| feed.sender.deadline_ns()).min();
        self.beat_ns = next_ns.unwrap_or(u64::MAX).min(now_ns + HEARTBEAT_NS);
    }
}

/// The next record of a shard.
fn on_record<W: World, L: Lines>(
    feed: &mut ShardFeed,
    record: &ResultRecord<'_>,
    events: &mut Vec<Event>,
    outlet: &mut Outlet<W, L>,
    (places, now_ns): (&Places, u64),
) -> Result<(), NodeError> {
    events.clear();
    for event in record.events() {
        events.push(event?);
    }
    let (request, outcome) = (record.request()?, record.outcome()?);
    let shard = record.shard();
    if begins_day(&request, &outcome) && feed.making.before.is_empty() {
        outlet.put(shard, feed, now_ns)?;
        let begins = outlet.store(shard, feed, places)?;
        outlet.begin_session(shard, begins);
    }
    feed.on_record(record.position(), (&request, &outcome), events);
    Ok(())
}

impl<W: World, L: Lines> Outlet<W, L> {
    /// Puts a shard's messages into the log, then sends them.
    fn put(&mut self, shard: ShardId, feed: &mut ShardFeed, now_ns: u64) -> Result<(), NodeError> {
        if feed.making.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut feed.making.waiting);
        for stretch in &waiting {
            self.append(shard, stretch)?;
            feed.since_state += stretch.blocks.len();
            self.since_mark += stretch.blocks.len();
        }
        self.writer.publish();
        for stretch in &waiting {
            feed.tell(stretch, now_ns, &mut self.line(shard));
            self.counters.add(Counter::Messages, stretch.count.into());
            self.counters.add(Counter::Sessions, u64::from(stretch.first == 1));
        }
        feed.sender.flush(now_ns, &mut self.line(shard));
        Ok(())
    }

    fn append(&mut self, shard: ShardId, stretch: &Stretch) -> Result<(), NodeError> {
        let Stretch { first, count, reached, position, ref blocks } = *stretch;
        let published = Published { shard, first, count, reached, position, blocks };
        self.writer.append_with(HEAD_BYTES + blocks.len(), |to| {
            let (head, rest) = to.split_at_mut(HEAD_BYTES);
            head.copy_from_slice(published.head().as_bytes());
            rest.copy_from_slice(blocks);
        })?;
        Ok(())
    }

    /// Stores what the publisher needs to continue a shard. Says where.
    fn store(&mut self, shard: ShardId, feed: &mut ShardFeed, places: &Places) -> Result<Offset, NodeError> {
        let bytes = state::write(places, &feed.publication);
        let (reached, position) = (feed.making.made.unwrap_or(Reached::NONE), feed.next);
        let stored = Stored::new(reached, position, bytes);
        (feed.since_state, feed.state_bytes) = (0, stored.bytes.len());
        self.counters.add(Counter::States, 1);
        recover::append_state(&mut self.writer, shard, &stored, self.bytes_max)
    }

    /// A session begins in the log at `begins`: what is older than the one before it goes.
    fn begin_session(&mut self, shard: ShardId, begins: Offset) {
        let sessions = self.sessions.entry(shard).or_insert([Offset::START; 2]);
        *sessions = [sessions[1], begins];
        let needed = self.sessions.values().map(|[before, _]| *before).min();
        self.writer.release_before(needed.unwrap_or(Offset::START));
    }

    fn ring(&mut self) {
        for &replayer in &self.replayers {
            self.ringer.ring(replayer);
        }
    }

    fn line(&mut self, shard: ShardId) -> OneLine<'_, L, W::Counters> {
        OneLine { lines: &mut self.lines, counters: &self.counters, shard }
    }
}

/// The lines of one shard.
struct OneLine<'a, L, C> {
    lines: &'a mut L,
    counters: &'a C,
    shard: ShardId,
}

impl<L: Lines, C: Counters> Line for OneLine<'_, L, C> {
    fn send(&mut self, packet: &[u8]) {
        let unsent = self.lines.send(self.shard, packet);
        self.counters.add(Counter::Packets, 1);
        self.counters.add(Counter::Unsent, unsent);
    }
}

impl Marks {
    /// Makes a mark, and looks whether it counts by now.
    fn settle<W: World>(&mut self, stream: &CommittedStream<W>) -> bool {
        let (places, shown) =
            self.coming.take().unwrap_or_else(|| (stream.read_last().to_vec(), self.shown.clone()));
        let counts = shown.iter().all(|(&shard, &shown)| stream.committed(shard) >= shown);
        match counts {
            true => self.settled = places,
            false => self.coming = Some((places, shown)),
        }
        counts
    }
}

impl<W: World, L: Lines> Duty for PublisherNode<W, L> {
    fn work(&mut self) -> Result<usize, NodeError> {
        if self.lookout.is_due(&self.world)? {
            self.outlet.counters.set(Counter::UnreadableLogs, self.stream.unreadable() as u64);
        }
        let read = self.read()?;
        let sent = self.send()?;
        if sent > 0 {
            self.store()?;
        }
        if self.is_behind() && (self.has_caught_up || read < BATCH_MAX) {
            self.go_live();
        }
        self.beat();
        Ok(read)
    }

    fn look_everywhere(&mut self) {
        self.stream.look();
    }

    fn sleep_max(&self) -> Duration {
        let left_ns = self.beat_ns.saturating_sub(self.world.mono_ns());
        SLEEP_MAX.min(Duration::from_nanos(if self.has_caught_up { left_ns } else { u64::MAX }))
    }
}
