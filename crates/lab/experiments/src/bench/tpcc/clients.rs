//! Users at terminals: each asks, waits for the answer, thinks if told to, and asks again.
//!
//! A closed loop, since TPC-C is one: a site that is slow is asked less. So rates say how much was done with so many users, and latencies
//! hide what users who wait would have asked (see `pares-load`).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use pares_load::{LabError, failed};
use pares_site::protocol::Code;
use pares_site::{CallError, Client};
use pares_tpcc::Kind;
use pares_wholesale::{Receipts, Terminal, TerminalTransaction};

use super::Think;

/// What has no answer for so long never gets one.
const GIVE_UP: Duration = Duration::from_secs(60);
/// Then the site is asked again under the same number.
const PATIENCE: Duration = Duration::from_secs(5);
/// Before a site that said no is asked again.
const PAUSE: Duration = Duration::from_millis(5);

/// What users ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The mix.
    Mix,
    /// The two that read, by turns.
    Reads,
    /// One kind.
    Only(Kind),
}

/// A user.
pub(super) struct User {
    pub(super) cluster: u8,
    pub(super) client: Client,
    pub(super) terminal: Terminal,
}

/// What users received.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// While it was measured, by cluster and kind: microseconds from the question to the answer.
    pub(super) took: BTreeMap<(u8, Kind), Histogram<u64>>,
    /// Orders with a wrong item, refused as they have to be.
    pub(super) rolled_back: u64,
    /// Answers that it was not done: refusals of anything else, aborts, busy, behind.
    pub(super) refused: u64,
    /// Questions that nobody answered.
    pub(super) unanswered: u64,
    /// Over all, measured or not.
    pub(super) receipts: Receipts,
}

impl Told {
    pub(super) fn add(&mut self, other: Self) {
        for (what, times) in other.took {
            match self.took.entry(what) {
                std::collections::btree_map::Entry::Vacant(place) => drop(place.insert(times)),
                std::collections::btree_map::Entry::Occupied(mut place) => *place.get_mut() += times,
            }
        }
        self.rolled_back += other.rolled_back;
        self.refused += other.refused;
        self.unanswered += other.unanswered;
        self.receipts.add(other.receipts);
    }

    /// How many of some kinds were done while it was measured.
    pub(super) fn count(&self, is_such: impl Fn(u8, Kind) -> bool) -> u64 {
        let such = self.took.iter().filter(|((cluster, kind), _)| is_such(*cluster, *kind));
        such.map(|(_, times)| times.len()).sum()
    }

    /// The times of some kinds together.
    pub(super) fn times(&self, is_such: impl Fn(u8, Kind) -> bool) -> Histogram<u64> {
        let mut sum = times();
        let such = self.took.iter().filter(|((cluster, kind), _)| is_such(*cluster, *kind));
        such.for_each(|(_, times)| sum += times);
        sum
    }
}

fn times() -> Histogram<u64> {
    Histogram::new(3).expect("three digits")
}

/// How far a part is.
const WARMING_UP: u8 = 0;
const MEASURING: u8 = 1;
const ENDING: u8 = 2;

/// Lets all users work: `warm_up` long, then `time` long, at both ends of which `look` looks. What they received, what was seen, and
/// how long it was measured.
///
/// # Errors
/// If an answer is none, or `look` fails.
pub(super) fn work<T>(
    users: Vec<User>,
    asked: Asked,
    think: Think,
    (warm_up, time): (Duration, Duration),
    look: impl Fn() -> Result<T, LabError>,
) -> Result<(Told, [T; 2], Duration), LabError> {
    let phase = &AtomicU8::new(WARMING_UP);
    std::thread::scope(|scope| {
        let start = |user: User| scope.spawn(move || user.work(asked, think, phase));
        let threads: Vec<_> = users.into_iter().map(start).collect();
        std::thread::sleep(warm_up);
        let before = look();
        phase.store(MEASURING, Ordering::Relaxed);
        let began = Instant::now();
        std::thread::sleep(time);
        let measured = began.elapsed();
        phase.store(ENDING, Ordering::Relaxed);
        let after = look();
        let mut told = Told::default();
        for thread in threads {
            // A panic has been printed; the benchmark is over with it.
            told.add(thread.join().map_err(|_| LabError::Failed("a user's thread has ended".into()))??);
        }
        Ok((told, [before?, after?], measured))
    })
}

impl User {
    fn work(mut self, asked: Asked, think: Think, phase: &AtomicU8) -> Result<Told, LabError> {
        let mut told = Told::default();
        let goes_on = || phase.load(Ordering::Relaxed) < ENDING;
        for turn in 0.. {
            let errand = self.errand(asked, turn);
            if think == Think::Standard {
                sleep(Duration::from_nanos(errand.kind.keying()), goes_on);
            }
            if !goes_on() {
                break;
            }
            let began = Instant::now();
            let done = self.carry_out(&errand, &mut told)?;
            if done && phase.load(Ordering::Relaxed) == MEASURING {
                let took = began.elapsed().as_micros() as u64;
                told.took
                    .entry((self.cluster, errand.kind))
                    .or_insert_with(times)
                    .record(took)
                    .map_err(failed("a time"))?;
            }
            if think != Think::None {
                sleep(Duration::from_nanos(errand.kind.think(self.terminal.dice())), goes_on);
            }
        }
        Ok(told)
    }

    fn errand(&mut self, asked: Asked, turn: u64) -> TerminalTransaction {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        match asked {
            Asked::Mix => self.terminal.draw(now),
            Asked::Only(kind) => self.terminal.draw_kind(kind, now),
            Asked::Reads if turn.is_multiple_of(2) => self.terminal.draw_kind(Kind::OrderStatus, now),
            Asked::Reads => self.terminal.draw_kind(Kind::StockLevel, now),
        }
    }

    /// Whether it was done.
    fn carry_out(&mut self, errand: &TerminalTransaction, told: &mut Told) -> Result<bool, LabError> {
        let answer = match errand.kind.reads_only() {
            true => read(&mut self.client, &errand.request, &mut told.refused),
            false => execute(&mut self.client, &errand.request, &mut told.refused),
        };
        match answer {
            Answer::Done(reply) => {
                told.receipts.note(errand, &reply).map_err(failed("a reply"))?;
                Ok(true)
            }
            Answer::No if errand.rolls_back => {
                told.rolled_back += 1;
                Ok(false)
            }
            Answer::No => {
                told.refused += 1;
                Ok(false)
            }
            Answer::Nothing => {
                told.unanswered += 1;
                told.receipts.note_open(errand);
                Ok(false)
            }
        }
    }
}

enum Answer {
    Done(Vec<u8>),
    /// The application refuses.
    No,
    Nothing,
}

/// Has a request executed once, asking until it is known what became of it; counts answers that nothing was done.
fn execute(client: &mut Client, request: &[u8], refused: &mut u64) -> Answer {
    let ask = |is_first| match is_first {
        true => client.execute(request, PATIENCE),
        false => client.execute_again(request, PATIENCE),
    };
    answered(ask, refused)
}

fn read(client: &mut Client, request: &[u8], refused: &mut u64) -> Answer {
    answered(|_| client.read(request, GIVE_UP), refused)
}

/// Asks, and again until there is an answer, or it is given up.
fn answered(mut ask: impl FnMut(bool) -> Result<Vec<u8>, CallError>, refused: &mut u64) -> Answer {
    let began = Instant::now();
    let mut answer = ask(true);
    loop {
        match answer {
            Ok(reply) => return Answer::Done(reply),
            Err(CallError::No { code: Code::Refused, .. }) => return Answer::No,
            Err(CallError::No { .. }) => *refused += 1,
            Err(_) => {}
        }
        if began.elapsed() > GIVE_UP {
            return Answer::Nothing;
        }
        std::thread::sleep(PAUSE);
        answer = ask(false);
    }
}

/// Sleeps, unless there is no reason to any more.
fn sleep(time: Duration, goes_on: impl Fn() -> bool) {
    let began = Instant::now();
    while goes_on() && began.elapsed() < time {
        std::thread::sleep((time - began.elapsed().min(time)).min(Duration::from_millis(50)));
    }
}

/// Has all of these executed, each once, by several clients at a time.
///
/// # Errors
/// If one is refused or not answered.
pub(super) fn execute_all(clients: Vec<Client>, requests: Vec<Vec<u8>>) -> Result<(), LabError> {
    let left = &Mutex::new(requests.into_iter());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    std::thread::scope(|scope| {
        let run = |mut client: Client| {
            scope.spawn(move || {
                while let Some(request) = next() {
                    if !matches!(execute(&mut client, &request, &mut 0), Answer::Done(_)) {
                        return Err(LabError::Failed("the initial database could not be made".into()));
                    }
                }
                Ok(())
            })
        };
        let threads: Vec<_> = clients.into_iter().map(run).collect();
        threads.into_iter().try_for_each(|thread| {
            let ended = thread.join();
            ended.unwrap_or_else(|_| Err(LabError::Failed("a client's thread has ended".into())))
        })
    })
}
