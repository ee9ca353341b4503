//! A member's own servers beside the exchange, killed and wiped while its traders talk and look at books.
//!
//! Streams of two servers could agree with each other and be wrong for a trader that moved between them. So each trader notes every item that
//! it receives, wherever it is signed on, and in the end all of them, and the logs of both servers, are compared with each other; and every
//! book that a trader saw called current must be one that there was.
//!
//! ```text
//!  replayers --TCP--> member server 0 --+--> traders: talk, note items and books
//!                     member server 1 --+
//! ```
//! | module | what |
//! |---|---|
//! | `trader` | one who talks and notes |
//! | `judge` | what they noted, held against each other and against the market |

mod judge;
mod trader;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_load::{LabError, LabResult, ScratchDirectory, ScratchSystem, own_program};
use pares_log::Offset;
use pares_member::config::{stream, submissions};
use pares_member::market::MarketConfig;
use pares_member::up::MemberSupervisor;
use pares_member::{MemberConfig, TraderClient};
use pares_node::{HostWorld, Layout};
use pares_os::CountersReader;
use pares_os::clock::now_ns;
use pares_roles::tail::Tail;
use pares_types::{Position, ShardId};
use rustix::process::Signal;

pub(crate) use judge::DeskReckoning;
use judge::Transfer;
use trader::DeskTrader;

use super::truth::{BookKey, Market};

/// Both are of one member.
const SERVERS: u16 = 2;
/// Every other one begins at the other server.
const TRADERS: u32 = 4;
/// The author of what there is before a trader talks.
const AUTHOR: TraderId = TraderId(TRADERS + 1);
/// The longest text that there may be.
const LONG: usize = 8_188;
/// Texts that were submitted and are not in the stream yet.
const AHEAD_MAX: usize = 256;
/// How long the quiet before a transfer is measured.
const BEFORE: Duration = Duration::from_secs(2);
/// Of what a dead server had submitted the other one orders the rest in that time, before the disk is wiped: with a quorum of 1 the
/// disk's loss may take what no peer has read, and then everything restarts, which is no transfer.
const READ_BY_PEER: Duration = Duration::from_millis(200);
/// How long servers may take to come up, to be level, to be filled.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member's servers, and its traders.
pub(crate) struct Desk {
    supervisor: MemberSupervisor,
    traders: Vec<DeskTrader>,
    transfer: Option<Transfer>,
    _dir: ScratchDirectory,
}

impl Desk {
    /// Starts servers that take the market from those replayers, puts so many MiB into their stream, and lets traders in.
    ///
    /// # Errors
    /// If a server does not come up, or nobody is let in.
    pub(super) fn start(shards: &[ShardId], replayers: &[SocketAddr], mib: u64) -> Result<Self, LabError> {
        let dir = ScratchDirectory::create(None)?;
        let market = MarketConfig {
            shards: shards.iter().map(|shard| shard.0).collect(),
            requests: replayers.to_vec(),
            tcp: replayers.to_vec(),
            ..MarketConfig::default()
        };
        let config = MemberConfig { market: Some(market), ..MemberConfig::local(SERVERS.into()) };
        let layout = Layout::new(dir.path().join("desk"));
        let is_stopped = AtomicBool::new(false);
        let supervisor = MemberSupervisor::start(&own_program()?, layout, &config, &is_stopped)?;
        let mut desk = Self { supervisor, traders: Vec::new(), transfer: None, _dir: dir };
        let address = |server| pares_member::world::address(desk.supervisor.layout(), server);
        let servers: Result<Vec<SocketAddr>, _> = (0..SERVERS).map(address).collect();
        let mut servers = servers.map_err(LabError::io("asking where a member server is"))?;
        fill(&servers, mib)?;
        for trader in 1..=TRADERS {
            desk.traders.push(DeskTrader::start(&servers, TraderId(trader))?);
            servers.rotate_left(1);
        }
        Ok(desk)
    }

    /// Looks after its servers.
    pub(crate) fn tick(&mut self) {
        // The drill kills them itself; one that does not come back is missed in the end.
        self.supervisor.tick();
    }

    /// Kills a server, if it is not dead still.
    pub(crate) fn kill(&mut self, server: u16) {
        let _ = self.supervisor.signal(server, Signal::KILL);
    }

    /// Kills a server, wipes its disk, and has it filled by the other one, while traders are served there.
    ///
    /// # Errors
    /// If servers do not become level, or the disk cannot be wiped.
    pub(crate) fn transfer(&mut self, system: &mut ScratchSystem) -> LabResult {
        let some = self.count(0, "next").max(self.count(1, "next"));
        self.until("level", |desk| {
            desk.tick_with(system);
            desk.is_level(some)
        })?;
        let at_0 = self.traders.iter().filter(|trader| trader.heard().server == Some(0)).count();
        let (gives, takes) = if 2 * at_0 >= self.traders.len() { (0, 1) } else { (1, 0) };
        let (from_ns, begun) = (now_ns(), Instant::now());
        self.until("quiet", |desk| {
            desk.tick_with(system);
            begun.elapsed() > BEFORE
        })?;
        let (before, all) = (from_ns..now_ns(), self.count(takes, "next"));
        self.wipe(takes)?;
        let started_ns = now_ns();
        self.await_filled(takes, all, system)?;
        let during = started_ns..now_ns();
        let items = self.count(takes, "filled");
        self.transfer = Some(Transfer { gives, items, before, during });
        Ok(())
    }

    /// Waits until a server's new log has all below that position: what it counts it shows once a second.
    fn await_filled(&mut self, server: u16, all: u64, system: &mut ScratchSystem) -> LabResult {
        let mut log = Tail::new(&HostWorld::new(self.supervisor.layout())?, stream(server), Offset::START);
        let mut next = Position(0);
        self.until("filled", |desk| {
            desk.tick_with(system);
            log.look();
            while let Ok(Some(record)) = log.next() {
                next = OrderedItem::read(record.payload).map_or(next, |item| item.position.next());
            }
            next.0 >= all
        })
    }

    fn tick_with(&mut self, system: &mut ScratchSystem) {
        system.supervisor.tick();
        self.tick();
    }

    /// Kills a server, and leaves nothing of its logs.
    fn wipe(&mut self, server: u16) -> LabResult {
        self.kill(server);
        let layout = self.supervisor.layout().clone();
        let logs = [stream(server), submissions(server)].map(|log| layout.log(log));
        let is_written = || logs.iter().any(|log| matches!(pares_log::writing_process(log), Ok(Some(_))));
        // It is not looked after meanwhile: it stays dead.
        self.until("dead", |_| !is_written())?;
        std::thread::sleep(READ_BY_PEER);
        for log in &logs {
            std::fs::remove_dir_all(log).map_err(LabError::io("wiping a member server's disk"))?;
        }
        // What the dead one counted is not of the next one.
        std::fs::remove_file(layout.counters(&format!("member-{server}")))
            .map_err(LabError::io("removing a member server's counters"))
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) -> LabResult {
        let begun = Instant::now();
        while !done(self) {
            if begun.elapsed() > PATIENCE {
                return Err(LabError::Failed(format!("member servers are not {what} after {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }

    /// Whether both servers serve and have all below that position. What they count they show once a second.
    fn is_level(&self, at_least: u64) -> bool {
        (0..SERVERS).all(|server| self.supervisor.is_up(server) && self.count(server, "next") >= at_least)
    }

    fn count(&self, server: u16, name: &str) -> u64 {
        let path = self.supervisor.layout().counters(&format!("member-{server}"));
        CountersReader::open(&path).ok().and_then(|counters| counters.get(name)).unwrap_or(0)
    }

    /// Traders fall silent.
    pub(super) fn hush(&self) {
        self.traders.iter().for_each(DeskTrader::hush);
    }

    /// Whether every trader has all that there is, and books as they are in the end.
    pub(super) fn has_all(&self, last: &[(BookKey, u32)]) -> bool {
        let next = self.count(0, "next");
        let is_over =
            next == self.count(1, "next") && (0..SERVERS).all(|server| self.supervisor.is_up(server));
        is_over && self.traders.iter().all(|trader| trader.has(next) && trader.shows(last))
    }

    /// Ends it: what traders received, compared with each other, with both servers' logs and with the market.
    ///
    /// # Errors
    /// If a log cannot be read.
    pub(super) fn finish(mut self, market: &Market) -> Result<DeskReckoning, LabError> {
        let heard = self.traders.drain(..).map(DeskTrader::stop).collect::<Vec<_>>();
        self.supervisor.stop();
        judge::judge(self.supervisor.layout(), &heard, self.transfer.as_ref(), market)
    }
}

/// Puts so many MiB into the stream.
fn fill(servers: &[SocketAddr], mib: u64) -> LabResult {
    let client = TraderClient::connect(servers, AUTHOR);
    let mut client = client.map_err(LabError::io("signing the author on"))?;
    let (text, mut left, begun) = ("x".repeat(LONG), (mib << 20).div_ceil(LONG as u64), Instant::now());
    while left > 0 || client.unplaced() > 0 {
        while left > 0 && client.unplaced() < AHEAD_MAX {
            client.submit(&ItemBody::Message { to: TraderId(0), text: &text }).expect("no text is that long");
            left -= 1;
        }
        client.poll(|_| {});
        client.wait(Duration::from_millis(5));
        if begun.elapsed() > PATIENCE {
            return Err(LabError::Failed("a member's stream cannot be filled".into()));
        }
    }
    Ok(())
}
