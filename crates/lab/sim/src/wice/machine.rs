//! One simulated machine: the world of a site in memory.
//!
//! The site that runs on it is the shipped one, cluster log, codecs and all. What a machine adds is what fails: the death of a
//! process keeps what was written, the loss of power what was synced; syncs and files fail; and wires can be broken
//! on purpose, to see that the checkers notice ([`Defect`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pares_cluster::memory::Disk;
use pares_cluster::{Journal, JournalError, Replica};
use pares_link::{ClientId, Ended, LinkSink, SPEAKS, SendError, UNDERSTANDS};
use pares_site::protocol::Between;
use pares_site::world::{Clock, Connections, Notes, World};
use pares_site::{Emptying, ProcessError, StoreLoader, StoreReader, StoreWriter};
use pares_store::Store;
use pares_wice::codec::Coded;
use pares_wice::{Message, SiteId, Version};

use super::Defect;
use super::shelf::{Shelf, lock};
use super::tapped::Tapped;

pub(super) const IDENTITY: &str = "simulated";

/// A site's number between sites.
pub(super) fn number_of(site: SiteId) -> u16 {
    u16::from_be_bytes([site.cluster.0, site.number])
}

#[derive(Debug)]
pub(super) enum Arrived {
    Connected(SiteId),
    Lost(SiteId),
    Frame(SiteId, Vec<u8>),
    Asked(ClientId, Vec<u8>),
}

#[derive(Debug)]
pub(super) enum Sent {
    Site(u16, Vec<u8>),
    Client(ClientId, Vec<u8>),
}

/// Clones are the same machine.
#[derive(Clone)]
pub(super) struct Machine(Rc<Parts>);

pub(super) struct Parts {
    now_us: Rc<Cell<u64>>,
    /// What was drawn last, and by whom: no two machines draw alike.
    drawn: Cell<u64>,
    /// The version that its build speaks, and those of its connections.
    pub(super) speaks: Cell<u16>,
    pub(super) versions: RefCell<BTreeMap<u16, u16>>,
    pub(super) others: Vec<SiteId>,
    pub(super) defect: Option<Defect>,
    pub(super) disk: RefCell<Disk>,
    store: Arc<Mutex<Arc<Shelf>>>,
    pub(super) notes: RefCell<BTreeMap<String, Vec<u8>>>,
    /// No descriptor is left: no file can be opened and no connection accepted.
    pub(super) exhausted: Cell<bool>,
    writer: RefCell<Option<StoreWriter>>,
    readers: RefCell<Vec<StoreReader>>,
    loader: RefCell<Option<StoreLoader>>,
    pub(super) inbox: RefCell<Vec<Arrived>>,
    pub(super) sent: RefCell<Vec<Sent>>,
    /// What the cluster's log has handed out here, and nobody has looked at.
    pub(super) committed: RefCell<Vec<(u64, Vec<u8>)>>,
}

impl core::ops::Deref for Machine {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Machine {
    pub(super) fn new(others: Vec<SiteId>, now_us: Rc<Cell<u64>>, seed: u64, defect: Option<Defect>) -> Self {
        Self(Rc::new(Parts {
            now_us,
            drawn: Cell::new(seed),
            speaks: Cell::new(SPEAKS),
            versions: RefCell::default(),
            others,
            defect,
            disk: RefCell::default(),
            store: Arc::default(),
            notes: RefCell::default(),
            exhausted: Cell::default(),
            writer: RefCell::default(),
            readers: RefCell::default(),
            loader: RefCell::default(),
            inbox: RefCell::default(),
            sent: RefCell::default(),
            committed: RefCell::default(),
        }))
    }

    /// Its process ends; of the records written since the last sync, `keep` stay. With the loss of `power`, the store keeps what was flushed.
    pub(super) fn crash(&self, keep: u64, power: bool) {
        self.writer.replace(None);
        self.readers.borrow_mut().clear();
        self.loader.replace(None);
        self.inbox.borrow_mut().clear();
        self.sent.borrow_mut().clear();
        self.disk.borrow().crash(keep);
        if power {
            let store = self.store().flushed();
            self.put_store(store);
        }
    }

    /// All it had is gone.
    pub(super) fn wipe(&self) {
        self.disk.replace(Disk::new());
        self.put_store(Arc::default());
        self.notes.borrow_mut().clear();
    }

    /// Its directory is made for a database that is to begin.
    pub(super) fn make_new(&self) {
        let identity = IDENTITY.as_bytes().to_vec();
        self.notes.borrow_mut().insert(pares_site::place::NEW.to_owned(), identity);
    }

    /// Lets the store be written; whether there was anything to write.
    pub(super) fn write_store(&self) -> bool {
        let loaded = StoreLoader::step(&mut self.loader.borrow_mut());
        self.writer.borrow().as_ref().is_some_and(StoreWriter::step) || loaded
    }

    /// Lets one read be answered; whether there was any.
    pub(super) fn read_store(&self) -> bool {
        self.readers.borrow().first().is_some_and(StoreReader::step)
    }

    /// Its store writes wrong values once.
    pub(super) fn make_erring(&self) {
        self.put_store(Shelf::erring());
    }

    pub(super) fn store(&self) -> Arc<Shelf> {
        Arc::clone(&lock(&self.store))
    }

    fn put_store(&self, store: Arc<Shelf>) {
        *lock(&self.store) = store;
    }

    fn check_descriptors(&self) -> io::Result<()> {
        if self.exhausted.get() { Err(io::Error::other("too many open files")) } else { Ok(()) }
    }

    pub(super) fn send_rules(&self, to: SiteId, message: &Message) {
        let frame = Between::Rules(&message.to_bytes()).to_bytes();
        self.sent.borrow_mut().push(Sent::Site(number_of(to), frame));
    }
}

impl World for Machine {
    type Log = Tapped;
    type Links = Self;
    type Notes = Self;
    type Task = ();

    fn notes(&self) -> &Self {
        self
    }

    fn open_links(&mut self) -> Result<Self, ProcessError> {
        self.check_descriptors()?;
        Ok(self.clone())
    }

    fn open_log(&mut self, config: &pares_cluster::ReplicaConfig) -> Result<Tapped, ProcessError> {
        self.check_descriptors()?;
        let records =
            Records { disk: self.disk.borrow().clone(), syncs: self.defect != Some(Defect::SyncsNothing) };
        let replica = Replica::open(records, config)?;
        Ok(Tapped { replica, machine: self.clone() })
    }

    fn open_store(&mut self) -> Result<Arc<dyn Store>, ProcessError> {
        self.check_descriptors()?;
        Ok(self.store())
    }

    fn emptying(&mut self) -> Emptying {
        let store = Arc::clone(&self.store);
        Box::new(move || {
            let mut store = lock(&store);
            *store = store.emptied();
            Ok(Arc::clone(&store) as _)
        })
    }

    fn draw(&mut self) -> u64 {
        let next =
            self.drawn.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.drawn.set(next);
        next
    }

    fn start(&mut self, writer: StoreWriter, _links: &Self) -> io::Result<()> {
        self.writer.replace(Some(writer));
        Ok(())
    }

    fn start_reader(&mut self, reader: StoreReader, _links: &Self) -> io::Result<()> {
        self.readers.borrow_mut().push(reader);
        Ok(())
    }

    fn start_loader(&mut self, loader: StoreLoader, _links: &Self) -> io::Result<()> {
        self.loader.replace(Some(loader));
        Ok(())
    }
}

impl Clock for Machine {
    fn now(&self) -> Duration {
        Duration::from_micros(self.now_us.get())
    }
}

impl Notes for Machine {
    fn read_note(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.check_descriptors()?;
        Ok(self.notes.borrow().get(name).cloned())
    }

    fn write_note(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.check_descriptors()?;
        self.notes.borrow_mut().insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }

    fn remove_note(&self, name: &str) -> io::Result<()> {
        self.check_descriptors()?;
        self.notes.borrow_mut().remove(name);
        Ok(())
    }
}

impl Connections for Machine {
    fn poll(&mut self, _patience: Duration, sink: &mut impl LinkSink) -> io::Result<()> {
        for arrived in self.inbox.take() {
            match arrived {
                Arrived::Connected(site) => sink.connected(number_of(site)),
                Arrived::Lost(site) => sink.disconnected(number_of(site), &Ended::Gone),
                Arrived::Frame(from, frame) => sink.frame(number_of(from), &self.broken(frame, received)),
                Arrived::Asked(client, frame) => sink.client_frame(client, None, &frame),
            }
        }
        Ok(())
    }

    fn send(&mut self, peer: u16, payload: &[u8]) -> Result<(), SendError> {
        let frame = self.broken(payload.to_vec(), sent);
        self.sent.borrow_mut().push(Sent::Site(peer, frame));
        Ok(())
    }

    fn speaks(&self) -> u16 {
        self.speaks.get()
    }

    fn version(&self, peer: u16) -> u16 {
        match self.defect {
            Some(Defect::SpeaksTooNew) => self.speaks.get(),
            _ => self.versions.borrow().get(&peer).copied().unwrap_or(UNDERSTANDS),
        }
    }

    fn send_client(&mut self, client: ClientId, payload: &[u8]) -> Result<(), SendError> {
        self.sent.borrow_mut().push(Sent::Client(client, payload.to_vec()));
        Ok(())
    }

    fn close_client(&mut self, _client: ClientId) {}

    fn flush(&mut self) {}
}

impl Machine {
    /// A frame as a broken wire has it.
    fn broken(&self, frame: Vec<u8>, breaks: fn(Defect, &mut Message)) -> Vec<u8> {
        let Some(defect) = self.defect else { return frame };
        let Ok(Between::Rules(bytes)) = Between::from_bytes(&frame) else { return frame };
        let Ok(mut message) = Message::from_bytes(bytes) else { return frame };
        breaks(defect, &mut message);
        Between::Rules(&message.to_bytes()).to_bytes()
    }
}

fn sent(defect: Defect, message: &mut Message) {
    match (defect, message) {
        (Defect::AcknowledgesTooEarly, Message::Status(status)) => status.delivered = status.received,
        (Defect::ClaimsLaterSnapshot, Message::Certify { transaction, .. }) => {
            transaction.snapshot = transaction.snapshot.next();
        }
        _ => {}
    }
}

fn received(defect: Defect, message: &mut Message) {
    if let (Defect::StoresTooEarly, Message::Status(status)) = (defect, message) {
        status.delivered = Version(u64::MAX);
    }
}

/// A journal that does sync, or only says so.
pub(super) struct Records {
    disk: Disk,
    syncs: bool,
}

impl Journal for Records {
    fn replay<E: From<JournalError>>(
        &mut self,
        each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.disk.replay(each)
    }
    fn append(&mut self, head: &[u8], body: &[u8]) -> Result<u64, JournalError> {
        self.disk.append(head, body)
    }
    fn publish(&mut self) {}
    fn sync(&mut self) -> Result<(), JournalError> {
        if self.syncs { self.disk.sync() } else { Ok(()) }
    }
    fn release_before(&mut self, place: u64) {
        if self.syncs {
            self.disk.release_before(place);
        }
    }
    fn record_bytes_max(&self) -> usize {
        self.disk.record_bytes_max()
    }
}
