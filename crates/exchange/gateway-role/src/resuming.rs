//! Members' streams told from the record: what sessions missed, until they can be told the rest live.
//!
//! ```text
//!   recorder's log   |--- told before ---|--- missed: read here ---|  committed: live from here
//!                    ^ numbers counted from here                   ^ position to come, of the rules
//! ```
//! A recorder's log has each record of a shard once and in order, and all below the position that the rules have followed is committed, so
//! one log is enough. Recorders' indexes say where in it to begin. If it cannot be read, or is behind, another one is. Members are read for in turn, a bounded number of records in
//! each turn of the duty cycle, and not while a client leaves unread what it was sent. A client that has no more use for it lets it go.

mod missed;

use std::collections::{BTreeMap, VecDeque};

use pares_gateway::{Gateway, Resume, SessionId};
use pares_roles::NodeError;
use pares_roles::index::{Starts, Wanted};
use pares_roles::world::{Sockets, World};
use pares_types::{Event, Reason, RecorderId, ShardId};
use pares_wire::frame;

use crate::edge::GatewayIo;
use missed::{Missed, Portion};

/// Records read in one turn for all.
const TURN_MAX: usize = 1_024;
/// Sessions looked at in one turn, and logs that are open for them.
const LOOKS_MAX: usize = 64;
const READERS_MAX: usize = 64;

/// A session, and the shard whose messages it receives.
type Stream = (SessionId, ShardId);

/// All sessions that are being told what they missed.
pub(crate) struct Resuming<W: World> {
    /// The way to those of whom it is being looked for where to begin.
    starts: Starts,
    queue: VecDeque<Missed<W>>,
    /// Both, by who receives what.
    under_way: BTreeMap<Stream, UnderWay>,
    recorders: u16,
    readers: usize,
    events: Vec<Event>,
}

/// What a session has said since it asked.
#[derive(Clone, Copy, Default)]
struct UnderWay {
    /// It asks from there once that is sent, or let go.
    again: Option<u64>,
    /// It wants no more of it.
    is_let_go: bool,
}

impl<W: World> Resuming<W> {
    pub(crate) fn new(recorders: u16, starts: Starts) -> Self {
        let (queue, under_way, events) = (VecDeque::new(), BTreeMap::new(), Vec::new());
        Self { starts, queue, under_way, recorders, readers: 0, events }
    }

    /// Sessions and shards that are being read for.
    pub(crate) fn len(&self) -> usize {
        self.under_way.len()
    }

    /// A session asks for its member's stream of a shard from number `next` on. One that has asked before and is being sent them is sent those first,
    /// and no more, unless it lets go of that; one that waits for a number that nobody has used yet is sent what it asks for now.
    pub(crate) fn resume<S: Sockets>(
        &mut self,
        (session, shard, next): (SessionId, ShardId, u64),
        rules: &mut Gateway,
        edge: &mut GatewayIo<W, S>,
    ) {
        if next == frame::RESUME_NOTHING {
            return self.let_go((session, shard), rules, edge);
        }
        if let Some(under_way) = self.under_way.get_mut(&(session, shard)) {
            under_way.again = Some(next);
            return;
        }
        match rules.on_resume(session, shard, next) {
            Ok(Resume::Live(live)) => edge.resumed(session, shard, live, Reason::None),
            Ok(Resume::FromRecord(member)) => {
                let recorder = RecorderId((session.0 % u64::from(self.recorders)) as u16);
                self.under_way.insert((session, shard), UnderWay::default());
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

    /// A session wants nothing more of what it missed. Nothing more is sent to it, until it asks again, and it receives a message that says so; what is read for it ends at its next turn.
    fn let_go<S: Sockets>(&mut self, of: Stream, rules: &Gateway, edge: &mut GatewayIo<W, S>) {
        if let Some(under_way) = self.under_way.get_mut(&of) {
            *under_way = UnderWay { again: None, is_let_go: true };
        }
        let (session, shard) = of;
        let reason = rules.may_resume(session, shard).map_or_else(|why| why, |_| Reason::Requested);
        edge.resumed(session, shard, 0, reason);
    }

    /// Whether it was let go of. Then it is over, and what was asked for instead begins.
    fn is_let_go<S: Sockets>(&mut self, of: Stream, rules: &mut Gateway, edge: &mut GatewayIo<W, S>) -> bool {
        let is_let_go = self.under_way.get(&of).is_some_and(|under_way| under_way.is_let_go);
        if is_let_go {
            self.end(of, rules, edge);
        }
        is_let_go
    }

    /// What is under way is over. What was asked for instead begins, if something was.
    fn end<S: Sockets>(&mut self, of: Stream, rules: &mut Gateway, edge: &mut GatewayIo<W, S>) -> bool {
        let again = self.under_way.remove(&of).and_then(|under_way| under_way.again);
        if let Some(next) = again {
            self.resume((of.0, of.1, next), rules, edge);
        }
        again.is_some()
    }

    /// Tells a portion of what was missed. Says how many records were read.
    pub(crate) fn tell<S: Sockets>(
        &mut self,
        rules: &mut Gateway,
        edge: &mut GatewayIo<W, S>,
    ) -> Result<usize, NodeError> {
        let mut work = self.take_in(rules, edge);
        for _ in 0..self.queue.len().min(LOOKS_MAX) {
            if work >= TURN_MAX {
                break;
            }
            let Some(mut missed) = self.queue.pop_front() else { break };
            let had_reader = missed.reader.is_some();
            if self.is_let_go((missed.wanted.session, missed.wanted.shard), rules, edge) {
                self.readers -= usize::from(had_reader);
                continue;
            }
            let may_open = had_reader || self.readers < READERS_MAX;
            let portion = missed.tell(rules, edge, &mut self.events, may_open)?;
            self.readers = self.readers + usize::from(missed.reader.is_some()) - usize::from(had_reader);
            assert!(self.readers <= READERS_MAX, "no more logs are open than may be");
            work += self.go_on(missed, portion, rules, edge);
        }
        assert!(self.readers <= self.queue.len(), "a log is open for a session in the queue");
        assert!(self.queue.len() <= self.under_way.len(), "what is in the queue is under way");
        Ok(work)
    }

    /// Says how much work a session's portion was.
    fn go_on<S: Sockets>(
        &mut self,
        missed: Missed<W>,
        portion: Portion,
        rules: &mut Gateway,
        edge: &mut GatewayIo<W, S>,
    ) -> usize {
        let Wanted { session, shard, .. } = missed.wanted;
        assert!(
            self.under_way.contains_key(&(session, shard)),
            "missed messages are sent to a session that requested them"
        );
        let had_reader = usize::from(missed.reader.is_some());
        match portion {
            Portion::Ahead if self.end((session, shard), rules, edge) => {}
            Portion::Ahead => {
                self.under_way.insert((session, shard), UnderWay::default());
                self.queue.push_back(missed);
                return 0;
            }
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
        assert!(had_reader <= self.readers, "an open log is counted");
        self.readers -= had_reader;
        1
    }

    /// A session is not told what it missed of a shard; `oldest` is the number that it could be told from.
    fn give_up<S: Sockets>(
        &mut self,
        (session, shard): Stream,
        oldest: u64,
        rules: &mut Gateway,
        edge: &mut GatewayIo<W, S>,
    ) {
        rules.give_up_resuming(session, shard);
        edge.resumed(session, shard, oldest, Reason::NotKept);
        self.under_way.remove(&(session, shard));
    }

    /// Those of whom it was found where to begin, or that there is no such place. Says how many those were.
    fn take_in<S: Sockets>(&mut self, rules: &mut Gateway, edge: &mut GatewayIo<W, S>) -> usize {
        let (now_ns, mut given_up) = (edge.world.mono_ns(), 0);
        while let Some((wanted, start)) = self.starts.next() {
            let Wanted { session, shard, .. } = wanted;
            assert!(self.under_way.contains_key(&(session, shard)), "what was found was looked for");
            if self.is_let_go((session, shard), rules, edge) {
                continue;
            }
            match start {
                Ok(start) => self.queue.push_back(Missed::new(wanted, start, now_ns)),
                Err(oldest) => {
                    self.give_up((session, shard), oldest, rules, edge);
                    given_up += 1;
                }
            }
        }
        given_up
    }
}
