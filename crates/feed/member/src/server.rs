//! A member server: one turn after the other, in any world.
//!
//! ```text
//!   sockets --> frames --> submissions (own log) --+
//!   peers' logs of submissions --------------------+--> window --> stream (own log) --> batches --> sockets
//!   peers' streams, when this server is behind ---------------------^
//! ```
//! Every server does the same work. None knows whether the others live: what a dead one wrote down before it died is in its log, and is
//! ordered by those who continue; its traders connect to another server and repeat what they have not received back.

mod connections;
mod keeper;
pub(crate) mod logs;
mod outside;
mod peers;
mod traders;
mod web;
mod web_end;
mod web_traders;

use std::time::Duration;

use pares_desk::blocks::{StreamBatch, StreamCursor};
use pares_desk::frame::{self, kind};
use pares_roles::duty::{Duty, SLEEP_MAX};
use pares_roles::world::{Counters, Ring};
use pares_roles::{NodeError, World, counters};

use crate::config::{MemberConfig, submissions};
use crate::sources::Sources;
use crate::world::Dial;
pub(crate) use connections::PEERS_MAX;
use connections::{Connections, Who};
use keeper::Keeper;
use outside::{Copies, Market};
use peers::Links;

/// Between two signs of life to who follows, nanoseconds.
const ALIVE_NS: u64 = 1_000_000_000;
/// What a follower adds to the time between two batches, nanoseconds: the system calls that a batch costs.
const FOLLOWER_NS: u64 = 5_000;
/// The longest time between two batches, nanoseconds.
const BATCH_NS_MAX: u64 = 10_000_000;

// docs/protocols/member.md says what each means.
counters! {
    Next "next" "Positions in its log."
    Told "told" "Committed positions."
    Waiting "waiting" "Unordered submissions."
    Connections "connections" "Connections open."
    CutOff "cut_off" "Traders disconnected."
    Filled "filled" "Positions received from a peer."
    Copied "copied" "Reports of the exchange copied."
}

/// A member server.
pub struct MemberServer<W: World, S: Dial> {
    world: W,
    server: u16,
    servers: u16,
    keeper: Keeper<W>,
    connections: Connections<S>,
    links: Links,
    counters: W::Counters,
    ringer: W::Ringer,
    sources: Sources,
    market: Market,
    states_seen: u64,
    copies: Copies,
    /// Why traders' last sessions were ended.
    cut_offs: traders::CutOffs,
    payload: Vec<u8>,
    /// Whether something was submitted in this turn.
    submitted: bool,
    followers: u64,
    batch_ns: u64,
    alive_ns: u64,
    /// Whether some connection may take more than it was given.
    unsent: bool,
}

impl<W: World, S: Dial> MemberServer<W, S> {
    /// Opens a server's logs, reads what it had, and begins to serve.
    ///
    /// # Errors
    /// If the system was not started, or a log cannot be opened.
    pub fn open(server: u16, config: &MemberConfig, world: W, sockets: S) -> Result<Self, NodeError> {
        let keeper = Keeper::open(server, config, world.clone())?;
        let counters = world.create_counters(&format!("member-{server}"), COUNTERS);
        let now_ns = world.mono_ns();
        Ok(Self {
            server,
            servers: config.count(),
            keeper,
            connections: Connections::new(sockets, config),
            links: Links::new(server, config.count(), now_ns),
            counters: counters.map_err(NodeError::io("making counters"))?,
            ringer: world.ringer(),
            world,
            sources: Sources::default(),
            market: Market::default(),
            states_seen: 0,
            copies: Copies::default(),
            cut_offs: traders::CutOffs::default(),
            payload: Vec::new(),
            submitted: false,
            followers: 0,
            batch_ns: now_ns,
            alive_ns: now_ns,
            unsent: false,
        })
    }

    /// Listens to what is outside the member's system, too.
    #[must_use]
    pub fn with_sources(self, sources: Sources) -> Self {
        Self { sources, ..self }
    }

    /// Sleeps until a connection or the bell has something, or that time is over.
    ///
    /// # Errors
    /// As the system says.
    pub fn poll_sockets(&mut self, timeout: Duration) -> Result<(), NodeError> {
        self.connections.poll(timeout).map_err(NodeError::io("waiting for connections"))
    }

    /// Reads what has come and does what it says. Says how much that was.
    fn hear(&mut self, now_ns: u64) -> Result<usize, NodeError> {
        self.connections.accept(now_ns);
        let mut heard = 0;
        let mut payload = std::mem::take(&mut self.payload);
        for slot in 0..self.connections.slots() {
            heard += usize::from(self.connections.read(slot));
            if self.connections.turns_web(slot) {
                heard += self.hear_web(slot, now_ns);
                continue;
            }
            while let Some(kind) =
                self.connections.get_mut(slot).and_then(|connection| connection.next_frame(&mut payload))
            {
                heard += 1;
                self.on_frame(slot, kind, &payload, now_ns)?;
            }
        }
        self.payload = payload;
        Ok(heard)
    }

    fn on_frame(&mut self, slot: usize, kind: u8, payload: &[u8], now_ns: u64) -> Result<(), NodeError> {
        let Some(connection) = self.connections.get_mut(slot) else { return Ok(()) };
        match connection.who {
            Who::Dialled { peer } => self.on_peer_news(slot, peer, kind, payload),
            _ => {
                self.on_request(slot, kind, payload, now_ns);
                Ok(())
            }
        }
    }

    /// Others may see what was submitted, and are woken.
    fn publish_submissions(&mut self) {
        if std::mem::take(&mut self.submitted) {
            self.keeper.publish_submissions();
            for peer in (0..self.servers).filter(|&peer| peer != self.server) {
                self.ringer.ring(submissions(peer));
            }
        }
    }

    /// Tells traders and peers what may be told. Says whether there was something.
    fn tell(&mut self, now_ns: u64) -> Result<bool, NodeError> {
        let is_batch_due = now_ns >= self.batch_ns;
        let mut more = is_batch_due && self.keeper.publish()?;
        if more {
            self.tell_peers();
            let cast = self.keeper.take_cast();
            cast.iter().flat_map(StreamBatch::packets).for_each(|packet| self.connections.cast(packet));
        }
        more |= is_batch_due && self.encode_market();
        if more {
            self.batch_ns = now_ns + BATCH_NS_MAX.min(self.followers * FOLLOWER_NS);
        }
        let is_due = now_ns >= self.alive_ns;
        if is_due {
            self.alive_ns = now_ns + ALIVE_NS;
            self.say_alive();
            self.connections.cast(&self.keeper.heartbeat());
            self.show();
        }
        if more || is_due || self.connections.take_writable() || self.unsent {
            self.send(now_ns)?;
        }
        Ok(more)
    }

    /// Sends more to all connections that take more.
    fn send(&mut self, now_ns: u64) -> Result<(), NodeError> {
        (self.followers, self.unsent) = (0, false);
        for slot in 0..self.connections.slots() {
            let Some(connection) = self.connections.get_mut(slot) else { continue };
            self.followers += u64::from(connection.buffers.cursor.is_some());
            while connection.write(now_ns) {
                // The market first, a little of it: a trader far behind in the stream also learns that books are old.
                let is_shown = self.market.show(connection);
                let is_web = connection.is_web();
                let next = connection.buffers.cursor.as_ref().map(StreamCursor::next);
                let batch = next.map(|next| self.keeper.batch_after(next, is_web)).transpose()?.flatten();
                if let (Some(cursor), Some(batch)) = (&mut connection.buffers.cursor, batch) {
                    cursor.load(&batch);
                } else if !is_shown {
                    break;
                }
            }
        }
        Ok(())
    }

    fn say_alive(&mut self) {
        let told = self.keeper.told();
        for slot in 0..self.connections.slots() {
            if let Some(connection) = self.connections.get_mut(slot)
                && matches!(connection.who, Who::Trader { .. })
                && connection.buffers.unsent().is_empty()
            {
                match connection.is_web() {
                    true => connection.answer(|out| web::write_text(out, &web::alive(told.0))),
                    false => connection.answer(|out| frame::write_through(out, kind::ALIVE, told)),
                }
            }
        }
    }

    fn show(&self) {
        self.counters.set(Counter::Next, self.keeper.stream.next().0);
        self.counters.set(Counter::Told, self.keeper.told().0);
        self.counters.set(Counter::Waiting, self.keeper.stream.waiting() as u64);
        self.counters.set(Counter::Connections, self.connections.count() as u64);
    }

    fn bury(&mut self, now_ns: u64) {
        let Self { connections, links, cut_offs, counters, .. } = self;
        connections.bury(now_ns, |slot, who, cut_off| match who {
            Who::Dialled { peer } => links.on_lost(*peer, slot, now_ns),
            Who::Trader { trader } => {
                cut_offs.note(*trader, cut_off);
                counters.add(Counter::CutOff, u64::from(cut_off != frame::CutOff::None));
            }
            _ => {}
        });
    }
}

impl<W: World, S: Dial> Duty for MemberServer<W, S> {
    fn work(&mut self) -> Result<usize, NodeError> {
        self.poll_sockets(Duration::ZERO)?;
        let now_ns = self.world.mono_ns();
        let heard = self.hear(now_ns)? + self.take_from_outside(now_ns);
        self.publish_submissions();
        let read = self.keeper.read_peers();
        let ordered = self.keeper.order()?;
        self.look_after_links(now_ns)?;
        let told = self.tell(now_ns)?;
        let filled = self.fill_peers(now_ns, heard + read + ordered > 0)?;
        self.bury(now_ns);
        Ok(heard + read + ordered + usize::from(told) + filled)
    }

    fn look_everywhere(&mut self) {
        self.keeper.look();
    }

    fn sleep_max(&self) -> Duration {
        let now_ns = self.world.mono_ns();
        let due_ns = self.next_ns().saturating_sub(now_ns);
        SLEEP_MAX.min(Duration::from_nanos(due_ns))
    }
}
