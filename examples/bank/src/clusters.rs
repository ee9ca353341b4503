//! Two clusters of sites on this machine, as far apart as one likes: processes that can be killed, a link that can be cut.
//!
//! Everything lies in a temporary directory. The sites' addresses are on a loopback address of this run's own (127.0.0.0/8 is all ours): a port
//! of 127.0.0.1 could be taken by another process's outgoing connection while its site is down.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pares_link::Door;
use pares_site::config::{Place, Promise, SiteLimits};
use pares_site::{Access, SitesConfig};
use pares_wan::{Conditions, Forward, Handle, Proxy, ProxySettings};
use pares_wice::{Isolation, SiteId};
use tempfile::TempDir;

/// How many clusters.
pub const CLUSTERS: u8 = 2;

/// Who uses the sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    /// Has transfers executed.
    Teller,
    /// Only looks.
    Auditor,
    /// Decides.
    Desk,
}

impl Who {
    /// What the sites know him by; it says what he may.
    fn certificate(self) -> &'static str {
        match self {
            Self::Teller => "client-teller",
            Self::Auditor => "reader-auditor",
            Self::Desk => "operator-desk",
        }
    }
}

/// All processes. Dropping it kills them and removes their files.
pub struct Clusters {
    dir: TempDir,
    config: SitesConfig,
    access: BTreeMap<Who, Access>,
    program: PathBuf,
    running: BTreeMap<SiteId, Child>,
    link: Handle,
    cut: bool,
    _proxy: Proxy,
}

impl Clusters {
    /// Makes the directory, the certificates and the link, and starts `sites` sites in each cluster.
    pub fn start(sites: u8, round_trip: Duration, store: Option<String>) -> Result<Self, Box<dyn Error>> {
        let dir = TempDir::with_prefix("pares-bank-")?;
        let mut places = places(sites)?;
        let proxy = distant(&mut places, round_trip)?;
        let numbers: Vec<u16> =
            places.iter().map(|place| u16::from_be_bytes([place.cluster, place.number])).collect();
        pares_link::issue(&dir.path().join("certificates"), "bank", &numbers)?;
        let config = SitesConfig {
            system: "bank".into(),
            identity: SitesConfig::draw_identity(),
            durability: Promise::Os, // processes are killed here, power is not cut
            isolation: Isolation::Snapshot,
            certifier: 0,
            begins: 0,
            tls: Some("certificates".into()),
            store,
            limits: SiteLimits::default(),
            plain: false,
            witness: None,
            sites: places,
        };
        std::fs::write(dir.path().join("sites.toml"), config.to_text())?;
        config.make_directories(dir.path())?;
        let mut access = BTreeMap::new();
        for who in [Who::Teller, Who::Auditor, Who::Desk] {
            pares_link::issue_named(&dir.path().join("certificates"), "bank", who.certificate())?;
            access.insert(who, Access::named(config.clone(), dir.path(), &[who.certificate()])?);
        }
        let (program, link) = (std::env::current_exe()?, proxy.handle());
        let mut all =
            Self { dir, config, access, program, running: BTreeMap::new(), link, cut: false, _proxy: proxy };
        for site in all.sites() {
            all.run(site)?;
        }
        Ok(all)
    }

    /// All sites, running or not.
    pub fn sites(&self) -> Vec<SiteId> {
        self.config.sites.iter().map(Place::id).collect()
    }

    /// The sites of a cluster.
    pub fn sites_of(&self, cluster: u8) -> Vec<SiteId> {
        self.sites().into_iter().filter(|site| site.cluster.0 == cluster).collect()
    }

    /// Where a site lets him in.
    pub fn door(&self, who: Who, site: SiteId) -> Door {
        self.access[&who].door(site).expect("one of ours")
    }

    /// Whether the site's process is there.
    pub fn is_up(&self, site: SiteId) -> bool {
        self.running.contains_key(&site)
    }

    /// Starts a site that is down. Must be called by the thread that lives longest: the kernel ends the site with it.
    pub fn run(&mut self, site: SiteId) -> Result<(), Box<dyn Error>> {
        if self.is_up(site) {
            return Ok(());
        }
        let name = format!("{}.{}", site.cluster.0, site.number);
        let words = File::options().create(true).append(true).open(self.words_of(site))?;
        let child = Command::new(&self.program)
            .arg("site")
            .args(["--site", &name, "--parent", &std::process::id().to_string(), "--dir"])
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words)
            .process_group(0) // Ctrl-C is for the bank, not for its sites
            .spawn()?;
        self.running.insert(site, child);
        Ok(())
    }

    /// SIGKILL: the site can say and save nothing more. Whether there was something to kill.
    pub fn kill(&mut self, site: SiteId) -> bool {
        let Some(mut child) = self.running.remove(&site) else { return false };
        // It can only have ended by itself already.
        let _ = child.kill();
        let _ = child.wait();
        true
    }

    /// A site that ended without having been killed, and its last words.
    pub fn ended(&mut self) -> Option<(SiteId, String)> {
        let ended = |child: &mut Child| !matches!(child.try_wait(), Ok(None));
        let site = self.running.iter_mut().find_map(|(site, child)| ended(child).then_some(*site))?;
        self.running.remove(&site);
        let words = std::fs::read_to_string(self.words_of(site)).unwrap_or_default();
        let last: Vec<&str> = words.lines().rev().take(3).collect();
        Some((site, last.into_iter().rev().collect::<Vec<_>>().join(" / ")))
    }

    /// Whether the link is cut.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// Cuts the link between the clusters, or heals it.
    pub fn cut(&mut self, cut: bool) {
        self.cut = cut;
        if cut { self.link.cut() } else { self.link.heal() }
    }

    fn words_of(&self, site: SiteId) -> PathBuf {
        self.dir.path().join(format!("{}.{}.log", site.cluster.0, site.number))
    }
}

impl Drop for Clusters {
    fn drop(&mut self) {
        for site in self.sites() {
            self.kill(site);
        }
    }
}

/// Addresses that are free now and will be for this run.
fn places(sites: u8) -> Result<Vec<Place>, Box<dyn Error>> {
    let first = std::process::id();
    let run = (first..first + 100).map(|n| {
        let part = |shift: u32| u8::try_from(n >> shift & 0x7f).expect("7 bits") + 1;
        IpAddr::V4(Ipv4Addr::new(127, part(14), part(7), part(0)))
    });
    for ip in run {
        let ids = (0..CLUSTERS).flat_map(|cluster| (0..sites).map(move |number| (cluster, number)));
        let places: Vec<Place> = ids
            .map(|(cluster, number)| {
                let port = 7_100 + 10 * u16::from(cluster) + u16::from(number);
                let (peers, clients) = (SocketAddr::new(ip, port), SocketAddr::new(ip, port + 100));
                Place::new(cluster, number, peers, clients)
            })
            .collect();
        let wanted = places.iter().flat_map(|place| [place.peers, place.clients]);
        if wanted.map(TcpListener::bind).collect::<Result<Vec<_>, _>>().is_ok() {
            return Ok(places);
        }
    }
    Err("no loopback address has the ports 7100 to 7229 free".into())
}

/// Sites of other clusters reach each other through this proxy only.
fn distant(places: &mut [Place], round_trip: Duration) -> Result<Proxy, Box<dyn Error>> {
    let way = Conditions::delayed(round_trip / 2);
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut settings = ProxySettings::to(places[0].peers, round_trip / 2);
    settings.forwards = places.iter().map(|place| Forward { listen, target: place.peers }).collect();
    (settings.forth, settings.back) = (way, way);
    let proxy = Proxy::start(settings)?;
    for (place, address) in places.iter_mut().zip(proxy.addresses()) {
        place.far = Some(*address);
    }
    Ok(proxy)
}
