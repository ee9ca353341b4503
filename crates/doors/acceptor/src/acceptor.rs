//! Which session a connection has.
//!
//! A connection is nobody's until its first message, which must be a Logon of a session that has no other connection. Then every message is
//! that session's, which the connection has for itself until it ends. There are no sockets here and no clock: bytes come in with their time, bytes go out to a
//! sink, and the next deadline can be asked. A few bytes can ask for many, a resend: so a sink that cannot take more keeps its caller waiting.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pares_fix::dictionary::{FIX42, FIX44};
use pares_fix::framing::{Cut, FixFrame, cut};
use pares_fix::parser::FixParser;
use pares_fix::session::{FixAction, FixNumbers, FixSession, FixSettings, FixSink};

use crate::echo::{Echo, Echoed};

/// How long a connection may be nobody's.
const LOGON_WAIT_NS: u64 = 10_000_000_000;

/// Sessions with an echo behind them, but for those that connections have.
#[derive(Debug)]
pub struct EchoAcceptor(Mutex<Vec<Option<Seat>>>);

#[derive(Debug)]
struct Seat {
    session: FixSession,
    echo: Echo,
}

/// A connection. Dropped, it gives back the session that it has.
#[derive(Debug)]
pub struct EchoConnection<'a> {
    acceptor: &'a EchoAcceptor,
    parser: FixParser,
    input: Vec<u8>,
    /// With its place among the acceptor's.
    seat: Option<(usize, Seat)>,
    /// When it must have one.
    until_ns: u64,
    is_closed: bool,
}

/// The side that the acceptance files call: ISLD, called by TW42 and TW44.
impl Default for EchoAcceptor {
    fn default() -> Self {
        let settings = [(&FIX42, "TW42"), (&FIX44, "TW44")].map(|(dictionary, peer)| FixSettings {
            application_types: Echo::TYPES,
            begins_anew: true,
            ..FixSettings::new(dictionary, "ISLD", peer)
        });
        Self::new(settings)
    }
}

impl EchoAcceptor {
    /// An acceptor of these sessions.
    #[must_use]
    pub fn new(sessions: impl IntoIterator<Item = FixSettings>) -> Self {
        let seat = |settings| {
            Some(Seat { session: FixSession::new(settings, FixNumbers::default()), echo: Echo::default() })
        };
        Self(Mutex::new(sessions.into_iter().map(seat).collect()))
    }

    /// A connection is there.
    #[must_use]
    pub fn connect(&self, now_ns: u64) -> EchoConnection<'_> {
        EchoConnection {
            acceptor: self,
            parser: FixParser::default(),
            input: Vec::new(),
            seat: None,
            until_ns: now_ns + LOGON_WAIT_NS,
            is_closed: false,
        }
    }

    /// A seat is taken or put back in one step, so a thread that panicked left all of them whole.
    fn seats(&self) -> MutexGuard<'_, Vec<Option<Seat>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EchoConnection<'_> {
    /// Bytes came. What is to be sent goes to `out`.
    pub fn receive(&mut self, now_ns: u64, bytes: &[u8], out: &mut dyn FnMut(&[u8])) {
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut used = 0;
        while !self.is_closed {
            let (cut, length) = cut(&input[used..]);
            used += length;
            match cut {
                Cut::Incomplete => break,
                Cut::Whole(frame) => self.on_frame(now_ns, &frame, out),
                Cut::Garbled => self.is_closed = self.seat.is_none(),
                Cut::TooLong => {
                    self.is_closed = self.seat.is_none();
                    self.turn(now_ns, out, |session, _, turn| session.end(now_ns, "Message too long", turn));
                }
            }
        }
        input.drain(..used);
        self.input = input;
        self.give_back();
    }

    /// Time has come to `now_ns`.
    pub fn tick(&mut self, now_ns: u64, out: &mut dyn FnMut(&[u8])) {
        self.is_closed |= self.seat.is_none() && now_ns >= self.until_ns;
        self.turn(now_ns, out, |session, _, turn| session.tick(now_ns, turn));
        self.give_back();
    }

    /// When [`Self::tick`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        self.seat.as_ref().map_or(Some(self.until_ns), |(_, seat)| seat.session.next_deadline())
    }

    /// Whether it is at its end: to be closed once everything is out.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    fn on_frame(&mut self, now_ns: u64, frame: &FixFrame<'_>, out: &mut dyn FnMut(&[u8])) {
        if self.seat.is_none() {
            self.seat = self.sit_down(frame);
            self.is_closed = self.seat.is_none();
        }
        self.turn(now_ns, out, |session, parser, turn| session.on_frame(parser, now_ns, frame, turn));
    }

    /// Finds the session of the first message, if no other connection has it.
    fn sit_down(&mut self, frame: &FixFrame<'_>) -> Option<(usize, Seat)> {
        let mut seats = self.acceptor.seats();
        let place = seats.iter().position(|seat| {
            seat.as_ref().is_some_and(|seat| {
                let dictionary = seat.session.settings().dictionary;
                dictionary.begin_string.as_bytes() == frame.begin_string
                    && self.parser.parse(dictionary, frame).is_ok_and(|message| seat.session.is_for(&message))
            })
        })?;
        seats[place].take().map(|seat| (place, seat))
    }

    /// At its end another connection may have the session.
    fn give_back(&mut self) {
        if let Some((place, mut seat)) = self.seat.take_if(|_| self.is_closed) {
            seat.session.on_disconnected();
            self.acceptor.seats()[place] = Some(seat);
        }
    }

    /// Lets the session do something, and does as it and its echo then wish.
    fn turn(
        &mut self,
        now_ns: u64,
        out: &mut dyn FnMut(&[u8]),
        act: impl FnOnce(&mut FixSession, &mut FixParser, &mut Turn<'_>),
    ) {
        let Some((_, Seat { session, echo })) = self.seat.as_mut().filter(|_| !self.is_closed) else {
            return;
        };
        let mut turn = Turn { now_ns, echo, out, owed: None, answers: Vec::new(), closes: false };
        act(session, &mut self.parser, &mut turn);
        turn.send_again(session);
        turn.send_answers(session);
        self.is_closed = turn.closes;
    }
}

impl Drop for EchoConnection<'_> {
    fn drop(&mut self) {
        self.is_closed = true;
        self.give_back();
    }
}

/// The wishes of a session in one turn.
struct Turn<'a> {
    now_ns: u64,
    echo: &'a mut Echo,
    out: &'a mut dyn FnMut(&[u8]),
    /// Numbers that are to be sent again.
    owed: Option<(u64, u64)>,
    answers: Vec<Echoed>,
    closes: bool,
}

impl Turn<'_> {
    /// Sends again what is owed.
    fn send_again(&mut self, session: &mut FixSession) {
        let Some((mut from, to)) = self.owed.take() else { return };
        while let Some((number, Echoed { msg_type, fields, sent_ns })) =
            self.echo.sent(from, to).filter(|_| !self.closes)
        {
            session.resend(self.now_ns, number, sent_ns, &msg_type, self, |writer| writer.fields(&fields));
            from = number + 1;
        }
        if !self.closes {
            session.resend_done(self.now_ns, self);
        }
    }

    /// Sends answers; behind a Logout there are none.
    fn send_answers(&mut self, session: &mut FixSession) {
        for echoed in std::mem::take(&mut self.answers) {
            if !session.is_logged_on() {
                return;
            }
            let number =
                session.send(self.now_ns, &echoed.msg_type, self, |writer| writer.fields(&echoed.fields));
            self.echo.remember(number, echoed);
        }
    }
}

impl FixSink for Turn<'_> {
    fn act(&mut self, action: FixAction<'_>) {
        match action {
            FixAction::Send(bytes) => (self.out)(bytes),
            FixAction::LoggedOn { anew } => {
                if anew {
                    self.echo.forget();
                }
                self.owed = None;
            }
            FixAction::Deliver(message) => self.answers.extend(self.echo.answer(self.now_ns, message)),
            FixAction::Resend { from, to } => self.owed = Some((from, to)),
            FixAction::Disconnect => self.closes = true,
        }
    }
}

#[cfg(test)]
mod tests;
