//! Processes of a broker on this machine: sites, desks and fronts, each started again when it dies.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use pares_operator::init::{self, FreePorts};
use pares_operator::sites::{self, Processes, Speech};
use pares_site::SitesConfig;
use pares_site::config::{Promise, SITES_FILE};
use pares_wice::SiteId;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use crate::error::{BrokerageError, BrokerageResult, failed};

/// What dies is not started again more often than this.
const LIFE_MIN: Duration = Duration::from_secs(1);
/// What was told to end and has not is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The file that says where fronts and desks are.
const BROKER_FILE: &str = "broker.toml";
/// The command of this program that runs a site.
const SITE_RUN: &[&str] = &["broker", "site"];

/// Ends this process with the one that started it, if that is asked for.
pub(crate) fn end_with(parent: Option<u32>) -> BrokerageResult {
    let Some(parent) = parent else { return Ok(()) };
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    bound.map_err(|error| BrokerageError::io("binding this process to its parent")(error.into()))?;
    let is_there = rustix::process::getppid().is_some_and(|id| id.as_raw_nonzero().get() as u32 == parent);
    if is_there {
        Ok(())
    } else {
        Err(BrokerageError::Usage("the process that started this one is gone".into()))
    }
}

/// Where a broker's processes are; kept beside `sites.toml`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BrokerPlaces {
    /// The quote server that desks ask.
    pub quote_server: SocketAddr,
    /// Where fronts reach each desk.
    pub desks: Vec<SocketAddr>,
    /// Where loaders reach each front.
    pub fronts: Vec<SocketAddr>,
    /// Where people reach each front, if they do.
    #[serde(default)]
    pub pages: Vec<SocketAddr>,
}

/// How many of each, and what the sites promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerPlan {
    /// Clusters, and sites in each.
    pub sites: (u8, u8),
    /// Fronts.
    pub fronts: u16,
    /// Desks.
    pub desks: u16,
    /// What a reply promises.
    pub durability: Promise,
    /// The URL of each site's PostgreSQL database, as in `sites.toml`; without, files.
    pub store: Option<String>,
    /// The quote server.
    pub quote_server: SocketAddr,
    /// Where people reach the first front; the others at the ports behind it. Without, none has pages.
    pub http: Option<SocketAddr>,
}

impl BrokerPlan {
    fn pages(&self) -> Vec<SocketAddr> {
        let Some(first) = self.http else { return Vec::new() };
        let at = |front| Some(SocketAddr::new(first.ip(), first.port().checked_add(front)?));
        (0..self.fronts).filter_map(at).collect()
    }

    /// Writes it as a new broker's directory; what is there already is read instead.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn settle(&self, dir: &Path) -> Result<(SitesConfig, BrokerPlaces), BrokerageError> {
        let path = dir.join(BROKER_FILE);
        if dir.join(SITES_FILE).exists() && path.exists() {
            let config = SitesConfig::load(dir).map_err(failed)?;
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(BrokerageError::io(format!("reading {}", path.display())))?;
            return Ok((config, toml::from_str(&text).map_err(failed)?));
        }
        let config = self.configuration()?;
        init::write(&config, dir).map_err(failed)?;
        let mut free = FreePorts::beside(&config);
        let mut ports = |count: u16| -> Result<Vec<SocketAddr>, BrokerageError> {
            (0..count).map(|_| free.take().map_err(failed)).collect()
        };
        let places = BrokerPlaces {
            quote_server: self.quote_server,
            desks: ports(self.desks)?,
            fronts: ports(self.fronts)?,
            pages: self.pages(),
        };
        let text = toml::to_string(&places).map_err(failed)?;
        pares_os::replace_file(&path, text.as_bytes())
            .map_err(BrokerageError::io(format!("writing {}", path.display())))?;
        Ok((config, places))
    }

    fn configuration(&self) -> Result<SitesConfig, BrokerageError> {
        let args = init::Args {
            clusters: self.sites.0,
            sites: self.sites.1,
            system: "broker".into(),
            durability: self.durability,
            no_tls: true,
            store: self.store.clone(),
            sql: false,
            witness: false,
        };
        init::configuration(&args).map_err(failed)
    }
}

/// One of a broker's processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BrokerPart {
    /// A site.
    Site(SiteId),
    /// The desk of that number.
    Desk(usize),
    /// The front of that number.
    Front(usize),
}

impl std::fmt::Display for BrokerPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Site(site) => write!(f, "site {}", sites::name(*site)),
            Self::Desk(desk) => write!(f, "desk {desk}"),
            Self::Front(front) => write!(f, "front {front}"),
        }
    }
}

/// All processes of a broker. Dropping them kills them.
pub struct Children {
    dir: PathBuf,
    logs: PathBuf,
    program: PathBuf,
    speech: Speech,
    places: BrokerPlaces,
    sites: Processes,
    running: BTreeMap<BrokerPart, Child>,
    /// What is to be started, and when.
    due: Vec<(BrokerPart, Instant)>,
    started: BTreeMap<BrokerPart, Instant>,
}

impl Children {
    /// Starts all of them; fronts write dumps to `logs`, without to a folder `logs` there.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn start(
        dir: &Path,
        speech: Speech,
        config: &SitesConfig,
        places: BrokerPlaces,
        logs: Option<&Path>,
    ) -> Result<Self, BrokerageError> {
        let program = std::env::current_exe();
        let program = program.map_err(BrokerageError::io("finding the path of this program"))?;
        let now = Instant::now();
        let sites = sites::all(config).into_iter().map(BrokerPart::Site);
        let desks = (0..places.desks.len()).map(BrokerPart::Desk);
        let fronts = (0..places.fronts.len()).map(BrokerPart::Front);
        let due = sites.chain(desks).chain(fronts).map(|part| (part, now)).collect();
        let mut children = Self {
            dir: dir.to_owned(),
            logs: logs.map_or_else(|| dir.join("logs"), Path::to_owned),
            program,
            speech,
            places,
            sites: Processes::new(dir, speech, SITE_RUN).map_err(failed)?,
            running: BTreeMap::new(),
            due,
            started: BTreeMap::new(),
        };
        children.revive()?;
        Ok(children)
    }

    /// Where they are.
    pub fn places(&self) -> &BrokerPlaces {
        &self.places
    }

    /// Starts again what has died, a second after it was started last at the earliest; what was found dead, and how it ended.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn revive(&mut self) -> Result<Vec<String>, BrokerageError> {
        let mut dead: Vec<(BrokerPart, String)> = Vec::new();
        for (site, how) in self.sites.ended().map_err(failed)? {
            dead.push((BrokerPart::Site(site), how.to_string()));
        }
        for (part, child) in &mut self.running {
            let ended = child.try_wait().map_err(BrokerageError::io(format!("looking after {part}")))?;
            dead.extend(ended.map(|how| (*part, how.to_string())));
        }
        for (part, _) in &dead {
            self.running.remove(part);
            let pause = self.started.get(part).map_or(LIFE_MIN, |at| LIFE_MIN.saturating_sub(at.elapsed()));
            self.due.push((*part, Instant::now() + pause));
        }
        for (part, _) in self.due.extract_if(.., |(_, at)| *at <= Instant::now()).collect::<Vec<_>>() {
            self.begin(part)?;
        }
        Ok(dead.into_iter().map(|(part, how)| format!("{part} ended ({how})")).collect())
    }

    /// Starts a part now, if it does not run.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn begin(&mut self, part: BrokerPart) -> BrokerageResult {
        self.due.retain(|(other, _)| *other != part);
        self.started.insert(part, Instant::now());
        if let BrokerPart::Site(site) = part {
            return self.sites.start(site).map_err(failed);
        }
        let mut command = self.command(part);
        if self.speech == Speech::File {
            let path = self.dir.join(format!("{part}.log").replace(' ', "-"));
            let log = || pares_os::open_file(OpenOptions::new().create(true).append(true), &path);
            let opening = || BrokerageError::io(format!("opening {}", path.display()));
            command.stdout(log().map_err(opening())?).stderr(log().map_err(opening())?);
        }
        let child = command.stdin(Stdio::null()).spawn();
        self.running.insert(part, child.map_err(BrokerageError::io(format!("starting {part}")))?);
        Ok(())
    }

    fn command(&self, part: BrokerPart) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("broker");
        match part {
            BrokerPart::Desk(desk) => {
                command.args(["desk", "--listen", &self.places.desks[desk].to_string()]);
                command.args(["--quote-server", &self.places.quote_server.to_string()]);
            }
            BrokerPart::Front(front) => {
                command.args(["front", "--loaders", &self.places.fronts[front].to_string()]);
                if let Some(http) = self.places.pages.get(front) {
                    command.args(["--http", &http.to_string()]);
                }
                for desk in &self.places.desks {
                    command.args(["--desk", &desk.to_string()]);
                }
                command.arg("--dir").arg(&self.dir).arg("--logs").arg(&self.logs);
            }
            BrokerPart::Site(_) => {}
        }
        command.args(["--with-parent", &std::process::id().to_string()]);
        command
    }

    /// Ends parts with SIGKILL, all at once; they are not started again before [`Self::begin`].
    pub fn kill(&mut self, parts: &[BrokerPart]) {
        for part in parts {
            // One that has ended by itself is not killed.
            let _ = self.running.get_mut(part).map(Child::kill);
        }
        let sites = parts.iter().filter_map(|part| match part {
            BrokerPart::Site(site) => Some(*site),
            _ => None,
        });
        self.sites.kill_all(&sites.collect::<Vec<_>>());
        for part in parts {
            if let Some(mut child) = self.running.remove(part) {
                let _ = child.wait();
            }
            self.due.retain(|(other, _)| other != part);
        }
    }

    /// Stops parts with SIGSTOP: they live, and say nothing until [`Self::go_on`].
    pub fn stop_short(&self, parts: &[BrokerPart]) {
        parts.iter().for_each(|part| self.signal(*part, Signal::STOP));
    }

    /// Lets a part go on that was stopped.
    pub fn go_on(&self, part: BrokerPart) {
        self.signal(part, Signal::CONT);
    }

    fn signal(&self, part: BrokerPart, signal: Signal) {
        let id = match part {
            BrokerPart::Site(site) => self.sites.ids().find(|(own, _)| *own == site).map(|(_, id)| id),
            _ => self.running.get(&part).map(Child::id),
        };
        if let Some(id) = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) {
            // It may have ended by itself.
            let _ = kill_process(id, signal);
        }
    }

    /// Ends fronts and desks, which are not started again.
    pub fn end_all_but_sites(&mut self) {
        let left: Vec<BrokerPart> = self.running.keys().copied().collect();
        self.kill(&left);
    }

    /// Ends all politely, fronts first, and those that do not listen otherwise.
    pub fn stop(&mut self) {
        self.due.clear();
        self.running.keys().for_each(|part| self.signal(*part, Signal::TERM));
        let told = Instant::now();
        let lives = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        while told.elapsed() < STOP_PATIENCE && self.running.values_mut().any(lives) {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end_all_but_sites();
        self.sites.stop();
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end_all_but_sites();
    }
}
