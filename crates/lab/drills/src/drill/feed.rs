//! Market data while publishers, replayers and lines die. The promise: every receiver gets every message once, or says that it does not; nothing that it calls
//! current is wrong; in the end its books are the market's.
//!
//! ```text
//!  members: trade .................................................
//!  system:        | kill publisher 0 | member server 0 | both publishers | replayer 1 | ...
//!  relay:    loses, doubles, holds back; cuts line A, then line B
//!  receivers: both lines | both lines, late | TCP alone                each is held against the record in the end
//!  a member's own servers: its traders talk and look at books          all are held against each other, and books against the record
//!  in the end:    | a member server's disk is wiped; the other one fills it
//! ```

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult, Load, LoadPlan, ScratchSystem, none_of, print_figures, setup};
use pares_node::NodeId;
use pares_text::progress;
use pares_types::{PublisherId, ReplayerId};
use rustix::process::Signal;
use serde::Serialize;

use crate::feed::{Desk, DeskReckoning, Reception, Reckoning, Wrongs};

/// How long a line is cut.
const CUT: Duration = Duration::from_millis(400);
/// A fault at each of them stands among those of every run.
const MEMBER_SERVERS: [&str; 2] = ["member server 0", "member server 1"];

/// Arguments of `pares drill feed`.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// Packet loss of each line, percent: one run for each
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 20], value_parser = clap::value_parser!(u64).range(0..=90))]
    loss: Vec<u64>,
    /// Time between two faults, milliseconds
    #[arg(long, default_value_t = 700, value_parser = clap::value_parser!(u64).range(100..=60_000))]
    every_ms: u64,
    /// Size of a member's stream before its traders send, MiB
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..=4_096))]
    member_mib: u64,
    /// The load, the system, and the length of each run (--seconds); see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// What a run gave.
#[derive(Clone, Debug, Default, Serialize)]
struct Run {
    /// Percent of each line's packets.
    loss: u64,
    /// How often something was killed or cut.
    faults: u64,
    /// What.
    struck: Vec<&'static str>,
    /// What receivers got of it.
    #[serde(flatten)]
    received: Reckoning,
}

/// What the drill gave.
#[derive(Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    #[serde(flatten)]
    wrongs: Wrongs,
    member_items: u64,
    member_items_missing: u64,
    member_items_differing: u64,
    /// The median of the runs.
    transfer_p99_ratio: f64,
    runs: Vec<Run>,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or a receiver or a trader received something wrong, or not everything.
pub(super) fn run(args: &Args) -> LabResult {
    let runs = args.loss.iter().map(|&loss| measure(args, loss)).collect::<Result<Vec<Run>, _>>()?;
    let outcome = Outcome::of(runs);
    print_figures(args.load.json, &outcome);
    none_of([(outcome.wrong(), "times a receiver or a trader was told something wrong, or not everything")])
}

impl Outcome {
    fn of(runs: Vec<Run>) -> Self {
        let mut wrongs = Wrongs::default();
        runs.iter().for_each(|run| wrongs.add(&run.received.wrongs));
        let desks = || runs.iter().filter_map(|run| run.received.desk.as_ref());
        let member = |of: fn(&DeskReckoning) -> u64| desks().map(of).sum();
        Self {
            drill: "feed",
            wrongs,
            member_items: member(|desk| desk.member_items),
            member_items_missing: member(|desk| desk.member_items_missing),
            member_items_differing: member(|desk| desk.member_items_differing),
            transfer_p99_ratio: median_ratio(&runs),
            runs,
        }
    }

    /// How much was sent wrong, or not at all.
    fn wrong(&self) -> u64 {
        let receivers = self.wrongs.wrong_while_current + self.wrongs.books_differing;
        let messages = self.wrongs.messages_missing + self.wrongs.messages_differing;
        receivers + messages + self.member_items_missing + self.member_items_differing
    }
}

/// The median of the runs' ratios.
fn median_ratio(runs: &[Run]) -> f64 {
    let of = |run: &Run| run.received.desk.map(|desk| desk.transfer_p99_ratio);
    let mut ratios: Vec<f64> = runs.iter().filter_map(of).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied().unwrap_or(0.0)
}

/// A run: what is under way.
struct Drill {
    system: ScratchSystem,
    reception: Reception,
    desk: Desk,
    struck: Vec<&'static str>,
}

fn measure(args: &Args, loss: u64) -> Result<Run, LabError> {
    let (config, mut reception) = Reception::prepare(args.load.config(), loss, args.load.seed ^ loss)?;
    let system = ScratchSystem::start(&config, args.load.dir.clone())?;
    reception.begin(&system)?;
    let desk = reception.begin_desk(args.member_mib)?;
    let mut drill = Drill { system, reception, desk, struck: Vec::new() };
    let plan = LoadPlan::new(drill.system.supervisor.config(), drill.system.addresses()?, args.load.rate);
    let load = Load::start(LoadPlan { seed: args.load.seed, ..plan })?;
    drill.strike(args)?;
    drill.desk.transfer(&mut drill.system)?;
    load.finish()?;
    let Drill { mut system, reception, desk, mut struck } = drill;
    struck.push("a member server, and its disk wiped");
    let received = reception.finish(&mut system, Some(desk))?;
    Ok(Run { loss, faults: struck.len() as u64, struck, received })
}

impl Drill {
    /// Kills and cuts for as long as the run lasts; on a slow machine, until both member servers were killed.
    fn strike(&mut self, args: &Args) -> LabResult {
        let begun = Instant::now();
        let lasts = Duration::from_secs(args.load.seconds);
        let bar = progress::seconds("drilling", args.load.seconds);
        while begun.elapsed() < lasts || MEMBER_SERVERS.iter().any(|server| !self.struck.contains(server)) {
            self.pass(Duration::from_millis(args.every_ms))?;
            self.inject(self.struck.len() as u64 ^ args.load.seed)?;
            if begun.elapsed() > lasts / 2 {
                self.reception.join_late()?;
            }
            bar.set_position(begun.elapsed().as_secs());
        }
        bar.finish_and_clear();
        self.reception.cut().iter().for_each(|cut| cut.store(false, Ordering::Relaxed));
        Ok(())
    }

    fn pass(&mut self, time: Duration) -> LabResult {
        let Self { system, desk, .. } = self;
        system.pass(time, |_| {
            desk.tick();
            Ok(())
        })
    }

    fn inject(&mut self, which: u64) -> LabResult {
        let publisher = |id| NodeId::Publisher(PublisherId(id));
        let replayer = |id| NodeId::Replayer(ReplayerId(id));
        let (name, victims) = match which % 9 {
            0 => ("publisher 0", vec![publisher(0)]),
            1 => ("publisher 1", vec![publisher(1)]),
            2 => return self.kill_member_server(0),
            3 => ("both publishers", vec![publisher(0), publisher(1)]),
            4 => ("replayer 0", vec![replayer(0)]),
            5 => return self.kill_member_server(1),
            6 => ("replayer 1 and publisher 1", vec![replayer(1), publisher(1)]),
            7 => return self.cut(0, "line A cut"),
            _ => return self.cut(1, "line B cut"),
        };
        self.struck.push(name);
        for victim in victims {
            // One that is dead still is as good as killed.
            let _ = self.system.supervisor.signal(victim, Signal::KILL);
        }
        Ok(())
    }

    fn kill_member_server(&mut self, server: u16) -> LabResult {
        self.struck.push(MEMBER_SERVERS[usize::from(server)]);
        self.desk.kill(server);
        Ok(())
    }

    fn cut(&mut self, line: usize, name: &'static str) -> LabResult {
        self.struck.push(name);
        self.reception.cut()[line].store(true, Ordering::Relaxed);
        self.pass(CUT)?;
        self.reception.cut()[line].store(false, Ordering::Relaxed);
        Ok(())
    }
}
