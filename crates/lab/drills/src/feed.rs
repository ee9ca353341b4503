//! The market data of a running system, received in all ways at once, over lines that lose; and held against the record.
//!
//! ```text
//!  publishers --> relay: loses, doubles, holds back; cuts a line ----> receivers on both lines | on both lines, late
//!  replayers  -------------------------------------------------------> ... and one by TCP alone; a member's servers
//! ```
//! | module | what |
//! |---|---|
//! | `desk` | a member's own servers, and their traders |
//! | `relay` | the lines on their way |
//! | `listener` | one who receives |
//! | `truth` | what should have been received |

mod desk;
mod listener;
mod relay;
mod truth;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_config::FeedConfig;
use pares_load::{LabError, LabResult, ScratchSystem};
use pares_node::SystemConfig;
use pares_types::{ReplayerId, ShardId};
use serde::Serialize;

pub(crate) use desk::{Desk, DeskReckoning};
use listener::{Heard, Listener, Means};
use relay::{Relay, Way};
pub(crate) use truth::Wrongs;
use truth::{Market, Sessions};

/// Receivers on both lines; the last of them joins on request. One more takes everything by TCP.
const ON_LINES: usize = 3;
/// How long receivers may take to have everything once all is quiet.
const PATIENCE: Duration = Duration::from_secs(60);

/// Receivers hear their lines at some of these: below what kernels give to those who name none.
const EAR_PORTS: std::ops::Range<u16> = 20_000..31_000;

/// Where one receiver hears its lines, by shard.
type Ears = Vec<(SocketAddr, SocketAddr)>;

/// Lines, and those who receive.
pub(crate) struct Reception {
    shards: Vec<ShardId>,
    relay: Relay,
    /// Of receivers that have not begun.
    ears: Vec<Ears>,
    replayers: Vec<SocketAddr>,
    listeners: Vec<Listener>,
}

/// What receivers got of the feed, all together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Reckoning {
    /// Packets that lines lost.
    pub(crate) packets_lost: u64,
    /// Messages that there were, of all shards.
    pub(crate) messages: u64,
    /// Messages that receivers received.
    pub(crate) received: u64,
    /// Snapshots that receivers took.
    pub(crate) snapshots: u64,
    /// What they had wrong.
    #[serde(flatten)]
    pub(crate) wrongs: Wrongs,
    /// What came of the member's servers, if there were any; what books of theirs had wrong is among the above.
    #[serde(flatten)]
    pub(crate) desk: Option<DeskReckoning>,
}

/// Addresses at which so many receivers hear their lines. The late one binds its own long after this: by then the kernel may have given
/// any port above [`EAR_PORTS`] to a process that asked for one.
fn ears(receivers: usize, shards: usize) -> Result<Vec<Ears>, LabError> {
    let count = receivers * shards * 2;
    let begin = EAR_PORTS.start + (std::process::id() % 5_000) as u16;
    let bound = (begin..EAR_PORTS.end).filter_map(|port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok());
    let sockets: Vec<UdpSocket> = bound.take(count).collect();
    let addresses: std::io::Result<Vec<SocketAddr>> = sockets.iter().map(UdpSocket::local_addr).collect();
    let addresses = addresses.map_err(LabError::io("asking for a port"))?;
    if addresses.len() < count {
        return Err(LabError::Failed("no ports are free for the receivers".into()));
    }
    let pairs: Vec<(SocketAddr, SocketAddr)> = addresses.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    Ok(pairs.chunks(shards).map(<[_]>::to_vec).collect())
}

impl Reception {
    /// Hears the lines before any publisher sends; the settings of a system that does. Each line loses so many percent of its packets.
    ///
    /// # Errors
    /// If there are no ports for it.
    pub(crate) fn prepare(
        config: SystemConfig,
        lost_percent: u64,
        seed: u64,
    ) -> Result<(SystemConfig, Self), LabError> {
        let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
        let ports = relay::free_ports(shards.last().map_or(0, |shard| shard.0) + 1)?;
        let [line_a, line_b] = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let replayers = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); 2];
        let feed = FeedConfig { line_a, line_b, replayers, ..FeedConfig::default() };
        let ears = ears(ON_LINES, shards.len())?;
        let relay = Relay::start(ports, ways(&shards, &ears), lost_percent, seed)?;
        let (replayers, listeners) = (Vec::new(), Vec::new());
        let reception = Self { shards, relay, ears, replayers, listeners };
        Ok((SystemConfig { feed: Some(feed), ..config }, reception))
    }

    /// Receivers begin, all but the late one.
    ///
    /// # Errors
    /// If one cannot receive, or the system has not said where its replayers are.
    pub(crate) fn begin(&mut self, system: &ScratchSystem) -> LabResult {
        let address = |id: ReplayerId| {
            let path = system.supervisor.layout().replayer_address(id);
            let text = std::fs::read_to_string(&path).map_err(LabError::io("asking where a replayer is"))?;
            text.trim().parse().map_err(|_| LabError::Failed(format!("{} holds no address", path.display())))
        };
        self.replayers = system.supervisor.config().replayer_ids().map(address).collect::<Result<_, _>>()?;
        while self.ears.len() > 1 {
            let ears = self.ears.swap_remove(0);
            self.join(Some(ears))?;
        }
        self.join(None)
    }

    /// The late receiver begins, if it has not.
    ///
    /// # Errors
    /// If it cannot receive.
    pub(crate) fn join_late(&mut self) -> LabResult {
        self.ears.pop().map_or(Ok(()), |ears| self.join(Some(ears)))
    }

    fn join(&mut self, lines: Option<Ears>) -> LabResult {
        let means = Means { shards: self.shards.clone(), lines, replayers: self.replayers.clone() };
        self.listeners.push(Listener::start(&means)?);
        Ok(())
    }

    /// A member's servers begin, with so many MiB in their stream.
    ///
    /// # Errors
    /// If they do not come up.
    pub(crate) fn begin_desk(&self, mib: u64) -> Result<Desk, LabError> {
        Desk::start(&self.shards, &self.replayers, mib)
    }

    /// Whether each line is cut.
    pub(crate) fn cut(&self) -> &[AtomicBool; 2] {
        &self.relay.cut
    }

    /// Waits until receivers, and a member's traders, have everything, and holds what they heard against the record. Nothing more is asked of
    /// the system.
    ///
    /// # Errors
    /// If the record cannot be read, or a receiver failed.
    pub(crate) fn finish(
        self,
        system: &mut ScratchSystem,
        desk: Option<Desk>,
    ) -> Result<Reckoning, LabError> {
        system.pass(Duration::from_secs(2), |_| Ok(()))?;
        let truth = truth::of_record(system.supervisor.layout(), system.supervisor.config())?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && !self.has_all(&truth) {
            system.pass(Duration::from_millis(50), |_| Ok(()))?;
        }
        let desk = desk.map(|desk| end_desk(desk, system, &Market::of(&truth))).transpose()?;
        let mut reckoning = self.reckon(&truth)?;
        if let Some(desk) = desk {
            reckoning.wrongs.add(&desk.wrongs);
        }
        Ok(Reckoning { desk, ..reckoning })
    }

    fn reckon(self, truth: &BTreeMap<ShardId, Sessions>) -> Result<Reckoning, LabError> {
        let messages = truth.values().filter_map(Sessions::last).map(|(_, next)| next - 1).sum();
        let mut reckoning = Reckoning { messages, ..Reckoning::default() };
        let nothing = Heard::default();
        for listener in self.listeners {
            let heard = listener.stop()?;
            for (shard, sessions) in truth {
                let of = heard.get(shard).unwrap_or(&nothing);
                reckoning.wrongs.add(&sessions.judge(of));
                reckoning.received += of.messages.len() as u64;
                reckoning.snapshots += of.snapshots;
            }
        }
        reckoning.packets_lost = self.relay.stop();
        Ok(reckoning)
    }

    fn has_all(&self, truth: &BTreeMap<ShardId, Sessions>) -> bool {
        let ends = || truth.iter().filter_map(|(shard, sessions)| Some((*shard, sessions.last()?)));
        let has =
            |listener: &Listener| ends().all(|(shard, (session, next))| listener.has(shard, session, next));
        self.listeners.iter().all(has)
    }
}

/// Where each line's packets of each shard are sent on to.
fn ways(shards: &[ShardId], ears: &[Ears]) -> Vec<Way> {
    let way = |line: usize, index: usize, shard: &ShardId| {
        let to = ears.iter().map(|ear| if line == 0 { ear[index].0 } else { ear[index].1 });
        Way { line, shard: shard.0, to: to.collect() }
    };
    let of_line = |line| shards.iter().enumerate().map(move |(index, shard)| way(line, index, shard));
    (0..2).flat_map(of_line).collect()
}

/// Traders fall silent, and have everything.
fn end_desk(mut desk: Desk, system: &mut ScratchSystem, market: &Market) -> Result<DeskReckoning, LabError> {
    desk.hush();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE && !desk.has_all(&market.last) {
        desk.tick();
        system.pass(Duration::from_millis(50), |_| Ok(()))?;
    }
    desk.finish(market)
}
