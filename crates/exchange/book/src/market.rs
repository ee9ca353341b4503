//! The instruments of one shard as one state machine: a request comes in, and finds its book.
//!
//! One book knows nothing of another, but some requests concern them all (docs/rules.md, sections 4, 6 and 8): a mass
//! cancel of everything, the time, the kill switch, instruments that come and go. The obvious way, a list of books and a loop
//! over it, is right for ten instruments. With ten thousand every time request would wake ten thousand books to tell most of
//! them nothing, every look-up would be fourteen steps of a search, and every state hash a walk over all of them. So beside the
//! books lie three small tables: where a book is, when it next has something to do by itself, and what its hash was.
//!
//! ```text
//!  request --+-- blocked? --> Refused
//!            |
//!            +-- one instrument --- directory: id -> place ---> book.apply --> deadlines, digest
//!            |
//!            +-- instrument 0 ---- books in order of id, as long as the step has caused fewer than
//!                                  Instrument::STEP_MAX events; `Instrument` before a book's first
//! ```
//! | question | module |
//! |---|---|
//! | who gets a request? | this one |
//! | what happens to requests for all instruments? | `everywhere` |
//! | where is an instrument's book? | `directory` |
//! | what is the state hash of them all? | `digest` |
//! | what were they all like at one moment? | `copying` |
//! | what business day is it, and what was traded in it? | `day` |
//! | how does one day end and the next begin? | `days` |

mod copying;
mod day;
mod days;
mod digest;
mod directory;
mod everywhere;
mod listing;
#[cfg(test)]
mod tests;

use pares_types::{
    Command, EventSink, InstrumentId, MemberId, OrderId, Outcome, Phase, Quantity, Reason, Request, Rule,
    Status, Symbol, Timestamp,
};

use crate::{Book, Instrument};
pub use copying::{Beside, Copied, KEPT_ORDERS_MAX, Pause, WriteBook};
pub use day::{Day, DayCount, Stage, Statistics, Totals};

use copying::Copying;
use day::Counting;
use digest::Digest;
use directory::Directory;

const EXCHANGE: MemberId = MemberId(0);

/// All books of one shard, and who is blocked there.
#[derive(Debug)]
pub struct Market<B> {
    /// In ascending order of instrument id.
    books: Vec<B>,
    directory: Directory,
    /// When each book next has something to do by itself, beside the books.
    deadlines: Vec<Timestamp>,
    /// What was traded in each today, beside the books.
    statistics: Vec<Statistics>,
    day: Day,
    digest: Digest,
    /// In ascending order; mostly nobody.
    blocked: Vec<MemberId>,
    /// The latest time told to all.
    time: Timestamp,
    /// A copy under way; mostly none.
    copying: Option<Box<Copying<B>>>,
}

/// Why parts are not those of a market. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MarketError {
    /// More instruments than a shard takes, or not in ascending order of id.
    #[error("instruments must be in ascending order of id, at most {}", Instrument::SHARD_MAX)]
    Instruments,
    /// Blocked members not in ascending order.
    #[error("blocked members must be in ascending order")]
    Blocked,
    /// A book that has something to do at another time.
    #[error("instrument {0} has another deadline")]
    Deadline(InstrumentId),
}

impl Instrument {
    /// The most instruments of one shard.
    pub const SHARD_MAX: usize = 65_536;
    /// The most events any result has. A request for all instruments begins its last book with almost
    /// [`Instrument::STEP_MAX`] events and adds as many; what a step finishes beyond its limit (a fill's second half, 64
    /// pegged orders withdrawn, a phase) is far fewer than the rest.
    pub const EVENTS_MAX: usize = 2 * Self::STEP_MAX as usize + 256;
}

impl<B: Book> Market<B> {
    /// Empty books of these instruments, in any order; nobody is blocked.
    ///
    /// # Panics
    /// If an id occurs twice, there are more than [`Instrument::SHARD_MAX`], or one did not pass [`Instrument::new`].
    #[must_use]
    pub fn new(instruments: &[Instrument]) -> Self {
        let mut instruments = instruments.to_vec();
        instruments.sort_unstable_by_key(|instrument| instrument.id);
        let books: Vec<B> = instruments.into_iter().map(B::new).collect();
        let beside = |book| Beside { deadline: due_at(book), statistics: Statistics::default() };
        let beside = books.iter().map(beside).collect();
        Self::build(books, beside, Vec::new(), Timestamp(0), Day::default())
            .expect("instruments of a shard have different ids")
    }

    /// The market that had these [`books`](Self::books) and what lies [beside](Self::beside) each, these
    /// [blocked members](Self::blocked), that [`time`](Self::time) and that [`day`](Self::day). The two behave alike from then on, and their [`state_hash`](Self::state_hash) is equal.
    ///
    /// # Errors
    /// [`MarketError`] if no market can have had them.
    pub fn restore(
        books: Vec<B>,
        beside: Vec<Beside>,
        blocked: Vec<MemberId>,
        time: Timestamp,
        day: Day,
    ) -> Result<Self, MarketError> {
        for (book, &Beside { deadline, .. }) in books.iter().zip(&beside) {
            if deadline != book.deadline() && deadline != due_at(book) {
                return Err(MarketError::Deadline(book.instrument().id));
            }
        }
        Self::build(books, beside, blocked, time, day)
    }

    fn build(
        books: Vec<B>,
        beside: Vec<Beside>,
        blocked: Vec<MemberId>,
        time: Timestamp,
        day: Day,
    ) -> Result<Self, MarketError> {
        let ids: Vec<InstrumentId> = books.iter().map(|book| book.instrument().id).collect();
        let ascending = ids.windows(2).all(|two| two[0] < two[1]);
        if !ascending || ids.len() > Instrument::SHARD_MAX || beside.len() != ids.len() {
            return Err(MarketError::Instruments);
        }
        if blocked.windows(2).any(|two| two[0] >= two[1]) {
            return Err(MarketError::Blocked);
        }
        let digest = Digest::of(&books);
        let directory = Directory::new(ids);
        let (deadlines, statistics) = beside.into_iter().map(|one| (one.deadline, one.statistics)).unzip();
        Ok(Self { books, directory, deadlines, statistics, day, digest, blocked, time, copying: None })
    }

    /// Does beforehand what takes as long as a book is large: keeps books for a copy under way, and makes room for an order. It changes
    /// nothing that can be seen, and is left out by who does not care how long [`apply`](Self::apply) takes.
    #[inline]
    pub fn prepare(&mut self, request: &Request, pause: Pause<'_>) {
        self.keep_before(request, pause);
        if matches!(request.command, Command::Enter(_))
            && let Some(at) = self.directory.find(request.instrument)
        {
            self.books[at].make_room();
        }
    }

    /// Applies the next request of the total order and says what became of it.
    ///
    /// # Panics
    /// If the request has no id, or enters an order whose id is on the book: the layers below deduplicate.
    pub fn apply(&mut self, request: &Request, sink: &mut impl EventSink) -> Outcome {
        self.keep_before(request, &mut || ());
        self.day.requests += 1;
        if !self.blocked.is_empty()
            && self.blocked.binary_search(&request.member).is_ok()
            && let Some(outcome) = self.refuse_new(request, Reason::Blocked)
        {
            return outcome;
        }
        if self.day.stage != Stage::On
            && let Some(outcome) = self.refuse_new(request, Reason::DayOver)
        {
            return outcome;
        }
        let Some(at) = self.directory.find(request.instrument) else {
            return self.apply_beside(request, sink);
        };
        if concerns_the_exchange(&request.command) {
            if let Err(reason) = permit(request) {
                return refused(request, reason);
            }
            match request.command {
                Command::RemoveInstrument => return self.remove_instrument(at, request, sink),
                Command::AddInstrument(_) => return refused(request, Reason::InstrumentExists),
                // These are of the whole shard, and this one names an instrument of it.
                Command::Block { .. }
                | Command::Unblock { .. }
                | Command::CancelGuarded(_)
                | Command::BeginDay { .. }
                | Command::EndDay { .. }
                | Command::Register(_) => {
                    return refused(request, Reason::UnknownInstrument);
                }
                Command::SetPhase(phase) if self.day.stage != Stage::On && !rests(phase) => {
                    return refused(request, Reason::DayOver);
                }
                // A call that closed now would trade; the day's end halts it.
                Command::SetPhase(Phase::Closed)
                    if self.day.stage != Stage::On && self.books[at].trading().phase.is_call() =>
                {
                    return refused(request, Reason::DayOver);
                }
                // Its timetable waits for the day.
                Command::Time { .. } if self.day.stage != Stage::On => return accepted(request),
                Command::SetRule(rule @ Rule::Schedule { .. }) => self.catch_up(at, request, rule),
                _ => {}
            }
        }
        self.apply_at(at, request, sink)
    }

    /// The book of an instrument.
    #[must_use]
    pub fn book(&self, instrument: InstrumentId) -> Option<&B> {
        self.directory.find(instrument).map(|at| &self.books[at])
    }

    /// The books, in ascending order of instrument id.
    #[must_use]
    pub fn books(&self) -> &[B] {
        &self.books
    }

    /// When each book next has something to do on a time request for all instruments; in the order of [`books`](Self::books).
    /// Not always [`Book::deadline`]: a book in a call has a new indicative price to tell once anything has happened there.
    #[must_use]
    pub fn deadlines(&self) -> &[Timestamp] {
        &self.deadlines
    }

    /// What lies beside each book, in the order of [`books`](Self::books).
    pub fn beside(&self) -> impl ExactSizeIterator<Item = Beside> + '_ {
        (0..self.books.len()).map(|at| self.beside_at(at))
    }

    fn beside_at(&self, at: usize) -> Beside {
        Beside { deadline: self.deadlines[at], statistics: self.statistics[at] }
    }

    /// The business day.
    #[must_use]
    pub fn day(&self) -> &Day {
        &self.day
    }

    /// Refuses a request that is not told to any book, but counted.
    pub fn refuse(&mut self, request: &Request, reason: Reason) -> Outcome {
        self.day.requests += 1;
        refused(request, reason)
    }

    /// The blocked members, in ascending order.
    #[must_use]
    pub fn blocked(&self) -> &[MemberId] {
        &self.blocked
    }

    /// The latest time told to all instruments. A book that had nothing to do then does not know it.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        self.time
    }

    /// A digest of the whole state; see [`Book::state_hash`].
    #[must_use]
    pub fn state_hash(&self) -> u64 {
        let books = self.digest.value(&self.books, &self.blocked, self.time);
        digest::mix(books ^ self.day.hash())
    }

    /// Makes the next [`state_hash`](Self::state_hash) cheap: from then on only books that were touched are hashed again.
    pub fn refresh_hash(&mut self) {
        self.digest.refresh(&self.books);
    }

    /// Checks what must always hold, of every book and of the tables beside them. For tests, the simulator and operators.
    ///
    /// # Panics
    /// If anything does not hold.
    pub fn audit(&self) {
        self.books.iter().for_each(Book::audit);
        for (at, book) in self.books.iter().enumerate() {
            let id = book.instrument().id;
            assert_eq!(self.directory.find(id), Some(at), "instrument {id} is found");
            let deadline = self.deadlines[at];
            assert!(
                deadline == book.deadline() || deadline == due_at(book),
                "instrument {id}: deadline {deadline:?}"
            );
        }
        assert_eq!(self.deadlines.len(), self.books.len());
        assert_eq!(self.statistics.len(), self.books.len());
        let kept = self.digest.value(&self.books, &self.blocked, self.time);
        assert_eq!(kept, Digest::of(&self.books).value(&self.books, &self.blocked, self.time));
    }

    /// Refuses, before all other checks, what would bring shares to a book: of a blocked member, or while no day is on.
    #[cold]
    fn refuse_new(&self, request: &Request, reason: Reason) -> Option<Outcome> {
        let target = match request.command {
            Command::Enter(_) => None,
            Command::Amend(amendment) => Some(amendment.target),
            _ => return None,
        };
        let outcome = refused(request, reason);
        let Some(target) = target else { return Some(outcome) };
        let order = self.book(request.instrument).and_then(|book| book.order(target));
        let (executed, remaining) = order
            .filter(|order| order.member == request.member)
            .map_or((Quantity::ZERO, Quantity::ZERO), |order| (order.executed, order.remaining));
        Some(Outcome { order: target, executed, remaining, ..outcome })
    }

    fn apply_at(&mut self, at: usize, request: &Request, sink: &mut impl EventSink) -> Outcome {
        let is_kept = self.copying.as_ref().is_none_or(|copying| !copying.awaits(at));
        assert!(is_kept, "a book of the moment of a copy is kept before it changes");
        let (day, statistics) = (&mut self.day, &mut self.statistics[at]);
        let mut sink = Counting { sink, day, statistics, incoming: request.member };
        let outcome = self.books[at].apply(request, &mut sink);
        self.day.count_outcome(request, &outcome);
        let is_told = matches!(request.command, Command::Time { .. }) && outcome.status == Status::Accepted;
        self.settle_tables(at, is_told);
        outcome
    }

    /// After a request was applied to a book; `is_told` says whether it was the time.
    fn settle_tables(&mut self, at: usize, is_told: bool) {
        let book = &self.books[at];
        self.deadlines[at] = if is_told { book.deadline() } else { due_at(book) };
        self.digest.touch(at);
    }

    /// Tells a book the time it was spared, before its schedule changes: rows that would have passed by then must not come
    /// due now, which might be those of many days.
    fn catch_up(&mut self, at: usize, request: &Request, rule: Rule) {
        let book = &mut self.books[at];
        let spared = self.deadlines[at] > self.time && book.trading().time < self.time;
        if spared && book.instrument().with_rule(rule, true).is_ok() {
            let mut nothing = Vec::new();
            // The highest draw ends nothing.
            let command = Command::Time { draw: u64::MAX };
            book.apply(&Request { command, stamp: self.time, ..*request }, &mut nothing);
            assert!(nothing.is_empty(), "a book was spared the time because it had nothing to do");
        }
    }
}

/// When a book has something to do by itself that was last touched by anything but the time. In a call every request may
/// change the auction price, which the next time request tells.
fn due_at<B: Book>(book: &B) -> Timestamp {
    if book.trading().phase.is_call() { Timestamp(0) } else { book.deadline() }
}

/// Phases in which nothing trades or gathers.
fn rests(phase: Phase) -> bool {
    matches!(phase, Phase::Closed | Phase::Halted)
}

/// Whether only the exchange may ask for that, a member's own kill switch aside.
fn concerns_the_exchange(command: &Command) -> bool {
    !matches!(
        command,
        Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. } | Command::MassCancel { .. }
    )
}

/// docs/rules.md, section 8: all but `Block` of oneself is the exchange's.
fn permit(request: &Request) -> Result<(), Reason> {
    let oneself = matches!(request.command, Command::Block { member } if member == request.member);
    if request.member == EXCHANGE || oneself { Ok(()) } else { Err(Reason::NotPermitted) }
}

fn refused(request: &Request, reason: Reason) -> Outcome {
    Outcome { status: Status::Refused, reason, ..accepted(request) }
}

fn accepted(request: &Request) -> Outcome {
    Outcome {
        status: Status::Accepted,
        reason: Reason::None,
        order: OrderId(request.id),
        executed: Quantity::ZERO,
        remaining: Quantity::ZERO,
    }
}
