//! Reading beside the duty cycle.
//!
//! A read may walk the whole database. Done by the duty cycle, it keeps everybody waiting, the log's clock too: a delegate that says nothing for
//! a tenth of a second is deposed. So reads are done by a few threads of their own, each read on a snapshot of the store. The store is always a
//! stable prefix, and a batch of the [applier](crate::applier) behind what is stable: a read waits until the store has come to what was stable
//! when it came, so that a client reads what it was answered.
//!
//! ```text
//!   asked --> waits for the store --> queue --> reader: snapshot, Application::read --> duty cycle: reply
//!             \------ at most so many, of so many bytes; more are refused ------/
//! ```
//! A snapshot holds on to what was deleted or replaced since, so a read may take only so long.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
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
use crate::requests::Answer;
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
}

/// What a reader has to say.
enum Done {
    Read(Ticket, Result<Answer, StoreError>),
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
                if items.expired.get() { Ok(took_too_long(self.time_max)) } else { answer_of(read) }
            }
            Err(StoreError::Busy(_)) => Ok(busy("its store can give no more snapshots")),
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
    let body = format!("this site is busy with reads ({why}): ask again, or ask another").into_bytes();
    Answer { code: Code::Busy, body }
}

fn took_too_long(most: Duration) -> Answer {
    let body = format!("a read may take {most:?}, and this one has: ask for less at a time").into_bytes();
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

    /// What an application is told then. It is not told to the client.
    fn check(&self) -> Result<(), StoreError> {
        match self.is_over() {
            true => Err(StoreError::Io("this read has taken too long".into())),
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
    /// Until the store has come to their version; in order of versions.
    waiting: VecDeque<Job>,
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
        };
        let (waiting, open) = Default::default();
        (Self { jobs, done, _tasks: Vec::new(), waiting, open, count: 0, bytes: 0, limits }, readers)
    }

    /// With what runs the other ends.
    pub(crate) fn run_by<T>(self, tasks: Vec<T>) -> Readers<T> {
        let Self { jobs, done, waiting, open, count, bytes, limits, .. } = self;
        Readers { jobs, done, _tasks: tasks, waiting, open, count, bytes, limits }
    }
}

impl<T> Readers<T> {
    /// Takes a read that must see all up to `least`, the stable version of now.
    ///
    /// # Errors
    /// The refusal, if there are too many.
    pub(crate) fn take(
        &mut self,
        client: ClientId,
        tag: u64,
        request: Vec<u8>,
        least: Version,
    ) -> Result<(), Answer> {
        let own = self.open.get(&client).copied().unwrap_or(0);
        let bytes = request.len();
        if own >= self.limits.client_max {
            return Err(busy("too many are open on this connection"));
        }
        if self.count >= self.limits.count_max || self.bytes + bytes > self.limits.bytes_max {
            return Err(busy("too many wait"));
        }
        self.open.insert(client, own + 1);
        self.count += 1;
        self.bytes += bytes;
        self.waiting.push_back(Job { ticket: Ticket { client, tag, bytes }, least, request });
        Ok(())
    }

    /// The store has come to `stored`: what waited for that is read.
    pub(crate) fn go_on(&mut self, stored: Version) {
        while let Some(job) = self.waiting.pop_front_if(|job| job.least <= stored) {
            // If all readers are gone, their last word says why.
            let _ = self.jobs.send(job);
        }
    }

    /// The next reply, if one has come.
    ///
    /// # Errors
    /// If the store or the application fails: the site ends.
    pub(crate) fn done(&mut self) -> Result<Option<(Ticket, Answer)>, ProcessError> {
        match self.done.try_recv() {
            Ok(Done::Read(ticket, answer)) => {
                self.settle(ticket);
                Ok(Some((ticket, answer?)))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Ok(Done::Panicked) | Err(TryRecvError::Disconnected) => Err(ProcessError::Reader),
        }
    }

    /// A client is gone: of what it asked, only what is being read or queued for a reader still costs anything.
    pub(crate) fn forget(&mut self, client: ClientId) {
        let (gone, waiting) =
            std::mem::take(&mut self.waiting).into_iter().partition(|job| job.ticket.client == client);
        self.waiting = waiting;
        let gone: VecDeque<Job> = gone;
        gone.iter().for_each(|job| self.settle(job.ticket));
    }

    fn settle(&mut self, ticket: Ticket) {
        self.count -= 1;
        self.bytes -= ticket.bytes;
        if let Some(own) = self.open.get_mut(&ticket.client) {
            *own -= 1;
            if *own == 0 {
                self.open.remove(&ticket.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_store::{Applied, Memory};

    use super::*;

    #[test]
    fn what_takes_too_long_reads_no_more() {
        let store = Memory::default();
        let writes = (0..9u8).map(|name| (Key::new([name]), Some(Value::counter(1)))).collect();
        store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
        let (now, snapshot) = (Cell::new(Duration::ZERO), store.snapshot().unwrap());
        let clock = || {
            now.set(now.get() + Duration::from_secs(1));
            now.get()
        };
        let until = Duration::from_secs(5);
        let items = Timed { items: &*snapshot, clock, until, expired: Cell::new(false) };
        let mut seen = 0;
        items
            .range(&KeyRange::prefix(b""), &mut |_, _| {
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap_err();
        assert_eq!((seen, items.expired.get()), (4, true));
        items.get(&Key::new([0])).unwrap_err();
    }

    #[test]
    fn who_is_gone_leaves_no_read_behind_that_still_waits() {
        let bounds = Bounds { client_open_max: 2, ..Bounds::default() };
        let store: Arc<dyn Store> = Arc::new(Memory::default());
        let (mut readers, _ends) = Readers::new(Arc::new(crate::items::Items), &store, &bounds);
        let take = |readers: &mut Readers<()>, client| {
            readers.take(ClientId(client), 1, vec![0; 10], Version(1)).map_err(|refused| refused.code)
        };
        assert_eq!([take(&mut readers, 1), take(&mut readers, 1)], [Ok(()), Ok(())]);
        assert_eq!(take(&mut readers, 1), Err(Code::Busy), "one client does not take all places");
        assert_eq!(take(&mut readers, 2), Ok(()));
        readers.forget(ClientId(1));
        assert_eq!((readers.count, readers.bytes, readers.waiting.len(), readers.open.len()), (1, 10, 1, 1));
    }
}
