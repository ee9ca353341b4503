//! The invariants (design section 6), checked as things happen and once more in the end.

use pares_book::{Book, Snapshot};
use pares_config::NodeId;
use pares_gateway::Answer;
use pares_random::mix;
use pares_sequencer::Sequencer;
use pares_types::{Position, Reason, RequestId, VenueId};
use pares_wire::record::{self, ResultRecord};

use crate::memory::log::Log;
use crate::memory::reader::scan;
use crate::record::Record;
use crate::scenario::{Durability, MS, US};
use crate::{Broken, Verdict, broken, must};

use super::settings::{SESSION_IN_FLIGHT_MAX, names_max};
use super::{World, gateway_id, index, recorder_id, shard_id};

/// Requests of a run that no log has any more and that nobody asked again.
const LOST_MAX: u64 = 8;

/// With one active venue, on time means within this: loss, resends and group commit included.
const COMPLETION_BOUND_NS: u64 = 10 * MS;
/// Where disks are slow now and then, on top: a full window waits for one slow sync, what it then lets in for the next.
const SLOW_SYNCS_NS: u64 = 2 * super::effects::SLOW_SYNC_NS;

/// What of a recorder's log nothing can take back, by shard; kept up to date as the log grows.
pub(super) struct Safe {
    /// Which log it was read from.
    identity: u64,
    cursor: u64,
    pub(super) next: Vec<Position>,
}

impl Safe {
    pub(super) fn new(shards: usize) -> Self {
        Self { identity: 0, cursor: 0, next: vec![Position(0); shards] }
    }

    /// Reads on up to `to`; another log is read from its beginning.
    fn catch_up(&mut self, log: &Log, to: u64) {
        let identity = log.lock().identity;
        if identity != self.identity {
            *self = Self { identity, ..Self::new(self.next.len()) };
        }
        let next = &mut self.next;
        self.cursor = scan(log, self.cursor, to.max(self.cursor), |_, payload| {
            if let (Some(record::RESULT), Ok(result)) = (record::schema(payload), ResultRecord::read(payload))
            {
                next[usize::from(result.shard().0)] = result.position().next();
            }
        });
    }
}

impl World<'_> {
    pub(super) fn is_disk(&self) -> bool {
        self.scenario.durability == Durability::Disk
    }

    /// What nothing can take back of a recorder's log.
    pub(super) fn safe_of(&mut self, recorder: usize) -> &Safe {
        let disk = self.is_disk();
        if let Some(log) = self.machine.log(recorder_id(recorder)) {
            let to = {
                let state = log.lock();
                if disk { state.synced } else { state.written }
            };
            self.safe[recorder].catch_up(&log, to);
        }
        &self.safe[recorder]
    }

    /// I2: `position` of the shard is where it must be for an answer.
    fn check_durable(&mut self, shard: usize, position: Position) -> Verdict {
        let recorders = 0..self.scenario.recorders;
        let have = recorders.filter(|&n| self.safe_of(n).next[shard] > position).count();
        must(have >= self.scenario.quorum, "I2 durability", || {
            format!("shard {shard} position {position} is answered and safe at {have} recorders")
        })
    }

    /// I2, after everything went down.
    pub(super) fn check_answered_is_kept(&mut self) -> Verdict {
        for recorder in 0..self.scenario.recorders {
            self.safe[recorder] = Safe::new(self.scenario.shards);
            self.safe_of(recorder);
        }
        for shard in 0..self.scenario.shards {
            if let Some(last) = self.answered[shard].0.checked_sub(1) {
                let have = self.safe.iter().filter(|safe| safe.next[shard].0 > last).count();
                must(have >= self.scenario.quorum, "I2 durability", || {
                    format!("answered position {last} of shard {shard} is left at {have} recorders")
                })?;
            }
        }
        Ok(())
    }

    /// I2, I3, I4: an answer reached a client.
    pub(super) fn check_answer(&mut self, client: usize, connection: usize, answer: &Answer) -> Verdict {
        self.ledger.check_answer(self.clients[client].member, answer)?;
        let shard = usize::from(answer.shard.0);
        self.check_durable(shard, answer.position)?;
        self.answered[shard] = self.answered[shard].max(answer.position.next());
        self.ledger.witness.on_answered(shard, answer.position, self.now_ns);
        let name = answer.client_order_id.0;
        // It says nothing of what came of the name before, if anything did.
        if answer.reason == Reason::TooOld {
            return self.check_completion(client, name, shard);
        }
        let once = answer.content();
        let first = *self.clients[client].answers.entry(name).or_insert(once);
        must(first == once || self.ledger.looks_away, "I3 exactly once", || {
            format!("client {client} was told {first:?}, then {answer:?}")
        })?;
        if !answer.repeat && !self.clients[client].first_answers.insert((connection, name)) {
            let what = format!("client {client} has two first answers on one connection: {answer:?}");
            return broken("I3 exactly once", what);
        }
        self.check_completion(client, name, shard)
    }

    /// How long a request took, and whether it may have.
    fn check_completion(&mut self, client: usize, name: u64, shard: usize) -> Verdict {
        let Some(open) = self.clients[client].open.remove(&name) else { return Ok(()) };
        self.note_wait(client, &open);
        let took_ns = self.now_ns - open.first_sent_ns;
        let disturbed_until_ns =
            self.disturbed_until_ns.max(self.shard_disturbed_until_ns(&open.request, shard));
        if open.spoilt || disturbed_until_ns >= open.first_sent_ns || self.scenario.floods {
            return Ok(());
        }
        self.summary.completion_max_ns = self.summary.completion_max_ns.max(took_ns);
        let slow_ns = if self.scenario.faults.slow_sync_permille > 0 { SLOW_SYNCS_NS } else { 0 };
        must(took_ns <= COMPLETION_BOUND_NS + slow_ns, "I4 non-disruption", || {
            format!("client {client} request {name} took {} us with a venue at work", took_ns / US)
        })
    }

    /// I2: *accepted* means journalled.
    pub(super) fn check_journalled(&mut self, gateway: usize, request: RequestId) -> Verdict {
        must(self.is_journalled(gateway, request), "I2 durability", || {
            format!("{request} is accepted, not journalled")
        })
    }

    /// W6: what is void is executed by nobody, and nothing else is refused as void. What is no new request is not executed either way.
    pub(super) fn check_void(&self, record: &Record) -> Verdict {
        let shard = usize::from(record.shard().0);
        if record.epoch != self.epoch || record.position < self.epoch_first[shard] {
            return Ok(());
        }
        let Some(mut window) = self.machine.window(record.shard()) else { return Ok(()) };
        let is_void = window.is_void(record.position);
        let reason = record.outcome.reason;
        must(
            is_void == (reason == Reason::Void) || is_void && !reason.uses_name(),
            "W6 executed or void",
            || format!("shard {shard} position {} is void: {is_void}, and {record:?}", record.position),
        )
    }

    /// I1 and I6, after a duty cycle.
    pub(super) fn check_process(&mut self, node: NodeId) -> Verdict {
        match node {
            NodeId::Gateway(_) => {
                let in_flight = self.machine.counter(&node.to_string(), "in_flight").unwrap_or_default();
                if in_flight as usize <= self.in_flight_max() {
                    return Ok(());
                }
                broken("I6 bounded", format!("{node} has {in_flight} in flight"))
            }
            NodeId::Venue(_) => {
                self.note_came(node);
                self.check_venue(index(node))
            }
            NodeId::Recorder(_) => {
                self.check_voters(node)?;
                self.check_halted(index(node))
            }
            NodeId::Publisher(_) => self.check_publisher(node),
            NodeId::Replayer(_) | NodeId::Orderer(_) | NodeId::Mirror(_) => Ok(()),
        }
    }

    /// A repeated mass cancel of everything has its missing parts taken in on top, and the exchange has room of its own.
    fn in_flight_max(&self) -> usize {
        let parts = self.scenario.shards * (self.clients.len() + self.guests.len());
        self.scenario.in_flight_max + parts + 2 * usize::from(SESSION_IN_FLIGHT_MAX)
    }

    fn check_venue(&mut self, venue: usize) -> Verdict {
        let Some(node) = self.venue(venue) else { return Ok(()) };
        let pending = node.pending_len();
        let states: Vec<_> = node
            .seated()
            .map(|shard| (usize::from(shard.id().0), shard.position(), shard.state_hash()))
            .collect();
        // A venue that was away reads a batch of each gateway at once.
        let most = self.scenario.gateways * (self.in_flight_max() + 512);
        must(pending <= most, "I6 bounded", || format!("venue {venue} has {pending} pending"))?;
        let placement = node.placement().clone();
        let own = VenueId(u16::try_from(venue).expect("few venues"));
        let is_its = |&(shard, ..): &(usize, _, _)| placement.executes(own, shard_id(shard));
        must(states.iter().all(is_its), "L1 a venue executes its lanes", || {
            format!("venue {venue} has {states:?} of {placement:?}")
        })?;
        states.into_iter().try_for_each(|(shard, next, hash)| self.ledger.on_state(shard, next, hash))
    }

    /// Whether nothing more is to come: everything answered, recorded by all and executed by all.
    pub(super) fn is_at_rest(&mut self) -> Result<bool, Broken> {
        if self.restarting || !self.clients.iter().all(crate::client::Client::is_done) {
            return Ok(false);
        }
        for shard in 0..self.scenario.shards {
            let len = self.ledger.len(shard)?;
            let recorders = 0..self.scenario.recorders;
            let recorded = recorders.into_iter().all(|n| self.safe_of(n).next[shard] == len);
            let at_len = |venue: usize| self.seated(venue, shard).map(|one| one.position() == len);
            let executed =
                self.venues_of(shard).all(|venue| at_len(venue) == Some(true) || self.is_shut_out(venue));
            if !recorded || !executed {
                return Ok(false);
            }
        }
        if !self.guests_are_quiet()
            || !self.streams_are_told()
            || self.left_behind()?.is_some()
            || !self.feed_is_told()?
        {
            return Ok(false);
        }
        // A gateway counts in its first turn.
        let has_counted = |node: &NodeId| {
            let counted = self.machine.counter(&node.to_string(), "names");
            !matches!(node, NodeId::Gateway(_)) || counted > Some(0)
        };
        let nodes = self.nodes();
        Ok(nodes.iter().all(has_counted)
            && nodes.into_iter().all(|node| self.is_up(node) || self.is_shut_out_node(node)))
    }

    /// Faults stopped long ago and a client, a node or a subscriber still waits.
    pub(super) fn unanswered(&mut self) -> Broken {
        if let Ok(Some((order, name))) = self.left_behind() {
            let what = format!("order {order}, {name}, stays although its session has ended");
            return Broken { invariant: "G1 none is left behind", what };
        }
        if let Ok(Some(untold)) = self.untold() {
            return Broken { invariant: super::feed::EVERYBODY, what: untold };
        }
        if let Err(broken) = self.check_guests_asked() {
            return broken;
        }
        let mut what = String::from("not at rest long after faults stopped:");
        for (index, client) in self.clients.iter().enumerate() {
            for (name, open) in client.open.iter().take(3) {
                what += &format!("\n  client {index} waits for {name}: {:?}", open.request);
            }
        }
        what += &self.guests_state();
        if !self.streams_are_told() {
            what += "\n  somebody was not told all of a stream";
        }
        for node in self.nodes().into_iter().filter(|&node| !self.is_up(node)) {
            what += &format!("\n  {node} is down");
        }
        for venue in 0..self.scenario.venues {
            let Some(node) = self.venue(venue) else { continue };
            let seats: Vec<_> =
                node.seated().map(|shard| (shard.id().0, shard.position().0, shard.pending_len())).collect();
            what += &format!("\n  venue {venue} (shard, position, pending): {seats:?}");
        }
        for recorder in 0..self.scenario.recorders {
            let next = self.safe_of(recorder).next.clone();
            what += &format!("\n  recorder {recorder}: {next:?}");
        }
        Broken { invariant: "everything is answered", what }
    }

    /// All is at rest: everything answered, every replica the same, every share accounted for.
    pub(super) fn check_end(&mut self) -> Verdict {
        let poison = self.poison();
        let mut orders = 0;
        for shard in 0..self.scenario.shards {
            self.ledger.check_poison(shard, poison)?;
            let accounts = self.ledger.accounts(shard)?;
            let (resting, nets) = (accounts.resting(), accounts.nets());
            orders += resting.len() as u64;
            let replayed = self.ledger.replay(shard, (&self.instruments[shard], self.config.register()))?;
            self.ledger.tally(shard, &mut self.summary);
            // One that is about to leave a shard is woken for it no more.
            for venue in self.venues_of(shard) {
                let Some(seated) = self.seated(venue, shard) else { continue };
                seated.market().audit();
                let books = seated.market().state_hash();
                must(books == replayed, "sequential replay", || {
                    format!("venue {venue} shard {shard}: books {books:016x}, replayed {replayed:016x}")
                })?;
                let orders = seated.books().iter().flat_map(|book| {
                    let Snapshot { orders, trading, .. } = book.snapshot();
                    orders.into_iter().chain(trading.unfinished.map(|unfinished| unfinished.order))
                });
                let on_book: std::collections::BTreeMap<_, _> =
                    orders.map(|order| (order.order, order.remaining.0)).collect();
                let counted = seated.nets().nets;
                must(counted == nets, "I5 conservation", || {
                    format!("venue {venue} shard {shard}: nets {counted:?}, {nets:?} should")
                })?;
                if on_book != resting {
                    let what = format!("venue {venue} shard {shard}: {on_book:?} rest, {resting:?} should");
                    return broken("I5 conservation", what);
                }
            }
        }
        self.collect_counts();
        self.check_feed_end()?;
        self.check_guests_end()?;
        self.check_taps()?;
        self.check_names(orders)
    }

    /// A gateway keeps the names of all orders that live, and beyond those only so many. What a fault took from the logs, and nobody asks
    /// again, stays in flight: a few at most.
    fn check_names(&self, orders: u64) -> Verdict {
        for gateway in 0..self.scenario.gateways {
            let name = gateway_id(gateway).to_string();
            let of = |counter: &str| self.machine.counter(&name, counter).unwrap_or_default();
            let (names, needed) = (of("names"), of("names_needed"));
            let is_right = (orders..=orders + LOST_MAX).contains(&needed);
            must(is_right && names <= needed.max(names_max(&self.scenario) as u64), "I6 bounded", || {
                format!("{name} has {names} names and needs {needed}; {orders} orders live")
            })?;
        }
        Ok(())
    }

    /// What all replicas hold.
    pub(super) fn state_hash(&self) -> u64 {
        let venues = (0..self.scenario.venues).filter_map(|venue| self.venue(venue));
        let states =
            venues.flat_map(|node| node.seated().map(|shard| shard.state_hash()).collect::<Vec<_>>());
        let mut records = Vec::new();
        for recorder in 0..self.scenario.recorders {
            if let Some(log) = self.machine.log(recorder_id(recorder)) {
                scan(&log, 0, u64::MAX, |offset, payload| {
                    let first = payload.iter().fold(offset, |hash, &byte| mix(hash ^ u64::from(byte)));
                    records.push(first);
                });
            }
        }
        states.chain(records).fold(0, |hash, word| mix(hash ^ mix(word)))
    }

    fn collect_counts(&mut self) {
        for venue in 0..self.scenario.venues {
            let name = super::venue_id(venue).to_string();
            let of = |counter: &str| self.machine.counter(&name, counter).unwrap_or_default();
            self.summary.window_full += of("window_full");
            self.summary.too_far_behind += of("too_far_behind");
            self.summary.engines.restored += of("shards_restored");
        }
        for gateway in 0..self.scenario.gateways {
            self.summary.looked_up +=
                self.machine.counter(&gateway_id(gateway).to_string(), "looked_up").unwrap_or_default();
        }
        for recorder in 0..self.scenario.recorders {
            self.summary.checkpoints +=
                self.machine.counter(&recorder_id(recorder).to_string(), "checkpoints").unwrap_or_default();
        }
    }
}
