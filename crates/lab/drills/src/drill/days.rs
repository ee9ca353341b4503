//! Business days, one after the other. The promise: whatever is killed, nothing acknowledged is lost or executed twice, orders that are good
//! till cancelled are there on the last day, the archive has every day, and files, memory and the time to start stay as they were.
//!
//! ```text
//!  begin | members trade, a venue, a recorder, a gateway killed | end | closed | archived | an older day is dropped     ten times,
//!  then: all killed, started ........ | the orders carried over are filled | the archive is read and compared
//!             <--- start_seconds --->
//! ```

pub(super) mod backup;
mod footprint;
mod members;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_archive::{Days, Manifest, Store, restore};
use pares_load::{
    LabError, LabResult, Records, ScratchDirectory, ScratchSystem, check_patience, failed, none_of,
    print_figures, setup,
};
use pares_log::MarksReader;
use pares_node::{Layout, NodeId, SystemConfig};
use pares_text::progress;
use pares_types::{BusinessDay, Command, GatewayId, RecorderId, ShardId, VenueId};
use rustix::process::Signal;
use serde::Serialize;

use footprint::Footprint;
use members::{Members, Notes};

use crate::exchange::ask_exchange;

const GATEWAYS: u16 = 2;
/// For how many days before the last one a day is kept.
const RETENTION_DAYS: u32 = 1;
/// The day before the first.
const EVE: BusinessDay = BusinessDay(20_000);
/// How long nothing may happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `pares drill days`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Number of business days
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    days: u32,
    /// Orders per day, all members together
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(1_000..=10_000_000))]
    requests: u64,
    /// The parent directory for the system's files and the archive [default: the temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What the drill gave.
#[derive(Clone, Copy, Debug, Serialize)]
struct Outcome {
    drill: &'static str,
    days: u32,
    /// Orders answered.
    requests: u64,
    /// Nodes killed before the end.
    kills: u64,
    /// Orders answered that a recorder or the archive does not have, and those carried over that are not there in the end.
    lost: u64,
    /// Orders executed or answered twice, and positions that are not the same in all recorders' logs.
    duplicated: u64,
    /// Anonymous memory of all nodes, from the end of the second day to the end of the last, MiB.
    rss_growth_mib: f64,
    /// From a start of everything, all nodes having been killed, until the exchange answers, seconds.
    start_seconds: f64,
    /// Files of the system, archive aside, over the same days as memory, MiB.
    disk_growth_mib: f64,
    /// Files of the archive, MiB.
    archive_mib: f64,
}

/// Runs the drill and prints what it gave.
///
/// # Errors
/// If the system fails, or the promise was broken.
pub(super) fn run(args: &Args) -> LabResult {
    let scratch = ScratchDirectory::create(args.dir.as_deref())?;
    let mut drill = Drill::start(&scratch)?;
    let mut footprints = Vec::new();
    for day in progress::over("days", 1..=args.days) {
        drill.pass_day(day, args.requests)?;
        footprints.push(Footprint::take(&drill.layout, &drill.config)?);
    }
    let outcome = drill.outcome(&scratch, &footprints)?;
    print_figures(args.json, &outcome);
    none_of([(outcome.lost, "lost"), (outcome.duplicated, "doubled")])
}

/// The drill under way.
struct Drill {
    /// None while it is down.
    system: Option<ScratchSystem>,
    dir: PathBuf,
    layout: Layout,
    config: SystemConfig,
    shards: Vec<ShardId>,
    store: Store,
    records: Records<Notes>,
    members: Members,
    /// Of the exchange's requests: so many.
    asked: u64,
    kills: u64,
}

fn config() -> SystemConfig {
    let instruments = (1..=members::INSTRUMENTS).map(setup::instrument);
    SystemConfig {
        gateways: (0..GATEWAYS).map(|_| ([127, 0, 0, 1], 0).into()).collect(),
        instruments: instruments.collect(),
        // So small that a short day fills what is bounded.
        checkpoint_every: 128,
        names_max: 1 << 12,
        segment_mib: 2,
        retention_days: RETENTION_DAYS,
        ..SystemConfig::default()
    }
}

impl Drill {
    fn start(scratch: &ScratchDirectory) -> Result<Self, LabError> {
        let (dir, config) = (scratch.path().join("system"), config());
        let archive = scratch.path().join("archive");
        let system = ScratchSystem::start(&config, Some(dir.clone()))?;
        let layout = system.supervisor.layout().clone();
        Ok(Self {
            records: Records::new(&layout, &config, Notes::default()),
            members: Members::new(&config),
            asked: 0,
            shards: config.shards()?.into_keys().collect(),
            store: Store::open(&archive.to_string_lossy()).map_err(failed("opening the archive"))?,
            system: Some(system),
            kills: 0,
            dir,
            layout,
            config,
        })
    }

    fn system(&mut self) -> &mut ScratchSystem {
        self.system.as_mut().expect("it is started")
    }

    /// One day from its begin until it is archived and the day that is too old is dropped.
    fn pass_day(&mut self, number: u32, requests: u64) -> LabResult {
        let day = BusinessDay(EVE.0 + number);
        self.ask(Command::BeginDay { day })?;
        for part in 0..4 {
            self.trade(requests / 4)?;
            self.kill(part, number)?;
        }
        self.finish()?;
        self.ask(Command::EndDay { day })?;
        self.until("a node was not up", |drill| {
            Ok(drill.system.as_ref().is_some_and(|system| system.supervisor.missing().is_empty()))
        })?;
        self.await_level()?;
        self.until("a recorder has not closed the day's files", |drill| {
            Ok(drill.manifests(day)?.iter().all(Option::is_some))
        })?;
        for id in self.config.recorder_ids() {
            let archived = self.days(id).archive((&self.layout.config(), &name(id)), &self.store, Some(day));
            archived.map_err(failed("archiving"))?;
        }
        let Some(old) = number.checked_sub(RETENTION_DAYS + 1).filter(|&old| old > 0) else { return Ok(()) };
        self.await_dropped(BusinessDay(EVE.0 + old))
    }

    fn trade(&mut self, orders: u64) -> LabResult {
        self.members.trade(self.system.as_mut().expect("it is started"), orders)
    }

    /// All that was entered is answered.
    fn finish(&mut self) -> LabResult {
        self.members.finish(self.system.as_mut().expect("it is started"))
    }

    fn await_level(&mut self) -> LabResult {
        self.records.await_level(&mut self.system.as_mut().expect("it is started").supervisor)
    }

    /// Recorders keep what a checkpoint needs, and another one comes with the traffic.
    fn await_dropped(&mut self, day: BusinessDay) -> LabResult {
        let begun = Instant::now();
        while !self.has_dropped(day)? {
            check_patience(begun, PATIENCE, "a recorder has not dropped what is archived and old")?;
            self.ask(Command::TIME)?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// After each part but the last of a day something else is killed.
    fn kill(&mut self, part: u32, day: u32) -> LabResult {
        let victim = (day % 2) as u16;
        let node = match part {
            0 => NodeId::Venue(VenueId(victim)),
            1 => NodeId::Recorder(RecorderId(victim)),
            2 => NodeId::Gateway(GatewayId(victim)),
            _ => return Ok(()),
        };
        self.kills += 1;
        self.system().supervisor.signal(node, Signal::KILL)?;
        Ok(())
    }

    fn ask(&mut self, command: Command) -> LabResult {
        self.asked += 1;
        let system = self.system.as_mut().expect("it is started");
        ask_exchange(self.asked, command, |member, options| {
            system.supervisor.tick();
            Ok(system.connect(member, 0, options))
        })
    }

    /// Waits, restarting what died.
    fn until(&mut self, not: &str, holds: impl Fn(&Self) -> Result<bool, LabError>) -> LabResult {
        let begun = Instant::now();
        while !holds(self)? {
            check_patience(begun, PATIENCE, not)?;
            self.system().supervisor.tick();
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn days(&self, id: RecorderId) -> Days {
        Days::new(&self.layout.recorder_log(id), &self.shards)
    }

    /// Of each recorder the manifest of a day.
    fn manifests(&self, day: BusinessDay) -> Result<Vec<Option<Manifest>>, LabError> {
        let of = |id| {
            let all = self.days(id).manifests().map_err(failed("reading manifests"))?;
            Ok(all.into_iter().find(|manifest| manifest.day == day.to_string()))
        };
        self.config.recorder_ids().map(of).collect()
    }

    /// Whether all recorders have dropped that day.
    fn has_dropped(&self, day: BusinessDay) -> Result<bool, LabError> {
        for (id, manifest) in self.config.recorder_ids().zip(self.manifests(day)?) {
            let Some(manifest) = manifest else { continue };
            let marks =
                MarksReader::open(&self.layout.recorder_log(id)).map_err(failed("a recorder's log"))?;
            if marks.stats().released.0 < manifest.until {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The system is down, and no member is connected.
    fn end(&mut self) {
        self.system = None;
        self.members.disconnect();
    }

    /// Kills everything and starts it again. How long until it answers.
    fn start_again(&mut self) -> Result<Duration, LabError> {
        for node in NodeId::all(&self.config) {
            self.system().supervisor.signal(node, Signal::KILL)?;
        }
        self.end();
        let begun = Instant::now();
        self.system = Some(ScratchSystem::start(&self.config, Some(self.dir.clone()))?);
        self.ask(Command::TIME)?;
        Ok(begun.elapsed())
    }

    fn outcome(mut self, scratch: &ScratchDirectory, footprints: &[Footprint]) -> Result<Outcome, LabError> {
        let days = u32::try_from(footprints.len()).expect("at most a thousand");
        let start = self.start_again()?;
        self.ask(Command::BeginDay { day: BusinessDay(EVE.0 + days + 1) })?;
        let not_carried = self.members.fill_carried(self.system.as_mut().expect("it is started"))?;
        self.await_level()?;
        let (_, differing) = self.records.differing(|_, _| false);
        let answered = self.members.answered();
        let lost = self.records.notes().map(|notes| notes.missing(answered)).max().unwrap_or(0);
        let twice = self.records.notes().map(|notes| notes.twice).max().unwrap_or(0);
        let (first, last) = (&footprints[1], footprints.last().expect("two days or more"));
        Ok(Outcome {
            drill: "days",
            days,
            requests: self.members.count(),
            kills: self.kills,
            lost: lost + not_carried + self.missing_in_archive(scratch)?,
            duplicated: twice + differing + self.members.told_twice(),
            rss_growth_mib: last.anon_mib - first.anon_mib,
            start_seconds: start.as_secs_f64(),
            disk_growth_mib: last.disk_mib - first.disk_mib,
            archive_mib: footprint::disk_mib(&scratch.path().join("archive"))?,
        })
    }

    /// Restores all days of each recorder from the archive. Of what was answered on them, how much is not there.
    fn missing_in_archive(&self, scratch: &ScratchDirectory) -> Result<u64, LabError> {
        let mut missing = 0;
        for id in self.config.recorder_ids() {
            let into = scratch.path().join(format!("restored-{}", id.0));
            restore(&self.store, &name(id), (None, None), &into).map_err(failed("restoring the archive"))?;
            let one = SystemConfig { recorders: id.0 + 1, ..self.config.clone() };
            let mut records = Records::new(&Layout::new(&into), &one, Notes::default());
            records.furthest()?;
            let found = records.notes().last().expect("a recorder");
            missing += found.missing(self.members.answered());
        }
        Ok(missing)
    }
}

fn name(id: RecorderId) -> String {
    NodeId::Recorder(id).to_string()
}
