//! Clients and their connections: real frames, cut anywhere, late, and on connections that break.

mod hostile;
mod sent;

use std::collections::BTreeSet;

use pares_config::NodeId;
use pares_types::{ClientOrderId, Reason, Reply};
use pares_wire::frame::{self, GatewayFrame, SIGN_ON_JOURNALLED, SIGN_ON_RESUMES, SignOn};

use crate::client::EXCHANGE;
use crate::queue::Action;
use crate::scenario::{MS, US};
use crate::{Broken, Verdict, broken};

use super::guests::GuestEnd;
use super::order_queries::Asked;
use super::revocations::SESSION;
use super::{World, gateway_id};

/// A client asks again after this.
const TIMEOUT_NS: u64 = 8 * MS;
/// Requests a client leaves unanswered before it asks more.
const OPEN_MAX: usize = 24;
/// Before a client tries its key again that was wrong too often: a gateway looks at two wrong ones a second.
const ATTEMPT_NS: u64 = 600 * MS;
/// A client's connection to a gateway, by the connection's number.
#[derive(Default)]
pub(super) struct Session {
    pub(super) client: usize,
    pub(super) gateway: usize,
    pub(super) is_alive: bool,
    /// The gateway has closed it.
    pub(super) is_closing: bool,
    pub(super) guarded: BTreeSet<ClientOrderId>,
    /// It has had a timer.
    pub(super) is_timed: bool,
    /// When the last byte under way arrives, each way: a connection is in order.
    to_gateway_ns: u64,
    to_client_ns: u64,
    /// What came of a frame that is not whole yet.
    input: Vec<u8>,
    /// By shard, the number of its member's stream that comes next, if it follows that.
    stream: Option<Vec<u64>>,
    pub(super) asked: Asked,
    /// Whose it is if it is one at a port of another protocol.
    pub(super) guest: Option<GuestEnd>,
}

impl Session {
    /// The client, and what comes next of the stream of a shard, if the session follows it.
    pub(super) fn stream(&mut self, shard: usize) -> (usize, Option<&mut u64>) {
        (self.client, self.stream.as_mut().map(|stream| &mut stream[shard]))
    }

    /// Whether it is there, and what it has been told of its member's streams.
    pub(super) fn followed(&self) -> Option<(usize, &[u64])> {
        self.stream.as_deref().filter(|_| self.is_alive).map(|stream| (self.client, stream))
    }
}

impl World<'_> {
    /// A client does what is due: asks again, asks something new.
    pub(super) fn wake(&mut self, client: usize) {
        let due: Vec<u64> = self.clients[client]
            .open
            .iter()
            .filter(|(_, open)| open.retry_at_ns <= self.now_ns)
            .map(|(&name, _)| name)
            .collect();
        for name in due {
            self.summary.repeats += 1;
            if self.random.chance(300) {
                self.clients[client].home = self.random.index(self.scenario.gateways);
            }
            self.ask_gateway(client, name);
        }
        let burst = if self.random.chance(150) { self.random.between(2, 8) } else { 1 };
        for _ in 0..burst {
            self.ask_something_new(client);
        }
        self.ask_about_orders(client);
        let think_ns = match self.clients[client].left {
            0 => 2 * MS,
            _ => self.random.between(1, 2 * self.scenario.think_ns),
        };
        self.let_in(client);
        self.enter_copy(client);
        if !self.is_through(client) {
            self.queue.push(self.now_ns + think_ns, Action::Wake { client });
        }
    }

    fn ask_something_new(&mut self, client: usize) {
        if self.clients[client].left > 0 && self.clients[client].open.len() < OPEN_MAX {
            let instruments = self.instruments.iter().map(Vec::len).sum::<usize>();
            let instruments = u32::try_from(instruments).expect("few instruments");
            let name = self.clients[client].invent(instruments, self.now_ns);
            // Operators ask wherever they are: of requests under way at once, any may be the first.
            let is_operator = self.scenario.revocations && self.clients[client].member == EXCHANGE;
            if is_operator && self.random.chance(300) {
                self.clients[client].home = self.random.index(self.scenario.gateways);
            }
            self.ask_gateway(client, name);
        }
    }

    /// Through the client's home, now and then through another gateway at the same instant.
    pub(super) fn ask_gateway(&mut self, client: usize, name: u64) {
        let home = self.clients[client].home;
        self.ask_through(client, home, name);
        if self.random.chance(self.scenario.faults.twin_permille) {
            let other = (home + 1) % self.scenario.gateways;
            self.ask_through(client, other, name);
        }
        if let Some(open) = self.clients[client].open.get_mut(&name) {
            open.retry_at_ns = self.now_ns + TIMEOUT_NS;
        }
    }

    fn ask_through(&mut self, client: usize, gateway: usize, name: u64) {
        let Some(connection) = self.connection(client, gateway) else { return };
        let request = self.clients[client].open[&name].request;
        self.note("client {} sends {} to gateway {}", &[client as u64, name, gateway as u64]);
        let member = self.clients[client].member;
        self.ledger.witness.on_sent(member, request.client_order_id(), self.now_ns);
        let mut bytes = self.before_request(connection, request.client_order_id());
        frame::write_request(&mut bytes, &request);
        self.send_to_gateway(connection, &bytes);
        if self.random.chance(self.scenario.faults.hostile_permille) {
            self.send_something_hostile(connection, client);
        }
    }

    /// The client's connection to a gateway; a new one if there is none and the gateway lives.
    fn connection(&mut self, client: usize, gateway: usize) -> Option<usize> {
        if let Some(connection) = self.clients[client].connections[gateway] {
            return Some(connection);
        }
        if !self.is_up(gateway_id(gateway)) || self.now_ns < self.clients[client].sign_on_at_ns {
            return None;
        }
        let connection = self.open_connection(client, gateway);
        self.clients[client].connections[gateway] = Some(connection);
        let mut bytes = self.sign_on(client);
        if self.random.chance(500) {
            bytes = self.resume_streams(connection, client);
        }
        self.send_to_gateway(connection, &bytes);
        Some(connection)
    }

    /// A sign-on that resumes the member's streams, mostly where they broke off: at once, or behind the proof that it is asked for.
    fn resume_streams(&mut self, connection: usize, client: usize) -> Vec<u8> {
        let mut bytes = self.sign_on_with(client, SIGN_ON_JOURNALLED | SIGN_ON_RESUMES);
        let from_start = self.random.chance(100);
        let of_client = &mut self.clients[client].stream;
        of_client.resize(self.scenario.shards, 1);
        let stream: Vec<u64> = of_client.iter().map(|&next| if from_start { 1 } else { next }).collect();
        self.sessions[connection].stream = Some(stream);
        if !self.scenario.revocations {
            self.write_resumes(connection, &mut bytes);
        }
        bytes
    }

    fn sign_on(&self, client: usize) -> Vec<u8> {
        self.sign_on_with(client, SIGN_ON_JOURNALLED)
    }

    fn sign_on_with(&self, client: usize, flags: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let member = self.clients[client].member.0.into();
        frame::write(
            &mut bytes,
            &SignOn { member, flags: flags.into(), session: SESSION.into(), ..SignOn::default() },
        );
        bytes
    }

    fn open_connection(&mut self, client: usize, gateway: usize) -> usize {
        self.open_connection_as(client, gateway, None)
    }

    pub(super) fn open_connection_as(
        &mut self,
        client: usize,
        gateway: usize,
        guest: Option<GuestEnd>,
    ) -> usize {
        let life = self.life(gateway_id(gateway));
        let port = guest.and_then(|end| end.port);
        let connection = self.machine.lock().net.connect(gateway_id(gateway), life, port);
        let now_ns = self.now_ns;
        self.sessions.push(Session {
            client,
            gateway,
            is_alive: true,
            to_gateway_ns: now_ns,
            to_client_ns: now_ns,
            guest,
            ..Session::default()
        });
        self.schedule(gateway_id(gateway));
        connection
    }

    /// Bytes reach the gateway in their order, sometimes in two pieces.
    pub(super) fn send_to_gateway(&mut self, connection: usize, bytes: &[u8]) {
        let cut = if self.random.chance(100) { self.random.index(bytes.len()) } else { 0 };
        for piece in [&bytes[..cut], &bytes[cut..]] {
            if piece.is_empty() {
                continue;
            }
            let delay_ns = self.random.between(10 * US, 80 * US);
            let session = &mut self.sessions[connection];
            session.to_gateway_ns = (self.now_ns + delay_ns).max(session.to_gateway_ns + 1);
            let (at_ns, server) = (session.to_gateway_ns, gateway_id(session.gateway));
            self.queue.push(at_ns, Action::ToServer { server, connection, bytes: piece.to_vec() });
        }
    }

    pub(super) fn on_bytes(&mut self, server: NodeId, connection: usize, bytes: &[u8]) {
        // A stopped process's kernel still takes bytes in.
        self.machine.lock().net_of(server).deliver(connection, bytes);
        self.schedule(server);
    }

    pub(super) fn on_hang_up(&mut self, server: NodeId, connection: usize) {
        self.machine.lock().net_of(server).hang_up(connection);
        self.schedule(server);
    }

    pub(super) fn break_one(&mut self) {
        if !self.guests.is_empty() && self.random.chance(500) {
            return self.break_one_of_guests();
        }
        let client = self.random.index(self.clients.len());
        let home = self.clients[client].home;
        if let Some(connection) = self.clients[client].connections[home] {
            self.break_connection(connection);
        }
    }

    /// A connection ends; what was under way is lost. Both ends learn of it in their time.
    pub(super) fn break_connection(&mut self, connection: usize) {
        let session = &mut self.sessions[connection];
        if !std::mem::take(&mut session.is_alive) {
            return;
        }
        let (client, server) = (session.client as u64, gateway_id(session.gateway));
        self.note("a connection of client {} breaks", &[client]);
        let delays = [self.random.between(10 * US, 80 * US), self.random.between(10 * US, 500 * US)];
        self.queue.push(self.now_ns + delays[0], Action::HangUp { server, connection });
        self.queue.push(self.now_ns + delays[1], Action::Broken { connection });
    }

    pub(super) fn break_connections_of(&mut self, gateway: usize) {
        let open = self.machine.lock().net.drop_all_of(gateway_id(gateway));
        open.into_iter().for_each(|connection| self.break_connection(connection));
    }

    pub(super) fn on_broken(&mut self, connection: usize) {
        self.sessions[connection].is_alive = false;
        if let Some(end) = self.sessions[connection].guest {
            return self.on_guest_broken(connection, end);
        }
        let Session { client, gateway, .. } = self.sessions[connection];
        let now_ns = self.now_ns;
        let client = &mut self.clients[client];
        if client.connections[gateway] == Some(connection) {
            client.connections[gateway] = None;
        }
        client.home = (gateway + 1) % client.connections.len();
        for open in client.open.values_mut() {
            open.spoilt = true;
            open.retry_at_ns = open.retry_at_ns.min(now_ns + 200 * US);
        }
    }

    /// Bytes from a gateway: whole frames are read, the rest waits.
    pub(super) fn on_frames(&mut self, connection: usize, bytes: &[u8]) -> Verdict {
        let session = &mut self.sessions[connection];
        if !session.is_alive {
            return Ok(());
        }
        if let Some(end) = session.guest {
            return self.on_guest_bytes(connection, end, bytes);
        }
        let mut input = std::mem::take(&mut session.input);
        input.extend_from_slice(bytes);
        let mut rest = &input[..];
        loop {
            let split = frame::split(rest);
            let Ok(split) = split else {
                return broken("the protocol", format!("gateway sent what is no frame: {split:?}"));
            };
            let Some((kind, body, after)) = split else { break };
            rest = after;
            let frame = frame::decode_gateway(kind, body).map_err(|error| {
                let what = format!("gateway sent a frame that cannot be read: {error}");
                Broken { invariant: "the protocol", what }
            })?;
            self.on_frame(connection, frame)?;
        }
        self.sessions[connection].input = rest.to_vec();
        Ok(())
    }

    fn on_frame(&mut self, connection: usize, frame: GatewayFrame) -> Verdict {
        match frame {
            GatewayFrame::Reply(reply) => self.on_reply(connection, reply),
            GatewayFrame::OrderStatus(key, status) => self.on_order_status(connection, key, status),
            GatewayFrame::ListEnd(end) => self.on_list_end(connection, &end),
            GatewayFrame::Challenge(challenge) => {
                let client = self.sessions[connection].client;
                self.on_challenge(connection, client, &challenge);
                Ok(())
            }
            GatewayFrame::SignedOn(_) => {
                self.sessions[connection].asked.is_signed_on = true;
                Ok(())
            }
            GatewayFrame::Pong(_)
            | GatewayFrame::Resumed { .. }
            | GatewayFrame::InstrumentStatus(_)
            | GatewayFrame::TickRow { .. }
            | GatewayFrame::OwnLimits(_) => Ok(()),
        }
    }

    fn on_reply(&mut self, connection: usize, reply: Reply) -> Verdict {
        self.check_stream(connection, &reply)?;
        self.sessions[connection].asked.note(&reply);
        let Session { client, gateway, .. } = self.sessions[connection];
        match reply {
            Reply::Journalled { request, .. } => self.check_journalled(gateway, request),
            // The whole is answered when every shard has answered its part.
            Reply::Answer(answer) if answer.is_part() => Ok(()),
            Reply::Answer(answer) => {
                let words =
                    [client as u64, answer.client_order_id.0, answer.status as u64, answer.position.0];
                self.note("client {} has the answer to {}: status {} at {}", &words);
                self.note_followed(gateway, &answer);
                self.check_answer(client, connection, &answer)
            }
            Reply::Trade(trade) => self.ledger.check_trade(&trade),
            Reply::Cancelled(_) | Reply::News(_) | Reply::Busted(_) => Ok(()),
            Reply::Rejected { client_order_id, reason } => {
                self.on_rejected(client, client_order_id.0, reason)
            }
        }
    }

    fn on_rejected(&mut self, client: usize, name: u64, reason: Reason) -> Verdict {
        self.note("client {} is rejected: request {}, reason {}", &[client as u64, name, reason as u64]);
        let wait_ns = self.random.between(500 * US, 3 * MS);
        let now_ns = self.now_ns;
        self.summary.rejected += 1;
        self.summary.ills.refused_for_room += u64::from(reason == Reason::StorageUnavailable);
        self.summary.ills.revoked += u64::from(reason == Reason::Revoked);
        self.summary.ills.wrong_keys += u64::from(reason == Reason::WrongKey);
        self.summary.ills.too_old += u64::from(reason == Reason::TooOld);
        self.summary.ills.refused_unrecorded += u64::from(reason == Reason::NotRecorded);
        let client = &mut self.clients[client];
        if reason == Reason::TooManyAttempts {
            client.sign_on_at_ns = now_ns + ATTEMPT_NS;
        }
        let Some(open) = client.open.get_mut(&name) else { return Ok(()) };
        (open.spoilt, open.retry_at_ns) = (true, now_ns + wait_ns);
        open.asked_ns = open.retry_at_ns;
        let request = open.request;
        // Either no gateway takes it, ever, or as long as others of the member are open, or its answer or its order is forgotten, or its order
        // will never exist.
        let is_final = [Reason::UnknownInstrument, Reason::TooOld, Reason::UnknownOrder, Reason::OrdersLimit]
            .contains(&reason);
        if is_final || client.target_abandoned(&request) {
            client.open.remove(&name);
            client.abandoned.insert(name);
        }
        self.check_refusal(&request, reason)
    }
}
