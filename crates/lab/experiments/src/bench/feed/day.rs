//! A trading day's messages, drawn at random from a seed: orders that live, then what comes and goes among them.
//!
//! The mix is that of a day of Nasdaq (2019-12-30, as `itch-book` tells it: adds 44 %, deletes 43 %, replaces 8 %, executions and
//! cancels 3 %). Most orders live shortly, and those that stay are what makes books large: as many go at each doubling of their age, of
//! all orders that live (a power law, as is known of orders). A few instruments get most messages, and prices crowd near the middle.
//! References rise by one to four, as those of a day do.

use pares_feed::itch::{
    AddOrder, Cancelled, Deleted, Directory, Executed, ExecutedAt, Head, Replaced, SystemEvent, Trade,
    TradingAction,
};
use pares_flow::Random;
use pares_types::Timestamp;
use zerocopy::{FromZeros, Immutable, IntoBytes};

const SEED: u64 = 20_191_230;
/// Price units of a tick: a cent.
const TICK: u32 = 100;

/// Messages, each behind its length in two bytes, as files of days have them.
pub(super) struct Day {
    /// Instruments, and the orders that live when trading begins.
    pub(super) opening: Vec<u8>,
    /// What is measured.
    pub(super) trading: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Order {
    reference: u64,
    locate: u16,
    side: u8,
    shares: u32,
}

struct Drawing {
    random: Random,
    /// The middle of each instrument's prices, in ticks.
    middles: Vec<u32>,
    living: Vec<Order>,
    reference: u64,
    time_ns: u64,
    out: Vec<u8>,
}

impl Day {
    /// A day of instruments, orders that live, messages.
    pub(super) fn new(instruments: u16, orders: usize, messages: usize) -> Self {
        let mut random = Random::new(SEED);
        let middles = (0..instruments).map(|_| 1_000 + random.below(49_000) as u32).collect();
        let (living, out) = (Vec::with_capacity(orders), Vec::new());
        let mut drawing = Drawing { random, middles, living, reference: 0, time_ns: 34_200_000_000_000, out };
        drawing.list(instruments);
        (0..orders).for_each(|_| drawing.add());
        let opening = std::mem::take(&mut drawing.out);
        (0..messages).for_each(|_| drawing.draw());
        Self { opening, trading: drawing.out }
    }
}

fn stock(locate: u16) -> [u8; 8] {
    let mut stock = *b"S       ";
    stock[1..6].copy_from_slice(format!("{locate:05}").as_bytes());
    stock
}

impl Drawing {
    fn say(&mut self, message: &(impl IntoBytes + Immutable)) {
        let bytes = message.as_bytes();
        self.out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        self.out.extend_from_slice(bytes);
        self.time_ns += 40;
    }

    fn head(&self, kind: u8, locate: u16) -> Head {
        Head::new(kind, locate, Timestamp(self.time_ns))
    }

    fn list(&mut self, instruments: u16) {
        self.say(&SystemEvent { head: self.head(SystemEvent::KIND, 0), event: b'O' });
        for locate in 1..=instruments {
            let (head, stock) = (self.head(Directory::KIND, locate), stock(locate));
            self.say(&Directory { head, stock, round_lot: 100.into(), ..Directory::new_zeroed() });
            let head = self.head(TradingAction::KIND, locate);
            self.say(&TradingAction { head, stock, state: b'T', reserved: b' ', reason: *b"    " });
        }
    }

    /// One message of a trading day.
    fn draw(&mut self) {
        match self.random.below(1_000) {
            _ if self.living.is_empty() => self.add(),
            0..440 => self.add(),
            440..862 => self.delete(),
            862..942 => self.replace(),
            942..975 => self.execute(),
            975..990 => self.cancel(),
            _ => self.trade(),
        }
    }

    fn next_reference(&mut self) -> u64 {
        self.reference += 1 + self.random.below(4);
        self.reference
    }

    fn side(&mut self) -> u8 {
        if self.random.percent(50) { b'B' } else { b'S' }
    }

    /// A price of an instrument: bids below the middle, offers above.
    fn price(&mut self, locate: u16, side: u8) -> u32 {
        let middle = self.middles[usize::from(locate) - 1];
        let spread = 4 << self.random.geometric().min(6);
        let away = 1 + self.random.below(spread) as u32;
        TICK * if side == b'B' { middle - away } else { middle + away }
    }

    /// An instrument; the busiest of 10,000 gets a hundredth of all.
    fn locate(&mut self) -> u16 {
        let draw = self.random.below(1 << 31);
        ((((draw * draw) >> 31) * self.middles.len() as u64) >> 31) as u16 + 1
    }

    fn add(&mut self) {
        let (locate, reference) = (self.locate(), self.next_reference());
        let side = self.side();
        let price = self.price(locate, side);
        let shares = 100 * (1 + self.random.below(5) as u32);
        let head = self.head(AddOrder::KIND, locate);
        let stock = stock(locate);
        self.living.push(Order { reference, locate, side, shares });
        let (reference, shares, price) = (reference.into(), shares.into(), price.into());
        self.say(&AddOrder { head, reference, side, shares, stock, price });
    }

    /// The place of an order: as often one of the youngest, the two next, the four next, and so on.
    fn pick(&mut self) -> usize {
        let all = self.living.len();
        let doubled = 1_usize << self.random.below(u64::from(all.ilog2()) + 1);
        let younger = doubled - 1 + self.random.below(doubled as u64) as usize;
        all - 1 - younger.min(all - 1)
    }

    fn delete(&mut self) {
        let at = self.pick();
        let Order { reference, locate, .. } = self.living.swap_remove(at);
        let head = self.head(Deleted::KIND, locate);
        self.say(&Deleted { head, reference: reference.into() });
    }

    fn replace(&mut self) {
        let (at, new) = (self.pick(), self.next_reference());
        let order = self.living.swap_remove(at);
        let Order { reference, locate, side, shares } = order;
        let price = self.price(locate, side);
        self.living.push(Order { reference: new, ..order });
        let head = self.head(Replaced::KIND, locate);
        let (original, reference) = (reference.into(), new.into());
        self.say(&Replaced { head, original, reference, shares: shares.into(), price: price.into() });
    }

    /// Takes shares off an order, all of them or some. Who it is, and how many.
    fn take(&mut self, all: bool) -> (Order, u32) {
        let at = self.pick();
        let order = self.living[at];
        let shares = if all || order.shares <= 100 { order.shares } else { 100 };
        self.living[at].shares -= shares;
        if shares == order.shares {
            self.living.swap_remove(at);
        }
        (order, shares)
    }

    fn execute(&mut self) {
        let all = self.random.percent(60);
        let (Order { reference, locate, .. }, shares) = self.take(all);
        let (reference, shares, match_number) = (reference.into(), shares.into(), self.time_ns.into());
        if self.random.percent(5) {
            let head = self.head(ExecutedAt::KIND, locate);
            let price = TICK.into();
            self.say(&ExecutedAt { head, reference, shares, match_number, printable: b'Y', price });
        } else {
            let head = self.head(Executed::KIND, locate);
            self.say(&Executed { head, reference, shares, match_number });
        }
    }

    fn cancel(&mut self) {
        let (Order { reference, locate, .. }, shares) = self.take(false);
        let head = self.head(Cancelled::KIND, locate);
        self.say(&Cancelled { head, reference: reference.into(), shares: shares.into() });
    }

    fn trade(&mut self) {
        let locate = self.locate();
        let side = self.side();
        let price = self.price(locate, side);
        let (head, stock) = (self.head(Trade::KIND, locate), stock(locate));
        let (reference, shares) = (0.into(), 100.into());
        let (price, match_number) = (price.into(), self.time_ns.into());
        self.say(&Trade { head, reference, side, shares, stock, price, match_number });
    }
}
