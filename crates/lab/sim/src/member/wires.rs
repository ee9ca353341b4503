//! Connections of traders to servers and of servers to each other: bytes in order, late, in pieces.

use std::collections::BTreeMap;

use super::run::{Event, Member};
use super::servers::server_of;
use crate::scenario::US;

/// One end of a connection, which is a server's: where what it sends goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) to: To,
    /// When the last byte under way arrives: from the server, and at it.
    from_ns: u64,
    at_ns: u64,
    /// The other end knows of the end, or will.
    is_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Trader(usize),
    /// The other server's end.
    Twin(usize),
}

pub(super) type Wires = BTreeMap<usize, Wire>;

impl Member<'_> {
    /// A trader connects to a server that takes connections.
    pub(super) fn connect(&mut self, trader: usize, server: u16) -> Option<usize> {
        let mut state = self.machine.lock();
        let node = super::servers::node_of(server);
        let fate = *state.fate(node);
        let number = fate.listens.then(|| state.net.connect(node, fate.life, None))?;
        drop(state);
        self.wires.insert(number, Wire { to: To::Trader(trader), from_ns: 0, at_ns: 0, is_over: false });
        self.schedule(server);
        Some(number)
    }

    /// Bytes are on their way to a server, cut anywhere.
    pub(super) fn send_to_server(&mut self, number: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = if self.random.chance(300) { 1 + self.random.index(rest.len()) } else { rest.len() };
            let delay_ns = self.delay_ns();
            let now_ns = self.now_ns;
            let Some(wire) = self.wires.get_mut(&number) else { return };
            wire.at_ns = wire.at_ns.max(now_ns + delay_ns);
            let at_ns = wire.at_ns;
            self.push(at_ns, Event::Bytes { connection: number, bytes: rest[..length].to_vec() });
            rest = &rest[length..];
        }
    }

    fn delay_ns(&mut self) -> u64 {
        let most_ns = if self.random.chance(30) { 5_000 * US } else { 200 * US };
        self.random.between(20 * US, most_ns)
    }

    /// Carries what servers have sent, and tells who is at the other end of what they have closed.
    pub(super) fn carry(&mut self) {
        self.find_dialled();
        for number in
            self.wires.iter().filter(|(_, wire)| !wire.is_over).map(|(&number, _)| number).collect::<Vec<_>>()
        {
            let wire = self.wires[&number];
            let is_read = if let To::Trader(trader) = wire.to { self.reads(trader) } else { true };
            let mut state = self.machine.lock();
            let bytes = if is_read { state.net.take_sent_on(number) } else { Vec::new() };
            let one = state.net.connection(number);
            let (is_closed, server) = (one.is_closed, server_of(one.server));
            drop(state);
            if !bytes.is_empty() {
                self.pass_on(number, wire.to, bytes);
                self.schedule(server);
            }
            if is_closed {
                self.end_wire(number);
            }
        }
    }

    fn find_dialled(&mut self) {
        let count = self.machine.lock().net.count();
        for number in self.wires.last_key_value().map_or(0, |(&last, _)| last + 1)..count {
            let twin = self.machine.lock().net.connection(number).twin;
            let twin = twin.expect("traders' connections are known from the start");
            self.wires.insert(number, Wire { to: To::Twin(twin), from_ns: 0, at_ns: 0, is_over: false });
            let server = self.machine.lock().net.connection(number).server;
            self.schedule(server_of(server));
        }
    }

    fn pass_on(&mut self, number: usize, to: To, bytes: Vec<u8>) {
        match to {
            To::Twin(twin) => self.send_to_server(twin, &bytes),
            To::Trader(trader) => {
                let at_ns = self.now_ns + self.delay_ns();
                let Some(wire) = self.wires.get_mut(&number) else { return };
                wire.from_ns = wire.from_ns.max(at_ns);
                let at_ns = wire.from_ns;
                self.push(at_ns, Event::ToTrader { trader, connection: number, bytes });
            }
        }
    }

    /// A server has closed its end: the other learns of it after all that was sent.
    fn end_wire(&mut self, number: usize) {
        let after_ns = self.now_ns + self.delay_ns();
        let Some(wire) = self.wires.get_mut(&number) else { return };
        wire.is_over = true;
        let (to, from_ns) = (wire.to, wire.from_ns);
        match to {
            To::Twin(twin) => {
                let at_ns = self.wires.get(&twin).map_or(0, |wire| wire.at_ns).max(after_ns);
                self.push(at_ns, Event::HangUp { connection: twin });
            }
            To::Trader(trader) => {
                self.push(from_ns.max(after_ns), Event::Lost { trader, connection: number });
            }
        }
    }

    /// The server at this end learns that the other is gone.
    pub(super) fn hang_up(&mut self, number: usize) {
        let mut state = self.machine.lock();
        state.net.hang_up(number);
        let server = server_of(state.net.connection(number).server);
        drop(state);
        self.schedule(server);
    }

    pub(super) fn on_bytes(&mut self, number: usize, bytes: &[u8]) {
        let mut state = self.machine.lock();
        let one = state.net.connection(number);
        if one.is_gone || one.is_closed {
            return;
        }
        let server = server_of(one.server);
        state.net.deliver(number, bytes);
        drop(state);
        self.schedule(server);
    }

    /// A connection breaks: both ends learn of it, what is under way is lost.
    pub(super) fn break_one(&mut self) {
        let open: Vec<usize> =
            self.wires.iter().filter(|(_, wire)| !wire.is_over).map(|(&number, _)| number).collect();
        if open.is_empty() {
            return;
        }
        let number = open[self.random.index(open.len())];
        self.note("connection {} breaks", &[number as u64]);
        self.hang_up(number);
        match self.wires[&number].to {
            To::Twin(twin) => self.hang_up(twin),
            To::Trader(trader) => self.lose(trader, number),
        }
    }
}
