//! Answers given once more: read from the record of the first answer.

use pares_config::NodeId;
use pares_gateway::{Answer, Gateway, GatewaySink, Place};
use pares_log::{LogReader, Offset};
use pares_roles::repair_asked;
use pares_roles::world::{Sockets, World};
use pares_types::{ClientOrderId, MemberId, RecorderId, Reply};
use pares_wire::record::ResultRecord;

use crate::edge::GatewayIo;

/// Repeats tried in one turn: while a recorder's log is filled again many may wait, and all other clients with them.
const TRIES_MAX: usize = 256;

/// What lies where a first answer lay.
enum Found {
    Answer(Answer),
    /// It is not kept there any more.
    Dropped,
    /// Another record, or none that can be read now.
    Nothing,
}

/// Readers of the recorders' logs, opened once needed.
pub(crate) struct FirstAnswers<W: World> {
    readers: Vec<Option<W::Reader>>,
    /// By recorder: whether opening its log was tried in this turn.
    tried: Vec<bool>,
    /// By recorder: whether it was asked to repair its log, since there was another one.
    asked: Vec<bool>,
}

impl<W: World> FirstAnswers<W> {
    pub(crate) fn new(recorders: usize) -> Self {
        Self {
            readers: (0..recorders).map(|_| None).collect(),
            tried: vec![false; recorders],
            asked: vec![false; recorders],
        }
    }

    /// A recorder's log is another one than it was.
    pub(crate) fn on_replaced(&mut self, recorder: RecorderId) {
        self.asked[usize::from(recorder.0)] = false;
    }

    /// Answers the repeats that wait. One whose record is not where it was, because a recorder's log is being filled again, or
    /// cannot be read, because descriptors are out, is looked for later; in a log opened again, since another may lie there.
    pub(crate) fn answer<S: Sockets>(&mut self, rules: &mut Gateway, edge: &mut GatewayIo<W, S>) {
        self.tried.fill(false);
        for _ in 0..edge.again.len().min(TRIES_MAX) {
            let Some((session, name)) = edge.again.pop() else { return };
            let Some((member, place)) = rules.first_answer(session, name) else { continue };
            match self.recorded(&edge.world, rules, (member, name), place) {
                Found::Answer(answer) => edge.reply(session, Reply::Answer(answer)),
                Found::Dropped => rules.on_dropped(session, name, edge),
                Found::Nothing => {
                    let recorder = usize::from(place.recorder.0);
                    if !self.tried[recorder] {
                        self.readers[recorder] = None;
                    }
                    edge.again.put_back(session, name);
                }
            }
        }
    }

    /// What the record at `place` says.
    fn recorded(
        &mut self,
        world: &W,
        rules: &Gateway,
        (member, name): (MemberId, ClientOrderId),
        place: Place,
    ) -> Found {
        let at = Offset(place.offset);
        let Some(reader) = self.reader(world, place.recorder) else { return Found::Nothing };
        // What is dropped may be in its file yet, and not for long.
        if at < reader.released() {
            return Found::Dropped;
        }
        let entry = match reader.read_at(at) {
            Ok(entry) => entry,
            Err(error) => {
                // The committed stream was read past it long ago: nobody else would meet it.
                if error.is_damage()
                    && !std::mem::replace(&mut self.asked[usize::from(place.recorder.0)], true)
                {
                    repair_asked::ask(world, NodeId::Recorder(place.recorder));
                }
                return Found::Nothing;
            }
        };
        let answer = || {
            let record = ResultRecord::read(entry.payload).ok()?;
            let (request, outcome) = (record.request().ok()?, record.outcome().ok()?);
            let is_it = request.member == member && request.client_order_id == name;
            let events = record.events().len();
            is_it.then(|| rules.replay_answer(record.position(), &request, &outcome, events))
        };
        answer().map_or(Found::Nothing, Found::Answer)
    }

    fn reader(&mut self, world: &W, recorder: RecorderId) -> Option<&mut W::Reader> {
        let index = usize::from(recorder.0);
        assert!(index < self.readers.len(), "a first answer lies in a log of this system");
        let reader = &mut self.readers[index];
        if reader.is_none() && !std::mem::replace(&mut self.tried[index], true) {
            *reader = world.read_log_from_start(NodeId::Recorder(recorder)).ok();
        }
        reader.as_mut()
    }
}
