//! Sessions: each asks one thing after the other, and notes what it asked and what it received. One that moves has a client at each site, and hands
//! what it has seen from one to the next. Times are places in one count that all of them share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pares_flow::Random;
use pares_isolation::history::{Element, Ending, MicroOperation, Operation};
use pares_load::LabError;
use pares_site::protocol::Horizon;
use pares_site::{CallError, Client};

use super::lists::{ACCOUNTS, Lists, answered, balances};

/// A session that is not answered for so long continues, and does not know the outcome.
const PATIENCE: Duration = Duration::from_secs(1);
/// Micro-operations of a transaction at most.
const PARTS_MAX: u64 = 4;
/// Of a hundred transactions so many only read.
const READS_PERCENT: u64 = 35;

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trade {
    /// Appends to lists and reads them.
    Lists,
    /// Moves money.
    Bank,
}

/// What a session noted.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) operations: Vec<Operation>,
    /// Balances of all accounts, of each snapshot.
    pub(super) snapshots: Vec<Vec<i128>>,
    /// How transactions of a bank ended: done, not done, unknown.
    pub(super) bank: [u64; 3],
    /// An answer that is none, or a denial.
    pub(super) strange: Option<String>,
}

/// What all sessions of a scenario share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) lists: Lists,
    pub(super) clock: AtomicU64,
    pub(super) stop: AtomicBool,
}

impl Shared {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }
}

/// An active session: at its only client's site, or at another of them each time.
pub(super) struct Session {
    number: u32,
    clients: Vec<Client>,
    seen: Horizon,
    random: Random,
    shared: Arc<Shared>,
    elements: u64,
    notes: Notes,
}

impl Session {
    /// Begins, in a thread of its own.
    pub(super) fn start(
        number: u32,
        clients: Vec<Client>,
        trade: Trade,
        shared: Arc<Shared>,
    ) -> Result<JoinHandle<Notes>, LabError> {
        let random = Random::new(u64::from(number) + 1);
        let (seen, notes) = Default::default();
        let session = Self { number, clients, seen, random, shared, elements: 0, notes };
        let thread = std::thread::Builder::new().name("session".into()).spawn(move || session.run(trade));
        thread.map_err(LabError::io("starting a session"))
    }

    fn run(mut self, trade: Trade) -> Notes {
        while !self.shared.stop.load(Ordering::Relaxed) && self.notes.strange.is_none() {
            match trade {
                Trade::Lists => self.transaction(),
                Trade::Bank => self.bank(),
            }
        }
        self.notes
    }

    fn transaction(&mut self) {
        let only_reads = self.random.percent(READS_PERCENT);
        let count = 1 + self.random.below(PARTS_MAX);
        let asked: Vec<MicroOperation> = (0..count).map(|_| self.part(only_reads)).collect();
        let invoked = self.shared.now();
        let (ending, reply) = self.ask(&self.shared.lists.request(&asked), only_reads);
        let completed = self.shared.now();
        let parts = match reply {
            None => asked,
            Some(reply) => answered(&asked, &reply).unwrap_or_else(|| {
                self.notes.strange = Some(format!("{asked:?} was answered {reply:?}"));
                Vec::new()
            }),
        };
        self.notes.operations.push(Operation { session: self.number, invoked, completed, ending, parts });
    }

    fn part(&mut self, only_reads: bool) -> MicroOperation {
        let list = self.shared.lists.in_use(self.random.next_u64());
        if only_reads || self.random.percent(50) {
            return MicroOperation::Read(list, None);
        }
        self.shared.lists.note_append(list);
        self.elements += 1;
        MicroOperation::Append(list, Element((u64::from(self.number) << 32) + self.elements))
    }

    fn bank(&mut self) {
        let only_reads = self.random.percent(50);
        let [from, step, amount] = [ACCOUNTS, ACCOUNTS - 1, 60].map(|bound| self.random.below(bound));
        let lists = &self.shared.lists;
        let request = match only_reads {
            true => lists.balances_request(),
            false => lists.transfer_request(from, (from + 1 + step) % ACCOUNTS, amount),
        };
        let (ending, reply) = self.ask(&request, only_reads);
        self.notes.bank[ending as usize] += 1;
        self.notes.snapshots.extend(reply.as_deref().map(balances));
    }

    fn ask(&mut self, request: &str, only_reads: bool) -> (Ending, Option<String>) {
        let at = self.random.below(self.clients.len() as u64) as usize;
        let client = &mut self.clients[at];
        client.has_seen(self.seen);
        let reply = match only_reads {
            true => client.read(request.as_bytes(), PATIENCE),
            false => client.execute(request.as_bytes(), PATIENCE),
        };
        self.seen = client.horizon();
        match reply {
            // A long reply is not remembered: who asks again learns only that it was done.
            Ok(reply) if reply.is_empty() => (Ending::Done, None),
            Ok(reply) => (Ending::Done, Some(String::from_utf8_lossy(&reply).into_owned())),
            Err(CallError::No { .. }) => (Ending::NotDone, None),
            Err(CallError::Silence(_)) => (Ending::Unknown, None),
            Err(error @ CallError::Shut(_)) => {
                self.notes.strange = Some(error.to_string());
                (Ending::NotDone, None)
            }
        }
    }
}
