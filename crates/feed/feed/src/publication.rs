//! A shard's record becomes messages: docs/protocols/market-data.md, *From a record to messages*.

use pares_book::Instrument;
use pares_types::{
    BusinessDay, Command, Event, Outcome, Phase, Position, Reason, Request, ShardId, Status, Timestamp,
};
use zerocopy::IntoBytes;

use crate::itch::{self, Cross, Directory, Head, Imbalance, SystemEvent, TradingAction};
use crate::listings::{Listing, Listings, stock};
use crate::living::Living;
use crate::step::Step;
pub use crate::stored::PublicationError;

/// The name of a session: the shard and its business day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Session(pub [u8; 10]);

impl Session {
    /// The session of a day in a shard.
    #[must_use]
    pub fn of(shard: ShardId, day: BusinessDay) -> Self {
        let name = format!("{:04x}{:06x}", shard.0, day.0 & 0xff_ffff);
        Self(name.as_bytes().try_into().expect("ten digits"))
    }

    /// Its shard and day; `None` if it is the name of none.
    #[must_use]
    pub fn parts(&self) -> Option<(ShardId, BusinessDay)> {
        let (shard, day) = std::str::from_utf8(&self.0).ok()?.split_at_checked(4)?;
        let (shard, day) = (u16::from_str_radix(shard, 16).ok()?, u32::from_str_radix(day, 16).ok()?);
        let parts = (ShardId(shard), BusinessDay(day));
        (Self::of(parts.0, parts.1) == *self).then_some(parts)
    }
}

impl std::fmt::Display for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// What takes in the messages, in order.
pub trait FeedSink {
    /// A session begins: what follows is numbered from 1.
    fn begin(&mut self, session: Session);

    /// The next message.
    fn message(&mut self, bytes: &[u8]);

    /// The session is over.
    fn end(&mut self);
}

/// The feed of a shard, as far as its record has come.
pub struct Publication {
    pub(crate) shard: ShardId,
    pub(crate) listings: Listings,
    pub(crate) living: Living,
    /// Whether a session is on.
    pub(crate) on: bool,
    /// Whether the first position has passed.
    pub(crate) begun: bool,
}

impl Publication {
    /// A publication of a shard that begins with these instruments. Of those that cannot be published it is silent.
    #[must_use]
    pub fn new(shard: ShardId, instruments: &[Instrument]) -> Self {
        let mut listings = Listings::default();
        for rules in instruments {
            if let Some(locate) = itch::locate(rules.id) {
                listings.insert(locate, Listing::new(*rules, rules.first_phase()));
            }
        }
        Self { shard, listings, living: Living::default(), on: false, begun: false }
    }

    /// The next record of the shard, and every one is to be told, from the first of the system on.
    pub fn on_record(
        &mut self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
        sink: &mut impl FeedSink,
    ) {
        let stamp = request.stamp;
        if !self.begun {
            (self.begun, self.on) = (true, true);
            self.begin_session(BusinessDay::NONE, (position, stamp), sink);
        }
        let on = self.on;
        let mut step = Step {
            position,
            stamp,
            locate: itch::locate(request.instrument),
            references: 0,
            index: 0,
            sink: on.then_some(&mut *sink),
        };
        self.follow(&mut step, request, outcome, events);
        if outcome.status == Status::Refused {
            return;
        }
        self.follow_exchange(&mut step, request, outcome);
        if let Command::BeginDay { day } = request.command {
            if on {
                end_session(stamp, sink);
            }
            self.on = true;
            self.begin_session(day, (position, stamp), sink);
        } else if on && events.iter().any(|event| matches!(event, Event::DayEnded { .. })) {
            end_session(stamp, sink);
            self.on = false;
        }
    }

    /// What a request of the exchange changes that is no event.
    fn follow_exchange(&mut self, step: &mut Step<'_, impl FeedSink>, request: &Request, outcome: &Outcome) {
        let Some(locate) = itch::locate(request.instrument) else { return };
        match request.command {
            Command::SetRule(rule) => {
                if let Some(listing) = self.listings.get_mut(locate)
                    && let Ok(rules) = listing.rules.with_rule(rule, false)
                {
                    let was = listing.change(rules);
                    self.publish_or_not(step, locate, was);
                }
            }
            Command::AddInstrument(symbol) => {
                let rules = Instrument::listed(request.instrument, symbol);
                self.listings.insert(locate, Listing::new(rules, Phase::Closed));
                self.tell_listing(step, locate);
            }
            Command::RemoveInstrument if outcome.reason != Reason::Unfinished => {
                self.listings.remove(locate);
            }
            _ => {}
        }
    }

    /// A rule changed: an instrument may be published from now on, or no more.
    fn publish_or_not(&mut self, step: &mut Step<'_, impl FeedSink>, locate: u16, was: bool) {
        let stock = self.listings.stock(locate);
        if was == stock.is_some() {
            return;
        }
        self.tell_listing(step, locate);
        for id in self.living.displayed() {
            let Some(order) = self.living.find(id).filter(|order| order.locate == locate) else { continue };
            let Some(shown) = &mut order.shown else { continue };
            match stock {
                Some(stock) => {
                    shown.told = true;
                    let shown = *shown;
                    step.add(stock, order, shown);
                }
                None => {
                    step.delete(locate, Some(*shown));
                    shown.told = false;
                }
            }
        }
    }

    fn begin_session(
        &mut self,
        day: BusinessDay,
        (position, stamp): (Position, Timestamp),
        sink: &mut impl FeedSink,
    ) {
        sink.begin(Session::of(self.shard, day));
        let (locate, references, index) = (None, 0, 0);
        let mut step = Step { position, stamp, locate, references, index, sink: Some(sink) };
        step.send(&SystemEvent { head: step.head(SystemEvent::KIND, 0), event: b'O' });
        let locates: Vec<u16> = self.listings.iter().map(|(locate, _)| locate).collect();
        for locate in locates {
            self.tell_listing(&mut step, locate);
        }
        for id in self.living.displayed() {
            let Some(order) = self.living.find(id) else { continue };
            let stock = self.listings.stock(order.locate);
            if let (Some(stock), Some(shown)) = (stock, order.shown) {
                step.add(stock, order, shown);
            }
        }
    }

    fn tell_listing(&self, step: &mut Step<'_, impl FeedSink>, locate: u16) {
        let Some(Listing { rules, stock: Some(stock), phase }) = self.listings.get(locate) else { return };
        let round_lot = u32::try_from(rules.lot.0).unwrap_or(u32::MAX);
        step.send(&Directory {
            head: step.head(Directory::KIND, locate),
            stock: *stock,
            market: b' ',
            financial_status: b' ',
            round_lot: round_lot.into(),
            round_lots_only: if round_lot > 1 { b'Y' } else { b'N' },
            class: b'C',
            subtype: *b"Z ",
            authenticity: b'P',
            short_sale: b' ',
            ipo: b' ',
            tier: b' ',
            etp: b' ',
            leverage: 0.into(),
            inverse: b'N',
        });
        tell_phase(step, locate, *stock, *phase);
    }

    pub(crate) fn is_published(&self, locate: u16) -> bool {
        self.listings.stock(locate).is_some()
    }

    pub(crate) fn enter_phase(&mut self, step: &mut Step<'_, impl FeedSink>, phase: Phase) {
        let Some((locate, listing)) = step.locate.and_then(|at| Some((at, self.listings.get_mut(at)?)))
        else {
            return;
        };
        listing.phase = phase;
        if let Some(stock) = listing.stock {
            tell_phase(step, locate, stock, phase);
        }
    }

    pub(crate) fn tell_auction(&self, step: &mut Step<'_, impl FeedSink>, event: &Event) {
        let Event::Auction { price, quantity, surplus, surplus_side, firm } = *event else { return };
        let Some((locate, listing)) = step.locate.and_then(|at| Some((at, self.listings.get(at)?))) else {
            return;
        };
        let (Some(stock), price) = (listing.stock, itch::price(price)) else { return };
        let cross = match listing.phase {
            Phase::OpeningCall => b'O',
            Phase::ClosingCall => b'C',
            _ => b'H',
        };
        if firm {
            let (head, match_number) = (step.head(Cross::KIND, locate), step.match_number().into());
            return step.send(&Cross { head, shares: quantity.0.into(), stock, price, match_number, cross });
        }
        let direction = match surplus_side {
            _ if quantity.is_zero() => b'O',
            _ if surplus.is_zero() => b'N',
            side => itch::side(side),
        };
        step.send(&Imbalance {
            head: step.head(Imbalance::KIND, locate),
            paired: quantity.0.into(),
            imbalance: surplus.0.into(),
            direction,
            stock,
            far: price,
            near: price,
            reference: price,
            cross,
            variation: b' ',
        });
    }
}

fn end_session(stamp: Timestamp, sink: &mut impl FeedSink) {
    let head = Head::new(SystemEvent::KIND, 0, stamp);
    sink.message(SystemEvent { head, event: b'C' }.as_bytes());
    sink.end();
}

fn tell_phase(step: &mut Step<'_, impl FeedSink>, locate: u16, stock: [u8; 8], phase: Phase) {
    let (state, reason) = itch::phase_letters(phase);
    let head = step.head(TradingAction::KIND, locate);
    step.send(&TradingAction { head, stock, state, reserved: b' ', reason });
}

/// Whether an instrument can be published.
#[must_use]
pub fn can_publish(rules: &Instrument) -> bool {
    itch::locate(rules.id).is_some() && stock(rules).is_some()
}
