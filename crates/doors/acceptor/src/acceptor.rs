//! Which session a connection has.
//!
//! A connection is nobody's until its first message, which must be a Logon of a session that has no other connection. Then every message is
//! that session's. There are no sockets here and no clock: bytes come in with their time, bytes go out to a sink, and the next deadline can be asked.

use std::collections::BTreeMap;

use pares_fix::dictionary::{FIX42, FIX44};
use pares_fix::framing::{Cut, FixFrame, cut};
use pares_fix::parser::FixParser;
use pares_fix::session::{FixAction, FixNumbers, FixSession, FixSettings, FixSink};

use crate::echo::{Echo, Echoed};

/// How long a connection may be nobody's.
const LOGON_WAIT_NS: u64 = 10_000_000_000;

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionOutput<'a> {
    /// Send these bytes.
    Bytes(&'a [u8]),
    /// Close it once everything is out.
    Close,
}

/// Takes what is to be done, with the connection's number.
pub trait ConnectionSink {
    /// Takes one thing.
    fn put(&mut self, connection: u64, output: ConnectionOutput<'_>);
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
}

#[derive(Debug)]
struct Connection {
    input: Vec<u8>,
    /// Its seat; until then, when it must have one.
    seat: Result<usize, u64>,
}

/// What the acceptance files speak to: ISLD, called by TW42 and TW44.
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
        self.connections.insert(connection, Connection { input: Vec::new(), seat });
    }

    /// A connection is gone.
    pub fn disconnect(&mut self, connection: u64) {
        let gone = self.connections.remove(&connection);
        if let Some(Ok(seat)) = gone.map(|gone| gone.seat) {
            self.seats[seat].connection = None;
            self.seats[seat].session.on_disconnected();
        }
    }

    /// Bytes came.
    pub fn receive(&mut self, connection: u64, now_ns: u64, bytes: &[u8], sink: &mut impl ConnectionSink) {
        let Some(mut input) =
            self.connections.get_mut(&connection).map(|found| std::mem::take(&mut found.input))
        else {
            return;
        };
        input.extend_from_slice(bytes);
        let mut used = 0;
        while self.connections.contains_key(&connection) {
            let (cut, length) = cut(&input[used..]);
            used += length;
            match cut {
                Cut::Incomplete => break,
                Cut::Whole(frame) => self.on_frame(connection, now_ns, &frame, sink),
                Cut::Garbled => self.on_garbled(connection, sink),
                Cut::TooLong => self.on_too_long(connection, now_ns, sink),
            }
        }
        if let Some(found) = self.connections.get_mut(&connection) {
            input.drain(..used);
            found.input = input;
        }
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

    /// Lets a session do something, and does what it and its echo want done.
    fn turn<S: ConnectionSink>(
        &mut self,
        seat: usize,
        now_ns: u64,
        sink: &mut S,
        act: impl FnOnce(&mut FixSession, &mut FixParser, &mut Turn<'_, S>),
    ) {
        let Seat { session, echo, connection } = &mut self.seats[seat];
        let Some(connection) = *connection else { return };
        let mut turn =
            Turn { now_ns, connection, echo, sink, answers: Vec::new(), owed: None, closes: false };
        act(session, &mut self.parser, &mut turn);
        while let Some((from, to)) = turn.owed.take() {
            let owed: Vec<(u64, Echoed)> =
                turn.echo.sent(from, to).map(|(at, sent)| (at, sent.clone())).collect();
            for (number, Echoed { msg_type, fields, sent_ns }) in owed {
                session
                    .resend(now_ns, number, sent_ns, &msg_type, &mut turn, |writer| writer.fields(&fields));
            }
            session.resend_done(now_ns, &mut turn);
        }
        for echoed in std::mem::take(&mut turn.answers) {
            let number =
                session.send(now_ns, &echoed.msg_type, &mut turn, |writer| writer.fields(&echoed.fields));
            turn.echo.remember(number, echoed);
        }
        if turn.closes {
            self.close(connection, sink);
        }
    }
}

/// What a session wants done in one turn.
struct Turn<'a, S> {
    now_ns: u64,
    connection: u64,
    echo: &'a mut Echo,
    sink: &'a mut S,
    answers: Vec<Echoed>,
    owed: Option<(u64, u64)>,
    closes: bool,
}

impl<S: ConnectionSink> FixSink for Turn<'_, S> {
    fn act(&mut self, action: FixAction<'_>) {
        match action {
            FixAction::Send(bytes) => self.sink.put(self.connection, ConnectionOutput::Bytes(bytes)),
            FixAction::LoggedOn => self.echo.forget(),
            FixAction::Deliver(message) => self.answers.extend(self.echo.answer(self.now_ns, message)),
            FixAction::Resend { from, to } => self.owed = Some((from, to)),
            FixAction::Disconnect => self.closes = true,
        }
    }
}
