//! A replayer: tells again what a publisher told, out of the publisher's log.
//!
//! ```text
//!  publisher's log --> tapes (per shard: where messages lie) --> UDP: requests, a packet each
//!                  \-> books (per shard) --> snapshots       --> TCP: the day from any number on, snapshots
//! ```
//! Whatever those who ask do, the publisher does not notice: it writes to its log and knows no reader. A publisher that is dead is replayed all the same.

mod clients;
mod counters;
mod shard;
mod tape;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use pares_config::{NodeId, SystemConfig};
use pares_feed::resending::{self, Resending};
use pares_feed::serving::{LoginAsked, Serving, TURN_BYTES_MAX};
use pares_feed::store::SessionStore;
use pares_log::{LogReader, Offset, ReadError};
use pares_roles::duty::{Duty, SLEEP_MAX};
use pares_roles::world::{Counters, Sockets};
use pares_roles::{NodeError, World, repair_asked, tail::Tail};
use pares_table::{Origin, origin};
use pares_types::{PublisherId, ReplayerId, ShardId};

use crate::lines::no_feed;
use crate::logged::Logged;
use crate::publisher::counters::Counter as Beat;
pub use clients::CLIENTS_MAX;
use clients::Clients;
use counters::{COUNTERS, Counter};
use shard::ShardTape;
use tape::{Tape, TapeStore};

/// Records of the log read in one turn.
const BATCH_MAX: usize = 512;
/// Datagrams taken in one turn.
const DATAGRAMS_MAX: usize = 256;
/// Between two looks at the publisher, nanoseconds.
const LOOK_EVERY_NS: u64 = 500_000_000;
/// A running publisher whose log is not there for so many looks has lost it: nobody but its reader of old would ever see what it writes.
const LOOKS_MISSED_MAX: u32 = 6;
/// A publisher beats each second; one that has not for so long is not there, nanoseconds.
const BEAT_MAX_NS: u64 = 2_500_000_000;
/// No request is longer; a datagram that is loses the rest and is none.
const REQUEST_BYTES_MAX: usize = 64;

/// The socket on which messages are asked for again.
pub trait Datagrams: Send + 'static {
    /// Takes the next datagram: who sent it, and how long it was. `WouldBlock` if there is none.
    ///
    /// # Errors
    /// As the system says.
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<(SocketAddr, usize)>;

    /// Sends one. It may be lost.
    fn send(&mut self, to: SocketAddr, packet: &[u8]);
}

/// A replayer.
pub struct ReplayerNode<W: World, S: Sockets, D> {
    world: W,
    publisher: NodeId,
    tail: Tail<W>,
    shards: BTreeMap<ShardId, ShardTape>,
    /// Of books.
    seed: u64,
    log: PublisherLog<W>,
    datagrams: D,
    resending: Resending<Origin, SocketAddr>,
    clients: Clients<S>,
    counters: W::Counters,
    /// When the publisher was looked at last, and whether it was there.
    looked_ns: Option<u64>,
    is_heard: bool,
    /// Looks in a row at which it was there, and its log was not.
    looks_missed: u32,
    /// Whether its log could be opened, if it is there, when that was last tried.
    is_opening: bool,
    /// Whether its log could be read on, when that was last tried.
    is_reading: bool,
}

/// The publisher's log as it is looked up.
struct PublisherLog<W: World> {
    reader: Option<W::Reader>,
    failed: Option<ReadError>,
    /// Whether another log is in its place.
    is_another: bool,
}

impl<W: World> Default for PublisherLog<W> {
    fn default() -> Self {
        Self { reader: None, failed: None, is_another: false }
    }
}

impl<W: World, S: Sockets, D: Datagrams> ReplayerNode<W, S, D> {
    /// Reads the log of the publisher whose turn it is; it may not be there yet. Has at most `clients_max` connections at a time.
    ///
    /// # Errors
    /// If the system has no market data, or shared memory is missing.
    pub fn open(
        id: ReplayerId,
        config: &SystemConfig,
        world: W,
        (sockets, datagrams): (S, D),
        clients_max: usize,
    ) -> Result<Self, NodeError> {
        let publishers = config.feed.as_ref().ok_or_else(no_feed)?.publishers;
        let publisher = NodeId::Publisher(PublisherId(id.0 % publishers));
        let counters = world.create_counters(&NodeId::Replayer(id).to_string(), COUNTERS);
        let [seed, ..] = world.random().as_chunks().0[..] else { unreachable!("32 bytes") };
        let seed = u64::from_le_bytes(seed);
        let shards = config.shards()?.into_keys().map(|shard| (shard, ShardTape::new(seed))).collect();
        Ok(Self {
            tail: Tail::new(&world, publisher, Offset::START),
            publisher,
            shards,
            seed,
            log: PublisherLog::default(),
            datagrams,
            resending: Resending::default(),
            clients: Clients::new(sockets, clients_max),
            counters: counters.map_err(NodeError::io("making the replayer's counters"))?,
            looked_ns: None,
            is_heard: false,
            looks_missed: 0,
            is_opening: true,
            is_reading: true,
            world,
        })
    }

    /// Waits at most so long for anything to come by a socket, the bell included.
    ///
    /// # Errors
    /// As the system says.
    pub fn poll_sockets(&mut self, timeout: Duration) -> Result<(), NodeError> {
        self.clients.poll(timeout).map_err(NodeError::io("polling the sockets"))
    }

    /// Reads on in the publisher's log.
    fn read_log(&mut self) -> usize {
        for read in 0..BATCH_MAX {
            if self.tail.take_replaced() {
                self.begin_anew();
            }
            let next = self.tail.next_durable();
            self.is_reading = next.is_ok();
            match next {
                Ok(Some(record)) => {
                    let follows = on_logged(&mut self.shards, &self.counters, record.offset, record.payload);
                    if !follows {
                        repair_asked::ask(&self.world, self.publisher);
                    }
                }
                Ok(None) => return read,
                Err(error) => {
                    self.log.failed = Some(error);
                    self.log.is_another |= self.log.reader.as_ref().is_some_and(LogReader::is_replaced);
                    return read;
                }
            }
        }
        BATCH_MAX
    }

    /// Another log is in the place of the publisher's: it has the same messages, elsewhere.
    fn begin_anew(&mut self) {
        self.shards.values_mut().for_each(|shard| *shard = ShardTape::new(self.seed));
        self.log = PublisherLog::default();
        self.counters.add(Counter::LogAnew, 1);
    }

    /// Has the publisher repair its log if that is damaged. What cannot be read because another log is there by now is read from its beginning,
    /// wherever this one had come.
    fn complain(&mut self) {
        if self.log.is_another {
            self.tail = Tail::new(&self.world, self.publisher, Offset::START);
            return self.begin_anew();
        }
        if let Some(error) = self.log.failed.take()
            && error.is_damage()
            && !repair_asked::is_asked(&self.world, self.publisher)
        {
            self.world.complain(&format_args!("the log of {} is damaged: {error}", self.publisher));
            repair_asked::ask(&self.world, self.publisher);
        }
    }

    /// Answers requests for messages.
    fn resend(&mut self, now_ns: u64) -> usize {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        for taken in 0..DATAGRAMS_MAX {
            let (from, length) = match self.datagrams.receive(&mut bytes) {
                Ok(received) => received,
                // None came, or an earlier answer failed on its way, which shows here: the next turn continues.
                Err(_) => return taken,
            };
            let asker = (origin(from.ip(), Ipv4Addr::UNSPECIFIED.into()), from);
            let request = &bytes[..length.min(REQUEST_BYTES_MAX)];
            let session = resending::session_of(request);
            let found = session.and_then(|session| session.shard()).filter(|at| self.shards.contains_key(at));
            let Self { world, publisher, shards, log, resending, .. } = self;
            let packet = match found {
                None => resending.on_request(asker, request, now_ns, None),
                Some(shard) => {
                    let lent = log.with(world, *publisher, (shard, &shards[&shard].tape), |store| {
                        resending.on_request(asker, request, now_ns, Some(store))
                    });
                    resending.resent.unreadable += u64::from(lent.is_none());
                    lent.flatten()
                }
            };
            if let Some(packet) = packet {
                self.datagrams.send(from, &packet);
            }
        }
        DATAGRAMS_MAX
    }

    /// Continues all books and snapshots.
    fn step_shards(&mut self, now_ns: u64) -> usize {
        let Self { world, publisher, shards, log, counters, .. } = self;
        let mut steps = 0;
        for (&shard, of) in shards {
            let store = |tape: &Tape, act: &mut dyn FnMut(&mut dyn SessionStore)| {
                log.with(world, *publisher, (shard, tape), |store| act(store));
            };
            let (stepped, made) = of.step(store, now_ns);
            steps += usize::from(stepped);
            counters.add(Counter::Snapshots, u64::from(made));
        }
        steps
    }

    /// Answers those who logged in.
    fn answer(&mut self) {
        let shards = &mut self.shards;
        for (serving, asked) in self.clients.asking() {
            let shard = asked.shard().or_else(|| shards.keys().next().copied());
            match shard.and_then(|shard| shards.get_mut(&shard)).filter(|of| !of.tape.standing().is_empty()) {
                None => serving.reject(),
                Some(of) => answer(serving, asked, of),
            }
        }
    }

    /// Looks now and then whether the publisher is there: without it no replayer knows whether more was committed than its log holds.
    fn listen(&mut self, now_ns: u64) {
        if self.looked_ns.is_some_and(|looked_ns| now_ns < looked_ns.saturating_add(LOOK_EVERY_NS)) {
            return;
        }
        self.looked_ns = Some(now_ns);
        let beat_ns = self.world.counter(&self.publisher.to_string(), Beat::BeatNs.name());
        // A beat of before the host was started lies ahead.
        self.is_heard = beat_ns.is_some_and(|beat_ns| now_ns.abs_diff(beat_ns) < BEAT_MAX_NS);
        self.look_for_log();
    }

    /// A publisher does not notice that its directory was removed: the replayer asks it to rebuild its log.
    fn look_for_log(&mut self) {
        let log = self.world.read_log_from_start(self.publisher);
        let is_there = !matches!(log, Err(ReadError::NotYet { .. }));
        self.is_opening = log.is_ok() || !is_there;
        let is_missed = self.is_heard && !is_there;
        self.looks_missed = if is_missed { self.looks_missed + 1 } else { 0 };
        if self.looks_missed == LOOKS_MISSED_MAX {
            self.looks_missed = 0;
            self.world.complain(&format_args!(
                "{} runs, but its log is missing: asking it to rebuild the log",
                self.publisher
            ));
            repair_asked::ask(&self.world, self.publisher);
        }
    }

    /// Writes to every client what is due. Says whether there was anything.
    fn serve(&mut self, now_ns: u64) -> usize {
        let Self { world, publisher, shards, log, clients, is_heard, is_reading, .. } = self;
        let mut served = 0;
        for client in clients.each() {
            client.serving.mute(!(*is_heard && *is_reading));
            client.serving.on_time(now_ns);
            served += usize::from(client.read(now_ns));
            if client.has_room() {
                let found = client.serving.reads().and_then(|shard| Some((shard, shards.get(&shard)?)));
                client.fill(|serving, out| match found {
                    None => serving.fill(out, TURN_BYTES_MAX, now_ns, None),
                    Some((shard, of)) => {
                        log.with(world, *publisher, (shard, &of.tape), |store| {
                            serving.fill(out, TURN_BYTES_MAX, now_ns, Some(store));
                        });
                    }
                });
            }
            served += usize::from(client.write(now_ns));
        }
        served
    }

    fn count(&self) {
        let resent = self.resending.resent;
        let all = [
            (Counter::Resent, resent.answered),
            (Counter::Malformed, resent.malformed),
            (Counter::Strange, resent.strange),
            (Counter::NotThere, resent.not_there),
            (Counter::TooMany, resent.too_many),
            (Counter::Unreadable, resent.unreadable),
            (
                Counter::UnreadableLogs,
                u64::from(!(self.is_reading && self.is_opening) || self.looks_missed > 0),
            ),
            (Counter::Clients, self.clients.open() as u64),
            (Counter::TurnedAway, self.clients.turned_away),
            (Counter::FailedHandshakes, self.clients.failed_handshakes()),
            (Counter::Ended, self.clients.ended),
        ];
        all.into_iter().for_each(|(counter, value)| self.counters.set(counter, value));
    }
}

fn answer(serving: &mut Serving, asked: LoginAsked, of: &mut ShardTape) {
    match (asked.snapshot, of.fresh()) {
        (false, _) => serving.answer(of.tape.standing()),
        (true, Some(snapshot)) => serving.answer_snapshot(snapshot),
        (true, None) => of.is_wanted = true,
    }
}

/// The next record of the log. Says whether it follows what came before.
fn on_logged(
    shards: &mut BTreeMap<ShardId, ShardTape>,
    counters: &impl Counters,
    offset: Offset,
    payload: &[u8],
) -> bool {
    let Ok(Logged::Published(published)) = Logged::read(payload) else { return true };
    counters.add(Counter::Messages, published.count.into());
    let Some(of) = shards.get_mut(&published.shard) else { return true };
    of.grew();
    of.tape.on_published(offset, &published)
}

impl<W: World> PublisherLog<W> {
    /// Lends a shard's sessions to `act`. Not at all while the log cannot be opened.
    fn with<T>(
        &mut self,
        world: &W,
        publisher: NodeId,
        (shard, tape): (ShardId, &Tape),
        act: impl FnOnce(&mut dyn SessionStore) -> T,
    ) -> Option<T> {
        // Places in the log that was say nothing of the one that is: nothing is read before all is known again.
        self.is_another |= self.reader.as_ref().is_some_and(LogReader::is_replaced);
        if self.is_another {
            return None;
        }
        if self.reader.is_none() {
            self.reader = world.read_log_from_start(publisher).ok();
        }
        let (log, failed) = (self.reader.as_mut()?, &mut self.failed);
        Some(act(&mut TapeStore { shard, tape, log, failed }))
    }
}

impl<W: World, S: Sockets, D: Datagrams> Duty for ReplayerNode<W, S, D> {
    fn work(&mut self) -> Result<usize, NodeError> {
        let now_ns = self.world.mono_ns();
        self.poll_sockets(Duration::ZERO)?;
        let read = self.read_log();
        let mut done = read + self.clients.take_in(now_ns) + self.resend(now_ns);
        done += self.step_shards(now_ns);
        self.listen(now_ns);
        self.answer();
        done += self.serve(now_ns);
        self.clients.close();
        self.complain();
        self.count();
        Ok(done)
    }

    fn look_everywhere(&mut self) {
        self.tail.look();
    }

    fn sleep_max(&self) -> Duration {
        let left_ns = self.clients.deadline_ns().saturating_sub(self.world.mono_ns());
        SLEEP_MAX.min(Duration::from_nanos(left_ns))
    }
}
