//! `pares broker front`: a front in a process of its own.
//!
//! ```text
//!   loaders --lines--> [ port | floor: the front's rules | desk links | site link ] --frames--> sites, desks
//! ```
//! One thread does it all, without ever waiting for one of them: it looks which sockets have something, tells the rules, and sends what they want sent. A front keeps nothing on a disk. When it dies
//! its users go to another front with their sessions, and what it had under way is asked for there once more.

mod clock_said;
mod files;
mod loaders;
#[cfg(test)]
mod old_stamps;
mod web;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use pares_broker::dump_path;
use pares_link::Door;
use pares_operator::init::{CLIENT, OPERATOR};
use pares_os::{descriptors, process};
use pares_site::Access;
use pares_wice::codec::Coded as _;

use self::clock_said::ClockSaid;
use self::web::WebCalls;
use crate::children::sites_of;
use crate::desk::DeskLinks;
use crate::dump::{Dumps, WrittenLog, is_running, remove_left_parts};
use crate::entrance::Entrance;
use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::floor::{Executing, Floor, Quoting, Told};
use crate::link::{self, Port, SocketOwner};
use crate::on_loopback;
use crate::readers::Readers;
use crate::site_link::SiteLink;

const SITES: SocketOwner = SocketOwner(0);
const DESKS: SocketOwner = SocketOwner(1);
const LOADERS: SocketOwner = SocketOwner(2);
const WAKER: Token = Token(usize::MAX);
/// Threads that read.
const READERS: usize = 2;
/// Descriptors for sites, desks, logs, and what the process itself needs.
const RESERVE: u64 = 128;
/// Loaders that are connected at a time, if there are descriptors for so many.
const LOADERS_MAX: usize = 8_192;
/// Commands without a reply that a front holds, of loaders and of people.
const OPEN_MAX: usize = 32_768;
/// Dumps of a user, and of everything: one that is written, and one that waits.
const DUMPS_OF_MAX: usize = 2;
/// Fronts get their numbers, and have heads of logs kept, as clients of sites from here on, drawn at random; their users are clients below.
const BEGINNERS: u64 = 1 << 61;
/// A front that has no number for so long says what it waits for; who finds no site for so long gives up.
const QUIET: Duration = Duration::from_secs(3);
/// Between two tries to connect to any site.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// Longest wait for something to do.
const WAIT_MAX: Duration = Duration::from_millis(2);

/// Arguments of `pares broker front`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The directory of `sites.toml` and certificates
    #[arg(long, default_value = "broker-data")]
    dir: PathBuf,
    /// The address for loaders' commands, as lines of text
    #[arg(long, default_value = "127.0.0.1:4600", value_parser = on_loopback)]
    loaders: SocketAddr,
    /// The address of the pages and the HTTP interface [default: none]
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    entrance: Entrance,
    /// A quote desk's address; repeatable
    #[arg(long = "desk", value_name = "ADDRESS", required = true)]
    desks: Vec<SocketAddr>,
    /// The directory for DUMPLOG
    #[arg(long, value_name = "DIR", default_value = "broker-logs")]
    logs: PathBuf,
    /// Trust this clock even if it differs from the quote server's time stamps by more than 30 s
    #[arg(long)]
    trust_clock: bool,
    /// End when this parent process ends
    #[arg(long, hide = true)]
    with_parent: Option<u32>,
}

/// Serves until Ctrl-C.
///
/// # Errors
/// If it cannot listen, or there are no sites there.
pub fn run(args: &Args) -> BrokerageResult {
    crate::children::end_with(args.with_parent)?;
    args.http.map_or(Ok(()), |http| args.entrance.check(http))?;
    let stop = process::stop_on_signals().map_err(BrokerageError::io("installing a signal handler"))?;
    let mut front = FrontProcess::open(args)?;
    pares_text::tell!("front for loaders at {}", args.loaders);
    if let Some(http) = args.http {
        pares_text::tell!("pages at {}://{http}", args.entrance.scheme());
    }
    let (began, mut is_said) = (Instant::now(), false);
    while !stop.load(Ordering::Relaxed) {
        front.turn()?;
        if !is_said && began.elapsed() >= QUIET {
            is_said = true;
            if front.floor.front.number().is_none() {
                pares_text::tell!(
                    "no site has answered yet: commands wait until one does (`pares site status`)"
                );
            }
        }
    }
    Ok(())
}

/// The sites of the system in `dir`, as their clients see them.
pub(crate) fn access(dir: &Path) -> BrokerageResult<Access> {
    Access::named(sites_of(dir)?, dir, &[CLIENT, OPERATOR]).map_err(failed)
}

/// Waits a moment until one of them accepts connections.
///
/// # Errors
/// If none does: how the broker is started.
pub(crate) fn reached(access: &Access, dir: &Path) -> BrokerageResult {
    let (began, mut is_said) = (Instant::now(), false);
    while let Some(why) = pares_operator::sites::unreachable(access) {
        if began.elapsed() >= QUIET {
            let dir = dir.display();
            return Err(failed(format!(
                "no site accepts connections ({why}): `pares broker up --dir {dir}` starts the broker"
            )));
        }
        if !std::mem::replace(&mut is_said, true) {
            pares_text::tell!("no site accepts connections; trying for {QUIET:?}");
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

/// The doors of all of them.
pub(crate) fn doors(access: &Access) -> BrokerageResult<Vec<Door>> {
    let sites = pares_operator::sites::all(&access.config);
    sites.into_iter().map(|site| access.door(site).map_err(failed)).collect()
}

/// A client of the sites that is no user, and that no other is.
pub(crate) fn drawn_client() -> u64 {
    BEGINNERS + (crate::drawn() % BEGINNERS)
}

/// See the [module](self).
struct FrontProcess {
    poll: Poll,
    events: Events,
    floor: Floor,
    loaders: loaders::Loaders,
    logs: PathBuf,
    dumps: Dumps,
    /// Dumps that are being written, or wait: they are answered when the file is there.
    dumping: BTreeMap<u64, Told>,
    readers: Readers,
    /// What was read for the front.
    looked: (Sender<Looked>, Receiver<Looked>),
    waker: Arc<Waker>,
    web: Option<WebCalls>,
    clock_said: ClockSaid,
}

/// The number of a read of the front's, and the answer; none if no site has answered.
type Looked = (u64, Option<Vec<u8>>);

impl FrontProcess {
    fn open(args: &Args) -> BrokerageResult<Self> {
        let access = access(&args.dir)?;
        std::fs::create_dir_all(&args.logs)
            .map_err(BrokerageError::io(format!("making {}", args.logs.display())))?;
        remove_left_parts(&args.logs, is_running);
        let count_max = descriptors::connections_within(descriptors::raise_limit(), RESERVE, LOADERS_MAX);
        let watching = || BrokerageError::io("watching sockets");
        let poll = Poll::new().map_err(watching())?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(watching())?);
        let doors = doors(&access)?;
        let link = SiteLink::new(&access, poll.registry(), SITES)?;
        let desks = DeskLinks::new(&args.desks, poll.registry(), DESKS).map_err(watching())?;
        let port = Port::bind(args.loaders, poll.registry(), LOADERS, count_max);
        let port = port.map_err(BrokerageError::io(format!("listening at {}", args.loaders)))?;
        let mut floor = Floor::new(Executing::Sites(link), Quoting::Desks(desks), drawn_client());
        (floor.open_max, floor.dumps_of_max) = (OPEN_MAX, DUMPS_OF_MAX);
        if args.trust_clock {
            floor.front.trust_clock();
        }
        Ok(Self {
            floor,
            clock_said: ClockSaid::of_trusted(args.trust_clock),
            poll,
            events: Events::with_capacity(1_024),
            loaders: loaders::Loaders::at(port),
            logs: args.logs.clone(),
            dumps: Dumps::of(doors.clone()),
            dumping: BTreeMap::new(),
            readers: Readers::start(READERS, &doors).map_err(BrokerageError::io("starting readers"))?,
            looked: channel(),
            web: match args.http {
                Some(http) => Some(web::serve(http, &args.entrance, Arc::clone(&waker), &doors, &args.logs)?),
                None => None,
            },
            waker,
        })
    }

    fn turn(&mut self) -> BrokerageResult {
        link::wait(&mut self.poll, &mut self.events, Some(WAIT_MAX))
            .map_err(BrokerageError::io("waiting for sockets"))?;
        for event in &self.events {
            match SocketOwner::of(event.token()) {
                _ if event.token() == WAKER => {}
                (LOADERS, number) => self.loaders.port.wake(number),
                (owner, number) => self.floor.wake(owner == SITES, number),
            }
        }
        self.look();
        (self.floor.dumps_max, self.floor.dumps_written) = (self.dumps.room(), self.dumps.users());
        self.loaders.turn(&mut self.floor);
        if let Some(web) = &mut self.web {
            web.turn(&mut self.floor);
        }
        for told in self.floor.turn()? {
            self.told(told);
        }
        if let Some((ticket, written)) = self.dumps.progress() {
            self.dumped(ticket, written);
        }
        if let Some(said) = self.clock_said.line(self.floor.front.clock_ahead_ms()) {
            pares_text::tell!("{said}");
        }
        self.loaders.note(&mut self.floor);
        self.floor.flush();
        self.loaders.flush(&mut self.floor);
        Ok(())
    }

    /// A command has its reply; that of a dump is sent when the file is there.
    fn told(&mut self, told: Told) {
        let named = told.dump().and_then(|command| Some((command.user.clone(), command.file.clone()?)));
        let Some((user, name)) = named else { return self.tell(&told) };
        let path = self.logs.join(dump_path(user.as_ref(), &name));
        self.dumps.push(told.arrival, user, path);
        self.dumping.insert(told.arrival, told);
    }

    fn dumped(&mut self, ticket: u64, written: BrokerageResult<WrittenLog>) {
        let Some(mut told) = self.dumping.remove(&ticket) else { return };
        if let Err(error) = written {
            pares_text::tell!("a log was not written: {error}");
            told.is_unwritten = true;
        }
        self.tell(&told);
    }

    fn tell(&mut self, told: &Told) {
        self.loaders.tell(told, &mut self.floor);
        if let Some(web) = &mut self.web {
            web.tell(told);
        }
    }

    /// Reads what the front wants read, on a thread, and tells it what was.
    fn look(&mut self) {
        for (number, answer) in self.looked.1.try_iter().collect::<Vec<_>>() {
            self.floor.looked(number, answer.as_deref());
        }
        for (number, read) in self.floor.looks() {
            let (tell, waker) = (self.looked.0.clone(), Arc::clone(&self.waker));
            self.readers.read(read.to_bytes(), self.floor.horizon(), move |answer| {
                // A front that has ended receives nothing.
                let _ = tell.send((number, answer.ok()));
                let _ = waker.wake();
            });
        }
    }
}
