//! The auction at the end of a call: docs/rules.md, section 6.

use pares_types::{Event, EventSink, IncomingCause, Phase, Price, Quantity, Side, TieBreak};

use super::{NaiveBook, Step, limit_of};
use crate::Indication;

impl NaiveBook {
    /// What an auction would do now; `None` unless the book is crossed and there is a price to trade at.
    pub(super) fn auction_price(&self) -> Option<Indication> {
        self.auction_price_within(self.trading.auction_range(&self.instrument))
    }

    /// The same at prices from `low` to `high`.
    pub(super) fn auction_price_within(&self, (low, high): (Price, Price)) -> Option<Indication> {
        if !self.is_crossed() {
            return None;
        }
        let (offer, bid) = (self.offers[0].price, self.bids[0].price);
        let limits = self.bids.iter().chain(&self.offers).filter_map(|order| limit_of(order.kind));
        let mut prices: Vec<Price> = limits.filter(|price| (offer..=bid).contains(price)).collect();
        prices.retain(|price| (low..=high).contains(price));
        if prices.is_empty() {
            // Nobody names a price there.
            prices.push(self.instrument.ticks.round_down(self.trading.latest()?).clamp(offer, bid));
        }
        prices.retain(|price| (low..=high).contains(price) && !self.at(*price).quantity.is_zero());
        if prices.is_empty() {
            return None;
        }
        prices.sort();
        prices.dedup();
        // 1. The largest volume.
        let volume = prices.iter().map(|price| self.at(*price).quantity).max();
        prices.retain(|price| Some(self.at(*price).quantity) == volume);
        // 2. The smallest surplus.
        let surplus = prices.iter().map(|price| self.at(*price).surplus).min();
        prices.retain(|price| Some(self.at(*price).surplus) == surplus);
        let all_on = |side| {
            prices
                .iter()
                .map(|price| self.at(*price))
                .all(|at| !at.surplus.is_zero() && at.surplus_side == side)
        };
        let (lowest, highest) = (prices[0], prices[prices.len() - 1]);
        let price = match self.trading.latest() {
            // 3. The side that wants more decides, up to a limit.
            _ if all_on(Side::Buy) => highest.min(self.pressed(Side::Buy).max(lowest)),
            _ if all_on(Side::Sell) => lowest.max(self.pressed(Side::Sell).min(highest)),
            // 4. As near to the latest price as can be.
            Some(latest) if self.instrument.tie_break == TieBreak::Latest => {
                self.instrument.ticks.round_down(latest).clamp(lowest, highest)
            }
            Some(latest) => {
                let nearest = prices.iter().rev().min_by_key(|price| price.0.abs_diff(latest.0));
                *nearest.expect("there is a price")
            }
            None => lowest,
        };
        Some(self.at(price))
    }

    /// How far what is left over of a side moves the price.
    fn pressed(&self, side: Side) -> Price {
        let nowhere = if side == Side::Buy { Price(i64::MAX) } else { Price(i64::MIN) };
        let Some(latest) = self.trading.latest().filter(|_| self.instrument.pressure_limit > 0) else {
            return nowhere;
        };
        let away = u128::from(latest.0.unsigned_abs()) * u128::from(self.instrument.pressure_limit) / 10_000;
        let away = i64::try_from(away).expect("a limit is at most the price itself");
        match side {
            Side::Buy => self.instrument.ticks.round_down(Price(latest.0.saturating_add(away))),
            Side::Sell => self.instrument.ticks.round_up(Price(latest.0.saturating_sub(away))),
        }
    }

    /// What would trade at a price.
    fn at(&self, price: Price) -> Indication {
        let sum = |side: Side| {
            let accepting = self.side(side).iter().filter(|order| side.crosses(order.price, price));
            accepting.fold(Quantity::ZERO, |sum, order| sum.plus(order.remaining))
        };
        let (bids, offers) = (sum(Side::Buy), sum(Side::Sell));
        let quantity = bids.min(offers);
        let surplus = bids.max(offers).minus(quantity);
        let surplus_side = if bids >= offers { Side::Buy } else { Side::Sell };
        Indication { price, quantity, surplus, surplus_side }
    }

    /// The auction in which a call ends: its price is announced, and is the one of all its trades. `None` if nothing can trade.
    pub(super) fn begin_auction(&mut self, step: &mut Step<impl EventSink>) -> Option<Price> {
        let auction = self.auction_price()?;
        self.announce(step, &auction, true);
        let closes = self.trading.phase == Phase::ClosingCall;
        if auction.quantity >= self.instrument.auction_min {
            self.trading.reference = Some(auction.price);
            self.trading.closing = if closes { Some(auction.price) } else { self.trading.closing };
        } else if closes {
            self.close_at_the_latest_price();
        }
        Some(auction.price)
    }

    /// Trades at the auction price. Says whether it is over; otherwise the step is spent.
    pub(super) fn uncross(&mut self, step: &mut Step<impl EventSink>, price: Price) -> bool {
        let mut traded = false;
        while self.both_accept(price) && !step.is_spent(self.instrument.step_max) {
            self.trade_best(step, price);
            traded = true;
        }
        if traded {
            self.elect(price);
        }
        !self.both_accept(price)
    }

    fn both_accept(&self, price: Price) -> bool {
        let accepts = |side: Side| self.best_order(side).is_some_and(|best| side.crosses(best.price, price));
        accepts(Side::Buy) && accepts(Side::Sell)
    }

    /// Best bid and best offer trade what both show.
    fn trade_best(&mut self, step: &mut Step<impl EventSink>, price: Price) {
        let (bid, offer) = (self.bids[0], self.offers[0]);
        if step.auction_buy != Some(bid.order) {
            step.incoming(&bid, bid.price, IncomingCause::Auction);
            step.auction_buy = Some(bid.order);
        }
        let quantity = bid.shown.min(offer.shown);
        let bid = self.trade_resting(&bid, quantity);
        let offer = self.trade_resting(&offer, quantity);
        step.filled(&offer, price, quantity);
        if self.refill(step, &bid) {
            step.auction_buy = None;
        }
        self.refill(step, &offer);
    }

    pub(super) fn announce(&self, step: &mut Step<impl EventSink>, auction: &Indication, firm: bool) {
        let Indication { price, quantity, surplus, surplus_side } = *auction;
        step.event(Event::Auction { price, quantity, surplus, surplus_side, firm });
    }
}
