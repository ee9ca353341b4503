//! WICE: the rules of `pares-wice`, one [`Site`] for each server, driven by events.

use std::collections::HashMap; // looked up only, never iterated
use std::rc::Rc;

use pares_wice::{
    Body, ClusterId, Command, Effects, LogEntry, LogRole, Message, Notice, Outcome, Settings, Site as Rules,
    SiteId, Snapshot, Term, Transaction, TransactionId, Version,
};

use super::cluster_log::{ClusterLog, leader};
use super::execution::Stage;
use super::{Event, Replication, World};
use crate::check::Number;
use crate::item::Written;
use crate::locks::Holder;
use crate::network::{Site, side};
use crate::queue::{MILLISECOND, Nanos};
use crate::server::Executed;
use crate::setting::{SITES, SITES_PER_SIDE};
use crate::tally::Cause;

const TICK: Nanos = 100 * MILLISECOND;
/// A status, and the eras in it.
const STATUS_BYTES: u64 = 80;
const ABORT_BYTES: u64 = 48;
/// Versions remembered for certification: more than a minute at the highest load.
const INDEX_VERSIONS: usize = 1 << 15;
/// Tells who is meant where a message has been asked for already: twice the round trip is ten ticks.
const PATIENCE_TICKS: u32 = 20;

/// The six sites, their clusters' logs, and what travels only by name here.
pub(super) struct Wice {
    pub(super) sites: Vec<Rules>,
    pub(super) logs: [ClusterLog; 2],
    /// What was submitted, by transaction and attempt, with how many sites have delivered it.
    submitted: HashMap<(Number, u32), (Rc<Executed>, usize)>,
    /// Who waits for the outcome of a transaction.
    waiting: HashMap<Number, Holder>,
    /// Sites that will be flushed.
    dirty: [bool; SITES],
}

/// What a site wants done.
#[derive(Default)]
struct Wanted {
    proposed: Vec<LogEntry>,
    sent: Vec<(SiteId, Message)>,
    outcomes: Vec<(TransactionId, Outcome)>,
}

impl Effects for Wanted {
    fn propose(&mut self, entry: LogEntry) {
        self.proposed.push(entry);
    }

    fn send(&mut self, to: SiteId, message: Message) {
        self.sent.push((to, message));
    }

    fn outcome(&mut self, id: TransactionId, outcome: Outcome) {
        self.outcomes.push((id, outcome));
    }

    fn notice(&mut self, _: Notice) {}
}

fn site_id(site: Site) -> SiteId {
    SiteId::new(side(site) as u8, (site % SITES_PER_SIDE) as u8)
}

fn index(site: SiteId) -> Site {
    usize::from(site.cluster.0) * SITES_PER_SIDE + usize::from(site.number)
}

impl Wice {
    pub(super) fn new() -> Self {
        let all: Vec<SiteId> = (0..SITES).map(site_id).collect();
        let rules = |&site: &SiteId| {
            let settings = Settings {
                index_versions: INDEX_VERSIONS,
                retained_versions: INDEX_VERSIONS,
                patience_ticks: PATIENCE_TICKS,
                ..Settings::new(site, all.clone())
            };
            Rules::new(settings, ClusterId(0))
        };
        Self {
            sites: all.iter().map(rules).collect(),
            logs: <[ClusterLog; 2]>::default(),
            submitted: HashMap::new(),
            waiting: HashMap::new(),
            dirty: [false; SITES],
        }
    }
}

impl World {
    pub(super) fn wice(&mut self) -> &mut Wice {
        match &mut self.replication {
            Replication::Wice(wice) => wice,
            Replication::Dbsm(_) => unreachable!("only WICE has these events"),
        }
    }

    /// Delegates take office; clocks begin to tick.
    pub(super) fn begin_protocol(&mut self) {
        if matches!(self.replication, Replication::Dbsm(_)) {
            return;
        }
        for site in 0..SITES {
            self.wice().sites[site].role(LogRole { term: Term(1), leads: leader(site) == site });
        }
        self.on_tick();
    }

    pub(super) fn on_tick(&mut self) {
        for site in 0..SITES {
            self.with(site, |rules, wanted| rules.tick(wanted));
        }
        self.queue.push(self.now() + TICK, Event::Tick);
    }

    /// The side whose delegate certifies.
    pub(super) fn certifier_side(&self) -> usize {
        match &self.replication {
            Replication::Wice(wice) => usize::from(wice.sites[0].configuration().certifier.0),
            Replication::Dbsm(_) => 0,
        }
    }

    /// The certifier moves to the other side.
    pub(super) fn move_certifier(&mut self) {
        let from = self.certifier_side();
        let to = ClusterId(1 - from as u8);
        self.with(from * SITES_PER_SIDE, |rules, wanted| {
            rules
                .command(Command::Migrate(to), wanted)
                .expect("the certifier can be moved while all is well");
        });
    }

    /// Asks for an executed transaction to be committed.
    pub(super) fn submit(&mut self, executed: &Rc<Executed>) {
        let Executed { holder, site, number, attempt, snapshot, ref writes, .. } = **executed;
        let wice = self.wice();
        wice.submitted.insert((number, attempt), (Rc::clone(executed), 0));
        wice.waiting.insert(number, holder);
        let transaction = Transaction {
            id: TransactionId { client: 0, sequence: number },
            attempt,
            writes: writes.iter().map(|written: &Written| written.as_write()).collect(),
            ..Transaction::default()
        };
        self.with(site, |rules, wanted| {
            let snapshot = Snapshot { version: Version(snapshot), ..rules.snapshot() };
            rules.submit(transaction, snapshot, wanted).expect("well formed, and submitted once");
        });
    }

    pub(super) fn on_wice_message(&mut self, from: Site, to: Site, message: Message) {
        self.with(to, |rules, wanted| rules.receive(site_id(from), message, wanted));
    }

    /// The cluster's log gives an entry to `site`.
    pub(super) fn on_log_committed(&mut self, site: Site, entry: LogEntry) {
        let body = match &entry {
            LogEntry::Stream { entry, .. } => Some(entry.body.clone()),
            LogEntry::Fence(_)
            | LogEntry::WitnessedFence(_)
            | LogEntry::Discard { .. }
            | LogEntry::Adopt { .. } => None,
        };
        let before = self.wice().sites[site].delivered();
        self.with(site, |rules, wanted| rules.committed(entry, wanted));
        let after = self.wice().sites[site].delivered();
        if after == before {
            return;
        }
        match body {
            Some(Body::Update { id, attempt, .. }) => {
                self.deliver_update(site, after, (id.sequence, attempt))
            }
            Some(Body::Configure(_)) | None => self.deliver_nothing(site, after.0),
        }
    }

    fn deliver_update(&mut self, site: Site, version: Version, name: (Number, u32)) {
        let submitted = &mut self.wice().submitted;
        let (executed, delivered) = submitted.get_mut(&name).expect("kept until all sites have it");
        *delivered += 1;
        let (executed, all) = (Rc::clone(executed), *delivered == SITES);
        if all {
            submitted.remove(&name);
        }
        self.checker.holds(site, name.0);
        self.deliver(site, version.0, &executed);
    }

    /// Gives a site an input and does what it wants done; what can wait is done at once, or with the rest of a batch.
    fn with(&mut self, site: Site, input: impl FnOnce(&mut Rules, &mut Wanted)) {
        let mut wanted = Wanted::default();
        input(&mut self.wice().sites[site], &mut wanted);
        let batch = self.setting.batch;
        if batch == 0 {
            self.wice().sites[site].flush(&mut wanted);
        } else if !std::mem::replace(&mut self.wice().dirty[site], true) {
            self.queue.push(self.now() + batch, Event::Flush(site));
        }
        self.carry_out(site, wanted);
    }

    pub(super) fn on_flush(&mut self, site: Site) {
        let mut wanted = Wanted::default();
        let wice = self.wice();
        wice.dirty[site] = false;
        wice.sites[site].flush(&mut wanted);
        self.carry_out(site, wanted);
    }

    fn carry_out(&mut self, site: Site, wanted: Wanted) {
        for entry in wanted.proposed {
            self.propose(site, entry);
        }
        for (to, message) in wanted.sent {
            let bytes = self.message_bytes(&message);
            self.send(site, index(to), bytes, super::Message::Wice(message));
        }
        let stable = self.wice().sites[site].stable();
        if stable.0 > self.servers[site].stable {
            self.wice().sites[site].applied(stable);
            self.on_stable(site, stable.0);
        }
        for (id, outcome) in wanted.outcomes {
            self.on_outcome(id.sequence, outcome);
        }
    }

    fn on_outcome(&mut self, number: Number, outcome: Outcome) {
        let Some(holder) = self.wice().waiting.remove(&number) else { return };
        match outcome {
            Outcome::Committed { .. } => self.on_stable_commit(holder),
            Outcome::Aborted(_) => {
                let Some(running) = self.running.get(&holder) else { return };
                let cause = if running.stage == Stage::Doomed { Cause::Overrun } else { Cause::Refused };
                let name = (number, running.ask.attempt);
                self.wice().submitted.remove(&name);
                self.abort(holder, cause);
            }
        }
    }

    fn message_bytes(&self, message: &Message) -> u64 {
        match message {
            Message::Certify { .. } => self.setting.write_set_bytes.into(),
            Message::Abort { .. } => ABORT_BYTES,
            Message::Status(_) | Message::Rewind { .. } | Message::Promise { .. } | Message::Adopt { .. } => {
                STATUS_BYTES
            }
            Message::Stream { entries, .. } | Message::Promised { entries, .. } => {
                entries.iter().map(|entry| self.entry_bytes(Some(&entry.body))).sum()
            }
        }
    }
}
