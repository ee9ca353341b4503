//! A site as a process: its duty cycle on a directory, sockets and threads.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_cluster::{Durability, Files, Replica};
use pares_link::{Links, LinksConfig, Waker, caller};
use pares_os::descriptors;
use pares_os::process::Lock;
use pares_sql::{CLIENTS_MAX, Certified, Ready, SqlPort, SqlRights};
use pares_store::postgres::{self, Options, PostgresStore, Watch};
use pares_store::{RedbStore, Store, StoreError};
use pares_wice::{SiteId, Version};

use crate::application::Application;
use crate::applier::StoreWriter;
use crate::config::{ConfigError, SitesConfig, directory_of};
use crate::counters::SiteCounters;
use crate::directory::NotesDirectory;
use crate::error::ProcessError;
use crate::node::SiteNode;
use crate::place::loading::{Emptying, StoreLoader};
use crate::reads::StoreReader;
use crate::report::SiteReport;
use crate::rights::Rights;
use crate::world::{Clock, World};

/// Bytes of one segment of the cluster's log.
const SEGMENT_BYTES: u64 = 16 << 20;
/// The directory of a store on the disk, in its site's.
const STORE: &str = "store";
/// Descriptors for the log, the store, notes, connections that have not said who they are, and one to close a client that finds no room.
const RESERVE: u64 = 128;

/// A site on this machine.
pub type Process<A> = SiteNode<Host, A>;

/// The real world of a site: a directory, sockets, threads.
pub struct Host {
    own: NotesDirectory,
    /// Or why they are not shown.
    counters: Result<SiteCounters, String>,
    links: LinksConfig,
    durability: Durability,
    /// Its PostgreSQL database, if its items are in one.
    database: Option<Options>,
    /// Where it speaks PostgreSQL's protocol, if it does.
    sql: Option<SocketAddr>,
    /// That port, and what comes from there.
    port: Option<(SqlPort, Receiver<Ready>)>,
    /// Who asks whether its server answers.
    watch: Option<Watch>,
    /// The store, if it was just filled.
    filled: Option<Arc<dyn Store>>,
    began: Instant,
    /// No other process runs this site here.
    _lock: Lock,
}

impl Host {
    /// The world of `site`, whose directory lies in `dir`, where `sites.toml` is.
    ///
    /// # Errors
    /// If the site or its certificate is missing, its directory cannot be made, or another process has it.
    pub fn new(config: &SitesConfig, site: SiteId, dir: &Path) -> Result<Self, ProcessError> {
        let mut links = config.links(site, dir)?;
        leave_descriptors(&mut links, config.place(site)?.sql.is_some());
        let own = directory_of(dir, site);
        make_directory(&own)?;
        let own = NotesDirectory::at(own)?;
        // Before anything is touched: the figures there are those of the process that runs.
        let lock = Lock::take(&own.path().join("lock"))?;
        let lock = lock.ok_or_else(|| ProcessError::InUse(own.path().to_owned()))?;
        let counters = SiteCounters::create(own.path(), &config.identity, site);
        let (database, sql) = (database_of(config, site)?, config.place(site)?.sql);
        Ok(Self {
            own,
            counters,
            links,
            durability: config.durability(),
            database,
            sql,
            port: None,
            watch: None,
            filled: None,
            began: Instant::now(),
            _lock: lock,
        })
    }

    /// The same; its database, if it has one, shows these.
    fn with_views(self, views: &'static str) -> Self {
        Self { database: self.database.map(|database| database.with_views(views)), ..self }
    }
}

/// The PostgreSQL database of a site, if its items are in one: nobody else's.
pub(crate) fn database_of(config: &SitesConfig, site: SiteId) -> Result<Option<Options>, ConfigError> {
    let owner = format!("site {}.{} of {} ({})", site.cluster.0, site.number, config.system, config.identity);
    Ok(config.database(site)?.map(|url| Options::new(url).owned_by(owner)))
}

/// Has the system give this process as many descriptors as it may have, and takes no more clients than leave enough for the site's
/// own files and for other sites.
fn leave_descriptors(links: &mut LinksConfig, speaks_sql: bool) {
    // Each client of SQL has two connections, both with several handles.
    let sql = if speaks_sql { 6 * CLIENTS_MAX as u64 } else { 0 };
    let reserve = RESERVE + links.peers.len() as u64 + sql;
    let limit = descriptors::raise_limit();
    if let Some(clients) = &mut links.clients {
        clients.count_max = descriptors::connections_within(limit, reserve, clients.count_max);
    }
}

/// A number drawn at random: no two are alike.
pub(crate) fn drawn() -> u64 {
    // The standard library's own randomness, which it asks of the operating system, and which no two hashers share.
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), std::process::id())
}

/// Who may speak SQL, where all show certificates: as at the port for clients, who may read reads, and who may have something executed writes.
fn certified(links: &LinksConfig) -> Option<Certified> {
    let (identity, system) = (links.identity.clone()?, links.system.clone());
    Some(Certified {
        tls: Box::new(move || identity.callers_now()),
        rights: Box::new(move |certificate| {
            let name = caller(certificate, &system).unwrap_or_default();
            match Rights::of(Some(&name)) {
                Rights::Nothing | Rights::Report => SqlRights::Nothing,
                Rights::Read => SqlRights::Read,
                Rights::Execute | Rights::Operate => SqlRights::Write,
            }
        }),
    })
}

/// Makes a directory, if it is missing.
fn make_directory(path: &Path) -> Result<(), ProcessError> {
    match std::fs::create_dir_all(path) {
        Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) => {
            Err(ProcessError::NoDirectory(path.to_owned()))
        }
        made => Ok(made?),
    }
}

/// The store of a site whose directory is `own`; its database is made if it is missing.
pub(crate) fn open_store(own: &Path, database: Option<&Options>) -> Result<Arc<dyn Store>, StoreError> {
    if let Some(database) = database {
        postgres::provide(database)?;
        return Ok(Arc::new(PostgresStore::open(database.clone())?));
    }
    Ok(Arc::new(RedbStore::open(&own.join(STORE))?))
}

/// Removes the store of a site whose directory is `own`, which must not be open. If that fails, some of it may be gone.
fn clear_store(own: &Path, database: Option<&Options>) -> Result<(), StoreError> {
    if let Some(database) = database {
        postgres::provide(database)?;
        return postgres::clear(database);
    }
    match std::fs::remove_dir_all(own.join(STORE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StoreError::Io(error.to_string())),
        _ => Ok(()),
    }
}

impl World for Host {
    type Log = Replica<Files>;
    type Links = Links;
    type Notes = NotesDirectory;
    type Task = Thread;

    fn notes(&self) -> &NotesDirectory {
        &self.own
    }

    fn open_links(&mut self) -> Result<Links, ProcessError> {
        self.port = None; // that of the part it had before
        Ok(Links::open(self.links.clone())?)
    }

    fn open_log(&mut self, config: &pares_cluster::ReplicaConfig) -> Result<Replica<Files>, ProcessError> {
        let dir = self.own.path().join("log");
        make_directory(&dir)?;
        let files = Files::open(&dir, self.durability, SEGMENT_BYTES)?;
        Ok(Replica::open(files, config)?)
    }

    fn open_store(&mut self) -> Result<Arc<dyn Store>, ProcessError> {
        if let Some(store) = self.filled.take() {
            return Ok(store);
        }
        if self.database.is_none() {
            make_directory(&self.own.path().join(STORE))?;
        }
        Ok(open_store(self.own.path(), self.database.as_ref())?)
    }

    fn keep_store(&mut self, filled: Arc<dyn Store>) {
        assert!(self.filled.is_none(), "a store that was filled is opened before another is");
        self.filled = Some(filled);
    }

    fn emptying(&mut self) -> Emptying {
        self.filled = None;
        let (own, database) = (self.own.path().to_owned(), self.database.clone());
        Box::new(move || {
            clear_store(&own, database.as_ref())?;
            open_store(&own, database.as_ref())
        })
    }

    fn draw(&mut self) -> u64 {
        drawn()
    }

    fn start(&mut self, writer: StoreWriter, links: &Links) -> io::Result<Thread> {
        if let (Some(database), Some(address)) = (&self.database, self.sql) {
            assert!(self.port.is_none(), "a site has one port for SQL at a time");
            let (to_cycle, ready) = channel();
            let waker = links.waker();
            let submit = move |transaction| {
                // A cycle that has ended answers nobody, and its port ends with it.
                let _ = to_cycle.send(transaction);
                drop(waker.wake());
            };
            let port = SqlPort::open(database.clone(), address, certified(&self.links), submit)
                .map_err(io::Error::other)?;
            self.port = Some((port, ready));
        }
        self.watch = self.database.clone().map(Watch::begin).transpose()?;
        let waker = links.waker();
        // A wait that is not ended ends by itself at the next tick.
        let run = move || writer.run(|| drop(waker.wake()));
        Thread::spawn("applier", run)
    }

    fn start_reader(&mut self, reader: StoreReader, links: &Links) -> io::Result<Thread> {
        let (waker, began) = (links.waker(), self.began);
        Thread::spawn("reader", move || reader.run(|| began.elapsed(), || drop(waker.wake())))
    }

    fn start_loader(&mut self, loader: StoreLoader, links: &Links) -> io::Result<Thread> {
        let waker = links.waker();
        Thread::spawn("loader", move || loader.run(|| drop(waker.wake())))
    }

    fn show(&mut self, report: &SiteReport) {
        if let Ok(counters) = &self.counters {
            counters.show(report);
        }
    }

    fn trouble(&self) -> Option<String> {
        let unshown = self.counters.as_ref().err().cloned();
        self.watch.as_ref().and_then(Watch::trouble).or(unshown)
    }

    fn transactions(&mut self, stored: Option<Version>) -> Result<Vec<Ready>, ProcessError> {
        let Some((port, ready)) = &self.port else { return Ok(Vec::new()) };
        if port.has_fallen_back() {
            let why = "the PostgreSQL server crashed and lost the last versions, which the log restores";
            return Err(StoreError::Io(why.into()).into());
        }
        port.serve(stored);
        Ok(ready.try_iter().collect())
    }
}

impl Clock for Host {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// A thread that is waited for when this is dropped.
pub struct Thread(Option<JoinHandle<()>>);

impl Thread {
    fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Ok(Self(Some(std::thread::Builder::new().name(name.into()).spawn(run)?)))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

impl<A: Application + Clone> Process<A> {
    /// Opens a site's log and store in `dir`, where `sites.toml` is, and listens.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn open(
        config: &SitesConfig,
        site: SiteId,
        dir: &Path,
        application: A,
    ) -> Result<Self, ProcessError> {
        let host = Host::new(config, site, dir)?.with_views(application.views());
        Self::begin(host, config.setup(site), application)
    }

    /// The same, as a build would that speaks another version: for tests of upgrades.
    ///
    /// # Errors
    /// [`ProcessError`].
    #[doc(hidden)]
    pub fn open_speaking(
        version: u16,
        config: &SitesConfig,
        site: SiteId,
        dir: &Path,
        application: A,
    ) -> Result<Self, ProcessError> {
        let mut host = Host::new(config, site, dir)?.with_views(application.views());
        host.links.speaks = version;
        Self::begin(host, config.setup(site), application)
    }

    /// Where clients reach it.
    ///
    /// # Errors
    /// If the operating system does not say.
    pub fn clients_address(&self) -> io::Result<Option<SocketAddr>> {
        self.links().clients_address()
    }

    /// Ends a turn's wait from another thread, as long as the site has the part that it has now; afterwards a wait ends by itself.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.links().waker()
    }
}
