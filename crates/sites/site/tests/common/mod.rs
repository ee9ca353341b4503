//! Sites in threads of the test, on ports that no other process has.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_site::config::{Place, Promise, SiteLimits, directory_of};
use pares_site::items::Items;
use pares_site::{Access, Application, Client, Process, ProcessError, SiteReport, SitesConfig};
use pares_store::StoreError;
use pares_testbed::ports::free_address;
use pares_wice::SiteId;
use tempfile::TempDir;

/// Long enough for anything, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What sites keep their items in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Redb,
    Postgres,
}

impl Engine {
    /// With databases that no other test has, one for each site; none where PostgreSQL is not installed.
    fn fittings(self) -> Option<SitesConfig> {
        static NUMBER: AtomicU16 = AtomicU16::new(0);
        if self == Self::Redb {
            return Some(SitesConfig::default());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let place = pares_testbed::postgres::server()?.connection("");
        let host = place.split(' ').next().unwrap().trim_start_matches("host=");
        let store = format!("postgres:///sites_{number}_{{cluster}}_{{number}}?host={host}&user=postgres");
        Some(SitesConfig { store: Some(store), ..SitesConfig::default() })
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
    _scratch: TempDir,
    pub config: SitesConfig,
    application: A,
    running: Vec<Running>,
    /// The version that sites speak which are started from now on.
    pub speaks: u16,
    /// How often a site has ended and begun again since its store failed.
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
    /// `clusters` of `sites` each, all started.
    pub fn start(clusters: u8, sites: u8) -> Self {
        Self::start_over(Engine::Redb, clusters, sites).unwrap()
    }

    /// The same over `engine`, unless that is not installed.
    pub fn start_over(engine: Engine, clusters: u8, sites: u8) -> Option<Self> {
        Some(Self::start_so(scratch(), clusters, sites, Items, engine.fittings()?))
    }

    /// The same, with limits of their own.
    pub fn start_within(clusters: u8, sites: u8, limits: SiteLimits) -> Self {
        let fittings = SitesConfig { limits, ..SitesConfig::default() };
        Self::start_so(scratch(), clusters, sites, Items, fittings)
    }

    /// The same with certificates for all, in the directory's `tls`: also `client-app`, `reader-app` and `operator-app`.
    pub fn start_with_tls(clusters: u8, sites: u8) -> Self {
        Self::start_over_with_tls(Engine::Redb, clusters, sites).unwrap()
    }

    /// The same over `engine`, unless that is not installed.
    pub fn start_over_with_tls(engine: Engine, clusters: u8, sites: u8) -> Option<Self> {
        let all = (0..clusters).flat_map(|cluster| (0..sites).map(move |site| [cluster, site]));
        let numbers: Vec<u16> = all.map(u16::from_be_bytes).collect();
        let scratch = scratch();
        let tls = scratch.path().join("tls");
        pares_link::issue(&tls, SYSTEM, &numbers).unwrap();
        for name in ["client-app", "reader-app", "operator-app"] {
            pares_link::issue_named(&tls, SYSTEM, name).unwrap();
        }
        let fittings = SitesConfig { tls: Some("tls".into()), ..engine.fittings()? };
        Some(Self::start_so(scratch, clusters, sites, Items, fittings))
    }
}

/// A directory that is removed when it is dropped.
pub fn scratch() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// So many sites, over `engine`, which must be installed: not yet there.
pub fn configuration_over(engine: Engine, clusters: u8, sites: u8) -> Option<SitesConfig> {
    Some(configuration(clusters, sites, engine.fittings()?))
}

/// With what differs from one system to the next.
fn configuration(clusters: u8, sites: u8, fittings: SitesConfig) -> SitesConfig {
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
        sites: places.collect(),
        ..fittings
    }
}

impl<A: Application + Clone + Send + 'static> Sites<A> {
    /// The same with another application.
    pub fn start_with(clusters: u8, sites: u8, application: A) -> Self {
        Self::start_so(scratch(), clusters, sites, application, SitesConfig::default())
    }

    fn start_so(dir: TempDir, clusters: u8, sites: u8, application: A, fittings: SitesConfig) -> Self {
        let config = configuration(clusters, sites, fittings);
        config.make_directories(dir.path()).unwrap();
        Self::begin(dir, config, application)
    }

    /// The sites of that configuration, whose directories are made.
    pub fn begin(dir: TempDir, config: SitesConfig, application: A) -> Self {
        Self::begin_speaking(pares_link::SPEAKS, dir, config, application)
    }

    /// The same, as a build would that speaks another version.
    pub fn begin_speaking(speaks: u16, scratch: TempDir, config: SitesConfig, application: A) -> Self {
        let dir = scratch.path().to_owned();
        std::fs::write(dir.join("sites.toml"), config.to_text()).unwrap();
        let (running, ended) = (Vec::new(), Arc::default());
        let mut all = Self { dir, _scratch: scratch, config, application, running, speaks, ended };
        for site in all.config.sites.iter().map(Place::id).collect::<Vec<_>>() {
            all.run(site);
        }
        // Until the database is founded.
        while !all.running.iter().all(|running| running.takes_part.load(Ordering::Relaxed)) {
            let dead = all.running.iter().find(|running| running.thread.is_finished());
            assert!(dead.is_none(), "{:?} ended, and the others wait for it", dead.map(|dead| dead.site));
            std::thread::sleep(Duration::from_millis(1));
        }
        all
    }

    /// Stops a site, and starts it again.
    pub fn restart(&mut self, site: SiteId) {
        self.stop(site);
        self.run(site);
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
    /// The directory of a site.
    pub fn directory(&self, site: SiteId) -> PathBuf {
        directory_of(&self.dir, site)
    }

    /// A site that is stopped loses its disk.
    pub fn lose_disk(&self, site: SiteId) {
        std::fs::remove_dir_all(self.directory(site)).unwrap();
    }

    /// Has a client write until the log of none of these sites has its beginning: two bases, and the store flushed behind each.
    pub fn outgrow_logs(&self, client: &mut Client, sites: &[SiteId]) {
        let filler = "x".repeat(400 << 10);
        let first = |site: &SiteId| self.directory(*site).join(format!("log/{:020}.seg", 0));
        let mut round = 0;
        until(|| {
            round += 1;
            done(client.execute(format!("put filler/{} {filler}", round % 3).as_bytes(), PATIENCE));
            !sites.iter().any(|site| first(site).exists())
        });
    }

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

    /// A connection to a site's own database.
    pub fn server(&self, site: SiteId) -> postgres::Client {
        postgres::Client::connect(&self.config.database(site).unwrap().unwrap(), postgres::NoTls).unwrap()
    }

    pub fn sql_address(&self, site: SiteId) -> SocketAddr {
        self.config.place(site).unwrap().sql.unwrap()
    }

    pub fn sql_url(&self, site: SiteId) -> String {
        format!("postgres://postgres@{}/postgres", self.sql_address(site))
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

    /// How a site is, for an operator.
    pub fn report(&self, site: SiteId) -> SiteReport {
        report(&mut self.client_of("operator-app", u64::MAX, &[site]))
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

/// How the site is that the client uses.
pub fn report(client: &mut Client) -> SiteReport {
    serde_json::from_slice(&client.report(PATIENCE).unwrap()).unwrap()
}

/// Waits until something is so.
pub fn until(mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE * 3, "still not after {PATIENCE:?} and more");
        std::thread::sleep(Duration::from_millis(5));
    }
}
