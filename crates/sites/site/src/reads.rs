//! Reading beside the duty cycle.
//!
//! A read may walk the whole database. Done by the duty cycle, it keeps all others waiting, the log's clock too: a delegate that says nothing for
//! a tenth of a second is deposed. So reads are done by a few threads of their own, each read on a snapshot of the store. The store is always a
//! stable prefix, and a batch of the [applier](crate::applier) behind what is stable: a read waits until the store has come to what was stable
//! when it came, and to what its client has seen at other sites, so that a client reads what it was answered.
//!
//! ```text
//!   asked --> waits for the store --> queue --> reader: snapshot, Application::read --> duty cycle: reply
//!             \------ at most so many, of so many bytes; more are refused ------/
//! ```
//! What waits for more than this site has may wait for ever, since a client can say what it likes: so it waits only for a while, and takes a quarter of the places at most.
//!
//! A snapshot holds on to what was deleted or replaced since, so a read may take only so long.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pares_link::ClientId;
use pares_store::{Reads, Store, StoreError, StoreSnapshot, Visit};
use pares_wice::{Key, KeyRange, Value, Version};

use crate::application::{Application, answer_of};
use crate::error::ProcessError;
use crate::protocol::Code;
use crate::requests::{AHEAD_SHARE, Answer};
use crate::setup::Bounds;

/// Replies that readers have ready before they wait for the duty cycle to take them.
const READY_MAX: usize = 64;

/// Whom a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) client: ClientId,
    pub(crate) tag: u64,
    bytes: usize,
}

/// A read that was taken.
struct Job {
    ticket: Ticket,
    /// The store's version must not be below.
    least: Version,
    request: Vec<u8>,
    /// Until when it waits.
    until: Option<Duration>,
}

/// What a read waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Awaits {
    /// The store has come to this version.
    Version(Version),
    /// A barrier that was sent after the read came.
    Barrier,
}

/// What a read must see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Least {
    pub(crate) awaits: Awaits,
    /// For ever, if it waits for no more than this site has.
    pub(crate) until: Option<Duration>,
}

/// What a reader has to say.
enum Done {
    /// What was read, and from which version.
    Read(Ticket, Result<(Answer, Version), StoreError>),
    /// Its thread has ended in a panic.
    Panicked,
}

/// Answers reads, beside the duty cycle.
pub struct StoreReader {
    application: Arc<dyn Application>,
    store: Arc<dyn Store>,
    jobs: Arc<Mutex<Receiver<Job>>>,
    done: SyncSender<Done>,
    time_max: Duration,
}

impl StoreReader {
    /// Reads all that comes, until no more can; calls `wake` after each. For a thread of its own.
    pub fn run(self, clock: impl Fn() -> Duration, wake: impl Fn()) {
        loop {
            // Who waits for the next one holds the lock, and the others wait for that.
            let next = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = next else { return };
            let goes_on = self.read(&job, &clock);
            wake();
            if !goes_on {
                return;
            }
        }
    }

    /// Does the next read, if one has come; whether one had. For a world without threads, where no time passes meanwhile.
    pub fn step(&self) -> bool {
        let next = self.jobs.lock().unwrap_or_else(PoisonError::into_inner).try_recv();
        next.is_ok_and(|job| self.read(&job, || Duration::ZERO))
    }

    /// Whether more can be read.
    fn read(&self, job: &Job, clock: impl Fn() -> Duration) -> bool {
        let answer = match self.store.snapshot() {
            Ok(snapshot) => {
                assert!(snapshot.version() >= job.least, "stores only grow");
                let until = clock() + self.time_max;
                let items = Timed { items: &*snapshot, clock, until, expired: Cell::new(false) };
                let read = self.application.read(&job.request, &items);
                let answer =
                    if items.expired.get() { Ok(took_too_long(self.time_max)) } else { answer_of(read) };
                answer.map(|answer| (answer, snapshot.version()))
            }
            Err(StoreError::Busy(_)) => {
                Ok((busy("its store has reached its limit of snapshots"), Version(0)))
            }
            Err(error) => Err(error),
        };
        self.done.send(Done::Read(job.ticket, answer)).is_ok()
    }
}

impl Drop for StoreReader {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.done.send(Done::Panicked);
        }
    }
}

fn busy(why: &str) -> Answer {
    let body = format!("this site is busy with reads ({why}): try again, or ask another site").into_bytes();
    Answer { code: Code::Busy, body }
}

fn took_too_long(most: Duration) -> Answer {
    let body = format!("this read exceeded the limit of {most:?}: ask for less at a time").into_bytes();
    Answer { code: Code::Impossible, body }
}

/// A snapshot that nothing more is read from once its time is over.
struct Timed<'a, C> {
    items: &'a dyn StoreSnapshot,
    clock: C,
    until: Duration,
    expired: Cell<bool>,
}

impl<C: Fn() -> Duration> Timed<'_, C> {
    fn is_over(&self) -> bool {
        if (self.clock)() > self.until {
            self.expired.set(true);
        }
        self.expired.get()
    }

    /// What an application receives then. Its client does not.
    fn check(&self) -> Result<(), StoreError> {
        match self.is_over() {
            true => Err(StoreError::Io("this read took too long".into())),
            false => Ok(()),
        }
    }
}

impl<C: Fn() -> Duration> Reads for Timed<'_, C> {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        self.check()?;
        self.items.get(key)
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.check()?;
        self.items.range(range, &mut |key, value| match self.is_over() {
            true => ControlFlow::Break(()),
            false => visit(key, value),
        })?;
        if self.expired.get() { self.check() } else { Ok(()) }
    }
}

/// The duty cycle's end of all readers.
pub(crate) struct Readers<T> {
    // In this order: no more comes, nobody listens, so every reader ends with what it is at.
    jobs: Sender<Job>,
    done: Receiver<Done>,
    _tasks: Vec<T>,
    /// By what they wait for, and in the order in which they came.
    waiting: BTreeMap<(Awaits, u64), Job>,
    /// How many have come.
    taken: u64,
    /// Reads without a reply, of each connection.
    open: BTreeMap<ClientId, usize>,
    count: usize,
    bytes: usize,
    limits: ReadLimits,
}

/// How much may be read at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    count_max: usize,
    client_max: usize,
    bytes_max: usize,
    /// Of those that wait for more than the site has.
    ahead_max: usize,
}

impl Readers<()> {
    /// Both ends.
    pub(crate) fn new(
        application: Arc<dyn Application>,
        store: &Arc<dyn Store>,
        bounds: &Bounds,
    ) -> (Self, Vec<StoreReader>) {
        let (jobs, work) = channel();
        let (ready, done) = sync_channel(READY_MAX);
        let work = Arc::new(Mutex::new(work));
        let reader = || StoreReader {
            application: Arc::clone(&application),
            store: Arc::clone(store),
            jobs: Arc::clone(&work),
            done: ready.clone(),
            time_max: bounds.read_time_max,
        };
        let readers = std::iter::repeat_with(reader).take(bounds.readers.max(1)).collect();
        let limits = ReadLimits {
            count_max: bounds.reads_max,
            client_max: bounds.client_open_max,
            bytes_max: bounds.reads_bytes_max,
            ahead_max: (bounds.reads_max / AHEAD_SHARE).max(1),
        };
        let (waiting, open) = Default::default();
        (
            Self { jobs, done, _tasks: Vec::new(), waiting, taken: 0, open, count: 0, bytes: 0, limits },
            readers,
        )
    }

    /// With what runs the other ends.
    pub(crate) fn run_by<T>(self, tasks: Vec<T>) -> Readers<T> {
        assert!(!tasks.is_empty(), "without a reader no read is answered");
        let Self { jobs, done, waiting, taken, open, count, bytes, limits, .. } = self;
        Readers { jobs, done, _tasks: tasks, waiting, taken, open, count, bytes, limits }
    }
}

impl<T> Readers<T> {
    /// Takes a read of a client, under a tag.
    ///
    /// # Errors
    /// The refusal, if there are too many.
    pub(crate) fn take(
        &mut self,
        (client, tag): (ClientId, u64),
        request: Vec<u8>,
        least: Least,
    ) -> Result<(), Answer> {
        let own = self.open.get(&client).copied().unwrap_or(0);
        let bytes = request.len();
        if own >= self.limits.client_max {
            return Err(busy("too many are open on this connection"));
        }
        if self.count >= self.limits.count_max || self.bytes + bytes > self.limits.bytes_max {
            return Err(busy("too many wait"));
        }
        if least.until.is_some() && self.ahead() >= self.limits.ahead_max {
            return Err(busy("too many are waiting for other sites"));
        }
        self.open.insert(client, own + 1);
        self.count += 1;
        self.bytes += bytes;
        self.taken += 1;
        let version = if let Awaits::Version(version) = least.awaits { version } else { Version(0) };
        let ticket = Ticket { client, tag, bytes };
        let job = Job { ticket, least: version, request, until: least.until };
        let other = self.waiting.insert((least.awaits, self.taken), job);
        assert!(other.is_none(), "a number is that of one read");
        assert!(self.waiting.len() <= self.count, "a read that waits has no reply yet");
        assert!(self.open.len() <= self.count, "a connection is counted for reads without a reply");
        Ok(())
    }

    fn ahead(&self) -> usize {
        self.waiting.values().filter(|job| job.until.is_some()).count()
    }

    /// The store has come to `stored`: what waited for that is read.
    pub(crate) fn go_on(&mut self, stored: Version) {
        while let Some(first) = self.waiting.first_entry()
            && first.key().0 <= Awaits::Version(stored)
        {
            let job = first.remove();
            assert!(job.least <= stored, "a read is done on what it must see, or later");
            // If all readers are gone, their last word says why.
            let _ = self.jobs.send(job);
        }
    }

    /// The last of those that wait for a barrier.
    pub(crate) fn last_at_barrier(&self) -> Option<u64> {
        let ((awaits, number), _) = self.waiting.last_key_value()?;
        (*awaits == Awaits::Barrier).then_some(*number)
    }

    /// The store has come to `stored`, and to the barrier that was sent after the read `last`: what came until then is read.
    pub(crate) fn passed(&mut self, last: u64, stored: Version) {
        assert!(last <= self.taken, "a barrier is sent for reads that have come");
        let at_barrier = (Awaits::Barrier, 0)..=(Awaits::Barrier, last);
        let numbers: Vec<_> = self.waiting.range(at_barrier).map(|(key, _)| *key).collect();
        for key in numbers {
            let job = self.waiting.remove(&key).expect("found above");
            let other = self.waiting.insert((Awaits::Version(stored), key.1), Job { least: stored, ..job });
            assert!(other.is_none(), "a read waits in one place");
        }
    }

    /// Those that have waited for long enough, and what for.
    pub(crate) fn expired(&mut self, now: Duration) -> Vec<(Ticket, Awaits)> {
        self.remove_waiting(|job| job.until.is_some_and(|until| until <= now))
    }

    /// The next reply, if one has come.
    ///
    /// # Errors
    /// If the store or the application fails: the site ends.
    pub(crate) fn done(&mut self) -> Result<Option<(Ticket, Answer, Version)>, ProcessError> {
        match self.done.try_recv() {
            Ok(Done::Read(ticket, read)) => {
                self.settle(ticket);
                let (answer, version) = read?;
                Ok(Some((ticket, answer, version)))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Ok(Done::Panicked) | Err(TryRecvError::Disconnected) => Err(ProcessError::Reader),
        }
    }

    /// A client is gone: of what it asked, only what is being read or queued for a reader still costs anything.
    pub(crate) fn forget(&mut self, client: ClientId) {
        self.remove_waiting(|job| job.ticket.client == client);
    }

    fn remove_waiting(&mut self, is_such: impl Fn(&Job) -> bool) -> Vec<(Ticket, Awaits)> {
        let gone = self.waiting.extract_if(.., |_, job| is_such(job));
        let gone: Vec<_> = gone.map(|((awaits, _), job)| (job.ticket, awaits)).collect();
        gone.iter().for_each(|(ticket, _)| self.settle(*ticket));
        gone
    }

    fn settle(&mut self, ticket: Ticket) {
        assert!(self.count > 0, "a read that has its reply was taken");
        assert!(ticket.bytes <= self.bytes, "the bytes of a read are counted among all");
        assert!(self.open.contains_key(&ticket.client), "a read is counted for its connection");
        self.count -= 1;
        self.bytes -= ticket.bytes;
        if let Some(own) = self.open.get_mut(&ticket.client) {
            *own -= 1;
            if *own == 0 {
                self.open.remove(&ticket.client);
            }
        }
        assert!(self.count > 0 || (self.bytes == 0 && self.open.is_empty()), "without reads nothing is held");
    }
}

#[cfg(test)]
mod tests;
