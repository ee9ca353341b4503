//! Clients: they think, ask, wait for the answer, and ask again if it was no.

use std::rc::Rc;

use super::{Event, Message, World};
use crate::check::Number;
use crate::network::{Site, side};
use crate::queue::{MILLISECOND, Nanos, SECOND};
use crate::setting::{Resubmit, SITES, SITES_PER_SIDE, Setting};
use crate::tally::Cause;
use crate::workload::{Kind, Request};

/// A request as it travels: what stands in it besides the names, bytes.
const REQUEST_BYTES: u64 = 200;
const ANSWER_BYTES: u64 = 50;
/// Until an aborted transaction is executed again: what it lost to is in the database by then.
const PAUSE: Nanos = MILLISECOND;

/// A client; it sits at one terminal of one warehouse for good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Client {
    warehouse: u32,
    /// All clients of a warehouse are at one server (paper section 4.1), if they are not scattered.
    site: Site,
}

impl Client {
    /// All clients, spread evenly over warehouses, and warehouses over servers.
    pub(super) fn all(setting: &Setting) -> Vec<Self> {
        let warehouses = setting.warehouse_count();
        let client = |index| {
            let warehouse = index % warehouses;
            let moved = if setting.scattered { index / warehouses } else { 0 };
            Self { warehouse, site: (warehouse + moved) as usize % SITES }
        };
        (0..setting.clients).map(client).collect()
    }
}

/// A request under way, for the time of one execution.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(super) client: u32,
    pub(super) number: Number,
    pub(super) attempt: u32,
    /// Executions before this one, also under other numbers.
    pub(super) tries: u32,
    pub(super) request: Rc<Request>,
    /// When the client sent it the last time.
    pub(super) sent: Nanos,
    /// When the client sent it the first time.
    pub(super) first_sent: Nanos,
}

/// What a site of the other side has done for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(super) client: u32,
    pub(super) kind: Kind,
    pub(super) sent: Nanos,
    pub(super) first_sent: Nanos,
}

impl World {
    /// Clients begin somewhere in their thinking (and keying): what is left of an exponential time is as long as all of it.
    pub(super) fn seat_clients(&mut self) {
        let cycle = if self.setting.keying { 21.0 } else { 11.4 };
        for client in 0..self.setting.clients {
            let at = self.random.exponential(cycle) * SECOND as f64;
            self.queue.push(at as Nanos, Event::Ready(client));
        }
    }

    pub(super) fn on_ready(&mut self, client: u32) {
        let Client { warehouse, site } = self.clients[client as usize];
        let request = Request::draw(
            &mut self.random,
            warehouse,
            self.setting.warehouse_count(),
            self.setting.costs.as_ref(),
        );
        let keying = if self.setting.keying { request.kind.keying() } else { 0 };
        let sent = self.now();
        let ask = Ask {
            client,
            number: self.number(),
            attempt: 0,
            tries: 0,
            request: Rc::new(request),
            sent,
            first_sent: sent,
        };
        // Keying comes before the request; that it follows the thinking of the last one makes no difference.
        match keying {
            0 => self.execute_at(site, ask),
            _ => self.after_keying(keying, ask),
        }
    }

    fn after_keying(&mut self, keying: Nanos, mut ask: Ask) {
        let site = self.clients[ask.client as usize].site;
        let at = self.now() + keying;
        (ask.sent, ask.first_sent) = (at, at);
        self.queue.push(at, Event::Arrive { from: site, to: site, message: Message::Request(ask) });
    }

    fn home(&self, client: u32) -> Site {
        self.clients[client as usize].site
    }

    /// The side whose figures a client counts in.
    pub(super) fn home_side(&self, client: u32) -> usize {
        side(self.home(client))
    }

    fn number(&mut self) -> Number {
        self.holders += 1;
        self.holders
    }

    /// A client is answered: at its site, or from a site that did it for it.
    pub(super) fn answer(&mut self, at: Site, answer: Answer) {
        let home = self.home(answer.client);
        match at == home {
            true => self.on_answer(&answer),
            false => self.send(at, home, ANSWER_BYTES, Message::Answer(answer)),
        }
    }

    pub(super) fn on_answer(&mut self, answer: &Answer) {
        let &Answer { client, kind, sent, first_sent } = answer;
        let now = self.now();
        let home = self.home_side(client);
        let counts = &mut self.counts[home];
        if kind.reads_only() {
            counts.read += 1;
            counts.reading.add(now - sent);
        } else {
            counts.committed += 1;
            counts.payments[0] += u64::from(kind == Kind::Payment);
            counts.update.add(now - sent);
            counts.whole.add(now - first_sent);
        }
        self.think(client, kind);
    }

    /// A client found a wrong item and took everything back.
    pub(super) fn on_rolled_back(&mut self, ask: &Ask) {
        let home = self.home_side(ask.client);
        self.counts[home].rolled_back += 1;
        self.think(ask.client, ask.request.kind);
    }

    fn think(&mut self, client: u32, kind: Kind) {
        let home = self.home_side(client);
        let longer = match (self.night, self.setting.day) {
            (Some(night), Some(day)) if night == home => u64::from(day.night),
            _ => 1,
        };
        let pause = kind.think(&mut self.random) * longer;
        self.queue.push(self.now() + pause, Event::Ready(client));
    }

    /// An attempt came to nothing at `site`.
    pub(super) fn on_aborted(&mut self, site: Site, ask: Ask, cause: Cause, used: Nanos) {
        let home = self.home_side(ask.client);
        let counts = &mut self.counts[home];
        counts.aborted[cause as usize] += 1;
        counts.payments[1] += u64::from(ask.request.kind == Kind::Payment);
        counts.again_aborted += u64::from(ask.tries > 0);
        counts.wasted += used;
        self.checker.aborts(ask.number, ask.attempt);
        let again = Ask { attempt: ask.attempt + 1, tries: ask.tries + 1, ..ask };
        match self.setting.resubmit {
            Resubmit::Never => self.give_up(&again),
            Resubmit::Client => self.ask_again(again),
            Resubmit::Site => self.execute_soon(site, again),
            Resubmit::Certifier => self.execute_near_certifier(site, again),
        }
    }

    fn give_up(&mut self, ask: &Ask) {
        let home = self.home_side(ask.client);
        self.counts[home].told += 1;
        self.think(ask.client, ask.request.kind);
    }

    /// To the protocol it is another transaction.
    fn ask_again(&mut self, ask: Ask) {
        let home = self.home(ask.client);
        self.counts[side(home)].told += 1;
        let again = Ask { number: self.number(), attempt: 0, sent: self.now(), ..ask };
        self.execute_soon(home, again);
    }

    fn execute_soon(&mut self, site: Site, ask: Ask) {
        let again = Event::Arrive { from: site, to: site, message: Message::Request(ask) };
        self.queue.push(self.now() + PAUSE, again);
    }

    fn execute_near_certifier(&mut self, site: Site, ask: Ask) {
        let near = self.certifier_side();
        if side(site) == near {
            return self.execute_soon(site, ask);
        }
        let to = near * SITES_PER_SIDE + site % SITES_PER_SIDE;
        self.send(site, to, REQUEST_BYTES, Message::Request(ask));
    }

    pub(super) fn on_sunset(&mut self) {
        let Some(day) = self.setting.day else { return };
        self.night = Some(0);
        if day.migrate {
            self.moved_at = Some(self.now());
            self.move_certifier();
        }
    }
}
