//! `pares drill`: do clients notice when a part of the exchange dies, sleeps, loses its disk, is flooded or is wrong?
//!
//! ```text
//!  | quiet: 40 ms | the fault at a random instant | what was hit comes back ... is in step | quiet | fault ...
//!    longest gap    longest gap                     latencies "resync"
//!    = baseline     = the figure                    and longest gap, into the figure too
//! ```
//! Quiet stretches of the same length lie between the faults of the same run, so the baseline has seen the
//! same machine in the same minutes. At the end the recorders' logs are read and compared with each other and
//! with what the clients received.
//!
//! | module | what |
//! |---|---|
//! | `round` | the system, the load and one round of any drill |
//! | `figures` | what a drill gave, the same for all |
//! | `record` | what the recorders have, and whether they agree |
//! | `venue` | kill, stop or slow down the leading venue |
//! | `recorder` | kill a recorder, or take its disk |
//! | `gateway` | kill a gateway |
//! | `disk` | fill or slow down a recorder's disk |
//! | `everything`, `restart` | kill all nodes at once; start them all after a long record |
//! | `flood`, `overload` | one session sends as fast as it can; all sessions send too much |
//! | `diverge` | a venue that computes something else |
//! | `broker` | a broker's fronts, desks and sites die while its users give commands |
//! | `away` | a member is away while its orders are filled |
//! | `days` | business days that are closed, archived and dropped; a copy of a running system |
//! | `feed` | market data while publishers, replayers and lines die |
//! | `wice` | replication between clusters: what it costs, and everything that can die there |
//! | `history` (in `wice`) | what clients of sites read and received, checked for isolation |
//! | `kill_front` | kill gateways and servers under members that speak FIX, OUCH or HTTP |
//! | `hosts` | whole hosts of a system of several die |
//! | `bad_input` | guests that nobody wants, at every port |
//! | `poison` | a request that brings the matching engine down at every venue |

mod away;
mod bad_input;
mod broker;
mod days;
mod disk;
mod diverge;
mod everything;
mod feed;
mod figures;
mod flood;
mod gateway;
mod hosts;
mod kill_front;
mod overload;
mod poison;
mod record;
mod recorder;
mod restart;
mod round;
mod venue;
mod wice;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Command, Subcommand, ValueEnum};
use pares_config::DurabilitySetting;
use pares_load::{LabError, LabResult, Rate, print_figures, setup};
use pares_node::SystemConfig;
use pares_text::progress;

use figures::Figures;
use round::Drill;

/// Orders a second that a session may send while it uses up the room on a disk.
const FILL_RATE: u32 = 20_000;

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FaultKind {
    /// Kill the leading venue with SIGKILL
    KillVenue,
    /// Stop the leading venue with SIGSTOP for a while
    StopVenue,
    /// Stop the leading venue for 5 of every 10 milliseconds for a while
    SlowVenue,
    /// Kill the recorders with SIGKILL, in turn
    KillRecorder,
    /// Kill the last recorder and remove its log, so that it starts with an empty disk
    WipeRecorder,
    /// Fill the disk under the last recorder's log until it refuses records, then make room (needs permission to mount)
    FillDisk,
    /// Slow down all syncs of the recorders, in turn; durability is `disk`
    SlowDisk,
    /// Kill the gateways with SIGKILL, in turn
    KillGateway,
    /// Kill all nodes at once with SIGKILL
    KillEverything,
    /// Add a session that sends as fast as it can for a while
    Flood,
    /// Send requests that make every venue's matching engine panic, loop or exhaust memory, in turn
    Poison,
    /// Replace the leading venue by one that computes wrong results, and readmit it when it is shut out
    Diverge,
}

impl FaultKind {
    /// Its name on the command line.
    fn name(self) -> String {
        self.to_possible_value().expect("no fault is hidden").get_name().to_owned()
    }

    /// Whether it takes connections away, so that members have to find others and repeat what is open.
    fn cuts_connections(self) -> bool {
        matches!(self, Self::KillGateway | Self::KillEverything)
    }

    /// Rounds unless told otherwise: what takes long is done less often.
    fn rounds(self) -> u64 {
        match self {
            Self::KillVenue | Self::StopVenue | Self::SlowVenue | Self::KillRecorder => 100,
            Self::WipeRecorder | Self::KillGateway | Self::KillEverything | Self::SlowDisk => 20,
            Self::Flood | Self::FillDisk => 5,
            Self::Diverge => 10,
            Self::Poison => 30,
        }
    }
}

/// What `pares drill` drills.
#[derive(clap::Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Choice {
    #[command(subcommand)]
    own: Option<Own>,
    #[command(flatten)]
    exchange: Args,
}

/// Drills with a load of their own.
#[derive(clap::Subcommand, Clone, Debug)]
enum Own {
    /// Two distant clusters of sites: measure the cost of a commit, then kill sites, delegates, clusters and the link
    Wice(wice::Args),
    /// Sites: check the history of clients' reads and answers, as Elle does, while sites crash, the link is cut and a disk is lost
    History(wice::history::Args),
    /// Disconnect a member while its orders fill and gateways die: does it receive every fill, once and in order?
    Away(away::Args),
    /// Business days with kills, each archived and dropped: is anything lost, and do files, memory and start time stay flat?
    Days(days::Args),
    /// Back up a trading system while nodes die, and start the copy: does it contain everything answered before?
    Backup(days::backup::Args),
    /// Market data: kill publishers and replayers, cut lossy lines: does any receiver get wrong data, or miss any?
    Feed(feed::Args),
    /// A broker: kill fronts, quote desks and sites every second under load: is a command lost or executed twice, or a cent off?
    Broker(broker::Args),
    /// Kill gateways and servers under FIX, OUCH or HTTP members: do they continue elsewhere, with nothing lost or duplicated?
    KillFront(kill_front::Args),
    /// Kill the host whose orderer leads, in a system of several: do the others continue, with nothing lost or duplicated?
    KillHost(hosts::Args),
    /// Wrong keys, garbage, huge lengths, single bytes and thousands of connections at every port: is a client let in, and do other orders slow down?
    BadInput(bad_input::Args),
}

/// Their names.
const OWN: [&str; 10] =
    ["wice", "history", "away", "days", "backup", "feed", "broker", "kill-front", "kill-host", "bad-input"];

/// Arguments of `pares drill` for an exchange.
#[derive(clap::Args, Clone, Debug)]
#[group(skip)] // its name would be that of the flattened one
pub struct Args {
    /// The fault to inject
    #[arg(required = true, value_parser = faults())]
    fault: Option<FaultKind>,
    /// Number of rounds [default: 100 for short faults, fewer for longer ones]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Length of a stop, of a slow venue or disk, or of a full disk, milliseconds
    #[arg(long, default_value_t = 200)]
    stop_ms: u64,
    /// Length of a flood, and of the quiet time before it, milliseconds
    #[arg(long, default_value_t = 2_000)]
    flood_ms: u64,
    /// Flood: let all sessions together offer twice the highest rate for so many minutes, instead of one that floods; then what a refusal costs
    #[arg(long)]
    minutes: Option<f64>,
    /// With --minutes: what is offered, as a multiple of the highest rate
    #[arg(long, default_value_t = 2.0)]
    times: f64,
    /// With --minutes: milliseconds that requests may wait before orders are refused; 0 for no target
    #[arg(long, default_value_t = SystemConfig::default().wait_target_ms)]
    wait_target_ms: u64,
    /// Kill-everything: in the end have so many answers recorded, kill everything, and start it from its files alone
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    records: Option<u64>,
    /// Number of these answers to request again: the last ones, and others evenly spread
    #[arg(long, default_value_t = 100_000)]
    check: u64,
    /// Delay of each sync of a slow disk, milliseconds
    #[arg(long, default_value_t = 50)]
    slow_ms: u64,
    /// Number of recorders that must store a record before it is answered
    #[arg(long, default_value_t = 1)]
    quorum: u16,
    /// The load and the system; see `pares bench end-to-end --help`
    #[command(flatten)]
    load: setup::Args,
}

/// Reads a fault. For a word that is none the error lists all drills, those too that are commands of their own.
fn faults() -> impl TypedValueParser<Value = FaultKind> {
    let faults = FaultKind::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let drills = Own::augment_subcommands(Command::new("drill"));
    let own = OWN.map(|name| {
        let about = drills.find_subcommand(name).and_then(Command::get_about).cloned().unwrap_or_default();
        PossibleValue::new(name).help(format!("{about} (`pares drill {name} --help`)"))
    });
    PossibleValuesParser::new(faults.chain(own)).try_map(|word| FaultKind::from_str(&word, false))
}

impl Args {
    fn fault(&self) -> FaultKind {
        self.fault.expect("required")
    }

    fn count(&self) -> u64 {
        self.count.unwrap_or_else(|| self.fault().rounds())
    }

    /// Requests a second; 0 without a schedule, which no drill allows.
    fn rate(&self) -> u64 {
        match self.load.rate {
            Rate::PerSecond(rate) => rate,
            Rate::Max => 0,
        }
    }

    /// The system; where a gateway is killed there are at least two, and where a venue is wrong enough to outvote it.
    fn config(&self) -> SystemConfig {
        let least = if self.fault() == FaultKind::KillGateway { 2 } else { 1 };
        let venues = if self.fault() == FaultKind::Diverge { diverge::VENUES_MIN } else { 1 };
        let (gateways, venues) = (self.load.gateways.max(least), self.load.venues.max(venues));
        let load = setup::Args { gateways, venues, ..self.load.clone() };
        let config = SystemConfig { quorum: self.quorum, ..load.config() };
        match (self.fault(), self.load.rate) {
            // The pace an exchange would set: beyond what any of its sessions needs.
            (FaultKind::Flood, Rate::PerSecond(rate)) if self.minutes.is_none() => SystemConfig {
                session_rate_max: u32::try_from(2 * rate / u64::from(flood::MEMBERS))
                    .unwrap_or(u32::MAX)
                    .max(1),
                session_burst_max: u32::try_from(rate / 10).unwrap_or(u32::MAX),
                ..config
            },
            // What room is left in segments made ahead is used up sooner when they are short, and by a session that does not take
            // the gateway's whole time.
            (FaultKind::FillDisk, Rate::PerSecond(rate)) => SystemConfig {
                segment_mib: 2,
                session_rate_max: u32::try_from(2 * rate).unwrap_or(u32::MAX).max(FILL_RATE),
                session_burst_max: FILL_RATE / 10,
                ..config
            },
            (FaultKind::SlowDisk, _) => SystemConfig { durability: DurabilitySetting::Disk, ..config },
            _ => config,
        }
    }

    /// Refuses what could prove nothing.
    fn check(&self) -> LabResult {
        let wrong = |what: &str| Err(LabError::Usage(what.into()));
        if !matches!(self.load.rate, Rate::PerSecond(_)) {
            return wrong("a drill needs a fixed --rate, or gaps mean nothing");
        }
        if self.minutes.is_some() && self.fault() != FaultKind::Flood {
            return wrong("--minutes needs the drill `flood`");
        }
        if self.records.is_some() && self.fault() != FaultKind::KillEverything {
            return wrong("--records needs the drill `kill-everything`");
        }
        match self.fault() {
            FaultKind::KillVenue | FaultKind::StopVenue | FaultKind::SlowVenue if self.load.venues < 2 => {
                wrong("this drill needs at least two venues, so that one survives")
            }
            FaultKind::KillRecorder | FaultKind::WipeRecorder | FaultKind::FillDisk | FaultKind::SlowDisk
                if self.load.recorders <= self.quorum =>
            {
                wrong("this drill needs more --recorders than its --quorum, so that a quorum survives")
            }
            FaultKind::Poison if self.load.config().shards().map_or(0, |shards| shards.len()) < 2 => wrong(
                "this drill needs at least two --shards: one fails, and the others must not be affected",
            ),
            _ => Ok(()),
        }
    }
}

/// Runs the drill and prints what it gave, and on standard error that the promise was kept.
///
/// # Errors
/// If the system fails, or the promise was broken: something was lost, answered or executed twice, or
/// recorders disagree. How long anything took decides nothing here.
pub fn run(choice: &Choice) -> LabResult {
    run_chosen(choice)?;
    // Hosts that come back may answer twice: that drill's figures say how often.
    let answered = if matches!(choice.own, Some(Own::KillHost(_))) { "" } else { " answered or" };
    pares_text::aside!("kept: nothing was lost,{answered} executed twice, and all that was compared agrees");
    Ok(())
}

fn run_chosen(choice: &Choice) -> LabResult {
    match &choice.own {
        Some(Own::Wice(args)) => return wice::run(args),
        Some(Own::History(args)) => return wice::history::run(args),
        Some(Own::Away(args)) => return away::run(args),
        Some(Own::Days(args)) => return days::run(args),
        Some(Own::Backup(args)) => return days::backup::run(args),
        Some(Own::Feed(args)) => return feed::run(args),
        Some(Own::Broker(args)) => return broker::run(args),
        Some(Own::KillFront(args)) => return kill_front::run(args),
        Some(Own::KillHost(args)) => return hosts::run(args),
        Some(Own::BadInput(args)) => return bad_input::run(args),
        None => {}
    }
    let args = &choice.exchange;
    args.check()?;
    if let Some(minutes) = args.minutes {
        return overload::run(args, minutes);
    }
    let mut figures = measure(args)?;
    if let Some(records) = args.records {
        let dir = args.load.dir.as_deref();
        figures.start = Some(restart::measure(&args.config(), dir, records, args.check)?);
    }
    print_figures(args.load.json, &figures);
    figures.verdict()
}

/// Runs the drill.
///
/// # Errors
/// If the system does not come up, or what was hit does not come back.
fn measure(args: &Args) -> Result<Figures, LabError> {
    let mut drill = Drill::start(args)?;
    for round in progress::over("drilling", 0..args.count()) {
        drill.round(args, round)?;
    }
    drill.finish()
}
