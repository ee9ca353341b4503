//! Members that come by FIX: their connections, and what the record says they must have been told.

mod hostile;

use pares_types::{Command, MemberId, Position, Request};

use crate::fix::{Asked, FixClient, TOLD, expected};
use crate::queue::Action;
use crate::random::Random;
use crate::record::Record;
use crate::scenario::{MS, Scenario};
use crate::{Broken, FixSeen};

use super::{World, gateway_id, shard_id};

/// Who has a connection at a port for FIX.
#[derive(Clone, Copy, Debug)]
pub(super) enum FixEnd {
    Client(usize),
    Stranger,
}

/// The members that come by FIX, behind the others.
pub(super) fn clients(scenario: &Scenario, random: &mut Random) -> Vec<FixClient> {
    let instruments = u32::try_from(scenario.shards * scenario.instruments_per_shard).expect("few");
    let members = (scenario.clients + 1..).take(scenario.fix);
    let members = members.map(|member| MemberId(u32::try_from(member).expect("few members")));
    let requests = scenario.requests_per_client;
    members.map(|member| FixClient::new(member, requests, instruments, random.fork())).collect()
}

impl World<'_> {
    pub(super) fn wake_fix(&mut self, client: usize) {
        match self.fix_clients[client].connection {
            None => self.call_by_fix(client),
            Some(connection) => self.go_on_by_fix(client, connection),
        }
        let think_ns = if self.calm { 2 * MS } else { self.random.between(1, 2 * self.scenario.think_ns) };
        self.queue.push(self.now_ns + think_ns, Action::WakeFix { client });
    }

    fn call_by_fix(&mut self, client: usize) {
        let gateway = self.fix_clients[client].home % self.scenario.gateways;
        if !self.is_up(gateway_id(gateway)) {
            self.fix_clients[client].home += 1;
            return;
        }
        let nobody = self.clients.len() - 1;
        let connection = self.open_connection_as(nobody, gateway, Some(FixEnd::Client(client)));
        self.note("FIX client {} calls gateway {}", &[client as u64, gateway as u64]);
        let (now_ns, mut out) = (self.now_ns, Vec::new());
        self.fix_clients[client].connection = Some(connection);
        self.fix_clients[client].log_on(now_ns, &mut out);
        self.send_by_fix(connection, &out);
    }

    fn go_on_by_fix(&mut self, client: usize, connection: usize) {
        let (now_ns, is_calm) = (self.now_ns, self.calm);
        let leaves = !is_calm && self.random.chance(15);
        if self.fix_clients[client].is_stuck(now_ns) || leaves {
            return self.hang_up_by_fix(client, connection);
        }
        let mut out = Vec::new();
        let one = &mut self.fix_clients[client];
        one.wake(now_ns, is_calm, &mut out);
        if !is_calm && self.random.chance(self.scenario.faults.hostile_permille) {
            self.summary.hostile += 1;
            one.misbehave(now_ns, &mut out);
        } else if !is_calm && self.random.chance(10) {
            one.log_out(now_ns, &mut out);
        }
        self.send_by_fix(connection, &out);
        if !is_calm && self.random.chance(self.scenario.faults.hostile_permille) {
            self.send_something_hostile_by_fix(client);
        }
    }

    /// The client ends its connection, and calls again at once or later, here or elsewhere.
    fn hang_up_by_fix(&mut self, client: usize, connection: usize) {
        self.break_connection(connection);
        self.leave_by_fix(client);
    }

    fn leave_by_fix(&mut self, client: usize) {
        let elsewhere = usize::from(self.random.chance(600));
        let one = &mut self.fix_clients[client];
        one.on_disconnected();
        one.home += elsewhere;
    }

    /// In pieces, cut anywhere.
    fn send_by_fix(&mut self, connection: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let cut = if self.random.chance(300) { 1 + self.random.index(rest.len()) } else { rest.len() };
            self.send_to_gateway(connection, &rest[..cut]);
            rest = &rest[cut..];
        }
    }

    pub(super) fn on_fix_bytes(
        &mut self,
        connection: usize,
        end: FixEnd,
        bytes: &[u8],
    ) -> Result<(), Broken> {
        let FixEnd::Client(client) = end else { return Ok(()) };
        let (now_ns, mut out) = (self.now_ns, Vec::new());
        let one = &mut self.fix_clients[client];
        if one.connection != Some(connection) {
            return Ok(());
        }
        let is_over = one.on_bytes(now_ns, bytes, &mut out)?;
        self.send_by_fix(connection, &out);
        if is_over {
            self.hang_up_by_fix(client, connection);
        }
        Ok(())
    }

    pub(super) fn on_fix_broken(&mut self, connection: usize, end: FixEnd) {
        if let FixEnd::Client(client) = end
            && self.fix_clients[client].connection == Some(connection)
        {
            self.leave_by_fix(client);
        }
    }

    pub(super) fn break_one_of_fix(&mut self) {
        let client = self.random.index(self.fix_clients.len());
        if let Some(connection) = self.fix_clients[client].connection {
            self.break_connection(connection);
        }
    }

    /// Whether what was written on a connection is under way: what a process has written in a turn in which it was stopped before it
    /// published is written behind that.
    pub(super) fn is_taken(&self, connection: usize) -> bool {
        let session = &self.sessions[connection];
        session.fix.is_none() || !self.processes[&gateway_id(session.gateway)].is_hidden
    }

    /// What gateways knew of sessions may be lost.
    pub(super) fn excuse_fix(&mut self) {
        self.fix_clients.iter_mut().for_each(|client| client.is_excused = true);
    }

    pub(super) fn fix_seen(&self) -> FixSeen {
        self.fix_clients.iter().fold(FixSeen::default(), |seen, client| seen.and(&client.counts))
    }

    /// All records of a shard.
    fn records(&self, shard: usize) -> impl Iterator<Item = &Record> {
        (0..).map_while(move |at| self.ledger.record(shard_id(shard), Position(at)).map(AsRef::as_ref))
    }

    /// What a member that comes by FIX was not told.
    fn untold_by_fix(&self) -> Option<String> {
        for client in self.fix_clients.iter().filter(|client| !client.is_excused) {
            for shard in 0..self.scenario.shards {
                for (key, said) in expected(self.records(shard), client.member) {
                    if said.is_some() && !client.told.contains_key(&key) {
                        return Some(format!("member {} was not told {key}: {said:?}", client.member));
                    }
                }
            }
        }
        None
    }

    pub(super) fn fix_is_quiet(&self) -> bool {
        self.fix_clients.iter().all(FixClient::is_quiet) && self.untold_by_fix().is_none()
    }

    /// Why they are not at rest.
    pub(super) fn fix_state(&self) -> String {
        let loud = self.fix_clients.iter().filter(|client| !client.is_quiet());
        let loud: String = loud.map(|one| format!("\n  FIX {}: {}", one.member, one.state())).collect();
        self.untold_by_fix().map_or_else(String::new, |what| format!("\n  {what}")) + &loud
    }

    /// All that was told is in the record, as it is there; and each order in the record was asked for.
    pub(super) fn check_fix_end(&self) -> Result<(), Broken> {
        for client in &self.fix_clients {
            let mut all = std::collections::BTreeMap::new();
            for shard in 0..self.scenario.shards {
                all.extend(expected(self.records(shard), client.member));
                self.records(shard).try_for_each(|record| was_asked(client, &record.request))?;
            }
            for (key, said) in client.told.iter().filter(|(key, _)| key.contains('-')) {
                let recorded = all.get(key);
                let is_same = recorded.is_some_and(|one| one.as_ref().is_none_or(|one| one == said));
                if !is_same {
                    let what = format!(
                        "member {} was told {key} {said:?}; the record says {recorded:?}",
                        client.member
                    );
                    return Err(Broken { invariant: TOLD, what });
                }
            }
        }
        Ok(())
    }
}

fn was_asked(client: &FixClient, request: &Request) -> Result<(), Broken> {
    let Command::Enter(order) = request.command else { return Ok(()) };
    if request.member != client.member {
        return Ok(());
    }
    let asked = client.asked.get(&request.client_order_id.0);
    let is_it = asked.is_some_and(|&Asked { instrument, side, price, quantity }| {
        let price = pares_types::NewOrder::limit(side, price, quantity).kind;
        (instrument, side, quantity) == (request.instrument, order.side, order.quantity)
            && price == order.kind
    });
    if is_it {
        return Ok(());
    }
    Err(Broken { invariant: TOLD, what: format!("recorded: {request:?}; asked: {asked:?}") })
}
