//! `pares member up`: starts the servers, restarts what dies, stops everything.
//!
//! As with the exchange's supervisor, no server asks this one anything: it notices deaths only to start replacements.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_node::supervisor::PARENT;
use pares_node::{HostWorld, NodeError};
use pares_os::process::Lock;
use pares_roles::config::Layout;
use pares_types::Epoch;
use rustix::process::{Pid, Signal, kill_process};

use crate::config::{MemberConfig, stream, submissions};
use crate::process::{announced, config_file, forget_pid};
use crate::start;

/// How long a start may take, and a stop.
const PATIENCE: Duration = Duration::from_secs(20);
/// A server that dies younger than this is restarted with growing pauses.
const INFANT: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// A server that dies so often before it is up never will be.
const DEATHS_MAX: u32 = 5;

/// A server's process.
struct Process {
    child: Option<Child>,
    started: Instant,
    pause: Duration,
}

/// A running system.
pub struct MemberSupervisor {
    program: PathBuf,
    layout: Layout,
    config: MemberConfig,
    epoch: Epoch,
    servers: Vec<Process>,
    /// When everything was last started anew.
    anew: Option<Instant>,
    _lock: Lock,
}

impl MemberSupervisor {
    /// Starts the system in `layout`, which gets `config` if it has none yet. `program` is run as
    /// `program member server S --dir DIR` for each server.
    ///
    /// # Errors
    /// If somebody else runs it, or its servers do not come up.
    pub fn start(
        program: &Path,
        layout: Layout,
        config: &MemberConfig,
        stop: &AtomicBool,
    ) -> Result<Self, NodeError> {
        let io = NodeError::io;
        std::fs::create_dir_all(layout.run()).map_err(io("creating the system's directory"))?;
        let lock = Lock::take(&layout.lock()).map_err(io("locking the system"))?;
        let _lock = lock.ok_or_else(|| {
            NodeError::Refused(format!("another `pares member up` runs {}", layout.root().display()))
        })?;
        let file = config_file(&layout);
        if !file.exists() {
            pares_os::replace_file(&file, config.text().as_bytes()).map_err(io("writing member.toml"))?;
        }
        let config = MemberConfig::load(&file)?;
        await_leftovers(&layout, &config)?;
        let epoch = start::begin(&HostWorld::new(&layout)?, &config)?;
        let process = |_| Process { child: None, started: Instant::now(), pause: Duration::ZERO };
        let servers = (0..config.count()).map(process).collect();
        let mut supervisor =
            Self { program: program.into(), layout, config, epoch, servers, anew: None, _lock };
        (0..supervisor.config.count()).for_each(|server| forget_pid(&supervisor.layout, server));
        supervisor.wait(stop)?;
        Ok(supervisor)
    }

    /// Waits until every server is up or is started in vain; fails if none is up then. Later ticks say which die, and start them again.
    fn wait(&mut self, stop: &AtomicBool) -> Result<(), NodeError> {
        let begun = Instant::now();
        let mut last = BTreeMap::new();
        let is_vain = |last: &BTreeMap<u16, (u32, String)>, server| {
            last.get(&server).is_some_and(|of| of.0 >= DEATHS_MAX)
        };
        while !(0..self.config.count()).all(|server| self.is_up(server) || is_vain(&last, server)) {
            for (server, why) in self.tick() {
                let (deaths, latest) = last.entry(server).or_insert((0, String::new()));
                (*deaths, *latest) = (*deaths + 1, why);
            }
            if begun.elapsed() > PATIENCE {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return Err(NodeError::BrokenOff);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        if (0..self.config.count()).any(|server| self.is_up(server)) {
            return Ok(());
        }
        let why: Vec<String> = last.into_values().map(|(_, why)| why).collect();
        let why = if why.is_empty() { "they say nothing yet".into() } else { why.join("; ") };
        Err(NodeError::Refused(format!("no server came up: {why}")))
    }

    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &MemberConfig {
        &self.config
    }

    /// Where the system lies.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The life of the window that this start began.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether a server's current process has finished starting.
    #[must_use]
    pub fn is_up(&self, server: u16) -> bool {
        let child = self.servers[usize::from(server)].child.as_ref().map(Child::id);
        child.is_some() && child == announced(&self.layout, server)
    }

    /// Looks for dead servers and starts their replacements. Does not wait. Says which died, and how.
    pub fn tick(&mut self) -> Vec<(u16, String)> {
        let mut deaths = Vec::new();
        deaths.extend(self.begin_anew());
        for server in 0..self.config.count() {
            deaths.extend(self.reap(server).map(|how| (server, how)));
            let process = &self.servers[usize::from(server)];
            if process.child.is_none() && process.started.elapsed() >= process.pause {
                let spawned = self.spawn(server);
                let process = &mut self.servers[usize::from(server)];
                process.started = Instant::now();
                match spawned {
                    Ok(child) => process.child = Some(child),
                    Err(error) => {
                        deaths.push((server, format!("server {server} cannot be started: {error}")))
                    }
                }
            }
        }
        deaths
    }

    /// Starts everything anew if a server found that nothing else helps. Says so.
    fn begin_anew(&mut self) -> Option<(u16, String)> {
        let world = HostWorld::new(&self.layout).ok()?;
        // A note that stays, or a start that fails, must not have servers stopped all the time.
        let is_early = self.anew.is_some_and(|last| last.elapsed() < PAUSE_MAX);
        if is_early || !start::is_anew_asked(&world) {
            return None;
        }
        self.anew = Some(Instant::now());
        self.stop();
        let begun = start::begin(&world, &self.config).map(|epoch| self.epoch = epoch);
        let why = begun
            .map_or_else(|error| error.to_string(), |()| "what was decided is in no log any more".into());
        Some((0, format!("everything is started anew: {why}")))
    }

    fn reap(&mut self, server: u16) -> Option<String> {
        let process = &mut self.servers[usize::from(server)];
        let how = match process.child.as_mut()?.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => status.to_string(),
            Err(error) => error.to_string(),
        };
        process.child = None;
        let young = process.started.elapsed() < INFANT;
        let grown = PAUSE_MAX.min(process.pause * 2 + Duration::from_millis(50));
        process.pause = if young { grown } else { Duration::ZERO };
        let complaints = std::fs::read_to_string(self.layout.complaints(submissions(server)));
        let last = complaints.ok().and_then(|text| text.lines().last().map(|line| format!(": {line}")));
        Some(format!("server {server} ended ({how}){}", last.unwrap_or_default()))
    }

    fn spawn(&self, server: u16) -> Result<Child, NodeError> {
        let complaints = self.layout.complaints(submissions(server));
        let log = File::options().create(true).append(true).open(complaints);
        Command::new(&self.program)
            .args(["member", "server", &server.to_string(), "--dir"])
            .arg(self.layout.root())
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.map_err(NodeError::io("opening a server's log"))?)
            .process_group(0)
            .spawn()
            .map_err(NodeError::io("starting a server"))
    }

    /// Sends a signal to a server: for drills.
    ///
    /// # Errors
    /// If it is not running.
    pub fn signal(&mut self, server: u16, signal: Signal) -> Result<(), NodeError> {
        let dead = || NodeError::Refused(format!("server {server} is not running"));
        let child = self.servers[usize::from(server)].child.as_ref().ok_or_else(dead)?;
        kill_process(Pid::from_child(child), signal)
            .map_err(|error| NodeError::io("signalling")(error.into()))
    }

    /// Stops every server.
    pub fn stop(&mut self) {
        for process in &mut self.servers {
            let Some(child) = &mut process.child else { continue };
            for signal in [Signal::CONT, Signal::TERM] {
                let _ = kill_process(Pid::from_child(child), signal);
            }
            let asked = Instant::now();
            while let Ok(None) = child.try_wait() {
                if asked.elapsed() > PATIENCE {
                    let _ = child.kill();
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            process.child = None;
        }
    }
}

impl Drop for MemberSupervisor {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until no server of an earlier start is left: it could add to a log that the start has read.
fn await_leftovers(layout: &Layout, config: &MemberConfig) -> Result<(), NodeError> {
    let begun = Instant::now();
    let logs = (0..config.count()).flat_map(|server| [stream(server), submissions(server)]);
    for log in logs {
        while let Ok(Some(process)) = pares_log::writing_process(&layout.log(log)) {
            if begun.elapsed() > PATIENCE {
                return Err(NodeError::Refused(format!(
                    "process {process} still writes {log}; end it first"
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}
