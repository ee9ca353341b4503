//! The business day of a shard: whether one is on, and what was traded in it.
//!
//! A reader who wants the day's figures could read them out of the record in the end, but a day has millions of results, and venues that disagree
//! would be found out by nobody. So each venue counts as it executes: the figures are part of the state, of its hash at the
//! day's end, and of its checkpoints. What is counted is what the results say, so that a reader of the record ([`DayCount`]) comes to the same.
//!
//! ```text
//!            BeginDay          (steps)         EndDay          (steps)
//!  On (none) --------> Beginning ----> On (day) ------> Ending ----> Over --BeginDay--> ...
//! ```

use std::collections::BTreeMap;

use pares_types::{
    BusinessDay, Command, Event, EventSink, InstrumentId, MemberId, Outcome, Price, Quantity, Request, Status,
};

/// How far a business day has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stage {
    /// Orders are taken. Before the first day too.
    #[default]
    On,
    /// Instruments are being closed, in order of their ids.
    Ending {
        /// Those below are closed.
        next: InstrumentId,
    },
    /// Nothing is traded until the next one begins.
    Over,
    /// Instruments are being opened, in order of their ids.
    Beginning {
        /// Those below are open, if they are to be.
        next: InstrumentId,
    },
}

/// What was taken in and traded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Orders taken in: not refused.
    pub orders: u64,
    /// Trades; of a member, the sides of trades that were its own.
    pub trades: u64,
    /// Shares traded; of a member, on either side.
    pub quantity: Quantity,
}

/// What was traded in an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The price of the first trade; meaningless without one, as the next three.
    pub open: Price,
    /// The highest price.
    pub high: Price,
    /// The lowest price.
    pub low: Price,
    /// The price of the last trade.
    pub last: Price,
    /// Shares traded.
    pub quantity: Quantity,
    /// Trades.
    pub trades: u64,
    /// It was in continuous trading without a timetable when the day ended, and is again when the next one begins.
    pub resumes: bool,
}

/// Totals of those who traded or entered orders, in ascending order of member.
type Members = Vec<(MemberId, Totals)>;

/// The business day of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Day {
    pub(super) number: BusinessDay,
    pub(super) stage: Stage,
    pub(super) requests: u64,
    pub(super) totals: Totals,
    pub(super) members: Members,
}

impl Day {
    /// A day that came so far; `None` if none can have.
    #[must_use]
    pub fn restore(
        number: BusinessDay,
        stage: Stage,
        requests: u64,
        totals: Totals,
        members: Members,
    ) -> Option<Self> {
        let ascending = members.windows(2).all(|two| two[0].0 < two[1].0);
        let begun = number != BusinessDay::NONE || stage == Stage::On;
        (ascending && begun && number <= BusinessDay::MAX).then_some(Self {
            number,
            stage,
            requests,
            totals,
            members,
        })
    }

    /// The day that is on, or was last; [`BusinessDay::NONE`] before the first.
    #[must_use]
    pub fn number(&self) -> BusinessDay {
        self.number
    }

    /// How far it has come.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Requests since it began.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Of the whole shard.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Of each member that entered an order or traded, in ascending order.
    #[must_use]
    pub fn members(&self) -> &[(MemberId, Totals)] {
        &self.members
    }

    /// A digest of what a refused request leaves as it is, at little cost: members are left out.
    pub(super) fn hash(&self) -> u64 {
        let (stage, next) = match self.stage {
            Stage::On => (1, 0),
            Stage::Ending { next } => (2, next.0),
            Stage::Over => (3, 0),
            Stage::Beginning { next } => (4, next.0),
        };
        let place = [u64::from(self.number.0), stage, u64::from(next)];
        hash_of(place.into_iter().chain(words_of(&self.totals)))
    }

    /// A digest of all of it.
    pub(super) fn full_hash(&self, statistics: &[Statistics]) -> u64 {
        let members = self
            .members
            .iter()
            .flat_map(|(member, totals)| [u64::from(member.0)].into_iter().chain(words_of(totals)));
        let books = statistics.iter().flat_map(|one| {
            let prices = [one.open, one.high, one.low, one.last].map(|price| price.0.cast_unsigned());
            prices.into_iter().chain([one.quantity.0, one.trades, u64::from(one.resumes)])
        });
        hash_of([self.hash(), self.requests].into_iter().chain(members).chain(books))
    }
}

fn words_of(totals: &Totals) -> [u64; 3] {
    [totals.orders, totals.trades, totals.quantity.0]
}

fn hash_of(words: impl Iterator<Item = u64>) -> u64 {
    words.fold(0, |hash, word| super::digest::mix(hash ^ super::digest::mix(word)))
}

impl Totals {
    fn trade(&mut self, quantity: Quantity) {
        self.trades += 1;
        self.quantity = Quantity(self.quantity.0.saturating_add(quantity.0));
    }
}

impl Statistics {
    fn trade(&mut self, price: Price, quantity: Quantity) {
        if self.trades == 0 {
            (self.open, self.high, self.low) = (price, price, price);
        }
        (self.high, self.low, self.last) = (self.high.max(price), self.low.min(price), price);
        self.quantity = Quantity(self.quantity.0.saturating_add(quantity.0));
        self.trades += 1;
    }
}

/// The totals of a member, made if need be. Members come once and stay: a search in a sorted list is all it takes.
fn totals_of(members: &mut Members, member: MemberId) -> &mut Totals {
    let at = members.binary_search_by_key(&member, |(member, _)| *member).unwrap_or_else(|at| {
        members.insert(at, (member, Totals::default()));
        at
    });
    &mut members[at].1
}

/// A sink that counts the trades it passes on.
pub(super) struct Counting<'a, S> {
    pub(super) sink: &'a mut S,
    pub(super) day: &'a mut Day,
    pub(super) statistics: &'a mut Statistics,
    /// Who trades with the orders on the book.
    pub(super) incoming: MemberId,
}

impl<S: EventSink> EventSink for Counting<'_, S> {
    #[inline]
    fn event(&mut self, event: Event) {
        match event {
            Event::Fill { resting_member, price, quantity, .. } => {
                self.day.count_trade(resting_member, self.incoming, quantity);
                self.statistics.trade(price, quantity);
            }
            Event::Incoming { member, .. } => self.incoming = member,
            _ => {}
        }
        self.sink.event(event);
    }
}

impl Day {
    fn count_trade(&mut self, resting: MemberId, incoming: MemberId, quantity: Quantity) {
        self.totals.trade(quantity);
        totals_of(&mut self.members, resting).trade(quantity);
        totals_of(&mut self.members, incoming).trade(quantity);
    }

    /// Counts what became of a request, its trades aside.
    #[inline]
    pub(super) fn count_outcome(&mut self, request: &Request, outcome: &Outcome) {
        if matches!(request.command, Command::Enter(_)) && outcome.status != Status::Refused {
            self.totals.orders += 1;
            totals_of(&mut self.members, request.member).orders += 1;
        }
    }
}

/// A business day of a shard as its results tell it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DayCount {
    /// Requests and totals; its stage means nothing.
    pub day: Day,
    /// Of each instrument that traded.
    pub instruments: BTreeMap<InstrumentId, Statistics>,
}

impl DayCount {
    /// The result that begins the day: it may have opened instruments with a trade, and is not counted itself.
    pub fn begin(&mut self, request: &Request, outcome: &Outcome, events: &[Event]) {
        *self = Self::default();
        self.follow(request, outcome, events);
        self.day.requests = 0;
    }

    /// The next result after the one that began the day.
    pub fn follow(&mut self, request: &Request, outcome: &Outcome, events: &[Event]) {
        self.day.requests += 1;
        let (mut instrument, mut incoming) = (request.instrument, request.member);
        for event in events {
            match *event {
                Event::Instrument(next) => instrument = next,
                Event::Incoming { member, .. } => incoming = member,
                Event::Fill { resting_member, price, quantity, .. } => {
                    self.day.count_trade(resting_member, incoming, quantity);
                    self.instruments.entry(instrument).or_default().trade(price, quantity);
                }
                _ => {}
            }
        }
        self.day.count_outcome(request, outcome);
    }
}
