//! Clusters of sites, as processes of this machine, with a wide area network between them.
//!
//! ```text
//!   0.0  0.1  0.2  --dial-->  proxy: half the round trip each way, cut on demand  -->  1.0  1.1  1.2
//! ```
//! The site with the lower number dials, so one proxy in front of the sites of all clusters but the first carries all that passes between clusters.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_operator::init;
use pares_operator::sites::{self, ChildOutput, Processes};
use pares_site::config::Promise;
use pares_site::protocol::Code;
use pares_site::{Access, CallError, Client, SitesConfig, Worked};
use pares_wan::{Forward, Handle, Proxy, ProxySettings};
use pares_wice::{Isolation, SiteId};

use crate::error::{LabError, LabResult};

/// Everything here takes moments; on a machine that does other things too, longer.
pub const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(5);

/// A system to be run.
#[derive(Clone, Copy, Debug)]
pub struct SitesPlan<'a> {
    /// How many clusters, 1 to 64.
    pub clusters: u8,
    /// Sites in each, 1 to 9.
    pub sites: u8,
    /// What an answer promises.
    pub durability: Promise,
    /// What counts as a conflict.
    pub isolation: Isolation,
    /// Round trip between two clusters.
    pub rtt: Duration,
    /// Where the sites' directories are kept, which must not exist; without, somewhere until the end.
    pub dir: Option<&'a Path>,
    /// Where the sites' items are, as in `sites.toml`; without, in files of their own.
    pub store: Option<&'a str>,
    /// The command of this program that runs a site.
    pub command: &'static [&'static str],
}

/// A running system. Its directory goes with it.
pub struct DistantSites {
    /// As an operator sees the system.
    pub operator: Access,
    /// As its clients do.
    pub client: Access,
    /// Its sites.
    pub processes: Processes,
    /// What is between the clusters.
    pub link: Handle,
    dir: PathBuf,
    keep: bool,
    _proxy: Proxy,
}

impl DistantSites {
    /// Starts all clusters, and waits until they answer.
    ///
    /// # Errors
    /// If they do not within [`PATIENCE`], or cannot be started.
    pub fn start(plan: &SitesPlan<'_>) -> Result<Self, LabError> {
        let scratch = || std::env::temp_dir().join(format!("pares-sites-{}", std::process::id()));
        let dir = plan.dir.map_or_else(scratch, Path::to_path_buf);
        let init = init::Args {
            clusters: plan.clusters,
            sites: plan.sites,
            system: "drill".into(),
            durability: plan.durability,
            no_tls: false,
            store: plan.store.map(str::to_owned),
            sql: false,
            witness: false,
        };
        let mut config = SitesConfig { isolation: plan.isolation, ..init::configuration(&init)? };
        let proxy = put_apart(&mut config, plan.rtt / 2)?;
        init::write(&config, &dir)?;
        let processes = Processes::new(&dir, ChildOutput::File, plan.command)?;
        let operator = Access::named(config.clone(), &dir, &[init::OPERATOR])?;
        let client = Access::named(config, &dir, &[init::CLIENT])?;
        let (link, keep) = (proxy.handle(), plan.dir.is_some());
        let mut sites = Self { operator, client, processes, link, dir, keep, _proxy: proxy };
        sites.start_sites(&sites.all())?;
        let all_answer = |sites: &Self| (0..plan.clusters).all(|cluster| sites.answers(cluster));
        sites.until("the first answers", all_answer)?;
        Ok(sites)
    }

    /// What failed can be looked at: the directory stays.
    pub fn keep(&mut self) {
        self.keep = true;
        pares_text::tell!("what the sites have and said is kept in {}", self.dir.display());
    }

    /// Where everything lies.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// All sites, running or not.
    pub fn all(&self) -> Vec<SiteId> {
        sites::all(&self.operator.config)
    }

    /// Those of a cluster.
    pub fn of(&self, cluster: u8) -> Vec<SiteId> {
        self.all().into_iter().filter(|site| site.cluster.0 == cluster).collect()
    }

    /// Starts these.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn start_sites(&mut self, sites: &[SiteId]) -> LabResult {
        sites.iter().try_for_each(|site| self.processes.start(*site))?;
        Ok(())
    }

    /// A client of one site, which executes nothing.
    ///
    /// # Errors
    /// If there is no such site.
    pub fn reader(&self, site: SiteId) -> Result<Client, LabError> {
        Ok(sites::operator(&self.operator, site)?)
    }

    /// What a site reads at its stable version.
    ///
    /// # Errors
    /// If it does not answer within [`PATIENCE`], or refuses.
    pub fn read(&self, site: SiteId, request: &[u8]) -> Result<Vec<u8>, LabError> {
        let reply = self.reader(site)?.read(request, PATIENCE);
        reply.map_err(|error| LabError::Failed(format!("{site}: {error}")))
    }

    /// The same, of an application that speaks text.
    ///
    /// # Errors
    /// As [`DistantSites::read`].
    pub fn read_text(&self, site: SiteId, request: &str) -> Result<String, LabError> {
        Ok(String::from_utf8_lossy(&self.read(site, request.as_bytes())?).into_owned())
    }

    /// Whether a cluster executes, which it only does when it has found its delegate and the certifier. Any application answers; one that does not know
    /// the request refuses.
    fn answers(&self, cluster: u8) -> bool {
        let number = (u64::MAX >> 1) - u64::from(cluster);
        let client = self.client.client(number, 0, &self.of(cluster));
        client.is_ok_and(|mut client| match client.execute(b"put started yes", PATIENCE) {
            Ok(_) | Err(CallError::No { code: Code::Refused, .. }) => true,
            Err(_) => false,
        })
    }

    /// The site that certifies.
    ///
    /// # Errors
    /// If there is none within [`PATIENCE`].
    pub fn certifier(&self) -> Result<SiteId, LabError> {
        self.wait("a certifier", |sites| sites::certifier(&sites.operator))
    }

    /// A cluster's delegate.
    ///
    /// # Errors
    /// If there is none within [`PATIENCE`].
    pub fn delegate(&self, cluster: u8) -> Result<SiteId, LabError> {
        self.wait("a delegate", |sites| sites::delegate(&sites.operator, cluster))
    }

    /// What the sites of a cluster did since they started, together. Waits for each: a sum without one that is slow to say would go back.
    ///
    /// # Errors
    /// If one does not say.
    pub fn worked(&self, cluster: u8) -> Result<Worked, LabError> {
        let reports = self.wait("what the sites did", |sites| {
            sites
                .of(cluster)
                .into_iter()
                .map(|site| sites::report(&sites.operator, site))
                .collect::<Option<Vec<_>>>()
        })?;
        Ok(reports.into_iter().fold(Worked::default(), |sum, report| sum.and(report.work)))
    }

    /// Whether all answer, and have and show the same version.
    pub fn in_step(&self) -> bool {
        let reports = sites::reports(&self.operator);
        let first = reports.first().map(|(_, report)| report.delivered);
        reports.len() == self.operator.config.sites.len()
            && reports.iter().all(|(_, report)| {
                Some(report.delivered) == first
                    && report.stable == report.delivered
                    && !report.recalling
                    && report.open == 0
            })
    }

    /// Waits until something is so.
    ///
    /// # Errors
    /// If it is not within [`PATIENCE`].
    pub fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) -> LabResult {
        self.until_within(what, PATIENCE, is_so)
    }

    /// The same, for what takes longer.
    ///
    /// # Errors
    /// If it is not within `patience`.
    pub fn until_within(&self, what: &str, patience: Duration, is_so: impl Fn(&Self) -> bool) -> LabResult {
        self.wait_within(what, patience, |sites| is_so(sites).then_some(()))
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

impl Drop for DistantSites {
    fn drop(&mut self) {
        self.processes.stop();
        if !self.keep {
            // A directory that stays behind is found by its name.
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// Puts a proxy in front of all clusters but the first.
fn put_apart(config: &mut SitesConfig, delay: Duration) -> Result<Proxy, LabError> {
    let far: Vec<usize> = (0..config.sites.len()).filter(|&at| config.sites[at].cluster != 0).collect();
    let any = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let forwards = far.iter().map(|&at| Forward { listen: any, target: config.sites[at].peers }).collect();
    let settings = ProxySettings { forwards, ..ProxySettings::to(any, delay) };
    let proxy = Proxy::start(settings).map_err(LabError::io("starting the proxy between the clusters"))?;
    for (&at, &address) in far.iter().zip(proxy.addresses()) {
        config.sites[at].far = Some(address);
    }
    Ok(proxy)
}
