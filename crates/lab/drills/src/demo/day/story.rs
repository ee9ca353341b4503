//! What does not happen by itself: an order that runs far through the price band, so that its call is extended; a halt of that
//! call, in which orders cross and nothing trades; that order taken back; the end of the halt, by another call. And, when no timetable
//! drives the day, its phases.
//!
//! Each step waits for its time and for the phase it needs, as the record shows it: on a slow machine the day is a
//! little late, never out of order.

use std::time::{Duration, Instant};

use pares_book::{Book, FastBook};
use pares_client::{Client, OpenRequests};
use pares_load::LabError;
use pares_types::{
    ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, NewOrder, Phase, Price, Quantity, Side,
};

use super::LEAD;
use super::news::{self, News};
use super::plan::Plan;

/// How long to wait before the next attempt to run through the band.
const AGAIN: Duration = Duration::from_millis(500);
/// Shares bid far below the band, for the order to find something outside it; in lots.
const FAR_LOTS: u64 = 20;

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chapter {
    Breach,
    Halt,
    TakeBack,
    Resume,
    Rest,
}

/// One member's connection; the exchange is member 0.
struct Desk {
    client: Client,
    open: OpenRequests,
    next_name: u64,
}

/// The story.
pub(crate) struct Story {
    plan: Plan,
    exchange: Desk,
    buyer: Desk,
    seller: Desk,
    chapter: Chapter,
    tried: Option<Instant>,
    instruments: Vec<InstrumentId>,
    rows_done: usize,
}

impl Story {
    /// A story for a system of these instruments. `buyer` and `seller` are members of whom nobody else makes use.
    ///
    /// # Errors
    /// If the gateway at `address` cannot be reached.
    pub fn new(
        plan: &Plan,
        address: std::net::SocketAddr,
        (buyer, seller): (MemberId, MemberId),
        instruments: Vec<InstrumentId>,
    ) -> Result<Self, LabError> {
        let mut story = Self {
            plan: plan.clone(),
            exchange: Desk::open(address, MemberId(0))?,
            buyer: Desk::open(address, buyer)?,
            seller: Desk::open(address, seller)?,
            chapter: Chapter::Breach,
            tried: None,
            instruments,
            rows_done: 0,
        };
        if !plan.by_timetable {
            // Without a timetable an instrument begins in continuous trading.
            story.set_all(Phase::Closed)?;
        }
        Ok(story)
    }

    /// Does what is due, given the leading instrument's book.
    ///
    /// # Errors
    /// If a connection is lost.
    pub fn step(&mut self, now_ns: u64, book: Option<&FastBook>) -> Result<Option<News>, LabError> {
        for desk in [&mut self.exchange, &mut self.buyer, &mut self.seller] {
            desk.turn()?;
        }
        self.follow_plan(now_ns)?;
        let Some(book) = book else { return Ok(None) };
        match (self.chapter, book.trading().phase) {
            (Chapter::Breach, Phase::VolatilityCall) if book.trading().extended > 0 => {
                self.chapter = Chapter::Halt;
            }
            (Chapter::Breach, Phase::Continuous) if now_ns >= self.plan.breach_ns && self.may_try() => {
                return self.breach(book);
            }
            (Chapter::Halt, Phase::VolatilityCall) if now_ns >= self.plan.halt_ns => {
                self.exchange.ask(LEAD, Command::SetPhase(Phase::Halted))?;
                self.chapter = Chapter::TakeBack;
            }
            (Chapter::TakeBack, Phase::Halted) => {
                self.buyer.cancel_all()?;
                self.seller.cancel_all()?;
                self.chapter = Chapter::Resume;
                return Ok(Some(news::of_taking_back(book.instrument().symbol.as_str())));
            }
            (Chapter::Resume, Phase::Halted) if now_ns >= self.plan.resume_ns => {
                self.exchange.ask(LEAD, Command::SetPhase(Phase::Continuous))?;
                self.chapter = Chapter::Rest;
            }
            _ => {}
        }
        Ok(None)
    }

    fn may_try(&self) -> bool {
        self.tried.is_none_or(|tried| tried.elapsed() >= AGAIN)
    }

    /// Requests not answered yet.
    ///
    /// # Errors
    /// If a connection is lost.
    pub fn unanswered(&mut self, patience: Duration) -> Result<u64, LabError> {
        let begun = Instant::now();
        loop {
            let mut open = 0;
            for desk in [&mut self.exchange, &mut self.buyer, &mut self.seller] {
                desk.turn()?;
                open += desk.open.len() as u64;
            }
            if open == 0 || begun.elapsed() > patience {
                return Ok(open);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Brings all instruments into the phase that is due, if no timetable does.
    fn follow_plan(&mut self, now_ns: u64) -> Result<(), LabError> {
        let due = self.plan.rows.get(self.rows_done).filter(|(at_ns, _)| *at_ns <= now_ns);
        let Some(&(_, phase)) = due.filter(|_| !self.plan.by_timetable) else { return Ok(()) };
        self.rows_done += 1;
        self.set_all(phase.into())
    }

    fn set_all(&mut self, phase: Phase) -> Result<(), LabError> {
        for &instrument in &self.instruments {
            self.exchange.ask(instrument, Command::SetPhase(phase))?;
        }
        Ok(())
    }

    /// Bids far below the band, and sells as much as an order may: more than is bid above, so that it would trade outside.
    fn breach(&mut self, book: &FastBook) -> Result<Option<News>, LabError> {
        let (instrument, lot) = (*book.instrument(), book.instrument().lot.0);
        let Some(last) = book.trading().last else { return Ok(None) };
        let band = last.0 * i64::from(instrument.dynamic_band.width) / 10_000;
        // A call doubles the bands, so that further away it is extended.
        let far = instrument.ticks.round_down(Price(last.0 - 5 * band / 2));
        // A slip of the finger: more than all will bid, also those who come to the call.
        let shares = instrument.quantity_max;
        self.tried = Some(Instant::now());
        self.buyer.enter(NewOrder::limit(Side::Buy, far, Quantity(FAR_LOTS * lot)))?;
        self.seller.enter(NewOrder::limit(Side::Sell, far, shares))?;
        Ok(Some(news::of_sweep(instrument.symbol.as_str(), shares, far)))
    }
}

impl Desk {
    fn open(address: std::net::SocketAddr, member: MemberId) -> Result<Self, LabError> {
        Ok(Self { client: Client::connect(address, member)?, open: OpenRequests::new(), next_name: 1 })
    }

    fn name(&mut self) -> ClientOrderId {
        self.next_name += 1;
        ClientOrderId(self.next_name - 1)
    }

    fn ask(&mut self, instrument: InstrumentId, command: Command) -> Result<(), LabError> {
        let client_order_id = self.name();
        self.submit(&ClientRequest::Exchange { client_order_id, instrument, command })
    }

    fn enter(&mut self, order: NewOrder) -> Result<(), LabError> {
        let client_order_id = self.name();
        self.submit(&ClientRequest::Enter { client_order_id, instrument: LEAD, order })
    }

    fn cancel_all(&mut self) -> Result<(), LabError> {
        let client_order_id = self.name();
        self.submit(&ClientRequest::MassCancel { client_order_id, instrument: LEAD, side: None })
    }

    fn submit(&mut self, request: &ClientRequest) -> Result<(), LabError> {
        self.open.submit(&mut self.client, request)?;
        self.client.flush()?;
        Ok(())
    }

    /// Sends and reads what there is.
    fn turn(&mut self) -> Result<(), LabError> {
        self.client.flush()?;
        let open = &mut self.open;
        self.client.poll(|update| {
            open.on_update(&update);
        })?;
        Ok(())
    }
}
