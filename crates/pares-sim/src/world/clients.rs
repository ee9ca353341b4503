//! Clients and their connections.

use pares_gateway::{Reply, SessionId};
use pares_types::Reason;

use crate::Broken;
use crate::gateway::Input;
use crate::queue::Action;
use crate::record::NodeId;
use crate::scenario::{MS, US};

use super::{Session, World};

/// A client asks again after this.
const TIMEOUT_NS: u64 = 8 * MS;
/// Requests a client leaves unanswered before it asks more.
const OPEN_MAX: usize = 24;
/// With one venue at work, on time means within this: loss, resends and group commit included.
const COMPLETION_BOUND_NS: u64 = 10 * MS;
/// Where disks are slow now and then, on top: a full window waits for one slow sync, what it then lets in for the next.
const SLOW_SYNCS_NS: u64 = 2 * super::duty::SLOW_SYNC_NS;

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
                self.clients[client].home = self.random.index(self.gateways.len());
            }
            self.ask_gateway(client, name);
        }
        let burst = if self.random.chance(150) { self.random.between(2, 8) } else { 1 };
        for _ in 0..burst {
            self.ask_something_new(client);
        }
        let think_ns = match self.clients[client].left {
            0 => 2 * MS,
            _ => self.random.between(1, 2 * self.scenario.think_ns),
        };
        if !self.clients[client].is_done() {
            self.queue.push(self.now_ns + think_ns, Action::Wake { client });
        }
    }

    fn ask_something_new(&mut self, client: usize) {
        if self.clients[client].left > 0 && self.clients[client].open.len() < OPEN_MAX {
            let instruments = self.instruments.iter().map(Vec::len).sum::<usize>();
            let instruments = u32::try_from(instruments).expect("few instruments");
            let name = self.clients[client].invent(instruments, self.now_ns);
            self.ask_gateway(client, name);
        }
    }

    /// Through the client's home, now and then through another gateway at the same instant.
    fn ask_gateway(&mut self, client: usize, name: u64) {
        let home = self.clients[client].home;
        self.ask_through(client, home, name);
        if self.random.chance(self.scenario.faults.twin_permille) {
            let other = (home + 1) % self.gateways.len();
            self.ask_through(client, other, name);
        }
        if let Some(open) = self.clients[client].open.get_mut(&name) {
            open.retry_at_ns = self.now_ns + TIMEOUT_NS;
        }
    }

    fn ask_through(&mut self, client: usize, gateway: usize, name: u64) {
        let Some(session) = self.connection(client, gateway) else { return };
        let request = self.clients[client].open[&name].request;
        self.note("client {} sends {} to gateway {}", &[client as u64, name, gateway as u64]);
        let member = self.clients[client].member;
        self.ledger.witness.on_sent(member, request.client_order_id(), self.now_ns);
        self.send_to_gateway(session, Input::Request(request));
    }

    /// The client's connection to a gateway; a new one if there is none and the gateway lives.
    fn connection(&mut self, client: usize, gateway: usize) -> Option<SessionId> {
        if let Some(session) = self.clients[client].connections[gateway] {
            return Some(session);
        }
        let process = &self.gateways[gateway].process;
        if !process.up {
            return None;
        }
        let life = process.life;
        let session = SessionId(self.sessions.len() as u64);
        let now_ns = self.now_ns;
        self.sessions.push(Session {
            client,
            gateway,
            life,
            alive: true,
            to_gateway_ns: now_ns,
            to_client_ns: now_ns,
        });
        self.clients[client].connections[gateway] = Some(session);
        let member = self.clients[client].member;
        self.send_to_gateway(session, Input::SignOn(member));
        Some(session)
    }

    fn send_to_gateway(&mut self, session: SessionId, input: Input) {
        let delay_ns = self.random.between(10 * US, 80 * US);
        let entry = &mut self.sessions[session.0 as usize];
        entry.to_gateway_ns = (self.now_ns + delay_ns).max(entry.to_gateway_ns + 1);
        self.queue.push(entry.to_gateway_ns, Action::ToGateway { session, input });
    }

    pub(super) fn on_input(&mut self, session: SessionId, input: Input) {
        let Session { gateway, life, alive, .. } = self.sessions[session.0 as usize];
        let host = &mut self.gateways[gateway];
        let gone = !alive && !matches!(input, Input::Disconnected);
        // A stopped gateway's kernel still takes bytes in.
        if let Some(node) = host.node.as_mut().filter(|_| host.process.life == life && !gone) {
            node.inbox.push_back((session, input));
            self.schedule(NodeId::Gateway(gateway));
        }
    }

    pub(super) fn reply(&mut self, session: SessionId, reply: Reply) {
        let delay_ns = self.random.between(10 * US, 80 * US);
        let entry = &mut self.sessions[session.0 as usize];
        entry.to_client_ns = (self.now_ns + delay_ns).max(entry.to_client_ns + 1);
        self.queue.push(entry.to_client_ns, Action::ToClient { session, reply });
    }

    pub(super) fn break_one(&mut self) {
        let client = self.random.index(self.clients.len());
        let home = self.clients[client].home;
        if let Some(session) = self.clients[client].connections[home] {
            self.break_session(session);
        }
    }

    /// A connection ends; what was under way is lost. Both ends learn of it in their time.
    fn break_session(&mut self, session: SessionId) {
        let entry = &mut self.sessions[session.0 as usize];
        if !entry.alive {
            return;
        }
        entry.alive = false;
        let client = entry.client as u64;
        self.note("a connection of client {} breaks", &[client]);
        self.send_to_gateway(session, Input::Disconnected);
        let at_ns = self.now_ns + self.random.between(10 * US, 500 * US);
        self.queue.push(at_ns, Action::Broken { session });
    }

    pub(super) fn break_sessions_of(&mut self, gateway: usize) {
        for index in 0..self.sessions.len() {
            if self.sessions[index].gateway == gateway {
                self.break_session(SessionId(index as u64));
            }
        }
    }

    pub(super) fn on_broken(&mut self, session: SessionId) {
        let Session { client, gateway, .. } = self.sessions[session.0 as usize];
        let now_ns = self.now_ns;
        let client = &mut self.clients[client];
        if client.connections[gateway] == Some(session) {
            client.connections[gateway] = None;
        }
        client.home = (gateway + 1) % client.connections.len();
        for open in client.open.values_mut() {
            open.spoilt = true;
            open.retry_at_ns = open.retry_at_ns.min(now_ns + 200 * US);
        }
    }

    pub(super) fn on_reply(&mut self, session: SessionId, reply: Reply) -> Result<(), Broken> {
        let Session { client, gateway, alive, .. } = self.sessions[session.0 as usize];
        if !alive {
            return Ok(());
        }
        match reply {
            Reply::Journalled { request, .. } => self.check_journalled(gateway, request),
            Reply::Answer(answer) => {
                let words =
                    [client as u64, answer.client_order_id.0, answer.status as u64, answer.position.0];
                self.note("client {} has the answer to {}: status {} at {}", &words);
                self.check_answer(client, session, &answer)
            }
            Reply::Trade(trade) => self.ledger.check_trade(&trade),
            Reply::Cancelled(_) | Reply::News(_) | Reply::Busted(_) => Ok(()),
            Reply::Rejected { client_order_id, reason } => {
                self.on_rejected(client, client_order_id.0, reason);
                Ok(())
            }
        }
    }

    fn on_rejected(&mut self, client: usize, name: u64, reason: Reason) {
        self.note("client {} is rejected: request {}, reason {}", &[client as u64, name, reason as u64]);
        let wait_ns = self.random.between(500 * US, 3 * MS);
        let now_ns = self.now_ns;
        self.summary.rejected += 1;
        self.summary.ills.refused_for_room += u64::from(reason == Reason::StorageUnavailable);
        self.summary.ills.refused_unrecorded += u64::from(reason == Reason::NotRecorded);
        let client = &mut self.clients[client];
        let Some(open) = client.open.get_mut(&name) else { return };
        (open.spoilt, open.retry_at_ns) = (true, now_ns + wait_ns);
        let request = open.request;
        // Either no gateway takes it, ever, or its order will never exist.
        if reason == Reason::UnknownInstrument || client.target_abandoned(&request) {
            client.open.remove(&name);
            client.abandoned.insert(name);
        }
    }

    /// How long a request took, and whether it may have.
    pub(super) fn check_completion(&mut self, client: usize, name: u64, shard: usize) -> Result<(), Broken> {
        let Some(open) = self.clients[client].open.remove(&name) else { return Ok(()) };
        let took_ns = self.now_ns - open.first_sent_ns;
        let disturbed_until_ns =
            self.disturbed_until_ns.max(self.shard_disturbed_until_ns(&open.request, shard));
        if open.spoilt || disturbed_until_ns >= open.first_sent_ns {
            return Ok(());
        }
        self.summary.completion_max_ns = self.summary.completion_max_ns.max(took_ns);
        let slow_ns = if self.scenario.faults.slow_sync_permille > 0 { SLOW_SYNCS_NS } else { 0 };
        if took_ns <= COMPLETION_BOUND_NS + slow_ns {
            return Ok(());
        }
        let what = format!("client {client} request {name} took {} us with a venue at work", took_ns / US);
        Err(Broken { invariant: "I4 non-disruption", what })
    }
}
