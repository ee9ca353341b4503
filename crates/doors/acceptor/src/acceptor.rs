//! Which session a connection has.
//!
//! A connection is nobody's until its first message, which must be a Logon of a session that has no other connection. Then every message is
//! that session's. There are no sockets here and no clock: bytes come in with their time, bytes go out to a sink, and the next deadline can be asked.
//!
//! A few bytes can ask for many: a resend. So while a sink has no room for a connection, nothing of its input is handled and nothing is sent again; both
//! go on with the next bytes, of which there may be none ([`EchoAcceptor::is_behind`]).

use std::collections::BTreeMap;

use pares_fix::dictionary::{FIX42, FIX44};
use pares_fix::framing::{Cut, FixFrame, cut};
use pares_fix::parser::FixParser;
use pares_fix::session::{FixAction, FixNumbers, FixSession, FixSettings, FixSink};

use crate::echo::{Echo, Echoed};

/// How long a connection may be nobody's.
const LOGON_WAIT_NS: u64 = 10_000_000_000;

/// An order to the owner of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionOutput<'a> {
    /// Send these bytes.
    Bytes(&'a [u8]),
    /// Close it once everything is out.
    Close,
}

/// Takes orders, each with the connection's number.
pub trait ConnectionSink {
    /// Takes one.
    fn put(&mut self, connection: u64, output: ConnectionOutput<'_>);

    /// Whether more may be sent, beside answers that are owed already.
    fn has_room(&self, _connection: u64) -> bool {
        true
    }
}

impl<F: FnMut(u64, ConnectionOutput<'_>)> ConnectionSink for F {
    fn put(&mut self, connection: u64, output: ConnectionOutput<'_>) {
        self(connection, output);
    }
}

/// Sessions with an echo behind them, and connections that have them.
#[derive(Debug)]
pub struct EchoAcceptor {
    seats: Vec<Seat>,
    connections: BTreeMap<u64, Connection>,
    parser: FixParser,
}

#[derive(Debug)]
struct Seat {
    session: FixSession,
    echo: Echo,
    connection: Option<u64>,
    /// Numbers that are still to be sent again.
    owed: Option<(u64, u64)>,
}

#[derive(Debug)]
struct Connection {
    input: Vec<u8>,
    /// Whether there may be whole messages in it.
    is_behind: bool,
    /// Its seat; until then, when it must have one.
    seat: Result<usize, u64>,
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
        let seat = |settings| Seat {
            session: FixSession::new(settings, FixNumbers::default()),
            echo: Echo::default(),
            connection: None,
            owed: None,
        };
        Self {
            seats: sessions.into_iter().map(seat).collect(),
            connections: BTreeMap::new(),
            parser: FixParser::default(),
        }
    }

    /// A connection is there.
    pub fn connect(&mut self, connection: u64, now_ns: u64) {
        let seat = Err(now_ns + LOGON_WAIT_NS);
        self.connections.insert(connection, Connection { input: Vec::new(), is_behind: false, seat });
    }

    /// A connection is gone.
    pub fn disconnect(&mut self, connection: u64) {
        let gone = self.connections.remove(&connection);
        if let Some(Ok(seat)) = gone.map(|gone| gone.seat) {
            (self.seats[seat].connection, self.seats[seat].owed) = (None, None);
            self.seats[seat].session.on_disconnected();
        }
    }

    /// Bytes came, or there is room again.
    pub fn receive(&mut self, connection: u64, now_ns: u64, bytes: &[u8], sink: &mut impl ConnectionSink) {
        let Some(found) = self.connections.get_mut(&connection) else { return };
        let mut input = std::mem::take(&mut found.input);
        input.extend_from_slice(bytes);
        let (used, is_behind) = self.take_frames(connection, now_ns, &input, sink);
        let Some(found) = self.connections.get_mut(&connection) else { return };
        input.drain(..used);
        (found.input, found.is_behind) = (input, is_behind);
        if let Ok(seat) = found.seat {
            self.turn(seat, now_ns, sink, |_, _, _| {});
        }
    }

    /// Whether a connection has something to do as soon as there is room: whole messages that came, or a resend.
    #[must_use]
    pub fn is_behind(&self, connection: u64) -> bool {
        self.connections.get(&connection).is_some_and(|found| {
            found.is_behind || found.seat.is_ok_and(|seat| self.seats[seat].owed.is_some())
        })
    }

    /// Handles messages while there is room: how many bytes are done with, and whether more could be.
    fn take_frames(
        &mut self,
        connection: u64,
        now_ns: u64,
        input: &[u8],
        sink: &mut impl ConnectionSink,
    ) -> (usize, bool) {
        let mut used = 0;
        while self.connections.contains_key(&connection) {
            if !sink.has_room(connection) {
                return (used, true);
            }
            let (cut, length) = cut(&input[used..]);
            used += length;
            match cut {
                Cut::Incomplete => break,
                Cut::Whole(frame) => self.on_frame(connection, now_ns, &frame, sink),
                Cut::Garbled => self.on_garbled(connection, sink),
                Cut::TooLong => self.on_too_long(connection, now_ns, sink),
            }
        }
        (used, false)
    }

    /// Time has come to `now_ns`.
    pub fn tick(&mut self, now_ns: u64, sink: &mut impl ConnectionSink) {
        for seat in 0..self.seats.len() {
            self.turn(seat, now_ns, sink, |session, _, turn| session.tick(now_ns, turn));
        }
        let late =
            self.connections.iter().filter(|(_, found)| found.seat.is_err_and(|until_ns| now_ns >= until_ns));
        for connection in late.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.close(connection, sink);
        }
    }

    /// When [`Self::tick`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let sessions = self.seats.iter().filter_map(|seat| seat.session.next_deadline());
        sessions.chain(self.connections.values().filter_map(|found| found.seat.err())).min()
    }

    fn on_frame(
        &mut self,
        connection: u64,
        now_ns: u64,
        frame: &FixFrame<'_>,
        sink: &mut impl ConnectionSink,
    ) {
        let seat = self.connections[&connection].seat.ok().or_else(|| self.sit_down(connection, frame));
        match seat {
            Some(seat) => {
                self.turn(seat, now_ns, sink, |session, parser, turn| {
                    session.on_frame(parser, now_ns, frame, turn);
                });
            }
            None => self.close(connection, sink),
        }
    }

    /// Finds the session of a connection's first message.
    fn sit_down(&mut self, connection: u64, frame: &FixFrame<'_>) -> Option<usize> {
        let (parser, seats) = (&mut self.parser, &mut self.seats);
        let (number, seat) = seats.iter_mut().enumerate().find(|(_, seat)| {
            let settings = seat.session.settings();
            let is_version = settings.dictionary.begin_string.as_bytes() == frame.begin_string;
            is_version
                && parser.parse(settings.dictionary, frame).is_ok_and(|message| seat.session.is_for(&message))
        })?;
        if seat.connection.is_some() {
            return None;
        }
        seat.connection = Some(connection);
        self.connections.get_mut(&connection)?.seat = Ok(number);
        Some(number)
    }

    fn on_garbled(&mut self, connection: u64, sink: &mut impl ConnectionSink) {
        if self.connections[&connection].seat.is_err() {
            self.close(connection, sink);
        }
    }

    fn on_too_long(&mut self, connection: u64, now_ns: u64, sink: &mut impl ConnectionSink) {
        match self.connections[&connection].seat {
            Ok(seat) => {
                self.turn(seat, now_ns, sink, |session, _, turn| {
                    session.end(now_ns, "Message too long", turn)
                });
            }
            Err(_) => self.close(connection, sink),
        }
    }

    fn close(&mut self, connection: u64, sink: &mut impl ConnectionSink) {
        self.disconnect(connection);
        sink.put(connection, ConnectionOutput::Close);
    }

    /// Lets a session do something, and does as it and its echo then wish.
    fn turn<S: ConnectionSink>(
        &mut self,
        seat: usize,
        now_ns: u64,
        sink: &mut S,
        act: impl FnOnce(&mut FixSession, &mut FixParser, &mut Turn<'_, S>),
    ) {
        let Seat { session, echo, connection, owed } = &mut self.seats[seat];
        let Some(connection) = *connection else { return };
        let mut turn = Turn { now_ns, connection, echo, owed, sink, answers: Vec::new(), closes: false };
        act(session, &mut self.parser, &mut turn);
        while !turn.closes && turn.sink.has_room(connection) && turn.send_again(session) {}
        turn.send_answers(session);
        if turn.closes {
            self.close(connection, sink);
        }
    }
}

/// The wishes of a session in one turn.
struct Turn<'a, S> {
    now_ns: u64,
    connection: u64,
    echo: &'a mut Echo,
    owed: &'a mut Option<(u64, u64)>,
    sink: &'a mut S,
    answers: Vec<Echoed>,
    closes: bool,
}

impl<S: ConnectionSink> Turn<'_, S> {
    /// Sends one message again that is owed, or says that none is left.
    fn send_again(&mut self, session: &mut FixSession) -> bool {
        let Some((from, to)) = *self.owed else { return false };
        match self.echo.sent(from, to) {
            Some((number, Echoed { msg_type, fields, sent_ns })) => {
                *self.owed = Some((number + 1, to));
                session
                    .resend(self.now_ns, number, sent_ns, &msg_type, self, |writer| writer.fields(&fields));
            }
            None => {
                *self.owed = None;
                session.resend_done(self.now_ns, self);
            }
        }
        true
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

impl<S: ConnectionSink> FixSink for Turn<'_, S> {
    fn act(&mut self, action: FixAction<'_>) {
        match action {
            FixAction::Send(bytes) => self.sink.put(self.connection, ConnectionOutput::Bytes(bytes)),
            FixAction::LoggedOn { anew } => {
                if anew {
                    self.echo.forget();
                }
                *self.owed = None;
            }
            FixAction::Deliver(message) => self.answers.extend(self.echo.answer(self.now_ns, message)),
            FixAction::Resend { from, to } => *self.owed = Some((from, to)),
            FixAction::Disconnect => self.closes = true,
        }
    }
}

#[cfg(test)]
mod tests;
