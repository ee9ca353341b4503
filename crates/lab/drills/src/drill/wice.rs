//! `pares drill wice`: two clusters of three sites, far apart: what a commit costs there, and what happens when parts die.
//!
//! ```text
//!  parts without faults: latency | reads | one hot row, four ways | twenty hot rows
//!  faults, under a steady load from all sites:   | quiet | the fault | ... | back, in step |  next ...
//!  at the end: every site has the same; all that was answered is there, once; no money was made
//! ```
//! What decides is what can be counted. Of the times one does: that a site dies in one cluster must not be noticed in the other.
//!
//! | module | what |
//! |---|---|
//! | [`stage`] | the system |
//! | [`wire`], [`load`] | clients with many requests open |
//! | [`parts`] | what is measured without faults |
//! | [`faults`] | the faults |
//! | [`disks`] | lost disks, states of some size, settings that differ, peers that are none |
//! | [`audit`] | what the sites have at the end |
//! | [`backups`] | a backup under load, the end of everything, and what is restored |
//! | [`figures`] | what it gave |
//! | [`history`] | the other drill of sites: what clients saw, checked for isolation |

mod audit;
mod backups;
mod disks;
mod faults;
mod figures;
pub(super) mod history;
mod load;
mod parts;
mod stage;
mod wire;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_load::{DistantSites, LabError, LabResult, print_figures};
use pares_operator::init::promise;
use pares_site::config::Promise;
use pares_wice::{Isolation, SiteId};

use figures::Figures;
use load::{Load, Mix, Pace, Plan, Told};

/// Accounts of the steady load.
const ACCOUNTS: u64 = 400;
/// What each account that needs it begins with.
const FUNDS: u64 = 1_000_000_000;
/// Accounts that begin with it: those, and the hot rows.
const FUNDED: u64 = ACCOUNTS + 1 + parts::ROWS;
/// All of it, for ever.
const MONEY: i128 = (FUNDS * FUNDED) as i128;
/// How much longer than in the quiet stretch no client may commit in the other cluster when a site dies, beyond a round trip.
const NOTICED: Duration = Duration::from_millis(500);

/// Arguments of `pares drill wice`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Round trip between the clusters, milliseconds
    #[arg(long, default_value_t = 100)]
    rtt_ms: u64,
    /// What an answer survives: `os` the death of processes, `disk` a power loss
    #[arg(long, default_value = "os", value_parser = promise)]
    durability: Promise,
    /// Measuring time of each part and each fault, seconds
    #[arg(long, default_value_t = 10.0)]
    seconds_per_part: f64,
    /// Requests per second of each site's clients during faults
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    rate: u64,
    /// State to refill a site with after the loss of its disk, in the last part, MiB; 0 skips that part
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(..=16_384))]
    state_mib: u64,
    /// Measure only the refilling of a site, under a steady load
    #[arg(long)]
    only_state: bool,
    /// Keep the sites' directories and output in this new directory
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Keep the sites' items in PostgreSQL databases, empty or missing: a URL with {cluster} and {number}
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// One JSON object instead of tables
    #[arg(long)]
    json: bool,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If something was lost, done twice, or denied and done; if sites differ at the end, or what is restored from what it was; if the death of a site was noticed in the other cluster; if what was hit does
/// not come back.
pub fn run(args: &Args) -> LabResult {
    if !(0.2..=3_600.0).contains(&args.seconds_per_part) {
        return Err(LabError::Usage("--seconds-per-part must be between 0.2 and 3600".into()));
    }
    let mut drill = Drill::start(args)?;
    let ran = if args.only_state { drill.run_state(args) } else { drill.run(args) };
    if ran.is_err() {
        drill.stage.keep();
    }
    ran
}

/// A drill under way.
struct Drill {
    stage: DistantSites,
    /// From which all times count.
    epoch: Instant,
    /// How long a part is.
    part: Duration,
    /// What the steady load sends a second at each site.
    rate: u64,
    /// How much a site is filled with, MiB.
    state_mib: u64,
    /// Numbers below it belong to clients.
    clients: u64,
    /// What all clients of parts that are over received.
    told: Vec<Told>,
    figures: Figures,
}

impl Drill {
    fn run(&mut self, args: &Args) -> LabResult {
        self.parts()?;
        self.faults()?;
        audit::audit(&self.stage, &self.told, &mut self.figures)?;
        self.back_up()?;
        let figures = &mut self.figures;
        figures.settle();
        print_figures(args.json, figures);
        figures.verdict(Duration::from_millis(args.rtt_ms) + NOTICED)
    }

    fn run_state(&mut self, args: &Args) -> LabResult {
        self.big_state()?;
        audit::audit(&self.stage, &self.told, &mut self.figures)?;
        print_figures(args.json, &self.figures.big_state);
        self.figures.verdict(Duration::ZERO)
    }

    fn start(args: &Args) -> Result<Self, LabError> {
        let store = args.store.as_deref();
        let rtt = Duration::from_millis(args.rtt_ms);
        let stage = stage::start(args.durability, Isolation::Snapshot, rtt, args.dir.as_deref(), store)?;
        let figures = Figures {
            drill: "wice",
            rtt_ms: args.rtt_ms,
            durability: if args.durability == Promise::Os { "os" } else { "disk" },
            seconds_per_part: args.seconds_per_part,
            ..Figures::default()
        };
        let part = Duration::from_secs_f64(args.seconds_per_part);
        let mut drill = Self {
            stage,
            epoch: Instant::now(),
            part,
            rate: args.rate,
            state_mib: args.state_mib,
            clients: 1,
            told: Vec::new(),
            figures,
        };
        drill.fund()?;
        Ok(drill)
    }

    /// The time now, since the drill began.
    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Clients of a site that turn to the others of its cluster, then to those of the other, when it does not answer.
    fn load(&mut self, site: SiteId, clients: u64, mix: Mix, pace: Pace) -> Result<Load, LabError> {
        let mut order = self.stage.all();
        order.sort_by_key(|other| (*other != site, other.cluster != site.cluster));
        let doors: Result<Vec<_>, _> = order.iter().map(|site| self.stage.client.door(*site)).collect();
        let sites = doors?;
        let plan = Plan { sites, clients, first: self.clients, mix, pace };
        self.clients += clients;
        Load::start(plan, self.epoch)
    }

    /// Puts money into the accounts that give some away.
    fn fund(&mut self) -> LabResult {
        let load =
            self.load(SiteId::new(0, 0), 1, Mix::Fund { funds: FUNDS, accounts: FUNDED }, Pace::Open(64))?;
        let count = usize::try_from(FUNDED).expect("a few");
        self.stage.until("the accounts' money", |_| load.done() >= count)?;
        self.told.push(load.finish());
        Ok(())
    }
}

/// The account at that place among all that begin with money.
fn funded(place: u64) -> String {
    match place {
        0..ACCOUNTS => format!("among/{place}"),
        ACCOUNTS => "hot/1/0".into(),
        _ => format!("hot/{}/{}", parts::ROWS, place - ACCOUNTS - 1),
    }
}
