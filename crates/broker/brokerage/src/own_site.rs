//! A site in this process, on a thread of its own: the front asks and hears by channels, many requests at a time.
//!
//! In turns on one thread, the front would wait for each sync of the site's log, and the site for the front. So they work side by side: while the site executes and stores some requests, the front makes the next ones.
//!
//! ```text
//!   front --batches of requests, a wake--> [ thread: the site's duty cycle ] --batches of answers--> front
//! ```
//! A channel loses nothing: so a request is handed in again only if the site says that it was not taken, or that nobody knows yet, in the order in which requests came. Under its name the site executes it
//! once, however often it is asked.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_accounts::Accounts;
use pares_link::Waker;
use pares_site::config::{Place, Promise, SiteLimits};
use pares_site::protocol::Code;
use pares_site::{Answered, Process, SiteReport, SitesConfig};
use pares_wice::{Isolation, SiteId, TransactionId};

use crate::error::{BrokerageError, BrokerageResult, failed, usage};
use crate::site_link::{PAUSE, PAUSE_MAX, SiteAnswer};

/// Between two looks for requests to be handed in again.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Until the site participates.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);
/// Requests that are handed to the thread at once: the site begins with them while the front continues.
const BATCH: usize = 128;
/// Longest wait of the site for something to do; a request ends it.
const WAIT_MAX: Duration = Duration::from_millis(10);

type Requests = Vec<(TransactionId, Vec<u8>)>;

/// What the thread receives.
enum Word {
    Execute(Requests),
    Report(Sender<SiteReport>),
}

/// The thread's end.
struct SiteThread {
    site: Process<Accounts>,
    words: Receiver<Word>,
    answers: Sender<Result<Vec<Answered>, String>>,
}

/// Requests without an answer.
#[derive(Default)]
struct Unanswered {
    /// By their place among all that came.
    requests: BTreeMap<u64, Unsettled>,
    places: HashMap<TransactionId, u64>,
    count: u64,
}

struct Unsettled {
    id: TransactionId,
    request: Vec<u8>,
    /// When it is to be handed in again, if the site has not taken it.
    due: Option<Instant>,
    /// From the next no to that.
    pause: Duration,
}

impl Unanswered {
    fn came(&mut self, id: TransactionId, request: Vec<u8>) {
        self.count += 1;
        self.places.insert(id, self.count);
        self.requests.insert(self.count, Unsettled { id, request, due: None, pause: PAUSE });
    }

    /// One has its answer; whether it had none before.
    fn answered(&mut self, id: TransactionId) -> bool {
        self.places.remove(&id).and_then(|place| self.requests.remove(&place)).is_some()
    }

    /// One was not taken.
    fn not_taken(&mut self, id: TransactionId, now: Instant) {
        if let Some(one) = self.places.get(&id).and_then(|place| self.requests.get_mut(place)) {
            (one.due, one.pause) = (Some(now + one.pause), (2 * one.pause).min(PAUSE_MAX));
        }
    }

    /// Those to be handed in again by now, in the order in which they came.
    fn due(&mut self, now: Instant) -> Requests {
        let due = self.requests.values_mut().filter(|one| one.due.is_some_and(|due| due <= now));
        due.map(|one| {
            one.due = None;
            (one.id, one.request.clone())
        })
        .collect()
    }
}

/// See the [module](self). The thread ends with it.
pub(crate) struct OwnSite {
    address: SocketAddr,
    waker: Waker,
    words: Option<Sender<Word>>,
    answers: Receiver<Result<Vec<Answered>, String>>,
    thread: Option<JoinHandle<()>>,
    /// To be handed to the thread.
    going: Requests,
    open: Unanswered,
    /// The time, as of the latest turn.
    now: Instant,
    looked: Instant,
}

impl OwnSite {
    /// A site alone in `dir`, which is empty; its items in a file there, or in the PostgreSQL database that the URL `store` names.
    pub(crate) fn open(dir: &Path, durability: Promise, store: Option<&str>) -> BrokerageResult<Self> {
        let config = configuration(durability, store);
        config.check().map_err(usage)?;
        config.make_directories(dir).map_err(BrokerageError::io("making the site's directory"))?;
        let mut site = Process::open(&config, SiteId::new(0, 0), dir, Accounts).map_err(failed)?;
        wait_until_certifying(&mut site)?;
        let address = site.clients_address().map_err(BrokerageError::io("asking for the site's port"))?;
        let address = address.ok_or_else(|| failed("the site has no port for clients"))?;
        let (waker, now) = (site.waker(), Instant::now());
        let ((words, told), (tell, answers)) = (channel(), channel());
        let thread = SiteThread { site, words: told, answers: tell };
        let begun = std::thread::Builder::new().name("site".into()).spawn(|| thread.run());
        let thread = Some(begun.map_err(BrokerageError::io("starting the site's thread"))?);
        let (words, going, open) = (Some(words), Vec::new(), Unanswered::default());
        Ok(Self { address, waker, words, answers, thread, going, open, now, looked: now })
    }

    /// Where the site is reached.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn report(&self) -> BrokerageResult<SiteReport> {
        let (tell, told) = channel();
        self.say(Word::Report(tell))?;
        told.recv().map_err(|_| has_ended())
    }

    fn say(&self, word: Word) -> BrokerageResult {
        let words = self.words.as_ref().ok_or_else(has_ended)?;
        words.send(word).map_err(|_| has_ended())?;
        // A wait that is not ended ends by itself.
        let _ = self.waker.wake();
        Ok(())
    }

    /// Has a request executed.
    pub(crate) fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.open.came(id, request.clone());
        self.going.push((id, request));
        if self.going.len() >= BATCH {
            // If the thread has ended, the next turn says so.
            let _ = self.hand_over();
        }
    }

    fn hand_over(&mut self) -> BrokerageResult {
        if self.going.is_empty() {
            return Ok(());
        }
        let going = std::mem::replace(&mut self.going, Vec::with_capacity(BATCH));
        self.say(Word::Execute(going))
    }

    /// What the site has answered, after waiting for it for `wait` at most.
    pub(crate) fn turn(&mut self, wait: Duration) -> BrokerageResult<Vec<SiteAnswer>> {
        self.hand_over()?;
        let mut heard = match self.answers.recv_timeout(wait) {
            Ok(heard) => Some(heard),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(has_ended()),
        };
        self.now = Instant::now();
        let mut answers = Vec::new();
        while let Some(some) = heard {
            answers.extend(some.map_err(failed)?.into_iter().filter_map(|one| self.answer_of(one)));
            heard = self.answers.try_recv().ok();
        }
        if self.now.duration_since(self.looked) >= LOOK_EVERY {
            self.looked = self.now;
            self.going.extend(self.open.due(self.now));
        }
        Ok(answers)
    }

    /// None if nothing was done, or nobody knows: it is handed in again.
    fn answer_of(&mut self, answered: Answered) -> Option<SiteAnswer> {
        let Answered { id, answer } = answered;
        let reply = match answer.code {
            Code::Done => Ok(answer.body),
            Code::Refused => Err(String::from_utf8_lossy(&answer.body).into_owned()),
            _ => {
                self.open.not_taken(id, self.now);
                return None;
            }
        };
        self.open.answered(id).then_some(SiteAnswer { id, reply })
    }
}

impl Drop for OwnSite {
    fn drop(&mut self) {
        self.words = None;
        let _ = self.waker.wake();
        if let Some(thread) = self.thread.take() {
            // What it has said last was heard, or nobody wants to hear it.
            let _ = thread.join();
        }
    }
}

impl SiteThread {
    /// Until nobody asks any more.
    fn run(mut self) {
        while self.hear() {
            if let Err(error) = self.site.turn(WAIT_MAX) {
                // Nobody may listen.
                let _ = self.answers.send(Err(error.to_string()));
                return;
            }
            let answered: Vec<_> = self.site.answered().collect();
            if !answered.is_empty() && self.answers.send(Ok(answered)).is_err() {
                return;
            }
        }
    }

    /// Takes in what was said; whether the front may say more.
    fn hear(&mut self) -> bool {
        loop {
            match self.words.try_recv() {
                Ok(Word::Execute(requests)) => {
                    requests.into_iter().for_each(|(id, request)| self.site.submit(id, request));
                }
                // Who asked may be gone.
                Ok(Word::Report(tell)) => drop(tell.send(self.site.report())),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}

fn has_ended() -> BrokerageError {
    failed("the site's thread has ended")
}

fn configuration(durability: Promise, store: Option<&str>) -> SitesConfig {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    SitesConfig {
        system: "broker".into(),
        identity: SitesConfig::draw_identity(),
        durability,
        isolation: Isolation::Snapshot,
        certifier: 0,
        begins: 0,
        tls: None,
        store: store.map(str::to_owned),
        plain: false,
        witness: None,
        limits: SiteLimits::default(),
        sites: vec![Place::new(0, 0, any, any)],
    }
}

fn wait_until_certifying(site: &mut Process<Accounts>) -> BrokerageResult {
    let began = Instant::now();
    let mut report = site.report();
    while report.recalling || report.heard.is_empty() {
        if began.elapsed() >= BEGINS_WITHIN {
            let why = report.apart.unwrap_or_else(|| "nobody certifies".into());
            return Err(failed(format!("the site did not begin within {BEGINS_WITHIN:?}: {why}")));
        }
        site.turn(Duration::from_millis(10)).map_err(failed)?;
        report = site.report();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unaccepted_requests_are_resubmitted_in_order() {
        let (mut open, began) = (Unanswered::default(), Instant::now());
        let id = |sequence| TransactionId { client: 7, sequence };
        let at = |pauses: u32| began + pauses * PAUSE;
        (0..100).for_each(|sequence| open.came(id(sequence), vec![sequence as u8]));
        assert!(open.due(at(1_000)).is_empty(), "a slow answer is no lost request");
        (0..50).rev().for_each(|sequence| open.not_taken(id(sequence), began));
        assert!(open.answered(id(20)) && !open.answered(id(20)));
        assert!(open.due(began).is_empty(), "at once it would be told the same");
        let again: Vec<u64> = open.due(at(1)).iter().map(|(id, _)| id.sequence).collect();
        assert_eq!(again, (0..50).filter(|sequence| *sequence != 20).collect::<Vec<_>>());
        assert!(open.due(at(1_000)).is_empty(), "it was handed in");
        open.not_taken(id(3), at(1));
        assert_eq!((open.due(at(2)), open.due(at(3))), (Vec::new(), vec![(id(3), vec![3])]));
    }
}
