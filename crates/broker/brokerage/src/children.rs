//! Processes of a broker on this machine: sites, desks, fronts and routers, each started again when it dies.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pares_operator::sites::{self, ChildOutput, Processes};
use pares_site::SitesConfig;
use pares_wice::SiteId;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

pub use self::places::{BrokerPlaces, BrokerPlan, sites_of};
use crate::error::{BrokerageError, BrokerageResult, failed, usage};

mod lives;
mod places;

use self::lives::{Deaths, Lives};

/// One that is active, and one that takes over.
pub const ROUTERS: usize = 2;
/// A process that does not end on a signal is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// The command of this program that runs a site.
const SITE_RUN: &[&str] = &["broker", "site"];

/// Ends this process with the one that started it, if that is asked for.
pub(crate) fn end_with(parent: Option<u32>) -> BrokerageResult {
    let Some(parent) = parent else { return Ok(()) };
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    bound.map_err(|error| BrokerageError::io("binding this process to its parent")(error.into()))?;
    let is_there = rustix::process::getppid().is_some_and(|id| id.as_raw_nonzero().get() as u32 == parent);
    if is_there { Ok(()) } else { Err(usage("the parent process has ended")) }
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
    /// The router of that number.
    Router(usize),
}

impl std::fmt::Display for BrokerPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Site(site) => write!(f, "site {}", sites::name(*site)),
            Self::Desk(desk) => write!(f, "desk {desk}"),
            Self::Front(front) => write!(f, "front {front}"),
            Self::Router(router) => write!(f, "router {router}"),
        }
    }
}

/// What processes receive besides where the others are.
#[derive(Clone, Debug, Default)]
pub struct ToldBesides {
    /// Where fronts write dumps to; without, to a folder `logs` beside the sites.
    pub logs: Option<PathBuf>,
    /// Arguments of fronts.
    pub fronts: Vec<OsString>,
    /// Arguments of routers; without any there are none.
    pub routers: Vec<OsString>,
}

/// All processes of a broker. Dropping them kills them.
pub struct Children {
    dir: PathBuf,
    told: ToldBesides,
    program: PathBuf,
    speech: ChildOutput,
    places: BrokerPlaces,
    all_sites: Vec<BrokerPart>,
    sites: Processes,
    running: BTreeMap<BrokerPart, Child>,
    /// What is to be started, and when.
    due: Vec<(BrokerPart, Instant)>,
    lives: Lives,
}

impl Children {
    /// Starts all of them.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn start(
        dir: &Path,
        speech: ChildOutput,
        config: &SitesConfig,
        places: BrokerPlaces,
        told: ToldBesides,
    ) -> BrokerageResult<Self> {
        let program = std::env::current_exe();
        let program = program.map_err(BrokerageError::io("finding the path of this program"))?;
        let now = Instant::now();
        let all_sites: Vec<_> = sites::all(config).into_iter().map(BrokerPart::Site).collect();
        let desks = (0..places.desks.len()).map(BrokerPart::Desk);
        let fronts = (0..places.fronts.len()).map(BrokerPart::Front);
        let routers = if told.routers.is_empty() { 0 } else { ROUTERS };
        let routers = (0..routers).map(BrokerPart::Router);
        let others = desks.chain(fronts).chain(routers);
        let due = all_sites.iter().copied().chain(others).map(|part| (part, now)).collect();
        let mut children = Self {
            dir: dir.to_owned(),
            told,
            program,
            speech,
            places,
            all_sites,
            sites: Processes::new(dir, speech, SITE_RUN).map_err(failed)?,
            running: BTreeMap::new(),
            due,
            lives: Lives::default(),
        };
        children.revive()?;
        Ok(children)
    }

    /// Where they are.
    pub fn places(&self) -> &BrokerPlaces {
        &self.places
    }

    /// Starts again what has died, when its time has come; what was found dead, how it ended and what it said, and what becomes of it.
    ///
    /// # Errors
    /// If the operating system refuses; if no site, or no front, can serve, and none will if it is tried again.
    pub fn revive(&mut self) -> BrokerageResult<Vec<String>> {
        let mut said = Vec::new();
        for (part, how) in self.dead()? {
            let pause = self.lives.died(part, how);
            let last = if how.code().is_some() { self.last_words(part) } else { String::new() };
            said.push(self.lives.told(part, how, pause, &last));
            self.due.push((part, Instant::now() + pause));
        }
        if !said.is_empty() {
            self.serves().map_err(|why| why.after(&said))?;
        }
        for (part, _) in self.due.extract_if(.., |(_, at)| *at <= Instant::now()).collect::<Vec<_>>() {
            self.begin(part).map_err(|why| if said.is_empty() { why } else { why.after(&said) })?;
        }
        Ok(said)
    }

    /// Those that have ended by themselves since it was asked last.
    fn dead(&mut self) -> BrokerageResult<Vec<(BrokerPart, ExitStatus)>> {
        let ended = self.sites.ended().map_err(failed)?;
        let mut dead: Vec<_> = ended.into_iter().map(|(site, how)| (BrokerPart::Site(site), how)).collect();
        for (part, child) in &mut self.running {
            let ended = child.try_wait().map_err(BrokerageError::io(format!("looking after {part}")))?;
            dead.extend(ended.map(|how| (*part, how)));
        }
        dead.iter().for_each(|(part, _)| drop(self.running.remove(part)));
        Ok(dead)
    }

    /// Whether there is a site, and a front, that serves, or may if it is tried again.
    fn serves(&self) -> BrokerageResult {
        let fronts: Vec<_> = (0..self.places.fronts.len()).map(BrokerPart::Front).collect();
        match (self.lives.of_all(&self.all_sites), self.lives.of_all(&fronts)) {
            (Deaths::Damage, _) => Err(BrokerageError::Damaged("every site needs repair".into())),
            (Deaths::InVain, _) => Err(failed("no site can run")),
            (_, Deaths::Damage | Deaths::InVain) => Err(failed("no front can run")),
            _ => Ok(()),
        }
    }

    /// What a part said last, if that is in a file.
    fn last_words(&self, part: BrokerPart) -> String {
        match self.speech {
            ChildOutput::File => lives::last_lines(&self.log_of(part)),
            ChildOutput::Here => String::new(),
        }
    }

    /// Where a part writes what it says.
    fn log_of(&self, part: BrokerPart) -> PathBuf {
        self.dir.join(match part {
            BrokerPart::Site(site) => format!("site-{}-{}.log", site.cluster.0, site.number),
            other => format!("{other}.log").replace(' ', "-"),
        })
    }

    /// Starts a part now, if it does not run.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn begin(&mut self, part: BrokerPart) -> BrokerageResult {
        self.due.retain(|(other, _)| *other != part);
        self.lives.began(part);
        if let BrokerPart::Site(site) = part {
            return self.sites.start(site).map_err(failed);
        }
        let mut command = self.command(part);
        if self.speech == ChildOutput::File {
            let path = self.log_of(part);
            let log = || -> std::io::Result<File> {
                pares_os::open_file(OpenOptions::new().create(true).append(true), &path)
            };
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
                let logs = self.told.logs.clone().unwrap_or_else(|| self.dir.join("logs"));
                command.arg("--dir").arg(&self.dir).arg("--logs").arg(logs).args(&self.told.fronts);
            }
            BrokerPart::Router(_) => {
                command.arg("router").arg("--dir").arg(&self.dir).args(&self.told.routers);
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

    /// Lets a stopped part continue.
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

    /// Ends all that are no sites; they are not started again.
    pub fn end_all_but_sites(&mut self) {
        let left: Vec<BrokerPart> = self.running.keys().copied().collect();
        self.kill(&left);
        self.due.retain(|(part, _)| matches!(part, BrokerPart::Site(_)));
    }

    /// Ends all politely: fronts, then desks and routers, then sites; and those that do not listen otherwise.
    pub fn stop(&mut self) {
        self.due.clear();
        self.end(|part| matches!(part, BrokerPart::Front(_)));
        self.end(|_| true);
        self.sites.stop();
    }

    /// Ends those of them that are no sites.
    fn end(&mut self, is_meant: fn(&BrokerPart) -> bool) {
        let meant: Vec<BrokerPart> = self.running.keys().copied().filter(is_meant).collect();
        meant.iter().for_each(|part| self.signal(*part, Signal::TERM));
        let told = Instant::now();
        let mut lives = |part: &BrokerPart| {
            self.running.get_mut(part).is_some_and(|child| matches!(child.try_wait(), Ok(None)))
        };
        while told.elapsed() < STOP_PATIENCE && meant.iter().any(&mut lives) {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill(&meant);
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.end_all_but_sites();
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use pares_wice::ClusterId;

    use super::*;

    /// One that makes a file when it is there, and writes a line when it has ended, which takes it a moment.
    fn slow(name: &str, pause: &str, dir: &Path) -> Child {
        let script = format!(
            "trap 'sleep {pause}; echo {name} >> ended; exit' TERM; touch {name}; while :; do sleep 0.01; done"
        );
        Command::new("sh").args(["-c", &script]).current_dir(dir).spawn().unwrap()
    }

    /// None of them, yet.
    fn none(dir: &Path) -> Children {
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 1));
        let (desks, fronts, pages) = (Vec::new(), Vec::new(), Vec::new());
        Children {
            dir: dir.to_owned(),
            told: ToldBesides::default(),
            program: PathBuf::new(),
            speech: ChildOutput::Here,
            places: BrokerPlaces { quote_server: nowhere, desks, fronts, pages },
            all_sites: Vec::new(),
            sites: Processes::new(dir, ChildOutput::Here, SITE_RUN).unwrap(),
            running: BTreeMap::new(),
            due: Vec::new(),
            lives: Lives::default(),
        }
    }

    #[test]
    fn starting_front_ends_with_others_site_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut children = none(dir.path());
        let site = BrokerPart::Site(SiteId { cluster: ClusterId(0), number: 1 });
        children.due =
            [BrokerPart::Front(0), site, BrokerPart::Desk(0)].map(|part| (part, Instant::now())).into();
        children.end_all_but_sites();
        assert_eq!(children.due.iter().map(|(part, _)| *part).collect::<Vec<_>>(), [site]);
    }

    #[test]
    fn fronts_have_ended_before_desks_and_routers_are_told_to() {
        let dir = tempfile::tempdir().unwrap();
        let mut children = none(dir.path());
        for (part, name, pause) in [
            (BrokerPart::Front(0), "front", "0.3"),
            (BrokerPart::Desk(0), "desk", "0"),
            (BrokerPart::Router(0), "router", "0.1"),
        ] {
            children.running.insert(part, slow(name, pause, dir.path()));
            while !dir.path().join(name).exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        children.stop();
        let ended = std::fs::read_to_string(dir.path().join("ended")).unwrap();
        assert_eq!(ended, "front\ndesk\nrouter\n");
    }
}
