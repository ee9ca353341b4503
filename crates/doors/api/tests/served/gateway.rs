//! A gateway that says what a test has it say.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pares_exercise::replies::{self, SHARD, instrument_status, order_status};
use pares_types::{
    Answer, ClientOrderId, ClientRequest, InstrumentId, Limits, List, ListEnd, ListRequest, MemberId,
    OrderKey, OrderStatus, OwnLimits, Position, Quantity, Reason, Reply, RequestDigest, Rights, Status,
};
use pares_wire::frame::{self, ClientFrame, RESUME_NOTHING, SignedOn};

use crate::client::eventually;

/// Messages told of the past before it looks whether something is said.
const PORTION: u64 = 4_096;

#[derive(Default)]
struct Script {
    instruments: Vec<(&'static str, u32)>,
    orders: Vec<(u64, InstrumentId)>,
    /// The answers to cancels.
    cancels: Vec<Answer>,
    /// The number of the stream's next message.
    next: u64,
    /// A shard refuses all orders.
    refuses: bool,
    /// Who signs on copies this member, if it is not 0.
    copied: u32,
    /// It answers no question about limits, of which it owes so many answers, and lists nothing.
    is_silent: bool,
    owed: usize,
    is_dead: bool,
    heard: Vec<ClientFrame>,
    connections: Vec<TcpStream>,
}

/// The gateway. Its connections share what it knows.
#[derive(Clone)]
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    script: Arc<Mutex<Script>>,
}

impl Gateway {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let gateway =
            Self { address: listener.local_addr().unwrap(), script: Arc::new(Mutex::new(Script::default())) };
        let own = gateway.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, own) = (stream.unwrap(), own.clone());
                let mut script = own.script();
                if script.is_dead {
                    continue;
                }
                script.connections.push(stream.try_clone().unwrap());
                drop(script);
                std::thread::spawn(move || own.serve(stream));
            }
        });
        gateway
    }

    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap()
    }

    /// It lists these, and no others any more.
    pub(crate) fn list(&self, instruments: &[(&'static str, u32)]) {
        self.script().instruments = instruments.to_vec();
    }

    /// That number comes next in the member's stream.
    pub(crate) fn comes_next(&self, number: u64) {
        self.script().next = number;
    }

    /// Its sessions are revoked.
    pub(crate) fn revoke(&self) {
        let mut out = Vec::new();
        let (client_order_id, reason) = (ClientOrderId(0), Reason::Revoked);
        frame::write_reply(&mut out, &Reply::Rejected { client_order_id, reason });
        self.script().say(&out);
    }

    /// From now on a shard refuses all orders.
    pub(crate) fn refuse(&self) {
        self.script().refuses = true;
    }

    /// The cancel of that name was refused, of an order that is not known any more.
    pub(crate) fn refuse_cancel(&self, name: u64) {
        let (status, reason, order) = (Status::Refused, Reason::UnknownOrder, replies::order_id(9));
        self.script().cancels.push(Answer { status, reason, order, ..answer(name, InstrumentId(1)) });
    }

    /// A session that signs on from now on receives that member's streams.
    pub(crate) fn copy(&self, member: u32) {
        self.script().copied = member;
    }

    /// It answers no question about limits, and lists nothing.
    pub(crate) fn hush(&self) {
        self.script().is_silent = true;
    }

    /// It does so again, and answers those about limits of before first.
    pub(crate) fn speak(&self) {
        let mut out = Vec::new();
        let mut script = self.script();
        script.is_silent = false;
        (0..std::mem::take(&mut script.owed)).for_each(|_| write_limits(&mut out, 0));
        script.say(&out);
    }

    /// Its connections break, and no other one lasts.
    pub(crate) fn die(&self) {
        let mut script = self.script();
        script.is_dead = true;
        for connection in script.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Tells the message of that number of the stream.
    pub(crate) fn tell(&self, number: u64) {
        let mut out = Vec::new();
        write_message(&mut out, number);
        self.script().say(&out);
    }

    /// What was said to it, but for sign-ons and heartbeats.
    pub(crate) fn heard(&self) -> Vec<ClientFrame> {
        self.script().heard.clone()
    }

    /// Waits until something of that kind was said to it.
    pub(crate) fn hears(&self, is_meant: impl Fn(&ClientFrame) -> bool) {
        eventually("the gateway hears it", || self.heard().iter().any(&is_meant));
    }

    fn serve(&self, mut stream: TcpStream) {
        let (mut bytes, mut part, mut telling) = (Vec::new(), [0; 4_096], None);
        loop {
            stream.set_read_timeout(telling.map(|_| Duration::from_millis(1))).unwrap();
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&part[..count]),
                Err(why) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&why.kind()) => {}
                Err(_) => break,
            }
            let mut out = Vec::new();
            let mut script = self.script();
            while let Some((kind, body, rest)) = frame::split(&bytes).unwrap() {
                script.answer(frame::decode_client(kind, body).unwrap(), &mut telling, &mut out);
                bytes = rest.to_vec();
            }
            telling = telling.and_then(|from| script.tell_on(from, &mut out));
            if stream.write_all(&out).is_err() {
                break;
            }
        }
    }
}

impl Script {
    fn say(&mut self, bytes: &[u8]) {
        self.connections.retain_mut(|connection| connection.write_all(bytes).is_ok());
    }

    /// Tells a portion of the past from that number on, and where the next begins, unless that was all.
    fn tell_on(&self, from: u64, out: &mut Vec<u8>) -> Option<u64> {
        let to = self.next.min(from + PORTION);
        (from..to).for_each(|number| write_message(out, number));
        if to == self.next {
            frame::write_resumed(out, SHARD, self.next, Reason::None);
        }
        (to < self.next).then_some(to)
    }

    fn answer(&mut self, frame: ClientFrame, telling: &mut Option<u64>, out: &mut Vec<u8>) {
        match frame {
            ClientFrame::SignOn(asked) => {
                let (token, member, heartbeat_ms) = (asked.token, asked.member, asked.heartbeat_ms);
                let in_flight_max = 200.into();
                let copied = self.copied.into();
                let signed_on =
                    SignedOn { token, member, heartbeat_ms, in_flight_max, copied, ..SignedOn::default() };
                return frame::write(out, &signed_on);
            }
            ClientFrame::Ping(_) => return frame::write(out, &frame::Pong::default()),
            ClientFrame::Resume { next: RESUME_NOTHING, .. } => {
                *telling = None;
                frame::write_resumed(out, SHARD, 0, Reason::Requested);
            }
            ClientFrame::Resume { next, .. } if next <= self.next => {
                *telling = Some(if next == 0 { self.next } else { next });
            }
            ClientFrame::ListRequest(_) if self.is_silent => {}
            ClientFrame::ListRequest(request) => self.write_list(request, out),
            ClientFrame::LimitsRequest { .. } if self.is_silent => self.owed += 1,
            ClientFrame::LimitsRequest { token } => write_limits(out, token),
            ClientFrame::OrderStatusRequest(key) => self.write_status(key, out),
            ClientFrame::Request(request) => frame::write_reply(out, &self.reply(&request)),
            _ => {}
        }
        self.heard.push(frame);
    }

    fn reply(&mut self, request: &ClientRequest) -> Reply {
        let client_order_id = request.client_order_id();
        let is_order = matches!(request, ClientRequest::Enter { .. });
        if let Some(first) = self.first_of(client_order_id).filter(|_| !is_order) {
            return Reply::Answer(Answer { repeat: true, ..first });
        }
        if let ClientRequest::Cancel { target, .. } = request {
            return self.cancel(client_order_id, *target, request.asked());
        }
        let (status, instrument) = match request {
            ClientRequest::Enter { instrument, .. } => (Status::Resting, *instrument),
            ClientRequest::MassCancel { instrument, .. } => (Status::MassCancelled, *instrument),
            ClientRequest::Exchange { instrument, .. } => (Status::Accepted, *instrument),
            other => panic!("{other:?}"),
        };
        let is_listed = self.instruments.iter().any(|(_, number)| *number == instrument.0);
        if self.refuses || !is_listed {
            let repeat =
                self.heard.iter().any(|heard| matches!(heard, ClientFrame::Request(same) if same == request));
            let (status, reason) =
                (Status::Refused, if is_listed { Reason::BookFull } else { Reason::UnknownInstrument });
            return Reply::Answer(Answer { status, reason, repeat, ..answer(client_order_id.0, instrument) });
        }
        let first = Answer { status, asked: request.asked(), ..answer(client_order_id.0, instrument) };
        match status {
            Status::Resting => self.orders.push((client_order_id.0, instrument)),
            _ => self.cancels.push(first),
        }
        Reply::Answer(first)
    }

    /// The first answer to a name.
    fn first_of(&self, name: ClientOrderId) -> Option<Answer> {
        let entered = self.orders.iter().find(|(entry, _)| *entry == name.0);
        let cancelled = || self.cancels.iter().find(|first| first.client_order_id == name).copied();
        entered.map(|(entry, instrument)| answer(*entry, *instrument)).or_else(cancelled)
    }

    /// The order of that name is cancelled.
    fn cancel(&mut self, name: ClientOrderId, target: ClientOrderId, asked: RequestDigest) -> Reply {
        let (status, reason) = (Status::Cancelled, Reason::Requested);
        let order = replies::order_id(target.0);
        let first = Answer { status, reason, order, asked, ..answer(name.0, InstrumentId(1)) };
        self.cancels.push(first);
        Reply::Answer(first)
    }

    fn write_status(&self, key: OrderKey, out: &mut Vec<u8>) {
        let keys = |name| [OrderKey::Name(ClientOrderId(name)), OrderKey::Id(replies::order_id(name))];
        let found = self.orders.iter().find(|(name, _)| keys(*name).contains(&key));
        let status = found.map(|(name, of)| OrderStatus { instrument: *of, ..order_status(*name) });
        frame::write_order_status(out, key, status);
    }

    fn write_list(&self, request: ListRequest, out: &mut Vec<u8>) {
        let is_asked = |one: InstrumentId| request.instrument.is_none_or(|asked| asked == one);
        match request.list {
            List::Orders => {
                for (name, instrument) in self.orders.iter().filter(|(_, one)| is_asked(*one)) {
                    let key = OrderKey::Name(ClientOrderId(*name));
                    frame::write_order_status(
                        out,
                        key,
                        Some(OrderStatus { instrument: *instrument, ..order_status(*name) }),
                    );
                }
            }
            List::Instruments => {
                for (symbol, number) in
                    self.instruments.iter().filter(|(_, one)| is_asked(InstrumentId(*one)))
                {
                    frame::write_instrument_status(out, &instrument_status(symbol, InstrumentId(*number)));
                }
            }
        }
        frame::write_list_end(out, &ListEnd { request, count: 0, reason: Reason::None });
    }
}

/// The one that a session is at, and the one where it could continue.
pub(crate) fn own_and_other([first, second]: &[Gateway; 2]) -> [&Gateway; 2] {
    if first.heard().is_empty() { [second, first] } else { [first, second] }
}

/// The message of that number of the stream.
fn write_message(out: &mut Vec<u8>, number: u64) {
    frame::write_reply(out, &Reply::Answer(Answer { number, ..answer(number, InstrumentId(1)) }));
}

fn write_limits(out: &mut Vec<u8>, token: u64) {
    let own = OwnLimits {
        token,
        next: Position(1),
        member: MemberId(7),
        session: 0,
        rights: Rights::TRADING,
        limits: Limits { orders_max: 100, rate_max: 3, burst_max: 10, ..Limits::NONE },
        position_max: 0,
        orders: 40,
        in_flight: 1,
        in_flight_max: 200,
    };
    frame::write_own_limits(out, &own);
}

fn answer(name: u64, instrument: InstrumentId) -> Answer {
    let (position, remaining) = (Position(name), Quantity(1));
    Answer { instrument, position, remaining, ..replies::answer(name, 0) }
}
