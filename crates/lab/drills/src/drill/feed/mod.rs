//! Market data while publishers, replayers and lines die. The promise: every receiver gets every message once, or says that it does not; nothing that it calls
//! current is wrong; in the end its books are the market's.
//!
//! ```text
//!  members: trade .................................................
//!  system:        | kill publisher 0 | both | replayer 1 | ...         each kill at a random moment
//!  relay:    loses, doubles, holds back; cuts line A, then line B
//!  receivers: both lines | both lines, late | TCP alone                each is held against the record in the end
//! ```

mod listener;
mod relay;
mod truth;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult, Load, LoadPlan, ScratchSystem, setup};
use pares_node::config::FeedConfig;
use pares_node::{NodeId, SystemConfig};
use pares_text::{grouped, progress};
use pares_types::{PublisherId, ReplayerId, ShardId};
use rustix::process::Signal;
use serde::Serialize;

use listener::{Listener, Means};
use relay::{Relay, Way};
use truth::{Sessions, Wrongs};

/// Receivers on both lines; the last of them comes in the middle. One more takes everything by TCP.
const ON_LINES: usize = 3;
/// How long receivers may take to have everything once all is quiet.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a line is cut.
const CUT: Duration = Duration::from_millis(400);

/// Arguments of `pares drill feed`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// What each line loses, percent: one run for each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 20], value_parser = clap::value_parser!(u64).range(0..=90))]
    loss: Vec<u64>,
    /// How long each run lasts, seconds
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(2..=3_600))]
    seconds: u64,
    /// Between two blows, milliseconds
    #[arg(long, default_value_t = 700, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    every_ms: u64,
    /// The load and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// What a run gave.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Run {
    /// Percent of each line's packets.
    loss: u64,
    /// Publishers, replayers and lines that were killed or cut.
    blows: u64,
    /// Packets that lines lost.
    packets_lost: u64,
    /// Messages that there were, of all shards.
    messages: u64,
    /// Messages that receivers were told.
    received: u64,
    /// Snapshots that receivers took.
    snapshots: u64,
    /// Books that were called current, and were not what they should be.
    wrong_while_current: u64,
    /// Books that differ in the end.
    books_differing: u64,
    /// Messages that never came, without a word.
    messages_missing: u64,
    /// Messages that were others than the record gives.
    messages_differing: u64,
}

/// What the drill gave.
#[derive(Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    wrong_while_current: u64,
    books_differing: u64,
    messages_missing: u64,
    messages_differing: u64,
    runs: Vec<Run>,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or a receiver was told something wrong, or not everything.
pub(super) fn run(args: &Args) -> LabResult {
    let runs = args.loss.iter().map(|&loss| measure(args, loss)).collect::<Result<Vec<Run>, _>>()?;
    let sum = |of: fn(&Run) -> u64| runs.iter().map(of).sum();
    let outcome = Outcome {
        drill: "feed",
        wrong_while_current: sum(|run| run.wrong_while_current),
        books_differing: sum(|run| run.books_differing),
        messages_missing: sum(|run| run.messages_missing),
        messages_differing: sum(|run| run.messages_differing),
        runs,
    };
    if args.load.json {
        pares_text::say!("{}", serde_json::to_string(&outcome).expect("plain numbers"));
    } else {
        outcome.runs.iter().for_each(tell);
    }
    let wrong = [
        outcome.wrong_while_current,
        outcome.books_differing,
        outcome.messages_missing,
        outcome.messages_differing,
    ];
    match wrong.iter().sum::<u64>() {
        0 => Ok(()),
        _ => Err(LabError::Failed("a receiver was told something wrong, or not everything".into())),
    }
}

fn tell(run: &Run) {
    pares_text::say!(
        "lines lose {} %: {} blows, {} packets lost",
        run.loss,
        run.blows,
        grouped(run.packets_lost)
    );
    pares_text::say!("  messages, received       {}, {}", grouped(run.messages), grouped(run.received));
    pares_text::say!("  snapshots                {}", grouped(run.snapshots));
    pares_text::say!("  wrong while current      {}", run.wrong_while_current);
    pares_text::say!("  books differing          {}", run.books_differing);
    pares_text::say!("  messages missing, others {}, {}", run.messages_missing, run.messages_differing);
}

/// A run: what is under way.
struct Drill {
    system: ScratchSystem,
    relay: Relay,
    listeners: Vec<Listener>,
    late: Means,
    blows: u64,
}

fn measure(args: &Args, loss: u64) -> Result<Run, LabError> {
    let config = args.load.config();
    let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
    let highest = shards.last().map_or(0, |shard| shard.0);
    let ports = relay::free_ports(highest + 1)?;
    let [line_a, line_b] = ports.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let replayers = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0)); 2];
    let feed = FeedConfig { line_a, line_b, replayers, ..FeedConfig::default() };
    let config = SystemConfig { feed: Some(feed), ..config };
    let mut drill = Drill::start(&config, &shards, ports, (loss, args))?;
    let plan = LoadPlan::new(drill.system.supervisor.config(), drill.system.addresses()?, args.load.rate);
    let load = Load::start(LoadPlan { seed: args.load.seed, ..plan })?;
    drill.strike(args)?;
    load.finish()?;
    drill.judge(loss)
}

/// Addresses at which one receiver hears its lines, by shard.
fn ears(shards: usize) -> Result<Vec<(SocketAddr, SocketAddr)>, LabError> {
    let free = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let sockets: std::io::Result<Vec<[UdpSocket; 2]>> = (0..shards).map(|_| Ok([free()?, free()?])).collect();
    let sockets = sockets.map_err(LabError::io("finding ports for a receiver"))?;
    let address = |socket: &UdpSocket| socket.local_addr().map_err(LabError::io("asking for a port"));
    sockets.iter().map(|[a, b]| Ok((address(a)?, address(b)?))).collect()
}

impl Drill {
    fn start(
        config: &SystemConfig,
        shards: &[ShardId],
        ports: [u16; 2],
        (loss, args): (u64, &Args),
    ) -> Result<Self, LabError> {
        let ears: Vec<_> = (0..ON_LINES).map(|_| ears(shards.len())).collect::<Result<_, _>>()?;
        let ways = (0..2).flat_map(|line| {
            shards.iter().enumerate().map({
                let ears = &ears;
                move |(index, shard)| {
                    let to = ears.iter().map(|ear| if line == 0 { ear[index].0 } else { ear[index].1 });
                    Way { line, shard: shard.0, to: to.collect() }
                }
            })
        });
        let relay = Relay::start(ports, ways.collect(), loss, args.load.seed ^ loss)?;
        let system = ScratchSystem::start(config, args.load.dir.clone())?;
        let address = |id: ReplayerId| {
            let path = system.supervisor.layout().replayer_address(id);
            let text = std::fs::read_to_string(&path).map_err(LabError::io("asking where a replayer is"))?;
            text.trim().parse().map_err(|_| LabError::Failed(format!("{} holds no address", path.display())))
        };
        let replayers: Vec<SocketAddr> =
            config.replayer_ids().map(address).collect::<Result<_, LabError>>()?;
        let means = |lines| Means { shards: shards.to_vec(), lines, replayers: replayers.clone() };
        let mut all: Vec<Means> = ears.into_iter().map(|ears| means(Some(ears))).collect();
        let late = all.pop().expect("there are receivers on lines");
        all.push(means(None));
        let listeners = all.iter().map(Listener::start).collect::<Result<_, _>>()?;
        Ok(Self { system, relay, listeners, late, blows: 0 })
    }

    /// Kills and cuts for as long as the run lasts.
    fn strike(&mut self, args: &Args) -> LabResult {
        let begun = Instant::now();
        let lasts = Duration::from_secs(args.seconds);
        let bar = progress::seconds("drilling", args.seconds);
        while begun.elapsed() < lasts {
            self.pass(Duration::from_millis(args.every_ms))?;
            self.blow(self.blows ^ args.load.seed)?;
            if self.listeners.len() == ON_LINES && begun.elapsed() > lasts / 2 {
                self.listeners.push(Listener::start(&self.late)?);
            }
            bar.set_position(begun.elapsed().as_secs());
        }
        bar.finish_and_clear();
        self.relay.cut.iter().for_each(|cut| cut.store(false, Ordering::Relaxed));
        Ok(())
    }

    fn pass(&mut self, time: Duration) -> LabResult {
        let begun = Instant::now();
        while begun.elapsed() < time {
            self.system.supervisor.tick();
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn blow(&mut self, which: u64) -> LabResult {
        self.blows += 1;
        let publisher = |id| NodeId::Publisher(PublisherId(id));
        let replayer = |id| NodeId::Replayer(ReplayerId(id));
        let victims = match which % 7 {
            0 => vec![publisher(0)],
            1 => vec![publisher(1)],
            2 => vec![publisher(0), publisher(1)],
            3 => vec![replayer(0)],
            4 => vec![replayer(1), publisher(1)],
            line => {
                let cut = &self.relay.cut[usize::from(line == 6)];
                cut.store(true, Ordering::Relaxed);
                self.pass(CUT)?;
                self.relay.cut.iter().for_each(|cut| cut.store(false, Ordering::Relaxed));
                return Ok(());
            }
        };
        for victim in victims {
            // One that is dead still is as good as killed.
            let _ = self.system.supervisor.signal(victim, Signal::KILL);
        }
        Ok(())
    }

    /// Waits until receivers have everything, and holds what they heard against the record.
    fn judge(mut self, loss: u64) -> Result<Run, LabError> {
        self.pass(Duration::from_secs(2))?;
        let (layout, config) =
            (self.system.supervisor.layout().clone(), self.system.supervisor.config().clone());
        let truth = truth::of_record(&layout, &config)?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && !self.has_all(&truth) {
            self.pass(Duration::from_millis(50))?;
        }
        let mut run = Run { loss, blows: self.blows, ..Run::default() };
        let nothing = listener::Heard::default();
        run.messages = truth.values().filter_map(Sessions::last).map(|(_, next)| next - 1).sum();
        for listener in self.listeners {
            let heard = listener.stop()?;
            for (shard, sessions) in &truth {
                let of = heard.get(shard).unwrap_or(&nothing);
                run.add(sessions.judge(of));
                run.received += of.messages.len() as u64;
                run.snapshots += of.snapshots;
            }
        }
        run.packets_lost = self.relay.stop();
        Ok(run)
    }

    fn has_all(&self, truth: &BTreeMap<ShardId, Sessions>) -> bool {
        let ends = || truth.iter().filter_map(|(shard, sessions)| Some((*shard, sessions.last()?)));
        let has =
            |listener: &Listener| ends().all(|(shard, (session, next))| listener.has(shard, session, next));
        self.listeners.iter().all(has)
    }
}

impl Run {
    fn add(&mut self, wrongs: Wrongs) {
        self.wrong_while_current += wrongs.wrong_while_current;
        self.books_differing += wrongs.books_differing;
        self.messages_missing += wrongs.messages_missing;
        self.messages_differing += wrongs.messages_differing;
    }
}
