//! What one session missed of a shard, read from a recorder's log.

use pares_config::NodeId;
use pares_gateway::Gateway;
use pares_log::{LogReader, ReadError};
use pares_roles::index::{StreamStart, Wanted};
use pares_roles::world::{Counters, Sockets, World};
use pares_roles::{NodeError, repair_asked};
use pares_stream::Told;
use pares_types::{Event, RecorderId};
use pares_wire::frame;
use pares_wire::record::{self, ResultRecord};

use crate::counters::Counter;
use crate::edge::GatewayIo;

/// Records read for one before the next has its turn.
const PORTION_MAX: usize = 256;
/// Unread output beyond which a client is not read for.
const UNREAD_MAX: usize = 64 << 10;
/// How long a log may be behind what is committed before another one is read.
const BEHIND_NS: u64 = 1_000_000_000;
/// Before a log is tried after another one failed.
const RETRY_NS: u64 = 100_000_000;

pub(super) struct Missed<W: World> {
    /// What is still to be told.
    pub(super) wanted: Wanted,
    place: Place,
    pub(super) reader: Option<W::Reader>,
}

/// How far a log was read.
#[derive(Clone, Copy)]
struct Place {
    at: StreamStart,
    /// Since when it has nothing to read; when it may be read.
    behind_since_ns: Option<u64>,
    not_before_ns: u64,
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
pub(super) enum Portion {
    /// So many records were read; there is more, or will be.
    Read(usize),
    /// All was sent; live from that number on.
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

impl<W: World> Missed<W> {
    /// From the place that was found. One that comes from another log, which failed, is not read at once.
    pub(super) fn new(wanted: Wanted, start: StreamStart, now_ns: u64) -> Self {
        assert!(
            start.counted < wanted.next,
            "a log is read from a place that is not behind the wanted message"
        );
        let not_before_ns = if wanted.elsewhere { 0 } else { now_ns + RETRY_NS };
        let place = Place { at: start, behind_since_ns: None, not_before_ns };
        Self { wanted, place, reader: None }
    }

    /// Tells a portion.
    pub(super) fn tell<S: Sockets>(
        &mut self,
        rules: &mut Gateway,
        edge: &mut GatewayIo<W, S>,
        events: &mut Vec<Event>,
        may_open: bool,
    ) -> Result<Portion, NodeError> {
        let now_ns = edge.world.mono_ns();
        let Wanted { session, shard, .. } = self.wanted;
        for read in 0..PORTION_MAX {
            let Some(unread) = edge.connections.unread(session) else { return Ok(Portion::Gone) };
            if self.place.at.position >= rules.committed(shard) {
                // It may wait for ever for a number that nobody has used yet; others need a log to read.
                self.reader = None;
                let live = rules.go_live(session, shard, self.place.at.position, self.wanted.next);
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
                    self.wanted.later += 1;
                    return Ok(Portion::Unreadable);
                }
                Step::Failed => return Ok(Portion::Unreadable),
            }
        }
        Ok(Portion::Read(PORTION_MAX))
    }

    /// Where it may lie now.
    pub(super) fn again(&self) -> Wanted {
        Wanted { recorder: self.place.at.recorder, elsewhere: true, ..self.wanted }
    }

    /// At the next recorder. What was sent is not sent again.
    pub(super) fn elsewhere(&self, recorders: u16) -> Wanted {
        let RecorderId(recorder) = self.place.at.recorder;
        assert!(recorder < recorders, "a log is read of a recorder of this system");
        Wanted { recorder: RecorderId((recorder + 1) % recorders), elsewhere: false, ..self.wanted }
    }

    /// Reads one record and tells the session what it says to its member.
    fn read_one<S: Sockets>(
        &mut self,
        edge: &mut GatewayIo<W, S>,
        events: &mut Vec<Event>,
        (now_ns, may_open): (u64, bool),
    ) -> Result<Step, NodeError> {
        let (wanted, place) = (&mut self.wanted, &mut self.place);
        let log = NodeId::Recorder(place.at.recorder);
        if self.reader.is_none() && may_open {
            match edge.world.read_log(log, place.at.offset) {
                Ok(reader) => self.reader = Some(reader),
                Err(ReadError::Released { .. }) => return Ok(Step::Dropped),
                Err(_) => return Ok(Step::Failed),
            }
        }
        let Some(reader) = &mut self.reader else { return Ok(Step::Waiting) };
        if reader.released() > place.at.offset {
            return Ok(Step::Dropped);
        }
        let entry = if reader.offset() < reader.durable() { reader.next() } else { Ok(None) };
        match entry {
            Ok(Some(entry)) => {
                place.behind_since_ns = None;
                if let Some(output) = edge.connections.output(wanted.session)
                    && !tell_record(entry.payload, &mut place.at, wanted, events, output)?
                {
                    return Ok(Step::BeginsLater);
                }
                assert!(reader.offset() > place.at.offset, "a log is read on, record by record");
                place.at.offset = reader.offset();
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
    at: &mut StreamStart,
    wanted: &mut Wanted,
    events: &mut Vec<Event>,
    output: &mut Vec<u8>,
) -> Result<bool, NodeError> {
    if record::schema(payload) != Some(record::RESULT) {
        return Ok(true);
    }
    let record = ResultRecord::read(payload)?;
    let position = record.position();
    if record.shard() != wanted.shard || position != at.position {
        return Ok(record.shard() != wanted.shard || position < at.position);
    }
    at.position = position.next();
    assert!(at.counted < wanted.next, "messages are counted up to the next one to tell");
    events.clear();
    for event in record.events() {
        events.push(event?);
    }
    let (request, outcome) = (&record.request()?, &record.outcome()?);
    Told { position, request, outcome, events }.read(|to, reply| {
        if to == wanted.member {
            at.counted += 1;
            if at.counted == wanted.next {
                frame::write_reply(output, &reply.numbered(wanted.next));
                wanted.next += 1;
            }
        }
    });
    Ok(true)
}
