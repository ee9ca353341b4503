//! The end that has the logs.

mod pieces;

use std::collections::BTreeMap;

use pares_log::{LogReader, Offset, ReadError};
use pares_mirror::{Class, Due, MirrorMessage, SPEAKS, STRETCH_MAX, Sender, UNDERSTANDS, agreed};

use super::files::{self, Version};
use super::standing::{Has, is_the_same};
use super::{LogName, MirrorEnded, Scope, node_of};
use crate::repair_asked;
use crate::world::World;

/// Between two looks for logs and files that are new or others.
const LOOK_NS: u64 = 200_000_000;
/// A round is begun after this even if there is nothing new: the receiver sees that this end lives.
const BEAT_NS: u64 = 1_000_000_000;
/// Who has not said what it has after this ends, and who has stored nothing of what it was sent for so long: its place is another's.
pub(super) const GO_NS: u64 = 10_000_000_000;
pub(super) const TAKEN_NS: u64 = 60_000_000_000;
/// More bytes on their way than a socket takes at once.
const MUCH: u64 = 128 << 10;
/// Files that a receiver may say it has: more than the checkpoints of any system.
pub(super) const FILES_MAX: usize = 1 << 16;
/// Messages of a turn.
const TURN: usize = 16;

/// Says which logs there are.
pub type There = Box<dyn Fn() -> Vec<LogName> + Send>;

/// Written, durable, released.
type Marks = (u64, u64, u64);

/// A log being sent.
struct Sending<R> {
    reader: R,
    /// At the beginning of the round.
    marks: Marks,
    /// As the receiver knows them.
    told: Option<Marks>,
    /// It cannot be read on: the operator knows, and its node was asked to repair it.
    is_damaged: bool,
}

impl<R> Sending<R> {
    fn marks_of(&self, log: LogName) -> MirrorMessage<'static> {
        let (written, durable, released) = self.marks;
        MirrorMessage::Marks { log, written, durable: durable.min(written), released }
    }
}

/// What is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The first message, and notes: what is believed of the logs depends on the settings.
    Greeting,
    /// Nothing: a round is over.
    Rest,
    Files(Class),
    Logs,
    Marks,
}

/// The source of one receiver's mirrors.
pub struct MirrorSource<W: World> {
    world: W,
    /// Says which logs there are.
    there: There,
    scope: Scope,
    rules: Sender,
    /// The receiver has said all that it has.
    is_asked: bool,
    greeted: bool,
    has: BTreeMap<LogName, Has>,
    logs: BTreeMap<LogName, Sending<W::Reader>>,
    /// Which files the receiver has, and which there are.
    has_files: BTreeMap<String, Version>,
    files: BTreeMap<String, Version>,
    /// The file being sent, and how much of it was.
    file: Option<(String, W::File, u64, u64)>,
    kept: Option<Vec<String>>,
    stage: Stage,
    rounds: u64,
    looked_ns: Option<u64>,
    /// When the receiver last stored something, or had nothing to store.
    heard_ns: u64,
    round_ns: u64,
    out: Vec<u8>,
}

impl<W: World> MirrorSource<W> {
    /// Of these logs, and the files that go with them.
    #[must_use]
    pub fn within(mut self, scope: Scope) -> Self {
        self.scope = scope;
        self
    }

    /// For a receiver that has just connected. `there` says which logs there are: one that appears later is sent too.
    pub fn new(world: &W, there: There) -> Self {
        Self {
            world: world.clone(),
            there,
            scope: Scope::Whole,
            rules: Sender::default(),
            is_asked: false,
            greeted: false,
            has: BTreeMap::new(),
            logs: BTreeMap::new(),
            has_files: BTreeMap::new(),
            files: BTreeMap::new(),
            file: None,
            kept: None,
            stage: Stage::Greeting,
            rounds: 0,
            looked_ns: None,
            heard_ns: world.mono_ns(),
            round_ns: 0,
            out: Vec::new(),
        }
    }

    /// Takes a frame of the receiver.
    ///
    /// # Errors
    /// If it has no place there: the connection ends.
    pub fn on_frame(&mut self, frame: &[u8]) -> Result<(), MirrorEnded> {
        match MirrorMessage::decode(frame)? {
            MirrorMessage::Hello { speaks, understands } if !self.greeted => {
                agreed(speaks, understands)?;
                self.greeted = true;
            }
            MirrorMessage::Have { log, segment_bytes, next, last, digest } if self.is_asking() => {
                self.has.insert(log, Has { segment_bytes, next, last, digest });
            }
            MirrorMessage::HaveFile { bytes, digest, path }
                if self.is_asking() && self.has_files.len() < FILES_MAX =>
            {
                self.has_files.insert(path.to_owned(), Version { bytes, digest });
            }
            MirrorMessage::Go if self.is_asking() => self.is_asked = true,
            MirrorMessage::Taken { log, bytes } if self.is_asked => {
                self.rules.on_taken(log, bytes)?;
                self.heard_ns = self.world.mono_ns();
            }
            MirrorMessage::TakenFiles { bytes } if self.is_asked => {
                self.rules.on_files_taken(bytes)?;
                self.heard_ns = self.world.mono_ns();
            }
            other => {
                let said: String = format!("{other:?}").chars().take(60).collect();
                return Err(MirrorEnded::broken(format_args!("it sent {said} out of turn")));
            }
        }
        Ok(())
    }

    /// The last frame of a connection that this end ends.
    #[must_use]
    pub fn farewell(why: &MirrorEnded) -> Vec<u8> {
        let mut frame = Vec::new();
        MirrorMessage::Ends { why: &why.to_string() }.encode(&mut frame);
        frame
    }

    fn is_asking(&self) -> bool {
        self.greeted && !self.is_asked
    }

    /// Sends what is due by `send`, up to some messages. Says whether there may be more at once.
    ///
    /// # Errors
    /// If the connection is to begin again: a log was replaced, or released before the receiver had it; it is silent; or the system refuses.
    pub fn turn(&mut self, mut send: impl FnMut(&[u8])) -> Result<bool, MirrorEnded> {
        let now = self.world.mono_ns();
        if self.is_asked && self.rules.is_taken() {
            self.heard_ns = now;
        }
        if now.saturating_sub(self.heard_ns) > if self.is_asked { TAKEN_NS } else { GO_NS } {
            return Err(MirrorEnded::broken("it says nothing, and others may wait for its place"));
        }
        if !self.is_asked {
            return Ok(false);
        }
        assert!(self.greeted, "nothing goes to a receiver of an unknown version");
        for _ in 0..TURN {
            if !self.step(&mut send)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the connection is to be looked at rather than the logs: more goes only when the receiver has taken more, or much is on its way.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.stage != Stage::Rest || self.rules.on_their_way() > MUCH
    }

    /// Whole copies that were sent.
    #[must_use]
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Bytes of logs that the receiver has not stored yet, once that is known.
    #[must_use]
    pub fn lag_bytes(&self) -> Option<u64> {
        let readers = self.logs.values().map(|sending| &sending.reader);
        let unsent = readers.map(|reader| reader.written().0.saturating_sub(reader.offset().0));
        self.looked_ns.map(|_| unsent.sum::<u64>() + self.rules.on_their_way())
    }

    fn step(&mut self, send: &mut impl FnMut(&[u8])) -> Result<bool, MirrorEnded> {
        match self.stage {
            Stage::Greeting => {
                self.say(MirrorMessage::Hello { speaks: SPEAKS, understands: UNDERSTANDS }, send);
                self.files =
                    files::list(&self.world, [].into_iter(), &self.scope).map_err(MirrorEnded::broken)?;
                self.stage = Stage::Files(Class::Note);
            }
            Stage::Rest => return self.begin_round(send),
            Stage::Files(class) => match self.send_file(class, send)? {
                Some(more) => return Ok(more),
                None if class == Class::Note => self.stage = Stage::Logs,
                None => self.stage = Stage::Marks,
            },
            Stage::Logs => match self.rules.due() {
                Due::Stretch { log, end } => self.send_stretch(log, end, send)?,
                Due::Credit => return Ok(false),
                Due::Nothing => self.stage = Stage::Files(Class::Checkpoint),
            },
            Stage::Marks => {
                if self.looked_ns.is_some() {
                    self.end_round(send);
                }
                self.stage = Stage::Rest;
            }
        }
        Ok(true)
    }

    /// Looks up how far the logs are, if there is anything new: recorders' first.
    fn begin_round(&mut self, send: &mut impl FnMut(&[u8])) -> Result<bool, MirrorEnded> {
        let now = self.world.mono_ns();
        assert!(self.file.is_none(), "a round begins with no file on its way");
        let looks = self.looked_ns.is_none_or(|at| now.saturating_sub(at) >= LOOK_NS);
        let mut is_new = looks && self.look(now, send)?;
        for (&log, sending) in self.logs.iter_mut().rev() {
            let reader = &sending.reader;
            let (released, durable) = (reader.released().0, reader.durable().0);
            sending.marks = (reader.written().0, durable, released);
            if sending.is_damaged {
                continue;
            }
            if reader.offset().0 < released {
                return Err(MirrorEnded::broken(format_args!(
                    "{log} was released before the receiver had it"
                )));
            }
            self.rules.reach(log, sending.marks.0);
            if sending.told != Some(sending.marks) {
                // Before what the receiver lacks: it knows how much that is.
                sending.marks_of(log).encode(&mut self.out);
                send(&self.out);
                is_new = true;
            }
        }
        is_new |= now.saturating_sub(self.round_ns) >= BEAT_NS;
        if is_new {
            (self.stage, self.round_ns) = (Stage::Files(Class::Note), now);
        }
        Ok(is_new)
    }

    /// Looks for logs and files that are new or others. Whether any are.
    fn look(&mut self, now: u64, send: &mut impl FnMut(&[u8])) -> Result<bool, MirrorEnded> {
        let is_first = self.looked_ns.is_none();
        self.looked_ns = Some(now);
        if let Some((log, _)) = self.logs.iter().find(|(_, sending)| sending.reader.is_replaced()) {
            return Err(MirrorEnded::broken(format_args!("another log lies in the place of {log}")));
        }
        for log in (self.there)() {
            if !self.logs.contains_key(&log) {
                self.open(log, send)?;
            }
        }
        let files =
            files::list(&self.world, self.logs.keys().copied(), &self.scope).map_err(MirrorEnded::broken)?;
        let is_new = is_first || files != self.files;
        self.files = files;
        Ok(is_new)
    }

    /// Opens a log where the receiver stands; at its beginning, if that is in another log, or nowhere.
    fn open(&mut self, log: LogName, send: &mut impl FnMut(&[u8])) -> Result<(), MirrorEnded> {
        let mut reader = match self.world.read_log_from_start(node_of(log)) {
            Ok(reader) => reader,
            Err(ReadError::NotYet { .. }) => return Ok(()),
            Err(error) => return Err(MirrorEnded::broken(format_args!("{log}: {error}"))),
        };
        let has = self.has.remove(&log);
        let continues = has.as_ref().is_some_and(|has| is_the_same(&mut reader, has));
        let first = reader.released();
        let from = if continues { Offset(has.as_ref().map_or(0, |has| has.next)) } else { first };
        // What is beyond the end is only the header of a segment that has no record yet.
        if reader.seek(from.min(reader.written())).is_err() {
            return Ok(());
        }
        let afresh = has.is_some() && !continues;
        if afresh {
            let folder = format!("{log}/");
            self.has_files.retain(|path, _| !path.starts_with(&folder));
        }
        self.rules.begin(log, reader.offset().0);
        let segment_bytes = reader.segment_bytes();
        let sending = Sending { reader, marks: (0, 0, 0), told: None, is_damaged: false };
        assert!(self.logs.insert(log, sending).is_none(), "{log}: a log begins once on a connection");
        self.say(MirrorMessage::Begins { log, segment_bytes, from: from.0, afresh }, send);
        Ok(())
    }

    fn send_stretch(
        &mut self,
        log: LogName,
        end: u64,
        send: &mut impl FnMut(&[u8]),
    ) -> Result<(), MirrorEnded> {
        let sending = self.logs.get_mut(&log).expect("only what was opened is due");
        let from = sending.reader.offset().0;
        let (bytes, next) = match sending.reader.next_stretch(Offset(end), STRETCH_MAX) {
            Ok(Some(stretch)) => {
                MirrorMessage::Stretch { log, from: stretch.offset.0, bytes: stretch.bytes }
                    .encode(&mut self.out);
                let bytes = stretch.bytes.len() as u64;
                send(&self.out);
                (bytes, sending.reader.offset().0)
            }
            Ok(None) => (0, end),
            Err(error) if error.is_damage() => {
                sending.is_damaged = true;
                self.world.complain(&format_args!("{log} cannot be mirrored on: {error}"));
                repair_asked::ask(&self.world, node_of(log));
                (0, end)
            }
            Err(error) => return Err(MirrorEnded::broken(format_args!("{log}: {error}"))),
        };
        assert!(next >= from, "{log}: what is sent lies behind what was");
        self.rules.on_sent(log, bytes, next);
        Ok(())
    }

    fn end_round(&mut self, send: &mut impl FnMut(&[u8])) {
        assert_eq!(self.rules.due(), Due::Nothing, "marks follow what they mark");
        assert!(self.file.is_none(), "a round ends with whole files");
        let there: Vec<String> = self.files.keys().cloned().collect();
        if self.kept.as_ref() != Some(&there) {
            let paths: String = there.iter().map(|path| format!("{path}\n")).collect();
            self.say(MirrorMessage::Keep { paths: &paths }, send);
            self.has_files.retain(|path, _| self.files.contains_key(path));
            self.kept = Some(there);
        }
        let told = |sending: &Sending<W::Reader>| sending.told != Some(sending.marks);
        for (&log, sending) in self.logs.iter_mut().filter(|(_, sending)| told(sending)) {
            sending.told = Some(sending.marks);
            sending.marks_of(log).encode(&mut self.out);
            send(&self.out);
        }
        self.rounds += 1;
        self.say(MirrorMessage::Round { number: self.rounds }, send);
    }

    fn say(&mut self, message: MirrorMessage<'_>, send: &mut impl FnMut(&[u8])) {
        message.encode(&mut self.out);
        send(&self.out);
    }
}
