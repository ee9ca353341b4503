//! `pares demo --day`: a whole trading day in well under a minute, and the morning after it.
//!
//! A venue that only trades continuously shows the easy part of an exchange. What is hard is that the time, the
//! exchange's own decisions and the market's accidents all change what an order may do, and that every replica must
//! change its mind at the same place of the total order. So the day goes through everything, while venues die as always:
//!
//! ```text
//!   Closed -> OpeningCall -> Continuous -> VolatilityCall -> Halted -> VolatilityCall -> Continuous  gateways' clocks
//!              (auction)                    (extended)                    (auction)           |      (timetable), but:
//!                                                                                             v      breach: an order
//!          Closed <---- PostClose <---- ClosingCall  <----------------------------------------+      halt, resume: the
//!   day orders expire,                   (auction)                                                   exchange (member 0)
//!   the others stay: OpeningCall -> Continuous, the next day
//! ```
//! Nothing that is shown is asked of the exchange: phases, auctions and expiries are read from the record, as the books
//! are.
//!
//! | module | what |
//! |---|---|
//! | [`plan`] | when what is to happen, and the timetable that says so |
//! | [`board`] | the phase and prices of each instrument, for those who enter orders |
//! | [`flow`] | the orders: of every kind that the phase takes |
//! | [`story`] | the order that runs through the band, the halt, the resumption |
//! | [`log`] | what the record says of the day |
//! | [`news`] | how it is shown |
//! | [`verdict`] | what it came to |

pub mod board;
pub mod flow;
pub mod log;
pub mod news;
pub mod plan;
pub mod story;
pub mod verdict;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_book::Book;
use pares_load::{LabError, LoadPlan};
use pares_text as text;
use pares_types::{InstrumentId, MemberId, Phase};

use super::market::Market;
use board::Board;
use flow::DayFlow;
use news::News;
use plan::Plan;
use story::Story;
use verdict::DayVerdict;

/// The instrument whose day is shown: the first, which is the busiest.
pub const LEAD: InstrumentId = InstrumentId(1);

/// Between two looks at the record: how late members learn of a new phase.
const READ_EVERY: Duration = Duration::from_millis(30);
/// How long the story's last requests may take to be answered.
const PATIENCE: Duration = Duration::from_secs(10);

/// A day under way.
pub(crate) struct Day {
    plan: Plan,
    story: Story,
    board: Arc<Board>,
    read: Instant,
}

impl Day {
    /// Begins a day as planned on the system at `address`, and gives what is to be offered to it in place of `load`'s
    /// own flow. The two members make the story.
    ///
    /// # Errors
    /// If the gateway cannot be reached.
    pub fn begin(
        plan: Plan,
        address: SocketAddr,
        load: &LoadPlan,
        members: (MemberId, MemberId),
    ) -> Result<(Self, DayFlow), LabError> {
        let instruments = load.instruments.iter().map(|instrument| instrument.id).collect();
        let story = Story::new(&plan, address, members, instruments)?;
        let board = Board::new(load.instruments.iter().map(|instrument| (instrument.id, instrument.tick)));
        let board = Arc::new(board);
        let flow = DayFlow::new(load.flow(), Arc::clone(&board), load.seed);
        Ok((Self { plan, story, board, read: Instant::now() }, flow))
    }

    /// When it is over, nanoseconds since 1970.
    pub fn end_ns(&self) -> u64 {
        self.plan.end_ns
    }

    /// Reads the record if it is time, takes the story's next step, and says what is new and when it happened,
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// If the record is damaged, or a connection is lost.
    pub fn turn(&mut self, market: &mut Market) -> Result<Vec<(u64, News)>, LabError> {
        if self.read.elapsed() >= READ_EVERY {
            market.read()?;
            self.read = Instant::now();
            for book in market.books() {
                let trading = book.trading();
                self.board.quote(book.instrument().id).set(trading.phase, trading.last, trading.closing);
            }
        }
        let told = market.day().map(log::DayLog::take_news).unwrap_or_default();
        let mut told: Vec<(u64, News)> = told.into_iter().map(|(stamp, news)| (stamp.0, news)).collect();
        let now_ns = plan::wall_ns();
        told.extend(self.story.step(now_ns, market.book(LEAD))?.map(|news| (now_ns, news)));
        Ok(told)
    }

    /// The state of the leading instrument in a few words.
    pub fn state(market: &mut Market) -> String {
        let last = market.book(LEAD).and_then(|book| book.trading().last);
        match market.day().and_then(|log| log.course(LEAD)) {
            Some(course) => format!("{}: {}", course.symbol, verdict::state(course, last)),
            None => text::name(&Phase::Closed),
        }
    }

    /// Waits until the story's requests are answered, and says how many never were.
    ///
    /// # Errors
    /// If a connection is lost.
    pub fn end(&mut self) -> Result<u64, LabError> {
        self.story.unanswered(PATIENCE)
    }

    /// What it came to in a demonstration that began at `begun_ns`, and that the user may have broken off.
    pub fn verdict(&self, market: &mut Market, begun_ns: u64, broken_off: bool) -> Option<DayVerdict> {
        market.day().map(|log| DayVerdict::new(log, &self.plan, begun_ns, broken_off))
    }
}
