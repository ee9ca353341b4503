//! Sites in threads of the test, on ports nobody else has.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_site::config::{Place, Promise, SiteLimits};
use pares_site::items::Items;
use pares_site::{Access, Application, Client, Process, ProcessError, SiteReport, SitesConfig};
use pares_store::StoreError;
use pares_wice::{Isolation, SiteId};

/// Long enough for anything, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A port nobody has. It is none of those that the system gives to connections: a site that is stopped and started again would find it taken.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = (std::process::id() as u16).wrapping_mul(53);
    let ports =
        std::iter::repeat_with(|| 20_000 + own.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % 12_000);
    let mut addresses = ports.take(1_000).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    addresses.find(|address| TcpListener::bind(address).is_ok()).unwrap()
}

/// What sites keep their items in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Redb,
    Postgres,
}

impl Engine {
    /// Databases that no other test has, one for each site; none where PostgreSQL is not installed.
    fn store(self) -> Option<Option<String>> {
        static NUMBER: AtomicU16 = AtomicU16::new(0);
        if self == Self::Redb {
            return Some(None);
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = pares_testbed::postgres::server()?.connection("");
        let host = place.split(' ').next().unwrap().trim_start_matches("host=");
        Some(Some(format!("postgres:///sites_{number}_{{cluster}}_{{number}}?host={host}&user=postgres")))
    }
}

/// Runs each of these tests, which take an engine, over every engine.
#[macro_export]
macro_rules! over_every_engine {
    ($($test:ident),* $(,)?) => {
        mod over_redb {
            $(#[test] fn $test() { super::$test($crate::common::Engine::Redb); })*
        }
        mod over_postgres {
            $(#[test] fn $test() { super::$test($crate::common::Engine::Postgres); })*
        }
    };
}
/// The system's name.
pub const SYSTEM: &str = "test";

/// Sites that can be stopped and started.
pub struct Sites<A = Items> {
    pub dir: PathBuf,
    pub config: SitesConfig,
    application: A,
    running: Vec<Running>,
    /// The version that sites speak which are started from now on.
    pub speaks: u16,
    /// How often a site has ended and begun anew since its store failed.
    pub ended: Arc<AtomicUsize>,
}

/// A site in its thread.
struct Running {
    site: SiteId,
    stop: Arc<AtomicBool>,
    takes_part: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Sites {
    /// `clusters` of `sites` each, all started, in `dir`.
    pub fn start(dir: &Path, clusters: u8, sites: u8) -> Self {
        Self::start_over(Engine::Redb, dir, clusters, sites).unwrap()
    }

    /// The same over `engine`, unless that is not installed.
    pub fn start_over(engine: Engine, dir: &Path, clusters: u8, sites: u8) -> Option<Self> {
        let fittings = Fittings { store: engine.store()?, ..Fittings::default() };
        Some(Self::start_so(dir, clusters, sites, Items, fittings))
    }

    /// The same, with limits of their own.
    pub fn start_within(dir: &Path, clusters: u8, sites: u8, limits: SiteLimits) -> Self {
        Self::start_so(dir, clusters, sites, Items, Fittings { limits, ..Fittings::default() })
    }

    /// The same with certificates for everybody, in `dir`'s `tls`: also `client-app`, `reader-app` and `operator-app`.
    pub fn start_with_tls(dir: &Path, clusters: u8, sites: u8) -> Self {
        Self::start_over_with_tls(Engine::Redb, dir, clusters, sites).unwrap()
    }

    /// The same over `engine`, unless that is not installed.
    pub fn start_over_with_tls(engine: Engine, dir: &Path, clusters: u8, sites: u8) -> Option<Self> {
        let all = (0..clusters).flat_map(|cluster| (0..sites).map(move |site| [cluster, site]));
        let numbers: Vec<u16> = all.map(u16::from_be_bytes).collect();
        let tls = dir.join("tls");
        pares_link::issue(&tls, SYSTEM, &numbers).unwrap();
        for name in ["client-app", "reader-app", "operator-app"] {
            pares_link::issue_named(&tls, SYSTEM, name).unwrap();
        }
        let fittings = Fittings { tls: Some("tls".into()), store: engine.store()?, ..Fittings::default() };
        Some(Self::start_so(dir, clusters, sites, Items, fittings))
    }
}

/// What differs from one system to the next.
#[derive(Default)]
struct Fittings {
    limits: SiteLimits,
    tls: Option<PathBuf>,
    store: Option<String>,
}

/// So many sites, over `engine`, which must be installed: not yet there.
pub fn configuration_over(engine: Engine, clusters: u8, sites: u8) -> Option<SitesConfig> {
    Some(configuration(clusters, sites, Fittings { store: engine.store()?, ..Fittings::default() }))
}

fn configuration(clusters: u8, sites: u8, fittings: Fittings) -> SitesConfig {
    let ids = (0..clusters).flat_map(|cluster| (0..sites).map(move |number| (cluster, number)));
    let with_sql = fittings.store.is_some();
    let places = ids.map(|(cluster, number)| {
        let mut place = Place::new(cluster, number, free_address(), free_address());
        place.sql = with_sql.then(free_address);
        place
    });
    SitesConfig {
        system: SYSTEM.into(),
        identity: SitesConfig::draw_identity(),
        durability: Promise::Os,
        isolation: Isolation::Snapshot,
        certifier: 0,
        begins: 0,
        tls: fittings.tls,
        plain: false,
        witness: None,
        limits: fittings.limits,
        store: fittings.store,
        sites: places.collect(),
    }
}

impl<A: Application + Clone + Send + 'static> Sites<A> {
    /// The same with another application.
    pub fn start_with(dir: &Path, clusters: u8, sites: u8, application: A) -> Self {
        Self::start_so(dir, clusters, sites, application, Fittings::default())
    }

    fn start_so(dir: &Path, clusters: u8, sites: u8, application: A, fittings: Fittings) -> Self {
        let config = configuration(clusters, sites, fittings);
        config.make_directories(dir).unwrap();
        Self::begin(dir, config, application)
    }

    /// The sites of that configuration, whose directories are made.
    pub fn begin(dir: &Path, config: SitesConfig, application: A) -> Self {
        Self::begin_speaking(pares_link::SPEAKS, dir, config, application)
    }

    /// The same, as a build would that speaks another version.
    pub fn begin_speaking(speaks: u16, dir: &Path, config: SitesConfig, application: A) -> Self {
        std::fs::write(dir.join("sites.toml"), config.to_text()).unwrap();
        let (running, ended) = (Vec::new(), Arc::default());
        let mut all = Self { dir: dir.to_owned(), config, application, running, speaks, ended };
        for site in all.config.sites.iter().map(Place::id).collect::<Vec<_>>() {
            all.run(site);
        }
        // Until the database is founded.
        while !all.running.iter().all(|running| running.takes_part.load(Ordering::Relaxed)) {
            std::thread::sleep(Duration::from_millis(1));
        }
        all
    }

    pub fn run(&mut self, site: SiteId) {
        let stop = Arc::new(AtomicBool::new(false));
        let config = SitesConfig::load(&self.dir).unwrap();
        let application = self.application.clone();
        let mut process = Process::open_speaking(self.speaks, &config, site, &self.dir, application).unwrap();
        let takes_part = Arc::new(AtomicBool::new(false));
        let (stopped, part) = (Arc::clone(&stop), Arc::clone(&takes_part));
        let (dir, application, ended) = (self.dir.clone(), self.application.clone(), Arc::clone(&self.ended));
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                match process.turn(Duration::from_millis(20)) {
                    Ok(()) => {}
                    // As a supervisor of sites does.
                    Err(ProcessError::Store(StoreError::Io(_) | StoreError::Failed))
                        if config.store.is_some() =>
                    {
                        drop(process);
                        ended.fetch_add(1, Ordering::Relaxed);
                        process = reopen(&config, site, &dir, &application);
                    }
                    Err(error) => panic!("{site}: {error}"),
                }
                part.store(process.apart().is_none(), Ordering::Relaxed);
            }
        });
        self.running.push(Running { site, stop, takes_part, thread });
    }
}

impl<A> Sites<A> {
    /// Stops a site, as suddenly as a thread can be.
    pub fn stop(&mut self, site: SiteId) {
        let at = self.running.iter().position(|running| running.site == site).unwrap();
        let running = self.running.remove(at);
        running.stop.store(true, Ordering::Relaxed);
        running.thread.join().unwrap();
    }

    pub fn address(&self, site: SiteId) -> SocketAddr {
        self.config.place(site).unwrap().clients
    }

    /// A connection to a site's port for SQL, once it lets clients in.
    pub fn sql(&self, site: SiteId) -> postgres::Client {
        let mut client = None;
        until(|| {
            client = postgres::Client::connect(&self.sql_url(site), postgres::NoTls).ok();
            client.is_some()
        });
        client.unwrap()
    }

    pub fn sql_url(&self, site: SiteId) -> String {
        format!("postgres://postgres@{}/postgres", self.config.place(site).unwrap().sql.unwrap())
    }

    /// A client of these sites, the first one first.
    pub fn client(&self, number: u64, sites: &[SiteId]) -> Client {
        Client::new(number, 0, sites.iter().map(|site| self.address(*site)).collect())
    }
}

/// Opens a site again and again, as a supervisor does, until its server is back.
fn reopen<A: Application + Clone>(
    config: &SitesConfig,
    site: SiteId,
    dir: &Path,
    application: &A,
) -> Process<A> {
    loop {
        match Process::open(config, site, dir, application.clone()) {
            Ok(process) => return process,
            Err(error) => assert!(!error.is_damage(), "{site}: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl<A> Sites<A> {
    /// A client that shows that certificate.
    pub fn client_of(&self, certificate: &str, number: u64, sites: &[SiteId]) -> Client {
        let access = Access::named(self.config.clone(), &self.dir, &[certificate]).unwrap();
        access.client(number, 0, sites).unwrap()
    }

    /// How a site is, as an operator is told.
    pub fn report(&self, site: SiteId) -> SiteReport {
        let said = self.client_of("operator-app", u64::MAX, &[site]).report(PATIENCE).unwrap();
        serde_json::from_slice(&said).unwrap()
    }
}

impl<A> Drop for Sites<A> {
    fn drop(&mut self) {
        for running in &self.running {
            running.stop.store(true, Ordering::Relaxed);
        }
        for running in self.running.drain(..) {
            let _ = running.thread.join();
        }
    }
}

/// A call's reply, as text.
pub fn done(reply: Result<Vec<u8>, pares_site::CallError>) -> String {
    String::from_utf8(reply.unwrap()).unwrap()
}

/// The last version of the cluster of the site that the client uses.
pub fn delivered(client: &mut Client) -> u64 {
    let report: pares_site::SiteReport = serde_json::from_slice(&client.report(PATIENCE).unwrap()).unwrap();
    report.delivered
}

/// Waits until something is so.
pub fn until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE * 3, "still not after {PATIENCE:?} and more");
        std::thread::sleep(Duration::from_millis(5));
    }
}
