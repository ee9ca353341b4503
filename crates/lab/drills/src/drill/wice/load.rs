//! Clients of one site, all on one thread: requests with many open at a time, repeated until they are answered.
//!
//! A client waits a round trip for each answer, since only what is stable is answered. So it is the requests it may have open that say how
//! much it can have done, and a database measured with one open request per client is a round trip measured. Here a client has
//! as many open as its pace says, up to the 64 that the protocol allows; and either sends the next when one is answered, or has a schedule that nothing
//! changes, so that a pause is seen by all that was due in it.
//!
//! When the site does not answer, all that is open is sent again, under the same numbers, to the next one. What was asked before is answered by
//! *done* and *refused* alone: any other answer speaks of one asking, and the first may have been executed. So it is asked on.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_flow::Random;
use pares_link::Door;
use pares_load::LabError;
use pares_site::protocol::{Ask, Code, Horizon, OPEN_MAX, Reply};
use pares_wice::TransactionId;

use super::funded;
use super::wire::Wire;

/// A site that has left something open for so long, without any answer, is left.
const PATIENCE: Duration = Duration::from_secs(2);
/// Before another site is tried, and before what has no outcome is asked again.
const PAUSE: Duration = Duration::from_millis(20);
/// After the end, for what is still open.
const DRAIN_PATIENCE: Duration = Duration::from_secs(60);

/// What the clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mix {
    /// Each from its own account to another of its own: no two conflict.
    Apart,
    /// Each between one of so many accounts that all share and its own.
    Hot(u64),
    /// Between any two of so many accounts.
    Among(u64),
    /// So much for each of so many accounts, and no more.
    Fund {
        /// For each.
        funds: u64,
        /// How many.
        accounts: u64,
    },
    /// Items of some size, each once.
    State {
        /// How many.
        items: u64,
        /// Of each.
        bytes: u64,
    },
}

impl Mix {
    /// Requests after which there are no more.
    fn end(self) -> Option<u64> {
        match self {
            Self::Fund { accounts: end, .. } | Self::State { items: end, .. } => Some(end),
            _ => None,
        }
    }
}

/// When they ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// So many open at each client: the next when one is answered.
    Open(u64),
    /// So many a second, all clients together, and at most 64 open at each.
    PerSecond(u64),
}

/// Clients of a site.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Where they ask; behind the first, where they turn to when it does not answer.
    pub(super) sites: Vec<Door>,
    /// How many clients, with numbers from `first` on.
    pub(super) clients: u64,
    /// The first client's number: a client of the whole drill.
    pub(super) first: u64,
    pub(super) mix: Mix,
    pub(super) pace: Pace,
}

/// What they have been told.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Of each that was done: when, since the drill began, and how long after it was due.
    pub(super) done: Vec<(Duration, Duration)>,
    /// What was asked, and done.
    pub(super) acknowledged: Vec<TransactionId>,
    /// What was asked, and the answer was no: client-visible aborts, refusals, a cluster behind.
    pub(super) denied: Vec<(TransactionId, Code)>,
    /// Sent again.
    pub(super) repeats: u64,
    /// Not answered at the end.
    pub(super) unanswered: u64,
}

/// Active clients.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    told: Arc<Mutex<Told>>,
    thread: JoinHandle<()>,
}

impl Load {
    /// Begins. Times count from `epoch`.
    pub(super) fn start(plan: Plan, epoch: Instant) -> Result<Self, LabError> {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::new(Mutex::new(Told::default()));
        let mut clients = Clients::new(plan, epoch, Arc::clone(&told));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("clients".into()).spawn(move || clients.run(&stopped));
        Ok(Self { stop, told, thread: thread.map_err(LabError::io("starting clients"))? })
    }

    /// How many were done so far.
    pub(super) fn done(&self) -> usize {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).done.len()
    }

    /// No new requests from now on.
    fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Waits until all that is open is answered. What they received.
    pub(super) fn finish(self) -> Told {
        self.end();
        // A panic of its own has been printed; what it received until then counts.
        let _ = self.thread.join();
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// No new requests from any of them, then waits until all that is open is answered.
pub(super) fn finish_all(loads: Vec<Load>) -> Vec<Told> {
    loads.iter().for_each(Load::end);
    loads.into_iter().map(Load::finish).collect()
}

struct Open {
    request: Vec<u8>,
    due: Instant,
    /// An earlier asking may yet be done.
    asked_before: bool,
}

struct Clients {
    plan: Plan,
    epoch: Instant,
    told: Arc<Mutex<Told>>,
    random: Random,
    /// The last sequence of each lane. A lane is one of the 64 requests that a client may have open: sequences of a lane have the same
    /// remainder, so that one is asked when the one before it in the lane is answered, and a reply's sequence tells the client.
    sequences: Vec<u64>,
    open: BTreeMap<TransactionId, Open>,
    /// What of it is asked again, and from when on.
    again: Vec<TransactionId>,
    again_due: Instant,
    /// Lanes that may ask, in turn.
    ready: VecDeque<u64>,
    /// Requests so far.
    asked: u64,
    wire: Option<Wire>,
    at: usize,
    /// The last sign of life.
    heard: Instant,
    next_due: Instant,
}

impl Clients {
    fn new(plan: Plan, epoch: Instant, told: Arc<Mutex<Told>>) -> Self {
        let each = if let Pace::Open(open) = plan.pace { open.min(OPEN_MAX) } else { OPEN_MAX };
        let ready = (0..each)
            .flat_map(|open| (0..plan.clients).map(move |client| client * OPEN_MAX + open))
            .collect();
        let lanes = plan.clients * OPEN_MAX;
        Self {
            random: Random::new(plan.first),
            sequences: (0..lanes).collect(),
            plan,
            epoch,
            told,
            open: BTreeMap::new(),
            again: Vec::new(),
            again_due: Instant::now(),
            ready,
            asked: 0,
            wire: None,
            at: 0,
            heard: Instant::now(),
            next_due: Instant::now(),
        }
    }

    fn run(&mut self, stop: &AtomicBool) {
        let mut ended = None;
        loop {
            if stop.load(Ordering::Relaxed) {
                let since = *ended.get_or_insert_with(Instant::now);
                if self.open.is_empty() || since.elapsed() > DRAIN_PATIENCE {
                    break;
                }
            }
            if self.turn(ended.is_none()).is_err() {
                self.wire = None;
                self.at = (self.at + 1) % self.plan.sites.len();
                std::thread::sleep(PAUSE);
            }
        }
        let unanswered = self.open.len() as u64;
        self.note(|told| told.unanswered += unanswered);
    }

    fn note(&self, note: impl FnOnce(&mut Told)) {
        note(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn turn(&mut self, more: bool) -> std::io::Result<()> {
        if self.wire.is_none() {
            self.connect()?;
        }
        if more {
            self.ask()?;
        }
        self.ask_again();
        let until_due = match self.plan.pace {
            Pace::PerSecond(_) if more => self.next_due.saturating_duration_since(Instant::now()),
            _ => Duration::from_millis(20),
        };
        let wire = self.wire.as_mut().expect("connected above");
        wire.flush()?;
        wire.wait(until_due.min(Duration::from_millis(20)))?;
        while let Some(frame) = self.wire.as_mut().expect("still").next()? {
            let reply = Reply::from_bytes(&frame).map_err(std::io::Error::other)?;
            if !matches!(reply.code, Code::Unknown | Code::Elsewhere) {
                self.heard = Instant::now(); // a site that does not know for long is as good as silent
            }
            self.answered(&reply);
        }
        let silent = !self.open.is_empty() && self.heard.elapsed() > PATIENCE;
        if silent { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(()) }
    }

    /// All that is open is asked again: the site that answered last may be gone.
    fn connect(&mut self) -> std::io::Result<()> {
        let mut wire = Wire::connect(&self.plan.sites[self.at])?;
        for (&id, open) in &mut self.open {
            open.asked_before = true;
            wire.send(&Ask::Execute(id, Horizon::default(), open.request.clone()).to_bytes());
        }
        self.again.clear();
        let repeats = self.open.len() as u64;
        self.note(|told| told.repeats += repeats);
        self.heard = Instant::now();
        self.wire = Some(wire);
        Ok(())
    }

    fn ask_again(&mut self) {
        if self.again_due > Instant::now() {
            return;
        }
        let wire = self.wire.as_mut().expect("connected before it is asked");
        for id in self.again.drain(..) {
            let Some(open) = self.open.get(&id) else { continue };
            wire.send(&Ask::Execute(id, Horizon::default(), open.request.clone()).to_bytes());
        }
        self.again_due = Instant::now() + PAUSE;
    }

    fn ask(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        loop {
            if self.plan.mix.end() == Some(self.asked) {
                return Ok(());
            }
            let due = match self.plan.pace {
                Pace::Open(_) => now,
                Pace::PerSecond(rate) if self.next_due <= now && !self.ready.is_empty() => {
                    let due = self.next_due;
                    self.next_due += Duration::from_secs(1) / u32::try_from(rate).expect("a rate");
                    due
                }
                Pace::PerSecond(_) => return Ok(()),
            };
            let Some(lane) = self.ready.pop_front() else { return Ok(()) };
            if self.open.is_empty() {
                self.heard = now; // silence counts only where something is asked
            }
            let lanes = self.sequences.len() as u64;
            let sequence = &mut self.sequences[usize::try_from(lane).expect("as many as there are")];
            *sequence += lanes;
            let id = TransactionId { client: self.plan.first + lane / OPEN_MAX, sequence: *sequence };
            let request = self.request(id);
            self.wire
                .as_mut()
                .expect("connected")
                .send(&Ask::Execute(id, Horizon::default(), request.clone()).to_bytes());
            self.open.insert(id, Open { request, due, asked_before: false });
        }
    }

    /// With a note, by which it is found afterwards whether it was executed, and how often.
    fn request(&mut self, id: TransactionId) -> Vec<u8> {
        let TransactionId { client, sequence } = id;
        let random = &mut self.random;
        let own = |account: u64| format!("account/own/{client}/{account}");
        let what = match self.plan.mix {
            // Of nothing, since they have nothing; it reads and writes as much.
            Mix::Apart => {
                format!("transfer {} {} 0", own(sequence % OPEN_MAX), own(OPEN_MAX + sequence % OPEN_MAX))
            }
            Mix::Hot(rows) => {
                format!("transfer account/hot/{rows}/{} {} 1", random.below(rows), own(sequence % OPEN_MAX))
            }
            Mix::Among(accounts) => {
                let from = random.below(accounts);
                let to = (from + 1 + random.below(accounts - 1)) % accounts;
                format!("transfer account/among/{from} account/among/{to} {}", random.below(100))
            }
            Mix::Fund { funds, .. } => format!("add account/{} {funds}", funded(self.asked)),
            Mix::State { bytes, .. } => {
                format!("put state/{} {}", self.asked, "x".repeat(usize::try_from(bytes).expect("a few")))
            }
        };
        self.asked += 1;
        format!("noted note/{client}/{sequence} {what}").into_bytes()
    }

    fn answered(&mut self, reply: &Reply) {
        let lane = reply.to % self.sequences.len() as u64;
        let id = TransactionId { client: self.plan.first + lane / OPEN_MAX, sequence: reply.to };
        let Some(open) = self.open.get_mut(&id) else { return };
        open.asked_before |= reply.code == Code::Unknown;
        if open.asked_before && !matches!(reply.code, Code::Done | Code::Refused) {
            self.again.push(id);
            return;
        }
        let Some(open) = self.open.remove(&id) else { return };
        self.ready.push_back(lane);
        let (now, epoch) = (Instant::now(), self.epoch);
        self.note(|told| match reply.code {
            Code::Done => {
                told.done.push((now - epoch, now - open.due));
                told.acknowledged.push(id);
            }
            code => told.denied.push((id, code)),
        });
    }
}
