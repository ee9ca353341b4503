//! Members' streams told from the record: what sessions missed, until they can be told the rest live.
//!
//! ```text
//!   recorder's log   |--- told before ---|--- missed: read here ---|  committed: live from here
//!                    ^ numbers counted from here                   ^ position to come, of the rules
//! ```
//! A recorder's log has each record of a shard once and in order, and all below the position that the rules have followed is committed, so
//! one log is enough. Recorders' indexes say where in it to begin. If it cannot be read, or is behind, another one is. Members are read for in turn, a bounded number of records in
//! each turn of the duty cycle, and not while a client leaves unread what it was sent.

use std::collections::{BTreeMap, VecDeque};

use pares_gateway::{Gateway, Resume, SessionId};
use pares_log::{LogReader, Offset, ReadError};
use pares_stream::Told;
use pares_types::{Event, MemberId, Position, Reason, RecorderId, ShardId};
use pares_wire::frame;
use pares_wire::record::{self, ResultRecord};

use super::counters::Counter;
use super::edge::Edge;
use crate::index::{Start, Starts, Wanted};
use crate::world::{Counters, Sockets, World};
use crate::{NodeError, NodeId, repair_asked};

/// Records read in one turn for all, and for one before the next has its turn.
const TURN_MAX: usize = 1_024;
const PORTION_MAX: usize = 256;
/// Sessions looked at in one turn, and logs that are open for them.
const LOOKS_MAX: usize = 64;
const READERS_MAX: usize = 64;
/// Unread output beyond which a client is not read for.
const UNREAD_MAX: usize = 64 << 10;
/// How long a log may be behind what is committed before another one is read.
const BEHIND_NS: u64 = 1_000_000_000;
/// Before a log is tried after another one failed.
const RETRY_NS: u64 = 100_000_000;

/// All sessions that are being told what they missed.
pub(super) struct Resuming<W: World> {
    /// The way to those of whom it is being looked for where to begin.
    starts: Starts,
    queue: VecDeque<Missed<W>>,
    /// Both, and from where the session has asked again meanwhile.
    under_way: BTreeMap<(SessionId, ShardId), Option<u64>>,
    recorders: u16,
    readers: usize,
    events: Vec<Event>,
}

/// What one session missed of a shard.
struct Missed<W: World> {
    session: SessionId,
    member: MemberId,
    shard: ShardId,
    /// The number of the next message to tell.
    next: u64,
    place: Place,
    /// How many recorders' logs begin behind it, as far as is known.
    later: u16,
    reader: Option<W::Reader>,
}

/// How far a log was read.
#[derive(Clone, Copy)]
struct Place {
    recorder: RecorderId,
    offset: Offset,
    /// The next position of the shard, and how many messages of the member lie below it.
    position: Position,
    counted: u64,
    /// Since when it has nothing to read; when it may be read.
    behind_since_ns: Option<u64>,
    not_before_ns: u64,
}

impl Place {
    fn new(start: Start, not_before_ns: u64) -> Self {
        let Start { recorder, offset, position, counted } = start;
        Self { recorder, offset, position, counted, behind_since_ns: None, not_before_ns }
    }
}

/// What became of reading a record.
enum Step {
    Read,
    /// There is none yet, or it may not be read now.
    Waiting,
    /// It was dropped of the log a moment ago.
    Dropped,
    /// The log begins with a later position of the shard. Another's may not.
    BeginsLater,
    /// The log cannot be read, or not far enough.
    Failed,
}

/// What became of a session's portion.
enum Portion {
    /// So many records were read; there is more, or will be.
    Read(usize),
    /// All was told; live from that number on.
    Live(u64),
    /// It waits for a number that nobody has used yet.
    Ahead,
    /// It was dropped of the log a moment ago.
    Dropped,
    /// The log cannot be read, or not far enough.
    Unreadable,
    /// The session is gone.
    Gone,
}

impl<W: World> Resuming<W> {
    pub(super) fn new(recorders: u16, starts: Starts) -> Self {
        let (queue, under_way, events) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        Self { starts, queue, under_way, recorders, readers: 0, events }
    }

    /// Sessions and shards that are being read for.
    pub(super) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// A session asks for its member's stream of a shard from number `next` on. One that has asked before and is being told is told that first,
    /// and no more; one that waits for a number that nobody has used yet is told what it asks for now.
    pub(super) fn resume<S: Sockets>(
        &mut self,
        (session, shard, next): (SessionId, ShardId, u64),
        rules: &mut Gateway,
        edge: &mut Edge<W, S>,
    ) {
        if let Some(again) = self.under_way.get_mut(&(session, shard)) {
            *again = Some(next);
            return;
        }
        match rules.on_resume(session, shard, next) {
            Ok(Resume::Live(live)) => edge.resumed(session, shard, live, Reason::None),
            Ok(Resume::FromRecord(member)) => {
                let recorder = RecorderId((session.0 % u64::from(self.recorders)) as u16);
                self.under_way.insert((session, shard), None);
                self.starts.begin(Wanted {
                    session,
                    member,
                    shard,
                    next,
                    recorder,
                    elsewhere: true,
                    later: 0,
                });
            }
            Err(reason) => edge.resumed(session, shard, 0, reason),
        }
    }

    /// Tells a portion of what was missed. Says how many records were read.
    ///
    /// # Errors
    /// If a log holds what this build does not understand.
    pub(super) fn tell<S: Sockets>(
        &mut self,
        rules: &mut Gateway,
        edge: &mut Edge<W, S>,
    ) -> Result<usize, NodeError> {
        let mut work = self.take_in(rules, edge);
        for _ in 0..self.queue.len().min(LOOKS_MAX) {
            if work >= TURN_MAX {
                break;
            }
            let Some(mut missed) = self.queue.pop_front() else { break };
            let had_reader = missed.reader.is_some();
            let may_open = had_reader || self.readers < READERS_MAX;
            let portion = missed.tell(rules, edge, &mut self.events, may_open)?;
            self.readers = self.readers + usize::from(missed.reader.is_some()) - usize::from(had_reader);
            work += self.go_on(missed, portion, rules, edge);
        }
        Ok(work)
    }

    /// Says how much work a session's portion was.
    fn go_on<S: Sockets>(
        &mut self,
        missed: Missed<W>,
        portion: Portion,
        rules: &mut Gateway,
        edge: &mut Edge<W, S>,
    ) -> usize {
        let Missed { session, shard, .. } = missed;
        let had_reader = usize::from(missed.reader.is_some());
        match portion {
            Portion::Ahead => match self.under_way.remove(&(session, shard)).flatten() {
                Some(next) => self.resume((session, shard, next), rules, edge),
                None => {
                    self.under_way.insert((session, shard), None);
                    self.queue.push_back(missed);
                    return 0;
                }
            },
            Portion::Read(records) => {
                self.queue.push_back(missed);
                return records;
            }
            Portion::Dropped => self.starts.begin(missed.again()),
            Portion::Unreadable => self.starts.begin(missed.elsewhere(self.recorders)),
            Portion::Live(next) => {
                edge.resumed(session, shard, next, Reason::None);
                self.under_way.remove(&(session, shard));
            }
            Portion::Gone => _ = self.under_way.remove(&(session, shard)),
        }
        self.readers -= had_reader;
        1
    }

    /// A session is not told what it missed of a shard; `oldest` is the number that it could be told from.
    fn give_up<S: Sockets>(
        &mut self,
        (session, shard): (SessionId, ShardId),
        oldest: u64,
        rules: &mut Gateway,
        edge: &mut Edge<W, S>,
    ) {
        rules.give_up_resuming(session, shard);
        edge.resumed(session, shard, oldest, Reason::NotKept);
        self.under_way.remove(&(session, shard));
    }

    /// Those of whom it was found where to begin, or that there is no such place. Says how many those were.
    fn take_in<S: Sockets>(&mut self, rules: &mut Gateway, edge: &mut Edge<W, S>) -> usize {
        let (now_ns, mut given_up) = (edge.world.mono_ns(), 0);
        while let Some((wanted, start)) = self.starts.next() {
            let Wanted { session, member, shard, next, elsewhere, later, .. } = wanted;
            match start {
                Ok(start) => {
                    let place = Place::new(start, if elsewhere { 0 } else { now_ns + RETRY_NS });
                    self.queue.push_back(Missed { session, member, shard, next, place, later, reader: None });
                }
                Err(oldest) => {
                    self.give_up((session, shard), oldest, rules, edge);
                    given_up += 1;
                }
            }
        }
        given_up
    }
}

impl<W: World> Missed<W> {
    fn tell<S: Sockets>(
        &mut self,
        rules: &mut Gateway,
        edge: &mut Edge<W, S>,
        events: &mut Vec<Event>,
        may_open: bool,
    ) -> Result<Portion, NodeError> {
        let now_ns = edge.world.mono_ns();
        for read in 0..PORTION_MAX {
            let Some(unread) = edge.connections.unread(self.session) else { return Ok(Portion::Gone) };
            if self.place.position >= rules.committed(self.shard) {
                // It may wait for ever for a number that nobody has used yet; others need a log to read.
                self.reader = None;
                let live = rules.go_live(self.session, self.shard, self.place.position, self.next);
                return Ok(live.map_or(Portion::Ahead, Portion::Live));
            }
            if unread > UNREAD_MAX {
                self.reader = None;
            }
            if unread > UNREAD_MAX || now_ns < self.place.not_before_ns {
                return Ok(Portion::Read(read));
            }
            match self.read_one(edge, events, (now_ns, may_open))? {
                Step::Read => edge.counters.add(Counter::RecordsResumed, 1),
                Step::Waiting => return Ok(Portion::Read(read)),
                Step::Dropped => return Ok(Portion::Dropped),
                Step::BeginsLater => {
                    self.later += 1;
                    return Ok(Portion::Unreadable);
                }
                Step::Failed => return Ok(Portion::Unreadable),
            }
        }
        Ok(Portion::Read(PORTION_MAX))
    }

    /// Where it may lie now.
    fn again(&self) -> Wanted {
        let Self { session, member, shard, next, later, .. } = *self;
        let recorder = self.place.recorder;
        Wanted { session, member, shard, next, recorder, elsewhere: true, later }
    }

    /// At the next recorder. What was told is not told again.
    fn elsewhere(&self, recorders: u16) -> Wanted {
        let Self { session, member, shard, next, later, .. } = *self;
        let recorder = RecorderId((self.place.recorder.0 + 1) % recorders);
        Wanted { session, member, shard, next, recorder, elsewhere: false, later }
    }

    /// Reads one record and tells the session what it says to its member.
    fn read_one<S: Sockets>(
        &mut self,
        edge: &mut Edge<W, S>,
        events: &mut Vec<Event>,
        (now_ns, may_open): (u64, bool),
    ) -> Result<Step, NodeError> {
        let place = &mut self.place;
        let log = NodeId::Recorder(place.recorder);
        if self.reader.is_none() && may_open {
            match edge.world.read_log(log, place.offset) {
                Ok(reader) => self.reader = Some(reader),
                Err(ReadError::Released { .. }) => return Ok(Step::Dropped),
                Err(_) => return Ok(Step::Failed),
            }
        }
        let Some(reader) = &mut self.reader else { return Ok(Step::Waiting) };
        if reader.released() > place.offset {
            return Ok(Step::Dropped);
        }
        let entry = if reader.offset() < reader.durable() { reader.next() } else { Ok(None) };
        match entry {
            Ok(Some(entry)) => {
                place.behind_since_ns = None;
                if let Some(output) = edge.connections.output(self.session) {
                    let to = (self.shard, self.member, &mut self.next);
                    if !tell_record(entry.payload, place, to, events, output)? {
                        return Ok(Step::BeginsLater);
                    }
                }
                place.offset = reader.offset();
                return Ok(Step::Read);
            }
            Ok(None) => {
                let since_ns = *place.behind_since_ns.get_or_insert(now_ns);
                if now_ns - since_ns <= BEHIND_NS && !reader.is_replaced() {
                    return Ok(Step::Waiting);
                }
            }
            Err(error) if error.is_damage() => repair_asked::ask(&edge.world, log),
            Err(_) => {}
        }
        Ok(Step::Failed)
    }
}

/// Writes what a record tells the member, if it is the next of the shard: messages from number `next` on. Says whether the log has the
/// next of the shard.
fn tell_record(
    payload: &[u8],
    place: &mut Place,
    (shard, member, next): (ShardId, MemberId, &mut u64),
    events: &mut Vec<Event>,
    output: &mut Vec<u8>,
) -> Result<bool, NodeError> {
    if record::schema(payload) != Some(record::RESULT) {
        return Ok(true);
    }
    let record = ResultRecord::read(payload)?;
    let position = record.position();
    if record.shard() != shard || position != place.position {
        return Ok(record.shard() != shard || position < place.position);
    }
    place.position = position.next();
    events.clear();
    for event in record.events() {
        events.push(event?);
    }
    let (request, outcome) = (&record.request()?, &record.outcome()?);
    Told { position, request, outcome, events }.read(|to, reply| {
        if to == member {
            place.counted += 1;
            if place.counted == *next {
                frame::write_reply(output, &reply.numbered(*next));
                *next += 1;
            }
        }
    });
    Ok(true)
}
