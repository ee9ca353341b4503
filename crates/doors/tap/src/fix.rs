//! Messages of FIX: what they say, and what became of them.
//!
//! A request that its session does not take is never answered, and is no difference. Who follows the session by rules of his own differs from it somewhere,
//! and a member who finds the place leads him astray. So the gateway's own session ([`FixSession`]) goes over what came in, with the settings of its door.
//! The numbers that it begins with follow from what went out: the answer to the Logon, and the ResendRequest right behind that.
//!
//! ```text
//!  Calling --the Logon is answered--> On --a Logout goes out, or the session ends--> Over
//!     |                               |
//!     +------ bytes are missing ------+--> Lost
//! ```
//! Behind missing bytes nothing is known of the session any more. What is asked there may have been taken or not.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;

use pares_door::{client_order_id, read_logon};
use pares_fix::SOH;
use pares_fix::dictionary::tag;
use pares_fix::framing::{Cut, FixFrame, MESSAGE_BYTES_MAX, NUMBER_MAX, TRAILER_BYTES, cut};
use pares_fix::parser::FixParser;
use pares_fix::session::{FixAction, FixNumbers, FixSession};
use pares_types::{Position, ShardId};

use crate::meaning::{Meant, TapedMeaning};
use crate::{Blank, TapedMessage, TapedRole};
use pares_port::TapDoor;

/// What comes in behind a Logon that is not answered: more, and the door has closed.
const CAME_BYTES_MAX: usize = pares_door::EARLY_BYTES_MAX + MESSAGE_BYTES_MAX;
/// The gateway looks at a message within this of the read that gave it. A sending time that is right only within this is not judged here.
const TURN_NS_MAX: u64 = 1_000_000_000;
/// A tap's file may hold any time; with these it can be computed.
const TIME_MAX_NS: u64 = u64::MAX / 2;

/// What is said on a connection, as far as it is followed.
pub(crate) struct FixTalk(Stage);

enum Stage {
    Calling(Calling),
    On(Box<Line>),
    Over,
    /// Bytes are missing.
    Lost,
}

/// A connection whose Logon is not answered, or was just now.
#[derive(Default)]
struct Calling {
    /// What came in.
    came: Vec<TapedMessage>,
    bytes: usize,
    answer: Option<Answer>,
}

/// The answer to a Logon.
#[derive(Clone, Copy)]
struct Answer {
    number: u64,
    wall_ns: u64,
    /// The number that is to come next, if it says so and that is not the Logon's own.
    next_in: Option<u64>,
}

/// A session in use.
struct Line {
    session: FixSession,
    parser: FixParser,
    /// Requests that wait for messages before them, as the session has them.
    early: BTreeMap<u64, TapedMessage>,
}

/// How it continues behind a message.
enum Next {
    On,
    Over,
    Lost,
}

impl Default for FixTalk {
    fn default() -> Self {
        Self(Stage::Calling(Calling::default()))
    }
}

impl FixTalk {
    /// Takes a message, and gives each of which it is known now what became of it.
    pub(crate) fn take(&mut self, message: TapedMessage, said: &mut impl FnMut(TapedMeaning)) {
        match message.is_in {
            true => self.came(message, said),
            false => self.went(message, said),
        }
    }

    /// Bytes are missing.
    pub(crate) fn lose(&mut self, said: &mut impl FnMut(TapedMeaning)) {
        let before = std::mem::replace(&mut self.0, Stage::Lost);
        before.waiting().for_each(|message| said(asks(message, TapedRole::Unsure)));
    }

    /// Nothing more follows: gives what waits.
    pub(crate) fn finish(&mut self, said: &mut impl FnMut(TapedMeaning)) {
        self.begin(said);
        self.end(said);
    }

    fn end(&mut self, said: &mut impl FnMut(TapedMeaning)) {
        let before = std::mem::replace(&mut self.0, Stage::Over);
        before.waiting().for_each(|message| said(asks(message, TapedRole::Waiting)));
    }

    /// The Logon is answered: its session begins with what came in.
    fn begin(&mut self, said: &mut impl FnMut(TapedMeaning)) {
        let Stage::Calling(Calling { came, answer: Some(answer), .. }) = &mut self.0 else { return };
        let (answer, mut came) = (*answer, std::mem::take(came).into_iter());
        let logon = came.next();
        let line = logon.as_ref().and_then(|logon| Line::begin(logon, answer));
        self.0 = line.map_or(Stage::Lost, |line| Stage::On(Box::new(line)));
        logon.into_iter().for_each(|logon| said(asks(logon, TapedRole::Unsure)));
        came.for_each(|message| self.hear(message, answer.wall_ns, said));
    }

    fn came(&mut self, message: TapedMessage, said: &mut impl FnMut(TapedMeaning)) {
        self.begin(said);
        let now_ns = message.wall_ns;
        let Stage::Calling(calling) = &mut self.0 else { return self.hear(message, now_ns, said) };
        calling.bytes += message.bytes.len();
        calling.came.push(message);
        if calling.bytes > CAME_BYTES_MAX {
            self.end(said);
        }
    }

    /// A message that came in is looked at then.
    fn hear(&mut self, message: TapedMessage, now_ns: u64, said: &mut impl FnMut(TapedMeaning)) {
        match &mut self.0 {
            Stage::On(line) => match line.take(message, now_ns.min(TIME_MAX_NS), said) {
                Next::On => {}
                Next::Over => self.end(said),
                Next::Lost => self.lose(said),
            },
            Stage::Lost => said(asks(message, TapedRole::Unsure)),
            Stage::Calling(_) | Stage::Over => said(asks(message, TapedRole::Ignored)),
        }
    }

    fn went(&mut self, message: TapedMessage, said: &mut impl FnMut(TapedMeaning)) {
        let kind = kind(&message.bytes);
        if let Stage::Calling(calling) = &mut self.0 {
            match (&mut calling.answer, kind.as_str()) {
                (answer @ None, "A") => *answer = Answer::read(&message),
                (Some(answer), _) => answer.is_followed_by(&message.bytes, &kind),
                (None, _) => {}
            }
            if kind != "A" {
                self.begin(said);
            }
        }
        if kind == "5" {
            self.end(said);
        }
        said(told(message, kind));
    }
}

impl Stage {
    /// What came in; what becomes of it is not known yet.
    fn waiting(self) -> impl Iterator<Item = TapedMessage> {
        let (came, early) = match self {
            Self::Calling(calling) => (calling.came, BTreeMap::new()),
            Self::On(line) => (Vec::new(), line.early),
            Self::Over | Self::Lost => Default::default(),
        };
        came.into_iter().chain(early.into_values())
    }
}

impl Answer {
    fn read(message: &TapedMessage) -> Option<Self> {
        let number = field(&message.bytes, tag::MSG_SEQ_NUM).filter(|number| *number <= NUMBER_MAX)?;
        let next_in = field(&message.bytes, tag::NEXT_EXPECTED_MSG_SEQ_NUM);
        Some(Self { number, wall_ns: message.wall_ns, next_in })
    }

    /// The message behind it: what a gateway lacks before the Logon it asks for at once.
    fn is_followed_by(&mut self, bytes: &[u8], kind: &str) {
        if kind == "2" && field(bytes, tag::MSG_SEQ_NUM) == Some(self.number + 1) {
            self.next_in = field(bytes, tag::BEGIN_SEQ_NO);
        }
    }
}

/// What a session makes of a message.
#[derive(Default)]
struct Heard {
    number: Option<u64>,
    /// Another message of that number was waiting.
    was_early: bool,
    /// Messages that are taken, it or such as waited: their numbers and names.
    taken: Vec<(Option<u64>, Option<u64>)>,
    is_over: bool,
}

impl Line {
    /// The session that the Logon began.
    fn begin(logon: &TapedMessage, answer: Answer) -> Option<Self> {
        let (mut parser, frame) = (FixParser::default(), frame(&logon.bytes)?);
        let (message, settings) = read_logon(&mut parser, &frame)?;
        let number = message.number(tag::MSG_SEQ_NUM)?;
        let sent_ns = message.time_ns(tag::SENDING_TIME)?.min(TIME_MAX_NS);
        let numbers = FixNumbers {
            next_in: answer.next_in.unwrap_or(number).min(number).max(1),
            next_out: answer.number.max(1),
        };
        let (mut session, mut is_on) = (FixSession::new(settings, numbers), false);
        // It is answered, so its time was right.
        session.on_frame(&mut parser, sent_ns, &frame, &mut |action: FixAction<'_>| {
            is_on |= matches!(action, FixAction::LoggedOn { .. });
        });
        is_on.then(|| Self { session, parser, early: BTreeMap::new() })
    }

    /// Takes a message, and gives those of which it is known now what became of them.
    fn take(&mut self, message: TapedMessage, now_ns: u64, said: &mut impl FnMut(TapedMeaning)) -> Next {
        let heard = match cut(&message.bytes).0 {
            // Whether its sum was right is not known.
            _ if message.is_whole && is_blanked(&message.bytes) => None,
            Cut::Whole(frame) => self.hear(&frame, now_ns),
            Cut::TooLong => Some(Heard { is_over: true, ..Heard::default() }),
            Cut::Garbled | Cut::Incomplete => Some(Heard::default()),
        };
        let Some(heard) = heard else {
            said(asks(message, TapedRole::Unsure));
            return Next::Lost;
        };
        self.tell(message, &heard, said);
        if heard.is_over { Next::Over } else { Next::On }
    }

    /// Has the session look at a message. `None` if the moment at which the gateway did decides, which is not known that well.
    fn hear(&mut self, frame: &FixFrame<'_>, now_ns: u64) -> Option<Heard> {
        let Self { session, parser, .. } = self;
        let (mut heard, tolerance_ns) = (Heard::default(), session.settings().time_tolerance_ns);
        if let Ok(message) = parser.parse(session.settings().dictionary, frame) {
            let off_ns = message.time_ns(tag::SENDING_TIME).map(|sent_ns| now_ns.abs_diff(sent_ns));
            if off_ns.is_some_and(|off_ns| off_ns.abs_diff(tolerance_ns) <= TURN_NS_MAX) {
                return None;
            }
            heard.number = message.number(tag::MSG_SEQ_NUM);
        }
        heard.was_early = heard.number.is_some_and(|number| session.is_early(number));
        session.on_frame(parser, now_ns, frame, &mut |action: FixAction<'_>| match action {
            FixAction::Deliver(message) => {
                let name = message.text(tag::CL_ORD_ID).and_then(client_order_id);
                heard.taken.push((message.number(tag::MSG_SEQ_NUM), name.map(|name| name.0)));
            }
            FixAction::Disconnect => heard.is_over = true,
            _ => {}
        });
        Some(heard)
    }

    fn tell(&mut self, message: TapedMessage, heard: &Heard, said: &mut impl FnMut(TapedMeaning)) {
        let (Self { session, early, .. }, mut message) = (self, Some(message));
        for (number, name) in &heard.taken {
            // A reset may bear the number of one that waits.
            let waited = number.and_then(|number| early.remove(&number));
            if let Some(taken) = waited.or_else(|| message.take_if(|_| *number == heard.number)) {
                said(TapedMeaning { name: *name, ..asks(taken, TapedRole::Request) });
            }
        }
        if let Some(message) = message {
            let waits = |number: &u64| !heard.was_early && session.is_early(*number);
            match heard.number.filter(waits).filter(|_| is_request(&kind(&message.bytes))) {
                Some(number) => _ = early.insert(number, message),
                None => said(asks(message, TapedRole::Ignored)),
            }
        }
        // Their numbers are over, and at the end of the session they have waited without an answer.
        while let Some(first) =
            early.first_entry().filter(|one| !heard.is_over && !session.is_early(*one.key()))
        {
            said(asks(first.remove(), TapedRole::Ignored));
        }
    }
}

/// The first value of a tag.
fn text_of(message: &[u8], tag: u16) -> Option<&[u8]> {
    let fields = message.split(|byte| *byte == SOH);
    let mut values =
        fields.filter_map(|field| field.strip_prefix(tag.to_string().as_bytes())?.strip_prefix(b"="));
    values.next()
}

fn field<T: FromStr>(message: &[u8], tag: u16) -> Option<T> {
    std::str::from_utf8(text_of(message, tag)?).ok()?.parse().ok()
}

fn name(message: &[u8], tag: u16) -> Option<u64> {
    text_of(message, tag).and_then(client_order_id).map(|name| name.0)
}

fn kind(message: &[u8]) -> String {
    field(message, tag::MSG_TYPE).unwrap_or_else(|| "?".into())
}

fn is_request(kind: &str) -> bool {
    matches!(kind, "D" | "F" | "G" | "q")
}

fn is_blanked(message: &[u8]) -> bool {
    Blank::new(TapDoor::Fix).count(message) > 0
}

/// The frame of a message, whatever its sum: one of which bytes are blanked has another than it had.
fn frame(bytes: &[u8]) -> Option<FixFrame<'_>> {
    let mut parts = bytes.splitn(3, |byte| *byte == SOH);
    let begin_string = parts.next()?.strip_prefix(b"8=")?;
    let rest = parts.nth(1)?;
    let body = rest.get(..rest.len().checked_sub(TRAILER_BYTES)?)?;
    let is_one = body.len() <= MESSAGE_BYTES_MAX && body.ends_with(&[SOH]);
    is_one.then_some(FixFrame { bytes, begin_string, body })
}

/// A message that came in; what asks for nothing has no role.
fn asks(message: TapedMessage, role: TapedRole) -> TapedMeaning {
    if !message.is_whole {
        return Meant::no_message(&message).of_message(message);
    }
    let (bytes, kind) = (&message.bytes, kind(&message.bytes));
    let is_garbled = !matches!(cut(bytes).0, Cut::Whole(_)) && !is_blanked(bytes);
    let role = match role {
        _ if !is_request(&kind) => TapedRole::Other,
        _ if is_garbled => TapedRole::Ignored,
        role => role,
    };
    let (name, about) = (name(bytes, tag::CL_ORD_ID), name(bytes, tag::ORIG_CL_ORD_ID));
    Meant { name, about, role, ..Meant::other(&kind, text(bytes)) }.of_message(message)
}

/// A message that went out.
fn told(message: TapedMessage, kind: String) -> TapedMeaning {
    let bytes = &message.bytes;
    let role = match kind.as_str() {
        "8" | "AE" => of_report(bytes),
        // Where the request is recorded, the record has the answer.
        "9" | "r" => TapedRole::Refusal,
        _ => TapedRole::Other,
    };
    let (name, about) = (name(bytes, tag::CL_ORD_ID), name(bytes, tag::ORIG_CL_ORD_ID));
    Meant { name, about, role, ..Meant::other(&kind, text(bytes)) }.of_message(message)
}

/// With `|` for SOH.
fn text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        match byte {
            &SOH => text.push('|'),
            byte => _ = write!(text, "{}", byte.escape_ascii()),
        }
    }
    text
}

/// Of an ExecutionReport or a TradeCaptureReport, by its ExecID and ExecType: ExecIDs are places in the record (docs/protocols/fix.md).
fn of_report(message: &[u8]) -> TapedRole {
    let (exec_id, exec_type): (Option<String>, Option<String>) =
        (field(message, tag::EXEC_ID), field(message, tag::EXEC_TYPE));
    let exec_id = exec_id.unwrap_or_default();
    let mut parts = exec_id.split('-');
    let shard = parts.next().and_then(|shard| shard.parse().ok()).map(ShardId);
    let position = parts.next().and_then(|position| position.parse().ok()).map(Position);
    match (shard, position, parts.next()) {
        _ if exec_type.as_deref() == Some("I") => TapedRole::Other,
        (Some(shard), Some(position), Some("A")) => TapedRole::Answer(shard, position),
        (Some(shard), Some(position), Some(_)) => TapedRole::Told(shard, position),
        _ if exec_id.starts_with('R') => TapedRole::Refusal,
        _ => TapedRole::Other,
    }
}

#[cfg(test)]
mod tests;
