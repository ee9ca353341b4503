//! A world in memory for unit tests: one site, whose other ends are the test.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pares_cluster::Replica;
use pares_cluster::memory::Disk;
use pares_link::{ClientId, LinkSink, SendError};
use pares_store::{Applied, Mark, Memory, Reads, Store, StoreError, StoreSnapshot, Visit};
use pares_wice::codec::Coded;
use pares_wice::{Base, ClusterId, Key, KeyRange, Settings, SiteId, Stored, Value, Version};

use crate::applier::StoreWriter;
use crate::cycle::Cycle;
use crate::error::ProcessError;
use crate::items::Items;
use crate::node::SiteNode;
use crate::place::Place;
use crate::place::loading::{Emptying, StoreLoader};
use crate::protocol::{Ask, Between, Reply};
use crate::reads::StoreReader;
use crate::setup::{Bounds, Setup};
use crate::world::{Clock, Connections, Notes, World};

/// Frames with the site that they are from or for.
type Frames = Vec<(u16, Vec<u8>)>;

/// Clones are the same machine: keep one, and give another to each life of the site.
#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) disk: Disk,
    pub(crate) notes: Rc<RefCell<BTreeMap<String, Vec<u8>>>>,
    pub(crate) now: Rc<Cell<Duration>>,
    pub(crate) wire: Wire,
    store: Arc<Mutex<Memory>>,
    /// Whether what is read from the store is damaged.
    pub(crate) rotten: Arc<AtomicBool>,
    /// Whether the store gives no snapshots.
    pub(crate) busy: Arc<AtomicBool>,
    writer: Rc<RefCell<Option<StoreWriter>>>,
    readers: Rc<RefCell<Vec<StoreReader>>>,
    /// What writes a copy.
    pub(crate) loader: Rc<RefCell<Option<StoreLoader>>>,
    drawn: Rc<Cell<u64>>,
    /// The version with which its database begins.
    pub(crate) begins: Version,
}

/// What came and was not polled, and what was sent.
#[derive(Clone, Default)]
pub(crate) struct Wire {
    from_sites: Rc<RefCell<Frames>>,
    from_clients: Rc<RefCell<Vec<Vec<u8>>>>,
    /// What the application's certificate calls it.
    pub(crate) caller: Rc<RefCell<Option<String>>>,
    pub(crate) to_sites: Rc<RefCell<Frames>>,
    to_client: Rc<RefCell<Vec<Vec<u8>>>>,
    pub(crate) closed: Rc<Cell<bool>>,
}

pub(crate) type TestSite = SiteNode<Machine, Items>;

pub(crate) const IDENTITY: &str = "test";

impl Machine {
    /// Begins site 0.0 of clusters with so many sites each.
    pub(crate) fn begin(&self, clusters: &[u8]) -> Result<TestSite, ProcessError> {
        SiteNode::begin(self.clone(), self.setup(clusters)?, Items)
    }

    /// A machine, and its site of such clusters.
    pub(crate) fn with_site(clusters: &[u8]) -> (Self, TestSite) {
        let machine = Self::default();
        let site = machine.begin(clusters).unwrap();
        (machine, site)
    }

    /// The same site's duty cycle, which participates.
    pub(crate) fn cycle(&self, clusters: &[u8]) -> Cycle<Machine, Items> {
        let setup = self.setup(clusters).unwrap();
        let place = Place::open(&mut self.clone(), IDENTITY).unwrap();
        Cycle::begin(self.clone(), setup, Items, place, None).unwrap()
    }

    pub(crate) fn setup(&self, clusters: &[u8]) -> Result<Setup, ProcessError> {
        let sites = (0u8..).zip(clusters);
        let sites =
            sites.flat_map(|(cluster, &sites)| (0..sites).map(move |site| SiteId::new(cluster, site)));
        let settings = Settings::new(SiteId::new(0, 0), sites.collect());
        if self.notes.borrow().is_empty() {
            let first = Base { delivered: self.begins, ..Base::founding(&settings, ClusterId(0)) };
            crate::place::found(&mut self.clone(), IDENTITY, clusters[0], first)?;
        }
        Ok(Setup {
            identity: IDENTITY.into(),
            settings,
            log: pares_cluster::ReplicaConfig::new(0, clusters[0]),
            certifier: ClusterId(0),
            begins: self.begins,
            bounds: Bounds {
                open_requests_max: 4,
                unstored_max: 1,
                reads_max: 2,
                catch_up_patience: Duration::ZERO,
                flush_every: Duration::ZERO,
                ..Bounds::default()
            },
        })
    }

    /// Lets time pass, a turn for each tick.
    pub(crate) fn pass(&self, site: &mut TestSite, ticks: u32) {
        for _ in 0..ticks {
            self.now.set(self.now.get() + Duration::from_millis(10));
            site.turn(Duration::ZERO).unwrap();
            self.step();
        }
    }

    /// Its store is as this says, without items.
    pub(crate) fn fill_store(&self, stored: &Stored) {
        let mark = Mark { whole: true, version: stored.version, meta: stored.to_bytes() };
        self.store.lock().unwrap().load(&[], Some(&mark)).unwrap();
    }

    /// Lets a batch be written, and a read be answered.
    pub(crate) fn step(&self) {
        self.load();
        self.writer.borrow().as_ref().map(StoreWriter::step);
        self.readers.borrow().first().map(StoreReader::step);
    }

    /// Lets a batch of a copy be written; whether there was one.
    pub(crate) fn load(&self) -> bool {
        StoreLoader::step(&mut self.loader.borrow_mut())
    }

    /// What becomes of an application's question within some ticks.
    pub(crate) fn ask(&self, site: &mut TestSite, ask: &Ask) -> Option<Reply> {
        self.wire.from_clients.borrow_mut().push(ask.to_bytes());
        self.pass(site, 8);
        self.heard()
    }

    /// What the site has told its client last.
    pub(crate) fn heard(&self) -> Option<Reply> {
        self.wire.to_client.borrow_mut().pop().map(|reply| Reply::from_bytes(&reply).unwrap())
    }

    /// Bytes that an application sent.
    pub(crate) fn client_sent(&self, bytes: &[u8]) {
        self.wire.from_clients.borrow_mut().push(bytes.to_vec());
    }

    /// What the site has told its client and nobody has looked at.
    pub(crate) fn told_client(&self) -> usize {
        self.wire.to_client.borrow().len()
    }

    /// A frame of site 1.0.
    pub(crate) fn site_sent(&self, frame: &Between<'_>) {
        self.wire.from_sites.borrow_mut().push((0x0100, frame.to_bytes()));
    }
}

impl Wire {
    /// A frame that a site sent.
    pub(crate) fn site_says(&self, site: u16, frame: Vec<u8>) {
        self.from_sites.borrow_mut().push((site, frame));
    }
}

impl World for Machine {
    type Log = Replica<Disk>;
    type Links = Wire;
    type Notes = Self;
    type Task = ();

    fn notes(&self) -> &Self {
        self
    }

    fn open_links(&mut self) -> Result<Wire, ProcessError> {
        Ok(self.wire.clone())
    }

    fn open_log(&mut self, config: &pares_cluster::ReplicaConfig) -> Result<Replica<Disk>, ProcessError> {
        Ok(Replica::open(self.disk.clone(), config)?)
    }

    fn open_store(&mut self) -> Result<Arc<dyn Store>, ProcessError> {
        let memory = self.store.lock().unwrap().clone();
        Ok(Arc::new(Rotting::over(memory, &self.rotten, &self.busy)))
    }

    fn emptying(&mut self) -> Emptying {
        let [rotten, busy] = [&self.rotten, &self.busy].map(Arc::clone);
        let store = Arc::clone(&self.store);
        Box::new(move || {
            let empty = Memory::default();
            *store.lock().unwrap() = empty.clone();
            Ok(Arc::new(Rotting::over(empty, &rotten, &busy)))
        })
    }

    fn draw(&mut self) -> u64 {
        self.drawn.set(self.drawn.get() + 1);
        self.drawn.get()
    }

    fn start(&mut self, writer: StoreWriter, _links: &Wire) -> io::Result<()> {
        self.writer.replace(Some(writer));
        self.readers.borrow_mut().clear();
        Ok(())
    }

    fn start_reader(&mut self, reader: StoreReader, _links: &Wire) -> io::Result<()> {
        self.readers.borrow_mut().push(reader);
        Ok(())
    }

    fn start_loader(&mut self, loader: StoreLoader, _links: &Wire) -> io::Result<()> {
        self.loader.replace(Some(loader));
        Ok(())
    }
}

impl Notes for Machine {
    fn read_note(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.notes.borrow().get(name).cloned())
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.notes.borrow_mut().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn remove_note(&self, name: &str) -> io::Result<()> {
        self.notes.borrow_mut().remove(name);
        Ok(())
    }
}

impl Clock for Machine {
    fn now(&self) -> Duration {
        self.now.get()
    }
}

impl Connections for Wire {
    fn poll(&mut self, _patience: Duration, sink: &mut impl LinkSink) -> io::Result<()> {
        self.from_sites.borrow_mut().drain(..).for_each(|(site, frame)| sink.frame(site, &frame));
        self.from_clients
            .borrow_mut()
            .drain(..)
            .for_each(|frame| sink.client_frame(ClientId(1), self.caller.borrow().as_deref(), &frame));
        Ok(())
    }

    fn send(&mut self, peer: u16, payload: &[u8]) -> Result<(), SendError> {
        self.to_sites.borrow_mut().push((peer, payload.to_vec()));
        Ok(())
    }

    fn version(&self, _peer: u16) -> u16 {
        pares_link::SPEAKS
    }

    fn send_client(&mut self, _client: ClientId, payload: &[u8]) -> Result<(), SendError> {
        self.to_client.borrow_mut().push(payload.to_vec());
        Ok(())
    }

    fn close_client(&mut self, _client: ClientId) {
        self.closed.set(true);
    }

    fn flush(&mut self) {}
}

/// A store on a disk that rots on command. It takes what it is given all the same.
#[derive(Default)]
pub(crate) struct Rotting {
    store: Memory,
    rotten: Arc<AtomicBool>,
    busy: Arc<AtomicBool>,
    relapsed: bool,
}

impl Rotting {
    /// One whose server has come back without what was written.
    pub(crate) fn relapsed() -> Self {
        Self { relapsed: true, ..Self::default() }
    }

    fn over(store: Memory, rotten: &Arc<AtomicBool>, busy: &Arc<AtomicBool>) -> Self {
        Self { store, rotten: Arc::clone(rotten), busy: Arc::clone(busy), relapsed: false }
    }
}

struct RottingSnapshot {
    snapshot: Box<dyn StoreSnapshot>,
    rotten: Arc<AtomicBool>,
}

impl RottingSnapshot {
    fn intact(&self) -> Result<&dyn StoreSnapshot, StoreError> {
        match self.rotten.load(Ordering::Relaxed) {
            true => Err(StoreError::Damaged("rotten".into())),
            false => Ok(&*self.snapshot),
        }
    }
}

impl Store for Rotting {
    fn applied(&self) -> Version {
        self.store.applied()
    }

    fn meta(&self) -> Arc<[u8]> {
        self.store.meta()
    }

    fn apply(&self, batch: &[Applied], meta: Option<&[u8]>) -> Result<(), StoreError> {
        self.store.apply(batch, meta)
    }

    fn snapshot(&self) -> Result<Box<dyn StoreSnapshot>, StoreError> {
        if self.busy.load(Ordering::Relaxed) {
            return Err(StoreError::Busy(0));
        }
        let snapshot = if self.relapsed { Memory::default().snapshot()? } else { self.store.snapshot()? };
        Ok(Box::new(RottingSnapshot { snapshot, rotten: Arc::clone(&self.rotten) }))
    }

    fn flush(&self) -> Result<Version, StoreError> {
        self.store.flush()
    }

    fn load(&self, items: &[(Key, Value)], seal: Option<&Mark>) -> Result<(), StoreError> {
        self.store.load(items, seal)
    }
}

impl Reads for RottingSnapshot {
    fn get(&self, key: &Key) -> Result<Option<Value>, StoreError> {
        self.intact()?.get(key)
    }

    fn range(&self, range: &KeyRange, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.intact()?.range(range, visit)
    }
}

impl StoreSnapshot for RottingSnapshot {
    fn mark(&self) -> &Mark {
        self.snapshot.mark()
    }
}
