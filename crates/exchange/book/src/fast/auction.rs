//! The price of an auction, and its trades (docs/rules.md, section 6).

use super::node::PriceLevel;
use super::settling::incoming_event;
use super::{ANY_PRICE, FastBook, Step};
use crate::Indication;
use pares_table::SlabIndex;
use pares_types::{EventSink, IncomingCause, OrderKind, Price, Quantity, Side, TieBreak};

/// A price at which an auction could trade.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    price: Price,
    /// Shares of bids at or above it.
    bids: Quantity,
    /// Shares of offers at or below it.
    offers: Quantity,
}

/// A level that an auction could reach.
#[derive(Clone, Copy, Debug)]
struct Total {
    price: Price,
    /// Whether an order has this limit; otherwise all who wait here take any price.
    limited: bool,
    /// Its shares and those of all better levels.
    total: Quantity,
}

impl Candidate {
    fn volume(&self) -> Quantity {
        self.bids.min(self.offers)
    }

    fn surplus(&self) -> Quantity {
        self.bids.max(self.offers).minus(self.volume())
    }

    fn surplus_side(&self) -> Side {
        if self.offers > self.bids { Side::Sell } else { Side::Buy }
    }

    fn indication(&self, price: Price) -> Indication {
        let (quantity, surplus) = (self.volume(), self.surplus());
        Indication { price, quantity, surplus, surplus_side: self.surplus_side() }
    }
}

impl FastBook {
    /// What an auction would do now; `None` unless the book is crossed and there is a price to trade at.
    pub(super) fn auction(&self) -> Option<Indication> {
        self.auction_in(self.trading.auction_range(&self.instrument))
    }

    /// The same at prices of `range` only, its ends included.
    pub(super) fn auction_in(&self, range: (Price, Price)) -> Option<Indication> {
        let (bid, offer) = (self.best_price(Side::Buy)?, self.best_price(Side::Sell)?);
        if bid < offer {
            return None;
        }
        let candidates = self.candidates(bid, offer, range)?;
        let volume = candidates.iter().map(Candidate::volume).max().filter(|volume| !volume.is_zero())?;
        let largest = || candidates.iter().filter(move |one| one.volume() == volume);
        let surplus = largest().map(Candidate::surplus).min()?;
        let smallest: Vec<&Candidate> = largest().filter(|one| one.surplus() == surplus).collect();
        let (lowest, highest) = (smallest.first()?, smallest.last()?);
        let all_on = |side| !surplus.is_zero() && smallest.iter().all(|one| one.surplus_side() == side);
        let latest = self.trading.latest();
        let tied = (lowest.price, highest.price);
        let price = match latest {
            _ if all_on(Side::Buy) => self.pressed(tied, Side::Buy),
            _ if all_on(Side::Sell) => self.pressed(tied, Side::Sell),
            None => lowest.price,
            Some(latest) if self.instrument.tie_break == TieBreak::NearestLimit => {
                let distance = |one: &&Candidate| one.price.0.abs_diff(latest.0);
                smallest.iter().copied().rev().min_by_key(distance)?.price
            }
            Some(latest) => self.instrument.ticks.round_down(latest).clamp(lowest.price, highest.price),
        };
        Some(self.at_price(price, &candidates))
    }

    /// Whether orders cross, but would trade only where no auction may be held.
    pub(super) fn crosses_outside(&self, auction: Option<Indication>) -> bool {
        auction.is_none() && self.auction_in(ANY_PRICE).is_some()
    }

    /// Where the side that has shares left over moves the price: to its end of the tied prices, but for the instrument's limit.
    fn pressed(&self, (lowest, highest): (Price, Price), side: Side) -> Price {
        let end = if side == Side::Buy { highest } else { lowest };
        let width = i128::from(self.instrument.pressure_limit);
        let Some(latest) = self.trading.latest().filter(|_| width > 0) else { return end };
        let away = i128::from(latest.0).abs() * width / 10_000;
        let ticks = &self.instrument.ticks;
        let within = |price: i128| {
            Price(i64::try_from(price.clamp(i64::MIN.into(), i64::MAX.into())).expect("it was clamped"))
        };
        match side {
            Side::Buy => ticks.round_down(within(i128::from(latest.0) + away)).clamp(lowest, highest),
            Side::Sell => ticks.round_up(within(i128::from(latest.0) - away)).clamp(lowest, highest),
        }
    }

    /// The limits between best offer and best bid, and in the range, lowest first, with the shares that would trade there. Where there
    /// is none, as between market orders: the latest price, if it is in the range.
    fn candidates(&self, bid: Price, offer: Price, (low, high): (Price, Price)) -> Option<Vec<Candidate>> {
        let in_range = |price: &Price| (low..=high).contains(price);
        let bids = self.totals(Side::Buy, offer);
        let offers = self.totals(Side::Sell, bid);
        let limits = bids.iter().chain(&offers).filter(|level| level.limited);
        let mut prices: Vec<Price> = limits.map(|level| level.price).filter(in_range).collect();
        if prices.is_empty() {
            let latest = self.instrument.ticks.round_down(self.trading.latest()?).clamp(offer, bid);
            prices.push(Some(latest).filter(in_range)?);
        }
        prices.sort_unstable();
        prices.dedup();
        let (mut below, mut above) = (offers.iter().peekable(), bids.iter().rev().peekable());
        let mut found = Vec::with_capacity(prices.len());
        let (mut offered, mut bid_total) = (Quantity::ZERO, bids.last()?.total);
        for price in prices {
            while let Some(level) = below.next_if(|level| level.price <= price) {
                offered = level.total;
            }
            while above.next_if(|level| level.price < price).is_some() {
                bid_total = above.peek().map_or(Quantity::ZERO, |level| level.total);
            }
            found.push(Candidate { price, bids: bid_total, offers: offered });
        }
        Some(found)
    }

    fn totals(&self, side: Side, last: Price) -> Vec<Total> {
        let crossed = self.store.ladder(side).best_first();
        let crossed = crossed.take_while(|at| side.crosses(self.store.levels[*at].price, last));
        let totals = crossed.scan(Quantity::ZERO, |sum, at| {
            let level = &self.store.levels[at];
            *sum = sum.plus(level.shown).plus(level.hidden);
            Some(Total { price: level.price, limited: self.is_limited(at, side), total: *sum })
        });
        totals.collect()
    }

    /// Whether an order at a level has that limit. Market orders wait at the last legal price, all others at their own.
    fn is_limited(&self, level: SlabIndex<PriceLevel>, side: Side) -> bool {
        let price = self.store.levels[level].price;
        price != self.call_price(side, OrderKind::Market)
            || self.store.queue(level).any(|slot| self.store.order(slot).kind != OrderKind::Market)
    }

    /// Volume and surplus at a price that need not be a candidate's.
    fn at_price(&self, price: Price, candidates: &[Candidate]) -> Indication {
        let bids = candidates.iter().find(|one| one.price >= price).map_or(Quantity::ZERO, |one| one.bids);
        let offers =
            candidates.iter().rfind(|one| one.price <= price).map_or(Quantity::ZERO, |one| one.offers);
        Candidate { price, bids, offers }.indication(price)
    }

    /// Trades at the auction's price while both sides accept it; says whether it is done.
    pub(super) fn uncross<S: EventSink>(&mut self, price: Price, step: &mut Step<'_, S>) -> bool {
        let events = step.events;
        let is_over = self.trade_at(price, step);
        // The auction may have traded all in the steps before, and the exchange have set a reference price since.
        if step.events > events {
            self.elect(price);
        }
        is_over
    }

    fn trade_at<S: EventSink>(&mut self, price: Price, step: &mut Step<'_, S>) -> bool {
        loop {
            let accepts = |side: Side| {
                let best = self.store.ladder(side).best();
                best.filter(|(limit, _)| side.crosses(*limit, price)).map(|(_, level)| level)
            };
            let (Some(bids), Some(offers)) = (accepts(Side::Buy), accepts(Side::Sell)) else { return true };
            if step.is_full() {
                return false;
            }
            let front = |level| self.store.levels[level].queue.front().expect("a level has orders");
            let (buy, sell) = (front(bids), front(offers));
            let id = self.store.nodes[buy].order;
            if step.auction_buy != Some(id) {
                let order = self.store.order(buy);
                step.emit(incoming_event(&order, order.price, IncomingCause::Auction));
                step.auction_buy = Some(id);
            }
            let (buy_shown, sell_shown) = (self.store.shown(buy), self.store.shown(sell));
            let quantity = buy_shown.min(sell_shown);
            let buy_refills = quantity == buy_shown && self.store.nodes[buy].remaining > buy_shown;
            let sell_refills = quantity == sell_shown && self.store.nodes[sell].remaining > sell_shown;
            let fill = self.take(sell, price, quantity, Side::Sell);
            step.emit(fill);
            // The buy order's part of the trade is in the same event.
            self.take(buy, price, quantity, Side::Buy);
            if buy_refills {
                self.refill(buy, step);
                step.auction_buy = None;
            }
            if sell_refills {
                self.refill(sell, step);
            }
        }
    }
}
