//! What the record says of the day: phases entered, auctions held, orders that expired or stayed.

use std::collections::{BTreeMap, BTreeSet};

use pares_book::{Book, FastBook, Market as Books};
use pares_types::{
    CancelCause, Command, Event, InstrumentId, OrderId, Outcome, Phase, Price, Quantity, Reason, Request,
    RestCause, Side, Timestamp,
};

use super::news::{self, Entry, News};
use super::{LEAD, plan};

/// The day so far, instrument by instrument.
#[derive(Default)]
pub struct DayLog {
    courses: BTreeMap<InstrumentId, Course>,
    /// Requests refused because the phase did not take them.
    pub refused: u64,
    news: Vec<(Timestamp, News)>,
}

/// What an instrument went through.
#[derive(Default)]
pub struct Course {
    /// What people call it.
    pub symbol: String,
    /// The phases entered, in order.
    pub phases: Vec<Entered>,
    /// The auctions held, in order.
    pub auctions: Vec<Auction>,
    /// In a call, what its auction would do.
    pub indicative: Option<(Price, Quantity)>,
    /// Orders cancelled because the trading day was over, or their date had come with it.
    pub expired: u64,
    /// Orders that stayed when the instrument closed.
    pub carried: BTreeSet<OrderId>,
    /// Trades before the first phase was entered.
    trades: u64,
    /// Whether the auction told last is still trading.
    uncrossing: bool,
    /// Orders held for the closing call that joined it.
    released: u64,
    /// Calls that were extended.
    pub extended: u64,
}

/// A phase entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entered {
    /// The phase.
    pub phase: Phase,
    /// The stamp of the request that brought it.
    pub at: Timestamp,
    /// Trades in it so far; a call's are those of its auction.
    pub trades: u64,
}

/// An auction held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Auction {
    /// The call that it ended; [`Phase::Halted`] and others if the book was crossed there.
    pub of: Phase,
    /// The stamp of the request that ended the call.
    pub at: Timestamp,
    /// Its price.
    pub price: Price,
    /// Shares traded, as announced.
    pub quantity: Quantity,
    /// Shares left at that price.
    pub surplus: Quantity,
    /// On which side.
    pub surplus_side: Side,
    /// Trades.
    pub trades: u64,
    /// Those in which an order took part that was carried over from the day before.
    pub carried: u64,
}

impl Course {
    /// Before its first phase.
    pub fn new(symbol: String) -> Self {
        Self { symbol, ..Self::default() }
    }

    /// The phase it is in; before the first one it is closed.
    pub fn phase(&self) -> Phase {
        self.phases.last().map_or(Phase::Closed, |entered| entered.phase)
    }

    /// How often it entered a phase from another one.
    pub fn times(&self, phase: Phase) -> u64 {
        let before = std::iter::once(Phase::Closed).chain(self.phases.iter().map(|entered| entered.phase));
        let entered = before.zip(&self.phases);
        entered.filter(|(from, entered)| entered.phase == phase && *from != phase).count() as u64
    }

    /// Whether it went through these phases in this order, perhaps through others in between.
    pub fn went_through(&self, phases: impl IntoIterator<Item = Phase>) -> bool {
        let mut entered = self.phases.iter();
        phases.into_iter().all(|phase| entered.any(|entered| entered.phase == phase))
    }

    fn note_fill(&mut self, resting: OrderId, incoming: OrderId) {
        match self.phases.last_mut() {
            Some(entered) => entered.trades += 1,
            None => self.trades += 1,
        }
        if let Some(auction) = self.auctions.last_mut().filter(|_| self.uncrossing) {
            auction.trades += 1;
            auction.carried += u64::from(self.carried.contains(&resting) || self.carried.contains(&incoming));
        }
    }
}

impl DayLog {
    /// Takes in a request of the record, what it caused, and the books after it.
    pub fn note(&mut self, request: &Request, outcome: &Outcome, events: &[Event], books: &Books<FastBook>) {
        self.refused += u64::from(outcome.reason == Reason::NotInThisPhase);
        let (mut instrument, mut incoming) = (request.instrument, outcome.order);
        let fills = events.iter().filter(|event| matches!(event, Event::Fill { .. })).count();
        for event in events {
            if let Event::Instrument(id) = *event {
                instrument = id;
                continue;
            }
            let Some(book) = books.book(instrument) else { continue };
            let symbol = || book.instrument().symbol.to_string();
            let course = self.courses.entry(instrument).or_insert_with(|| Course::new(symbol()));
            match *event {
                Event::Incoming { order, .. } => incoming = order,
                Event::Fill { resting, .. } => course.note_fill(resting, incoming),
                Event::Cancelled { cause: CancelCause::DayEnd | CancelCause::Expired, .. } => {
                    course.expired += 1;
                }
                Event::Rested { cause: RestCause::Released, .. } => course.released += 1,
                Event::Auction { price, quantity, surplus, surplus_side, firm } => {
                    course.indicative = Some((price, quantity)).filter(|_| !firm && !quantity.is_zero());
                    if firm {
                        let (of, at) = (course.phase(), request.stamp);
                        let auction =
                            Auction { of, at, price, quantity, surplus, surplus_side, trades: 0, carried: 0 };
                        course.auctions.push(auction);
                        course.uncrossing = true;
                    }
                }
                Event::PhaseEntered { phase, until, .. } => {
                    let asked = matches!(request.command, Command::SetPhase(_));
                    let told = enter(course, phase, request.stamp, book);
                    if instrument == LEAD {
                        let (last, crossing) = (book.trading().last, book.indication());
                        let entry = Entry { until, asked, fills, last, crossing, ..told };
                        self.news.extend(news::of(course, &entry).map(|news| (request.stamp, news)));
                    }
                }
                _ => {}
            }
        }
    }

    /// What there is to tell of the leading instrument since this was last asked.
    pub fn take_news(&mut self) -> Vec<(Timestamp, News)> {
        std::mem::take(&mut self.news)
    }

    /// An instrument's course, once something happened there.
    pub fn course(&self, instrument: InstrumentId) -> Option<&Course> {
        self.courses.get(&instrument)
    }

    /// All instruments' courses.
    pub fn courses(&self) -> impl Iterator<Item = &Course> {
        self.courses.values()
    }

    /// Whether the leading instrument went through the whole course, an extension of a call in it and no trade in its halt, and all others through the timetable's part of it.
    pub fn is_in_order(&self) -> bool {
        let scheduled = plan::ROWS.map(|(_, phase)| Phase::from(phase));
        let led = self.course(LEAD).is_some_and(|course| {
            let halts = course.phases.iter().filter(|entered| entered.phase == Phase::Halted);
            course.went_through(plan::COURSE)
                && course.extended > 0
                && halts.map(|entered| entered.trades).sum::<u64>() == 0
        });
        led && self.courses().all(|course| course.went_through(scheduled))
    }
}

/// Enters a phase, and says what there is to say of it that the course forgets.
fn enter(course: &mut Course, phase: Phase, at: Timestamp, book: &FastBook) -> Entry {
    let (from, auction) = (course.phase(), course.auctions.last().copied());
    let entry = Entry {
        from,
        auction: auction.filter(|_| course.uncrossing),
        released: std::mem::take(&mut course.released),
        ..Entry::to(phase)
    };
    (course.uncrossing, course.indicative) = (false, None);
    course.extended += u64::from(phase == from);
    course.phases.push(Entered { phase, at, trades: 0 });
    if phase == Phase::Closed {
        course.carried.clear();
        for side in [Side::Buy, Side::Sell] {
            book.for_each_order(side, &mut |order| {
                course.carried.insert(order.order);
            });
        }
        book.for_each_held(&mut |order| {
            course.carried.insert(order.order);
        });
    }
    entry
}
