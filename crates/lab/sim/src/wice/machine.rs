//! One simulated machine: the world of a site in memory.
//!
//! The site that runs on it is the shipped one, cluster log, codecs and all. What a machine adds is what fails: the death of a
//! process keeps what was written, the loss of power what was synced; syncs and files fail; and wires can be broken
//! on purpose, to see that the checkers notice ([`Defect`]).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use pares_cluster::memory::Disk;
use pares_cluster::{
    Beginning, ClusterLog, Journal, JournalError, LogError, MemberId, Members, MessageError, ProposeError,
    Replica, Role, Sink,
};
use pares_link::{ClientId, LinkSink, SendError};
use pares_site::protocol::Between;
use pares_site::world::{Clock, Connections, Notes, World};
use pares_site::{ProcessError, StoreReader, StoreWriter};
use pares_store::Store;
use pares_wice::codec::Coded;
use pares_wice::{LogEntry, Message, SiteId, Version};

use super::Defect;
use super::shelf::Shelf;

/// The database's name.
pub(super) const IDENTITY: &str = "simulated";

/// A site's number between sites.
pub(super) fn number_of(site: SiteId) -> u16 {
    u16::from_be_bytes([site.cluster.0, site.number])
}

/// What comes to a site.
#[derive(Debug)]
pub(super) enum Arrived {
    Connected(SiteId),
    Frame(SiteId, Vec<u8>),
    Asked(ClientId, Vec<u8>),
}

/// What a site sends.
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
    others: Vec<SiteId>,
    defect: Option<Defect>,
    pub(super) disk: RefCell<Disk>,
    store: RefCell<Arc<Shelf>>,
    pub(super) notes: RefCell<BTreeMap<String, Vec<u8>>>,
    /// No descriptor is left: no file can be opened and no connection accepted.
    pub(super) exhausted: Cell<bool>,
    writer: RefCell<Option<StoreWriter>>,
    readers: RefCell<Vec<StoreReader>>,
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
            others,
            defect,
            disk: RefCell::default(),
            store: RefCell::default(),
            notes: RefCell::default(),
            exhausted: Cell::default(),
            writer: RefCell::default(),
            readers: RefCell::default(),
            inbox: RefCell::default(),
            sent: RefCell::default(),
            committed: RefCell::default(),
        }))
    }

    /// Its process ends; of the records written since the last sync, `keep` stay. With the loss of `power`, the store keeps what was flushed.
    pub(super) fn crash(&self, keep: u64, power: bool) {
        self.writer.replace(None);
        self.readers.borrow_mut().clear();
        self.inbox.borrow_mut().clear();
        self.sent.borrow_mut().clear();
        self.disk.borrow().crash(keep);
        if power {
            let store = self.store.borrow().flushed();
            self.store.replace(store);
        }
    }

    /// All it had is gone.
    pub(super) fn wipe(&self) {
        self.disk.replace(Disk::new());
        self.store.replace(Arc::default());
        self.notes.borrow_mut().clear();
    }

    /// Its directory is made for a database that is to begin.
    pub(super) fn make_new(&self) {
        let identity = IDENTITY.as_bytes().to_vec();
        self.notes.borrow_mut().insert(pares_site::place::NEW.to_owned(), identity);
    }

    /// Lets the store be written; whether there was anything to write.
    pub(super) fn write_store(&self) -> bool {
        self.writer.borrow().as_ref().is_some_and(StoreWriter::step)
    }

    /// Lets one read be answered; whether there was any.
    pub(super) fn read_store(&self) -> bool {
        self.readers.borrow().first().is_some_and(StoreReader::step)
    }

    /// Its store writes wrong values once.
    pub(super) fn make_erring(&self) {
        self.store.replace(Shelf::erring());
    }

    pub(super) fn store(&self) -> Arc<Shelf> {
        Arc::clone(&self.store.borrow())
    }

    fn check_descriptors(&self) -> io::Result<()> {
        if self.exhausted.get() { Err(io::Error::other("too many open files")) } else { Ok(()) }
    }

    fn send_rules(&self, to: SiteId, message: &Message) {
        let frame = Between::Rules(&message.to_bytes()).to_bytes();
        self.sent.borrow_mut().push(Sent::Site(number_of(to), frame));
    }
}

impl World for Machine {
    type Log = Tapped;
    type Links = Self;
    type Task = ();

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

    fn clear_store(&mut self) -> Result<(), ProcessError> {
        let emptied = self.store().emptied();
        self.store.replace(emptied);
        Ok(())
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

/// The shipped cluster log, listened to; and broken where it takes what the site proposes.
pub(super) struct Tapped {
    replica: Replica<Records>,
    machine: Machine,
}

impl Tapped {
    fn broken(&self, payload: &[u8]) -> Vec<u8> {
        let Some(defect) = self.machine.defect else { return payload.to_vec() };
        let mut entries = Vec::<LogEntry>::from_bytes(payload).expect("a site proposes entries");
        for entry in &mut entries {
            let LogEntry::Stream { era, entry } = entry else { continue };
            match defect {
                Defect::VouchesForLaterEra => era.takeovers = u32::MAX >> 1,
                Defect::StreamsTooEarly => {
                    let early = Message::Stream { era: *era, entries: vec![Arc::clone(entry)] };
                    self.machine.others.iter().for_each(|&other| self.machine.send_rules(other, &early));
                }
                _ => {}
            }
        }
        if defect == Defect::KeepsItsOwn {
            entries.retain(|entry| !matches!(entry, LogEntry::Discard { .. }));
        }
        entries.to_bytes()
    }
}

impl ClusterLog for Tapped {
    fn tick(&mut self) {
        self.replica.tick();
    }
    fn receive(&mut self, from: u8, message: &[u8]) -> Result<(), MessageError> {
        self.replica.receive(from, message)
    }
    fn propose(&mut self, payload: &[u8]) -> Result<(), ProposeError> {
        self.replica.propose(&self.broken(payload))
    }
    fn cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError> {
        self.replica.cycle(&mut Tap { machine: &self.machine, out })
    }
    fn pending(&self) -> bool {
        self.replica.pending()
    }
    fn role(&self) -> Role {
        self.replica.role()
    }
    fn compact(&mut self, up_to: u64) {
        self.replica.compact(up_to);
    }
    fn members(&self) -> &Members {
        self.replica.members()
    }
    fn beginning(&self, index: u64) -> Option<Beginning> {
        self.replica.beginning(index)
    }
    fn admit(&mut self, id: MemberId) {
        self.replica.admit(id);
    }
    fn dismiss(&mut self, number: u8) {
        if self.machine.defect != Some(Defect::DismissesNobody) {
            self.replica.dismiss(number);
        }
    }
    fn resign(&mut self) -> Option<u8> {
        self.replica.resign()
    }
}

struct Tap<'a, S: ?Sized> {
    machine: &'a Machine,
    out: &'a mut S,
}

impl<S: Sink + ?Sized> Sink for Tap<'_, S> {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        self.out.send(to, message);
    }
    fn committed(&mut self, index: u64, term: u64, payload: &[u8]) {
        self.machine.committed.borrow_mut().push((index, payload.to_vec()));
        self.out.committed(index, term, payload);
    }
    fn role(&mut self, role: Role) {
        self.out.role(role);
    }
    fn lacks(&mut self, at_least: u64) {
        self.out.lacks(at_least);
    }
}
