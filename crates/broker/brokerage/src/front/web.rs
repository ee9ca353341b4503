//! What the web server asks of its front, in the same process: through a channel, so that neither waits for the other.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mio::Waker;
use pares_broker::{Asked, BrokerRead, BrokerReply, CommandName, Refusal, StockQuote, StockSymbol, UserName};
use pares_front::{Arrival, CommandOrder, EACH_USER, HIT_MILLS, NotTaken};
use pares_link::Door;
use pares_site::protocol::Horizon;
use pares_web::{Broker, BrokerAnswer, Costs, Unavailable, WebServer, WebSettings};
use pares_wice::codec::Coded as _;
use tokio::sync::{broadcast, oneshot};

use super::files::UserFiles;
use crate::entrance::Entrance;
use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::floor::{Floor, Told};
use crate::readers::{NotRead, Readers};

/// Threads of the web server.
const THREADS: usize = 2;
/// Threads that read for it.
const READERS: usize = 4;
/// Quotes that a slow listener may be behind.
const QUOTES_MAX: usize = 1_024;

/// Requests without a reply that go to the sites beside users' commands.
const DIRECT_MAX: usize = 1_024;
/// So many of them at most are about people: for what supervisors say of customers there is room.
const PEOPLE_MAX: usize = DIRECT_MAX - 64;

type Tell = oneshot::Sender<Result<BrokerReply, Unavailable>>;

struct Question {
    user: Option<UserName>,
    name: Option<CommandName>,
    asked: Asked,
    tell: Tell,
}

/// What the front has last shown of itself.
#[derive(Default)]
struct Shown {
    horizon: Horizon,
    quotes: BTreeMap<StockSymbol, StockQuote>,
    hits: u64,
    clock_ahead_ms: i64,
}

/// The web server's end.
#[derive(Clone)]
struct WebFront {
    ask: Sender<Question>,
    waker: Arc<Waker>,
    readers: Readers,
    shown: Arc<Mutex<Shown>>,
    quotes: broadcast::Sender<StockQuote>,
}

/// The front's end.
pub(super) struct WebCalls {
    asked: Receiver<Question>,
    /// Commands without a reply, by their place among those that arrived.
    open: HashMap<u64, Tell>,
    /// What was handed to the sites without the front.
    direct: HashMap<u64, Tell>,
    files: UserFiles,
    shown: Arc<Mutex<Shown>>,
    quotes: broadcast::Sender<StockQuote>,
}

/// Both ends, for reads at these sites and dumps below `logs`.
fn ends(waker: Arc<Waker>, sites: &[Door], logs: &Path) -> io::Result<(WebFront, WebCalls)> {
    let (ask, asked) = channel();
    let quotes = broadcast::Sender::new(QUOTES_MAX);
    let shown = Arc::<Mutex<Shown>>::default();
    let readers = Readers::start(READERS, sites)?;
    let calls = WebCalls {
        asked,
        open: HashMap::new(),
        direct: HashMap::new(),
        files: UserFiles::below(logs),
        shown: Arc::clone(&shown),
        quotes: quotes.clone(),
    };
    Ok((WebFront { ask, waker, readers, shown, quotes }, calls))
}

/// Serves HTTP at `address`, for who asks for this machine or one of these hosts, on threads that end with the process.
pub(super) fn serve(
    address: SocketAddr,
    entrance: &Entrance,
    waker: Arc<Waker>,
    sites: &[Door],
    logs: &Path,
) -> BrokerageResult<WebCalls> {
    let starting = || BrokerageError::io("starting the web server");
    let (front, calls) = ends(waker, sites, logs).map_err(starting())?;
    let mut building = tokio::runtime::Builder::new_multi_thread();
    let runtime = building.worker_threads(THREADS).enable_all().build().map_err(starting())?;
    let (hosts, origins) = (entrance.hosts.clone(), entrance.origins.clone());
    let settings = WebSettings { hosts, origins, ..WebSettings::default() };
    let bound = runtime.block_on(WebServer::bind(address, entrance.transport()?, front, settings));
    let server = bound.map_err(failed)?;
    let run = move || runtime.block_on(server.run());
    std::thread::Builder::new().name("web".into()).spawn(run).map_err(starting())?;
    Ok(calls)
}

impl WebCalls {
    /// Takes in what was asked, and shows how the front is.
    pub(super) fn turn(&mut self, floor: &mut Floor) {
        for question in self.asked.try_iter().collect::<Vec<_>>() {
            if floor.misleads(&question.asked) {
                // Who asked may be gone.
                let _ = question.tell.send(Ok(BrokerReply::Refused { refusal: Refusal::ClockOff }));
            } else {
                self.take(question, floor);
            }
        }
        for (number, reply) in floor.sites_said() {
            if let Some(tell) = self.direct.remove(&number) {
                // Who asked may be gone.
                let _ = tell.send(reply.map_err(Unavailable::Silent));
            }
        }
        let mut shown = locked(&self.shown);
        (shown.horizon, shown.hits) = (floor.horizon(), floor.front.desk().brought());
        shown.clock_ahead_ms = floor.front.clock_ahead_ms();
        for quote in floor.learned() {
            shown.quotes.insert(quote.symbol, quote.clone());
            // Nobody listens.
            let _ = self.quotes.send(quote);
        }
    }

    fn take(&mut self, Question { user, name, asked, tell }: Question, floor: &mut Floor) {
        if user.is_none() && !matches!(asked, Asked::Command { .. }) {
            return self.take_direct(asked, tell, floor);
        }
        let file = self.files.of(&asked);
        // Who asked may be gone.
        if file.as_ref().is_some_and(|file| !self.files.has_room_for(file)) {
            return drop(tell.send(Err(Unavailable::ManyFiles)));
        }
        match floor.take(Arrival { sender: EACH_USER, user, order: CommandOrder::Arrival { name }, asked }) {
            Ok(arrival) => {
                self.files.begun(arrival, file);
                self.open.insert(arrival, tell);
            }
            Err(NotTaken::Clock) => drop(tell.send(Ok(BrokerReply::Refused { refusal: Refusal::ClockOff }))),
            Err(why) => drop(tell.send(Err(Unavailable::Busy(why.to_string())))),
        }
    }

    /// Hands the sites what waits for no command. Who asked may give up before they answer, so it is counted here until they do.
    fn take_direct(&mut self, asked: Asked, tell: Tell, floor: &mut Floor) {
        let most = if matches!(asked, Asked::Person { .. }) { PEOPLE_MAX } else { DIRECT_MAX };
        let number = if self.direct.len() < most { floor.ask_sites(asked) } else { None };
        match number {
            Some(number) => drop(self.direct.insert(number, tell)),
            // Who asked may be gone.
            None => drop(tell.send(Err(Unavailable::Busy("the sites have not answered it yet".into())))),
        }
    }

    /// A command has its reply; it may not be one of these.
    pub(super) fn tell(&mut self, told: &Told) {
        self.files.over(told.arrival);
        let Some(tell) = self.open.remove(&told.arrival) else { return };
        let late = || {
            Unavailable::Silent(
                "it was given up, because the previous command is missing, or the sites reject it".into(),
            )
        };
        let reply = told.reply.clone().ok_or_else(late);
        // Who asked may be gone.
        let _ = tell.send(if told.is_unwritten { Err(Unavailable::Unwritten) } else { reply });
    }
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Broker for WebFront {
    fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> BrokerAnswer<'_, BrokerReply> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let ends = || Unavailable::Silent("this front ends".into());
            self.ask.send(Question { user, name, asked, tell }).map_err(|_| ends())?;
            // A wait that is not ended ends by itself.
            let _ = self.waker.wake();
            told.await.unwrap_or_else(|_| Err(ends()))
        })
    }

    fn read_bytes(&self, read: BrokerRead) -> BrokerAnswer<'_, Vec<u8>> {
        Box::pin(async move {
            let (tell, told) = oneshot::channel();
            let seen = locked(&self.shown).horizon;
            self.readers.read(read.to_bytes(), seen, move |answer| drop(tell.send(answer)));
            let read = told.await.unwrap_or_else(|_| Err(NotRead::Silent("this front ends".into())));
            read.map_err(|why| match why {
                NotRead::Busy => Unavailable::Busy(why.to_string()),
                NotRead::Silent(why) => Unavailable::Silent(why),
            })
        })
    }

    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote> {
        locked(&self.shown).quotes.get(&symbol).cloned()
    }

    fn quotes(&self) -> broadcast::Receiver<StockQuote> {
        self.quotes.subscribe()
    }

    fn costs(&self) -> Costs {
        let Shown { hits, clock_ahead_ms, .. } = *locked(&self.shown);
        Costs { hits, cents: hits * HIT_MILLS / 10, clock_ahead_ms }
    }
}

#[cfg(test)]
mod tests;
