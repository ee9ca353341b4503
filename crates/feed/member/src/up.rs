//! `pares member up`: starts the servers, restarts what dies, stops everything.
//!
//! As with the exchange's supervisor, no server asks this one anything: it notices deaths only to start replacements.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_config::Layout;
use pares_node::leftovers::{await_leftovers, check_not_stopped, take_lock};
use pares_node::watched::Watched;
use pares_node::{HostWorld, NodeError};
use pares_os::clock::boot_id;
use pares_os::process::Lock;
use pares_os::sync_file_system;
use pares_types::Epoch;
use rustix::process::Signal;

use crate::config::{MemberConfig, stream, submissions};
use crate::process::{announced, config_file, forget_pid};
use crate::start;

/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two times that everything is started again.
const ANEW_MIN: Duration = Duration::from_secs(2);
/// A server that dies so often before it is up never will be.
const DEATHS_MAX: u32 = 5;

/// A running system.
pub struct MemberSupervisor {
    program: PathBuf,
    layout: Layout,
    config: MemberConfig,
    epoch: Epoch,
    servers: Vec<Watched>,
    /// When everything was last started again.
    anew: Option<Instant>,
    _lock: Lock,
}

impl MemberSupervisor {
    /// Starts the system in `layout`, which gets `config` if it has none yet, and keeps that only if a server comes up. `program` is run as
    /// `program member server S --dir DIR` for each server.
    ///
    /// # Errors
    /// If another process runs it, or its servers do not come up.
    pub fn start(
        program: &Path,
        layout: Layout,
        config: &MemberConfig,
        stop: &AtomicBool,
    ) -> Result<Self, NodeError> {
        let io = NodeError::io;
        std::fs::create_dir_all(layout.run()).map_err(io("creating the system's directory"))?;
        let lock = take_lock(&layout, "pares member up")?;
        let file = config_file(&layout);
        let is_new = !file.exists();
        if is_new {
            pares_os::replace_file(&file, config.text().as_bytes()).map_err(io("writing member.toml"))?;
        }
        let started = Self::bring_up(program, layout, lock, stop);
        if is_new && started.is_err() {
            // The next start tries other settings. One that cannot be removed is named by that start.
            let _ = std::fs::remove_file(&file);
        }
        started
    }

    fn bring_up(program: &Path, layout: Layout, _lock: Lock, stop: &AtomicBool) -> Result<Self, NodeError> {
        let config = MemberConfig::load(&config_file(&layout))?;
        let logs = (0..config.count()).flat_map(|server| [stream(server), submissions(server)]);
        await_leftovers(logs, &layout, stop)?;
        let epoch = start::begin(&HostWorld::new(&layout)?, &config, boot_id())?;
        let servers = (0..config.count()).map(|_| Watched::default()).collect();
        let mut supervisor =
            Self { program: program.into(), layout, config, epoch, servers, anew: None, _lock };
        (0..supervisor.config.count()).for_each(|server| forget_pid(&supervisor.layout, server));
        supervisor.wait(stop)?;
        Ok(supervisor)
    }

    /// Waits until every server is up or cannot be started; fails if none is up then. Later ticks say which die, and start them again.
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
            check_not_stopped(stop)?;
            std::thread::sleep(Duration::from_millis(2));
        }
        if (0..self.config.count()).any(|server| self.is_up(server)) {
            return Ok(());
        }
        let why: Vec<String> = last.into_values().map(|(_, why)| why).collect();
        let why = if why.is_empty() { "they have printed nothing yet".into() } else { why.join("; ") };
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
        let child = self.servers[usize::from(server)].id();
        child.is_some() && child == announced(&self.layout, server)
    }

    /// Looks for dead servers and starts their replacements; starts everything again where a server asked for that, which waits until
    /// all have ended. Says which died, and how.
    pub fn tick(&mut self) -> Vec<(u16, String)> {
        let mut deaths = Vec::from_iter(self.begin_anew());
        for server in 0..self.config.count() {
            let log = self.layout.complaints(submissions(server));
            let watched = &mut self.servers[usize::from(server)];
            if let Some(how) = watched.reap() {
                let last = watched.last_words(&log).map(|line| format!(": {line}")).unwrap_or_default();
                deaths.push((server, format!("server {server} ended ({how}){last}")));
            }
            if self.servers[usize::from(server)].is_due()
                && let Err(error) = self.start_server(server, &log)
            {
                deaths.push((server, format!("server {server} cannot be started: {error}")));
            }
        }
        deaths
    }

    fn start_server(&mut self, server: u16, log: &Path) -> Result<u32, NodeError> {
        let mut program = Command::new(&self.program);
        program.args(["member", "server", &server.to_string(), "--dir"]).arg(self.layout.root());
        self.servers[usize::from(server)].start(&mut program, log)
    }

    /// Starts everything again if a server found that nothing else helps. Says so.
    fn begin_anew(&mut self) -> Option<(u16, String)> {
        let world = HostWorld::new(&self.layout).ok()?;
        // A note that stays, or a start that fails, must not have servers stopped all the time.
        let is_early = self.anew.is_some_and(|last| last.elapsed() < ANEW_MIN);
        if is_early || !start::is_anew_asked(&world) {
            return None;
        }
        self.anew = Some(Instant::now());
        self.stop_servers();
        let begun = start::begin(&world, &self.config, boot_id()).map(|epoch| self.epoch = epoch);
        let why =
            begun.map_or_else(|error| error.to_string(), |()| "decided items are in no log any more".into());
        Some((0, format!("restarting all servers: {why}")))
    }

    /// Sends a signal to a server: for drills.
    ///
    /// # Errors
    /// If it is not running.
    pub fn signal(&mut self, server: u16, signal: Signal) -> Result<(), NodeError> {
        let signalled = self.servers[usize::from(server)].signal(signal);
        signalled.map_err(|error| NodeError::Refused(format!("server {server}: {error}")))
    }

    /// Stops every server, and has what they wrote reach the disks.
    pub fn stop(&mut self) {
        let have_ended = self.stop_servers();
        let Ok(world) = HostWorld::new(&self.layout) else { return };
        // Otherwise the next start in another boot of the host takes the end of the logs for lost, which is safe.
        if have_ended && start::is_running(&world) && self.sync_logs().is_ok() {
            let _ = start::end(&world);
        }
    }

    /// Whether all have ended. One that cannot be waited for ends with this process.
    fn stop_servers(&mut self) -> bool {
        self.servers.iter_mut().filter_map(|server| server.stop().err()).count() == 0
    }

    /// Each log may lie on a disk of its own.
    fn sync_logs(&self) -> std::io::Result<()> {
        let logs = (0..self.config.count()).flat_map(|server| [stream(server), submissions(server)]);
        logs.map(|log| self.layout.log(log))
            .filter(|dir| dir.exists())
            .try_for_each(|dir| sync_file_system(&dir))
    }
}

impl Drop for MemberSupervisor {
    fn drop(&mut self) {
        self.stop();
    }
}
