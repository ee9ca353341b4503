//! Two clusters of three sites, as processes of this machine, with a wide area network between them.
//!
//! ```text
//!   0.0  0.1  0.2  --dial-->  proxy: half the round trip each way, cut on demand  -->  1.0  1.1  1.2
//! ```
//! The site with the lower number dials, so one proxy in front of the second cluster's sites carries all that passes between the clusters.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_load::{LabError, LabResult};
use pares_operator::init;
use pares_operator::sites::{self, Processes, Speech};
use pares_site::config::{Level, Promise};
use pares_site::{Access, Client, SitesConfig, Worked};
use pares_wan::{Forward, Handle, Proxy, ProxySettings};
use pares_wice::SiteId;

/// Sites in each cluster.
pub(super) const SITES: u8 = 3;
/// Everything here takes moments; on a machine that does other things too, longer.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// A running system. Its directory goes with it.
pub(super) struct Stage {
    /// As an operator sees the system.
    pub(super) operator: Access,
    /// As its clients do.
    pub(super) client: Access,
    pub(super) processes: Processes,
    pub(super) link: Handle,
    dir: PathBuf,
    keep: bool,
    _proxy: Proxy,
}

impl Stage {
    /// Starts both clusters, and waits until they answer.
    pub(super) fn start(
        durability: Promise,
        isolation: Level,
        rtt: Duration,
        dir: Option<&Path>,
        store: Option<String>,
    ) -> Result<Self, LabError> {
        let keep = dir.is_some();
        let scratch = || std::env::temp_dir().join(format!("pares-drill-wice-{}", std::process::id()));
        let dir = dir.map_or_else(scratch, Path::to_path_buf);
        let init = init::Args {
            clusters: 2,
            sites: SITES,
            system: "drill".into(),
            durability,
            no_tls: false,
            store,
            sql: false,
        };
        let mut config = SitesConfig { isolation, ..init::configuration(&init)? };
        let proxy = put_apart(&mut config, rtt / 2)?;
        init::write(&config, &dir)?;
        let processes = Processes::new(&dir, Speech::File)?;
        let operator = Access::named(config.clone(), &dir, &[init::OPERATOR])?;
        let client = Access::named(config, &dir, &[init::CLIENT])?;
        let mut stage = Self { operator, client, processes, link: proxy.handle(), dir, keep, _proxy: proxy };
        stage.start_sites(&stage.all())?;
        stage.until("the first answers", |stage| stage.answers(0) && stage.answers(1))?;
        Ok(stage)
    }

    /// What failed can be looked at: the directory stays.
    pub(super) fn keep(&mut self) {
        self.keep = true;
        pares_text::tell!("what the sites have and said is kept in {}", self.dir.display());
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn all(&self) -> Vec<SiteId> {
        sites::all(&self.operator.config)
    }

    pub(super) fn of(&self, cluster: u8) -> Vec<SiteId> {
        self.all().into_iter().filter(|site| site.cluster.0 == cluster).collect()
    }

    pub(super) fn start_sites(&mut self, sites: &[SiteId]) -> LabResult {
        sites.iter().try_for_each(|site| self.processes.start(*site))?;
        Ok(())
    }

    /// A client of one site, which executes nothing.
    pub(super) fn reader(&self, site: SiteId) -> Result<Client, LabError> {
        Ok(sites::operator(&self.operator, site)?)
    }

    /// What a site reads at its stable version.
    pub(super) fn read(&self, site: SiteId, request: &str) -> Result<String, LabError> {
        let reply = self.reader(site)?.read(request.as_bytes(), PATIENCE);
        let reply = reply.map_err(|error| LabError::Failed(format!("{site}: {error}")))?;
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }

    /// Whether a cluster executes, which it only does when it has found its delegate and the certifier.
    fn answers(&self, cluster: u8) -> bool {
        let number = u64::MAX - 1 - u64::from(cluster);
        let client = self.client.client(number, 0, &self.of(cluster));
        client.is_ok_and(|mut client| client.execute(b"put started yes", PATIENCE).is_ok())
    }

    /// The site that certifies.
    pub(super) fn certifier(&self) -> Result<SiteId, LabError> {
        self.wait("a certifier", |stage| sites::certifier(&stage.operator))
    }

    /// A cluster's delegate.
    pub(super) fn delegate(&self, cluster: u8) -> Result<SiteId, LabError> {
        self.wait("a delegate", |stage| sites::delegate(&stage.operator, cluster))
    }

    /// What the sites of a cluster did since they started, together. Waits for each: a sum without one that is slow to say would go back.
    pub(super) fn worked(&self, cluster: u8) -> Result<Worked, LabError> {
        let reports = self.wait("what the sites did", |stage| {
            stage
                .of(cluster)
                .into_iter()
                .map(|site| sites::report(&stage.operator, site))
                .collect::<Option<Vec<_>>>()
        })?;
        Ok(reports.into_iter().fold(Worked::default(), |sum, pares_site::SiteReport { work, .. }| Worked {
            executed: sum.executed + work.executed,
            lost: sum.lost + work.lost,
            forwarded: sum.forwarded + work.forwarded,
            done: sum.done + work.done,
            unknown: sum.unknown + work.unknown,
        }))
    }

    /// Waits until something is so.
    pub(super) fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> LabResult {
        self.until_within(what, PATIENCE, is_so)
    }

    /// The same, for what takes longer.
    pub(super) fn until_within(
        &self,
        what: &str,
        patience: Duration,
        is_so: impl Fn(&Self) -> bool,
    ) -> LabResult {
        self.wait_within(what, patience, |stage| is_so(stage).then_some(()))
    }

    fn wait<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> Result<T, LabError> {
        self.wait_within(what, PATIENCE, look)
    }

    fn wait_within<T>(
        &self,
        what: &str,
        patience: Duration,
        look: impl Fn(&Self) -> Option<T>,
    ) -> Result<T, LabError> {
        let began = Instant::now();
        while began.elapsed() < patience {
            if let Some(seen) = look(self) {
                return Ok(seen);
            }
            std::thread::sleep(PAUSE);
        }
        Err(LabError::Failed(format!(
            "{what}: not within {patience:?}; {} has what the sites said",
            self.dir.display()
        )))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.processes.stop();
        if !self.keep {
            // A directory that stays behind is found by its name.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Puts a proxy in front of the second cluster.
fn put_apart(config: &mut SitesConfig, delay: Duration) -> Result<Proxy, LabError> {
    let far: Vec<usize> = (0..config.sites.len()).filter(|&at| config.sites[at].cluster == 1).collect();
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let forwards = far.iter().map(|&at| Forward { listen: any, target: config.sites[at].peers }).collect();
    let settings = ProxySettings { forwards, ..ProxySettings::to(any, delay) };
    let proxy = Proxy::start(settings).map_err(LabError::io("starting the proxy between the clusters"))?;
    for (&at, &address) in far.iter().zip(proxy.addresses()) {
        config.sites[at].far = Some(address);
    }
    Ok(proxy)
}
