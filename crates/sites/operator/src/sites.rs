//! Sites of a replicated database as processes of this machine, and what they say of themselves.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pares_site::config::Place;
use pares_site::{Access, Client, ConfigError, SiteReport, SitesConfig};
use pares_wice::SiteId;
use rustix::process::{Pid, Signal, kill_process};

use crate::error::OperatorError;

/// Longest wait for a connection to a site or the witness, and again for an answer. A packet that is lost is sent again within it. A site that is silent for longer counts as down.
pub(crate) const ANSWER_PATIENCE: Duration = Duration::from_secs(2);
/// A site that does not end within this time is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// Clients that only ask how sites are, or tell them what was decided, execute nothing; so all can have this number.
pub(crate) const OPERATOR: u64 = u64::MAX;

/// The command that runs a site of `pares site`.
pub const SITE_RUN: &[&str] = &["site", "run"];

/// Where processes write what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildOutput {
    /// Where this process does.
    Here,
    /// Into `site-C-N.log` beside `sites.toml`.
    File,
}

/// Processes of a system's sites. Dropping them kills them.
pub struct Processes {
    program: PathBuf,
    /// The command of this program that runs a site.
    command: &'static [&'static str],
    dir: PathBuf,
    speech: ChildOutput,
    running: BTreeMap<SiteId, Child>,
}

impl Processes {
    /// None yet. They will be this program, with `command` and the arguments of `site run` behind it.
    ///
    /// # Errors
    /// If this program does not know where it is.
    pub fn new(
        dir: &Path,
        speech: ChildOutput,
        command: &'static [&'static str],
    ) -> Result<Self, OperatorError> {
        Ok(Self {
            command,
            program: std::env::current_exe()
                .map_err(OperatorError::io("finding the path of this program"))?,
            dir: dir.to_owned(),
            speech,
            running: BTreeMap::new(),
        })
    }

    /// Starts a site. It ends with the thread that calls this.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn start(&mut self, site: SiteId) -> Result<(), OperatorError> {
        let mut command = Command::new(&self.program);
        let own = std::process::id().to_string();
        command.args(self.command);
        command.args(["--with-parent", &own, "--site", &name(site), "--dir"]).arg(&self.dir);
        if self.speech == ChildOutput::File {
            command.stdout(self.log(site)?).stderr(self.log(site)?);
        }
        let child = command.stdin(Stdio::null()).spawn();
        self.running.insert(site, child.map_err(OperatorError::io(format!("starting {site}")))?);
        Ok(())
    }

    /// The processes that were started and not found to have ended.
    pub fn ids(&self) -> impl Iterator<Item = (SiteId, u32)> {
        self.running.iter().map(|(site, child)| (*site, child.id()))
    }

    fn log(&self, site: SiteId) -> Result<File, OperatorError> {
        let path = self.dir.join(format!("site-{}-{}.log", site.cluster.0, site.number));
        let opened = pares_os::open_file(OpenOptions::new().create(true).append(true), &path);
        opened.map_err(OperatorError::io(format!("opening {}", path.display())))
    }

    /// Ends a site with SIGKILL, and waits until it is gone.
    pub fn kill(&mut self, site: SiteId) {
        if let Some(mut child) = self.running.remove(&site) {
            // It may have ended by itself; then there is nothing to kill.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Ends several at once: none lives on while another is waited for.
    pub fn kill_all(&mut self, sites: &[SiteId]) {
        for site in sites {
            // One that has ended by itself is not killed.
            let _ = self.running.get_mut(site).map(Child::kill);
        }
        sites.iter().for_each(|site| self.kill(*site));
    }

    /// Those that have ended by themselves since it was asked last.
    ///
    /// # Errors
    /// If the operating system does not say.
    pub fn ended(&mut self) -> Result<Vec<(SiteId, ExitStatus)>, OperatorError> {
        let mut ended = Vec::new();
        for (site, child) in &mut self.running {
            if let Some(how) = child.try_wait().map_err(OperatorError::io(format!("looking after {site}")))? {
                ended.push((*site, how));
            }
        }
        ended.iter().for_each(|(site, _)| drop(self.running.remove(site)));
        Ok(ended)
    }

    /// Ends all politely, and those that do not listen otherwise.
    pub fn stop(&mut self) {
        let all: Vec<SiteId> = self.running.keys().copied().collect();
        self.stop_those(&all);
    }

    /// Ends these politely, and those that do not listen otherwise.
    pub fn stop_those(&mut self, sites: &[SiteId]) {
        for child in sites.iter().filter_map(|site| self.running.get(site)) {
            if let Some(id) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // It may have ended by itself.
                let _ = kill_process(id, Signal::TERM);
            }
        }
        let told = Instant::now();
        let lives = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        while told.elapsed() < STOP_PATIENCE
            && sites.iter().any(|site| self.running.get_mut(site).is_some_and(lives))
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill_all(sites);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        let left: Vec<SiteId> = self.running.keys().copied().collect();
        self.kill_all(&left);
    }
}

/// How people and arguments name a site: `0.1`.
pub fn name(site: SiteId) -> String {
    format!("{}.{}", site.cluster.0, site.number)
}

/// The other way round, for arguments.
///
/// # Errors
/// If it is none.
pub fn parse(text: &str) -> Result<SiteId, String> {
    let parts = text
        .split_once('.')
        .and_then(|(cluster, number)| Some((cluster.parse().ok()?, number.parse().ok()?)));
    let (cluster, number) = parts.ok_or("a site must be CLUSTER.NUMBER, as in 0.1")?;
    Ok(SiteId::new(cluster, number))
}

/// All sites, in order.
pub fn all(config: &SitesConfig) -> Vec<SiteId> {
    let mut sites: Vec<SiteId> = config.sites.iter().map(Place::id).collect();
    sites.sort_unstable();
    sites
}

/// The same, this one first.
///
/// # Errors
/// If there is no such site.
pub(crate) fn from(config: &SitesConfig, first: Option<SiteId>) -> Result<Vec<SiteId>, ConfigError> {
    let mut order = all(config);
    if let Some(first) = first {
        config.place(first)?;
        order.sort_by_key(|site| *site != first);
    }
    Ok(order)
}

/// The clusters that have a site in `sites.toml`, in order.
pub(crate) fn clusters(config: &SitesConfig) -> Vec<u8> {
    let mut clusters: Vec<u8> = config.sites.iter().map(|place| place.cluster).collect();
    clusters.sort_unstable();
    clusters.dedup();
    clusters
}

/// A client that tells a site what was decided, or asks how it is.
///
/// # Errors
/// If there is no such site.
pub fn operator(access: &Access, site: SiteId) -> Result<Client, OperatorError> {
    Ok(access.client(OPERATOR, 0, &[site])?)
}

/// How a site is; nothing if it does not say.
pub fn report(access: &Access, site: SiteId) -> Option<SiteReport> {
    asked(access, site).ok()
}

/// How a site is, or why it does not say.
pub(crate) fn asked(access: &Access, site: SiteId) -> Result<SiteReport, String> {
    // A client would try again until its patience ends; where no process listens the site is down.
    let address = access.config.place(site).map_err(|error| error.to_string())?.clients;
    TcpStream::connect_timeout(&address, ANSWER_PATIENCE).map_err(|error| error.to_string())?;
    let mut client = operator(access, site).map_err(|error| error.to_string())?;
    let said = client.report(ANSWER_PATIENCE).map_err(|error| error.to_string())?;
    serde_json::from_slice(&said).map_err(|error| error.to_string())
}

/// How those sites are that say so; asked all at once, since one that hangs takes its time.
pub fn reports(access: &Access) -> Vec<(SiteId, SiteReport)> {
    all_asked(access).into_iter().filter_map(|(site, said)| Some((site, said.ok()?))).collect()
}

/// Why no site accepts connections, the first one's reason; nothing if one does.
pub fn unreachable(access: &Access) -> Option<String> {
    let addresses = access.config.sites.iter().map(|place| place.clients);
    std::thread::scope(|scope| {
        let tried =
            |address| scope.spawn(move || TcpStream::connect_timeout(&address, ANSWER_PATIENCE).map(drop));
        let threads: Vec<_> = addresses.map(|address| (address, tried(address))).collect();
        let mut why = None;
        for (address, thread) in threads {
            // A thread that panics has printed why.
            let Ok(Err(error)) = thread.join() else { return None };
            why.get_or_insert(format!("{address}: {error}"));
        }
        why
    })
}

/// How all sites are, or why they do not say; asked all at once.
pub(crate) fn all_asked(access: &Access) -> Vec<(SiteId, Result<SiteReport, String>)> {
    std::thread::scope(|scope| {
        let ask = |site| (site, scope.spawn(move || asked(access, site)));
        let threads: Vec<_> = all(&access.config).into_iter().map(ask).collect();
        // A thread that panics has printed why; its site says nothing.
        let said = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err("asking it failed".into()))
        };
        threads.into_iter().map(|(site, thread)| (site, said(thread))).collect()
    })
}

/// The site that certifies, if one says so.
pub fn certifier(access: &Access) -> Option<SiteId> {
    let certifying = reports(access).into_iter().filter(|(_, report)| report.certifies);
    // One that was cut off may not know yet that it does not any more.
    certifying.max_by_key(|(_, report)| (report.era, report.term)).map(|(site, _)| site)
}

/// A cluster's delegate, if one says so.
pub fn delegate(access: &Access, cluster: u8) -> Option<SiteId> {
    let here = reports(access).into_iter().filter(|(site, _)| site.cluster.0 == cluster);
    here.into_iter().find(|(_, report)| report.delegate).map(|(site, _)| site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_named_as_it_is_read() {
        assert_eq!(parse(&name(SiteId::new(1, 2))), Ok(SiteId::new(1, 2)));
        for wrong in ["", "1", "1.", ".2", "1.2.3", "256.0", "a.b"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn unreachable_sites_are_known_before_asking() {
        let there = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let text = "system = \"x\"\nidentity = \"0123456789abcdef0123456789abcdef\"\nplain = true\nsite = []";
        let access = |clients: &[std::net::SocketAddr]| {
            let place = |(number, clients)| Place::new(0, number, ([127, 0, 0, 1], 1).into(), clients);
            let sites = (0..).zip(clients.iter().copied()).map(place).collect();
            let config = SitesConfig { sites, ..toml::from_str(text).unwrap() };
            Access::named(config, Path::new("."), &["nobody"]).unwrap()
        };
        let (there, gone) = (there.local_addr().unwrap(), left());
        assert_eq!(unreachable(&access(&[gone, there])), None);
        let why = unreachable(&access(&[gone, gone])).unwrap();
        assert!(why.contains(&gone.to_string()) && why.contains("refused"), "{why}");
    }

    /// Where no process listens any more.
    fn left() -> std::net::SocketAddr {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    }
}
