//! Instruments: rules, phase and prices of each, as the committed stream tells them.
//!
//! Members ask for them, and a price collar and the worth of a market order refer to the prices.
//! A reference price changes with a rule, with an auction and with a phase. A day that ends, or a closing call without an auction, tells the
//! new one as the next phase is entered, so one that is stepped through is known at its end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use pares_book::{Instrument, Listing};
use pares_register::EXCHANGE;
use pares_types::{
    Command, Event, InstrumentId, Outcome, Price, Reason, Request, Rule, ShardId, Status, Symbol,
};

/// A member's share of a book, if the register sets no limit of its open orders: an eighth of the orders that the book takes.
const BOOK_SHARE: u32 = 8;
/// Gateways that take in a member's orders at once give it a share each, before they have read of the others'; that is half a book at most.
const HALF: u32 = 2;

#[derive(Default)]
pub(crate) struct Listings {
    listings: BTreeMap<InstrumentId, (ShardId, Listing)>,
    by_symbol: BTreeSet<(Symbol, InstrumentId)>,
    /// As in the shards; instrument 0 is all of a shard.
    quarantined: BTreeSet<(ShardId, InstrumentId)>,
}

impl Listings {
    /// Those that the shards begin with.
    pub(crate) fn new(instruments: impl IntoIterator<Item = (Instrument, ShardId)>) -> Self {
        let mut listings = Self::default();
        instruments.into_iter().for_each(|(one, shard)| listings.add(shard, Listing::first(one)));
        listings
    }

    /// The shard has those, as a checkpoint of it says.
    pub(crate) fn restore(&mut self, shard: ShardId, listings: &[Listing], quarantined: &[InstrumentId]) {
        let before = self.listings.iter().filter(|(_, (of, _))| *of == shard);
        let before: Vec<InstrumentId> = before.map(|(instrument, _)| *instrument).collect();
        before.into_iter().for_each(|instrument| self.remove(instrument));
        self.quarantined.retain(|(of, _)| *of != shard);
        listings.iter().for_each(|one| self.add(shard, *one));
        self.quarantined.extend(quarantined.iter().map(|&instrument| (shard, instrument)));
    }

    fn add(&mut self, shard: ShardId, listing: Listing) {
        let instrument = listing.instrument.id;
        self.remove(instrument);
        self.by_symbol.insert((listing.instrument.symbol, instrument));
        self.listings.insert(instrument, (shard, listing));
    }

    fn remove(&mut self, instrument: InstrumentId) {
        if let Some((_, listing)) = self.listings.remove(&instrument) {
            self.by_symbol.remove(&(listing.instrument.symbol, instrument));
        }
    }

    /// The first instrument of that symbol: two shards may have one each.
    pub(crate) fn of_symbol(&self, symbol: Symbol) -> Option<InstrumentId> {
        let of = (symbol, InstrumentId(0))..=(symbol, InstrumentId(u32::MAX));
        self.by_symbol.range(of).next().map(|(_, instrument)| *instrument)
    }

    /// The first instrument behind that one, or of all, and whether it is quarantined.
    pub(crate) fn after(&self, last: InstrumentId) -> Option<(ShardId, &Listing, bool)> {
        let (id, (shard, listing)) = self.listings.range((Excluded(last), Unbounded)).next()?;
        let stands = |instrument| self.quarantined.contains(&(*shard, instrument));
        Some((*shard, listing, stands(*id) || stands(InstrumentId(0))))
    }

    /// The price of the last trade, or the reference price before there was one.
    pub(crate) fn price(&self, instrument: InstrumentId) -> Option<Price> {
        let (_, listing) = self.listings.get(&instrument)?;
        listing.last.or(listing.reference)
    }

    /// How many orders of the instrument a member may have open, if nothing else is said of it, in a system of so many gateways; at least one.
    pub(crate) fn orders_share(&self, instrument: InstrumentId, gateways: u16) -> Option<u32> {
        let (_, listing) = self.listings.get(&instrument)?;
        Some((listing.instrument.orders_max / BOOK_SHARE.max(HALF * u32::from(gateways))).max(1))
    }

    /// A record of the committed stream.
    pub(crate) fn follow(&mut self, request: &Request, outcome: &Outcome, events: &[Event]) {
        if outcome.reason == Reason::Void {
            self.quarantined.insert((request.shard, request.instrument));
        } else if request.member == EXCHANGE && request.instrument != InstrumentId(0) {
            self.follow_exchange(request, outcome);
        }
        // A book that was busy continues after the request's own part.
        if !events.is_empty() {
            self.follow_events(request.instrument, events);
        }
    }

    fn follow_events(&mut self, instrument: InstrumentId, events: &[Event]) {
        let mut current = self.listings.get_mut(&instrument);
        for event in events {
            if let Event::Instrument(next) = *event {
                current = self.listings.get_mut(&next);
                continue;
            }
            let Some((_, listing)) = &mut current else { continue };
            match *event {
                Event::Fill { price, .. } => listing.last = Some(price),
                Event::Auction { price, quantity, firm: true, .. }
                    if quantity >= listing.instrument.auction_min =>
                {
                    listing.reference = Some(price);
                }
                Event::PhaseEntered { phase, reference, .. } => {
                    (listing.phase, listing.reference) = (phase, reference);
                }
                _ => {}
            }
        }
    }

    /// The exchange asked for something there, which ends a quarantine unless the name had been used.
    fn follow_exchange(&mut self, request: &Request, outcome: &Outcome) {
        let Request { instrument, shard, .. } = *request;
        if !matches!(outcome.reason, Reason::DuplicateRequest | Reason::TooOld | Reason::TooManySeries) {
            self.quarantined.remove(&(shard, instrument));
            self.quarantined.remove(&(shard, InstrumentId(0)));
        }
        if outcome.status != Status::Accepted {
            return;
        }
        match request.command {
            Command::AddInstrument(symbol) => {
                self.add(shard, Listing::added(instrument, symbol));
            }
            Command::RemoveInstrument if outcome.reason != Reason::Unfinished => {
                self.remove(instrument);
            }
            Command::SetRule(rule) => self.set_rule(instrument, rule),
            _ => {}
        }
    }

    fn set_rule(&mut self, instrument: InstrumentId, rule: Rule) {
        let Some((_, listing)) = self.listings.get_mut(&instrument) else { return };
        // A venue that is wrong may have accepted anything.
        if let Ok(changed) = listing.instrument.with_rule(rule, false) {
            listing.instrument = changed;
            if let Rule::Reference(price) = rule {
                (listing.reference, listing.last) = (Some(price), None);
            }
        }
    }
}
