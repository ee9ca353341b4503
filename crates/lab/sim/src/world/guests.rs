//! Members that come by other protocols: their connections, and strangers at their ports.

use pares_flow::Random;
use pares_port::DoorPort;
use pares_types::MemberId;

use crate::fix::{FixClient, check_stranger};
use crate::guest::{Recorded, Seat};
use crate::ouch::OuchClient;
use crate::queue::Action;
use crate::scenario::{MS, Scenario, US};
use crate::web::WebClient;
use crate::{Bug, Summary, Verdict, defects};

use super::{World, gateway_id};

/// Who has a connection that is none of the clients': a guest, or a stranger.
#[derive(Clone, Copy, Debug)]
pub(super) struct GuestEnd {
    pub(super) port: Option<DoorPort>,
    guest: Option<usize>,
}

/// The guests, whose members come behind the others.
pub(super) fn guests(scenario: &Scenario, random: &mut Random) -> Vec<Seat> {
    let mut members =
        (scenario.clients + 1..).map(|member| MemberId(u32::try_from(member).expect("few members")));
    let mut guests = Vec::new();
    for member in members.by_ref().take(scenario.fix) {
        guests.push(FixClient::seated(member, None, scenario, random.fork()));
    }
    for member in members.by_ref().take(scenario.ouch) {
        // One session for each shard's stream.
        for shard in 0..scenario.shards {
            guests.push(OuchClient::seated(member, shard, scenario, random.fork()));
        }
    }
    for member in members.take(scenario.web) {
        guests.push(WebClient::seated(member, scenario, random.fork()));
    }
    if let Some((member, copied)) = copying(scenario) {
        guests.push(FixClient::seated(member, Some(copied), scenario, random.fork()));
    }
    guests
}

/// The member whose FIX session receives another one's reports, and that one: the first that comes by FIX.
pub(super) fn copying(scenario: &Scenario) -> Option<(MemberId, MemberId)> {
    let Scenario { clients, fix, ouch, web, .. } = *scenario;
    let member = |number: usize| MemberId(u32::try_from(number).expect("few members"));
    scenario.copies.then(|| (member(clients + fix + ouch + web + 1), member(clients + 1)))
}

impl World<'_> {
    pub(super) fn wake_guest(&mut self, guest: usize) {
        match self.guests[guest].connection {
            None => self.call_as_guest(guest),
            Some(connection) => self.go_on_as_guest(guest, connection),
        }
        let think_ns = if self.calm { 2 * MS } else { self.random.between(1, 2 * self.scenario.think_ns) };
        self.queue.push(self.now_ns + think_ns, Action::WakeGuest { guest });
    }

    fn call_as_guest(&mut self, guest: usize) {
        let Seat { home, member, port, .. } = self.guests[guest];
        let gateway = home % self.scenario.gateways;
        if !self.may_call(member) {
            return;
        }
        if !self.is_up(gateway_id(gateway)) {
            self.guests[guest].home += 1;
            return;
        }
        let end = GuestEnd { port, guest: Some(guest) };
        let connection = self.open_guest_connection(gateway, end);
        self.note("guest {} calls gateway {}", &[guest as u64, gateway as u64]);
        let (now_ns, mut out) = (self.now_ns, Vec::new());
        self.guests[guest].connection = Some(connection);
        self.guests[guest].program.call(now_ns, &mut out);
        self.send_as_guest(connection, &out);
    }

    fn open_guest_connection(&mut self, gateway: usize, end: GuestEnd) -> usize {
        let nobody = self.clients.len() - 1;
        self.open_connection_as(nobody, gateway, Some(end))
    }

    fn go_on_as_guest(&mut self, guest: usize, connection: usize) {
        let (now_ns, is_calm) = (self.now_ns, self.calm);
        let leaves = !is_calm && self.random.chance(15);
        if self.guests[guest].program.is_stuck(now_ns) || leaves {
            return self.hang_up_as_guest(guest, connection);
        }
        let mut out = Vec::new();
        let one = &mut self.guests[guest].program;
        one.wake(now_ns, is_calm, &mut out);
        if !is_calm && self.random.chance(self.scenario.faults.hostile_permille) {
            self.summary.hostile += 1;
            one.misbehave(now_ns, &mut out);
        } else if !is_calm && self.random.chance(10) {
            one.log_out(now_ns, &mut out);
        }
        self.send_as_guest(connection, &out);
        if !is_calm && self.random.chance(self.scenario.faults.hostile_permille) {
            self.send_something_hostile_as_stranger(guest);
        }
    }

    /// The guest ends its connection, and calls again at once or later, here or elsewhere.
    fn hang_up_as_guest(&mut self, guest: usize, connection: usize) {
        self.break_connection(connection);
        self.leave_as_guest(guest);
    }

    fn leave_as_guest(&mut self, guest: usize) {
        let elsewhere = usize::from(self.random.chance(600));
        let one = &mut self.guests[guest];
        one.connection = None;
        one.program.on_disconnected();
        one.home += elsewhere;
    }

    /// In pieces, cut anywhere.
    fn send_as_guest(&mut self, connection: usize, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        if self.scenario.bug == Some(Bug::NameByClock) {
            defects::name_by_clock(&mut bytes, self.now_ns);
        }
        if self.scenario.bug == Some(Bug::MisreadTimeInForce) {
            defects::rewrite_fix(&mut bytes, b"D", b"\x0159=4\x01", b"\x0159=3\x01");
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let cut = if self.random.chance(300) { 1 + self.random.index(rest.len()) } else { rest.len() };
            self.send_to_gateway(connection, &rest[..cut]);
            rest = &rest[cut..];
        }
    }

    pub(super) fn on_guest_bytes(&mut self, connection: usize, end: GuestEnd, bytes: &[u8]) -> Verdict {
        let mut bytes = bytes.to_vec();
        if end.port == Some(DoorPort::Fix) {
            defects::mistell(self.scenario.bug, end.guest.is_none(), &mut bytes);
        }
        let Some(guest) = end.guest else {
            return if end.port == Some(DoorPort::Fix) { check_stranger(&bytes) } else { Ok(()) };
        };
        let (now_ns, mut out) = (self.now_ns, Vec::new());
        let one = &mut self.guests[guest];
        if one.connection != Some(connection) {
            return Ok(());
        }
        let is_over = one.program.on_bytes(now_ns, &bytes, &mut out)?;
        self.send_as_guest(connection, &out);
        if is_over {
            self.hang_up_as_guest(guest, connection);
        }
        Ok(())
    }

    pub(super) fn on_guest_broken(&mut self, connection: usize, end: GuestEnd) {
        if let Some(guest) = end.guest
            && self.guests[guest].connection == Some(connection)
        {
            self.leave_as_guest(guest);
        }
    }

    pub(super) fn break_one_of_guests(&mut self) {
        let guest = self.random.index(self.guests.len());
        if let Some(connection) = self.guests[guest].connection {
            self.break_connection(connection);
        }
    }

    /// A stranger calls, and says something or nothing.
    fn send_something_hostile_as_stranger(&mut self, victim: usize) {
        self.summary.hostile += 1;
        let gateway = self.random.index(self.scenario.gateways);
        if !self.is_up(gateway_id(gateway)) {
            return;
        }
        let bytes = self.guests[victim].program.forge(self.now_ns, &mut self.random);
        let end = GuestEnd { port: self.guests[victim].port, guest: None };
        let connection = self.open_guest_connection(gateway, end);
        if !bytes.is_empty() {
            self.send_to_gateway(connection, &bytes);
        }
        let for_ns = self.random.between(200 * US, 4 * MS);
        let server = gateway_id(gateway);
        self.queue.push(self.now_ns + for_ns, Action::HangUp { server, connection });
        self.queue.push(self.now_ns + for_ns, Action::Broken { connection });
    }

    /// Whether what was written on a connection is under way: what a process has written for FIX in a turn in which it was stopped before it
    /// published is written behind that.
    pub(super) fn is_taken(&self, connection: usize) -> bool {
        let session = &self.sessions[connection];
        let is_fix = session.guest.is_some_and(|end| end.port == Some(DoorPort::Fix));
        !is_fix || !self.processes[&gateway_id(session.gateway)].is_hidden
    }

    /// What gateways knew of sessions may be lost.
    pub(super) fn excuse_guests(&mut self) {
        self.guests.iter_mut().for_each(|guest| guest.program.excuse());
    }

    pub(super) fn count_guests(&self, mut summary: Summary) -> Summary {
        self.guests.iter().for_each(|guest| guest.program.count(&mut summary));
        summary
    }

    fn recorded(&self) -> Recorded<'_> {
        Recorded { ledger: &self.ledger, shards: self.scenario.shards }
    }

    fn untold_guest(&self) -> Option<String> {
        self.guests.iter().find_map(|guest| guest.program.untold(self.recorded()))
    }

    pub(super) fn guests_are_quiet(&self) -> bool {
        self.guests.iter().all(|guest| guest.program.is_quiet()) && self.untold_guest().is_none()
    }

    /// Why they are not at rest.
    pub(super) fn guests_state(&self) -> String {
        let loud = self.guests.iter().filter(|guest| !guest.program.is_quiet());
        let loud: String =
            loud.map(|one| format!("\n  {:?} {}: {}", one.port, one.member, one.program.state())).collect();
        self.untold_guest().map_or_else(String::new, |what| format!("\n  {what}")) + &loud
    }

    /// What guests asked for is in the record, as they asked for it and once.
    pub(super) fn check_guests_asked(&self) -> Verdict {
        self.guests.iter().try_for_each(|guest| guest.program.check_asked(self.recorded()))
    }

    pub(super) fn check_guests_end(&self) -> Verdict {
        self.check_guests_asked()?;
        self.guests.iter().try_for_each(|guest| guest.program.check_told(self.recorded()))
    }
}
