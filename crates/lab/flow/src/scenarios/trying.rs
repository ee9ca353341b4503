//! Five streams that are unkind where the walks are kind.
//!
//! In a walk an order's neighbours are there, sweeps are short, a cancel follows its order at once, every amend moves its order, and what
//! misses misses alone. A book may be tuned to all of that unnoticed. So each of these is one thing that happens on bad days, and little
//! else:
//!
//! ```text
//!   churn    [standing]....2,000 ticks....[standing]....1,000....[quote]   the quote comes and goes: the next level is far away
//!   sweep    5,000 orders on one side (every eighth time 50,000), then one order that takes them all
//!   far      40,000 orders over 2,000 ticks a side; any of them is cancelled, and another comes
//!   amends   2,000 orders; as many amends keep their place as lose it
//!   misses   bursts of 50 to 250 immediate orders that find nobody at their price
//! ```

use pares_types::Side;

use super::SCENARIO_MEMBERS;
use super::message::{BookMessage, MessageKind};
use pares_random::Random;

/// The middle of every book here, in ticks: 1,000.00 in cents.
const MIDDLE_TICKS: i64 = 100_000;
/// The largest order, in shares.
const QUANTITY_MAX: u64 = 100;

/// Which of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trying {
    Churn,
    Sweep,
    Far,
    Amends,
    Misses,
}

impl Trying {
    /// A stream that ends with its `orders`-th new order, or after twice as many messages.
    pub(super) fn messages(self, orders: u32, random: Random) -> Vec<BookMessage> {
        let mut sender = Sender { random, orders, entered: 0, messages: Vec::new() };
        match self {
            Self::Churn => churn(&mut sender),
            Self::Sweep => sweep(&mut sender),
            Self::Far => far(&mut sender),
            Self::Amends => amends(&mut sender),
            Self::Misses => misses(&mut sender),
        }
        let mut messages = sender.messages;
        messages.truncate(messages.partition_point(|message| message.id <= u64::from(orders)));
        messages
    }
}

/// Who sends, and what was sent.
struct Sender {
    random: Random,
    /// New orders wanted.
    orders: u32,
    /// New orders so far, the last one's id.
    entered: u32,
    messages: Vec<BookMessage>,
}

impl Sender {
    fn goes_on(&self) -> bool {
        self.entered < self.orders && self.messages.len() < self.orders as usize * 2
    }

    fn between(&mut self, least: u64, most: u64) -> i64 {
        (least + self.random.below(most - least + 1)).cast_signed()
    }

    fn side(&mut self) -> Side {
        if self.random.percent(50) { Side::Buy } else { Side::Sell }
    }

    fn quantity(&mut self) -> u32 {
        1 + self.random.below(QUANTITY_MAX) as u32
    }

    /// Enters an order so many ticks behind the middle, on its own side of it.
    fn enter(&mut self, side: Side, away_ticks: i64) -> BookMessage {
        let quantity = self.quantity();
        self.enter_as(side, away_ticks, quantity, false)
    }

    fn enter_as(&mut self, side: Side, away_ticks: i64, quantity: u32, ioc: bool) -> BookMessage {
        self.entered += 1;
        let message = BookMessage {
            id: u64::from(self.entered),
            price_ticks: price_ticks(side, away_ticks),
            quantity,
            member: 1 + self.entered % SCENARIO_MEMBERS,
            instrument: 1,
            kind: MessageKind::New,
            side,
            ioc,
            reserved: 0,
        };
        self.messages.push(message);
        message
    }

    fn cancel(&mut self, order: &BookMessage) {
        self.messages.push(BookMessage { kind: MessageKind::Cancel, ..*order });
    }

    fn amend(&mut self, order: BookMessage, price_ticks: i64, quantity: u32) -> BookMessage {
        let amended = BookMessage { kind: MessageKind::Amend, price_ticks, quantity, ..order };
        self.messages.push(amended);
        amended
    }

    /// Cancels any of these and enters another in its place, on the same side.
    fn replace(&mut self, standing: &mut [BookMessage], away: fn(&mut Self) -> i64) {
        let at = self.random.below(standing.len() as u64) as usize;
        let gone = standing[at];
        self.cancel(&gone);
        let away_ticks = away(self);
        standing[at] = self.enter(gone.side, away_ticks);
    }

    /// So many orders, each on any side.
    fn stand(&mut self, orders: u32, away: fn(&mut Self) -> i64) -> Vec<BookMessage> {
        let mut one = || {
            let (side, away_ticks) = (self.side(), away(self));
            self.enter(side, away_ticks)
        };
        (0..orders).map(|_| one()).collect()
    }
}

fn price_ticks(side: Side, away_ticks: i64) -> i64 {
    match side {
        Side::Buy => MIDDLE_TICKS - away_ticks,
        Side::Sell => MIDDLE_TICKS + away_ticks,
    }
}

/// Standing orders are far from one another, and quotes far before the best of them. One in eight times the best goes as well.
fn churn(sender: &mut Sender) {
    const STANDING: usize = 24;
    let any = |sender: &mut Sender| sender.between(5_000, 55_000);
    let mut sides = [Side::Buy, Side::Sell].map(|side| {
        let mut standing: Vec<BookMessage> = (0..STANDING)
            .map(|_| {
                let away_ticks = any(sender);
                sender.enter(side, away_ticks)
            })
            .collect();
        standing.sort_unstable_by_key(away_of);
        standing
    });
    while sender.goes_on() {
        let standing = &mut sides[sender.random.below(2) as usize];
        let (side, best) = (standing[0].side, away_of(&standing[0]));
        let nearer = sender.between(65, 4_000);
        let quote = sender.enter(side, best - nearer);
        if sender.random.percent(80) {
            sender.cancel(&quote);
        } else {
            sender.enter_as(side.opposite(), -away_of(&quote), quote.quantity, true);
        }
        if sender.random.percent(12) {
            sender.cancel(&standing.remove(0));
            let away_ticks = any(sender);
            standing.push(sender.enter(side, away_ticks));
            standing.sort_unstable_by_key(away_of);
        }
    }
}

fn away_of(message: &BookMessage) -> i64 {
    (message.price_ticks - MIDDLE_TICKS).abs()
}

/// About ten orders at each price, then one that takes all of them.
fn sweep(sender: &mut Sender) {
    for round in 1.. {
        if !sender.goes_on() {
            return;
        }
        let depth = if round % 8 == 0 { 50_000 } else { 5_000 };
        let (side, worst) = (sender.side(), depth / 10);
        let mut total = 0;
        for _ in 0..depth {
            let (away_ticks, quantity) = (sender.between(1, worst), sender.between(1, 19) as u32);
            total += sender.enter_as(side, away_ticks, quantity, false).quantity;
        }
        sender.enter_as(side.opposite(), -worst.cast_signed(), total, true);
    }
}

/// A deep book in which nothing is warm.
fn far(sender: &mut Sender) {
    let away = |sender: &mut Sender| sender.between(100, 2_100);
    let mut standing = sender.stand(sender.orders.min(40_000), away);
    while sender.goes_on() {
        sender.replace(&mut standing, away);
    }
}

/// Three of four messages amend; now and then an incoming order takes the front order, so that places matter.
fn amends(sender: &mut Sender) {
    let away = |sender: &mut Sender| sender.between(1, 50);
    let mut standing = sender.stand(sender.orders.min(2_000), away);
    while sender.goes_on() {
        match sender.random.below(40) {
            0..5 => sender.replace(&mut standing, away),
            5 => {
                let (side, quantity) = (sender.side(), sender.quantity());
                sender.enter_as(side, -60, quantity, true);
            }
            _ => amend_any(sender, &mut standing),
        }
    }
}

/// Half of the amends take shares away, and the order keeps its place; the others move it or add shares.
fn amend_any(sender: &mut Sender, standing: &mut [BookMessage]) {
    let at = sender.random.below(standing.len() as u64) as usize;
    let BookMessage { side, price_ticks: before, quantity, .. } = standing[at];
    let keeps = sender.random.percent(50) && quantity > 1;
    let (ticks, shares) = match keeps {
        true => (before, 1 + sender.random.below(u64::from(quantity) - 1) as u32),
        false if sender.random.percent(50) => (before, quantity + sender.quantity()),
        false => (price_ticks(side, sender.between(1, 50)), sender.quantity()),
    };
    standing[at] = sender.amend(standing[at], ticks, shares);
}

/// Between two bursts, ten quotes are replaced.
fn misses(sender: &mut Sender) {
    let away = |sender: &mut Sender| sender.between(3, 100);
    let mut standing = sender.stand(sender.orders.min(400), away);
    while sender.goes_on() {
        for _ in 0..sender.between(50, 250) {
            let (side, away_ticks, quantity) = (sender.side(), sender.between(0, 20), sender.quantity());
            sender.enter_as(side, away_ticks, quantity, true);
        }
        for _ in 0..10 {
            sender.replace(&mut standing, away);
        }
    }
}
