//! The invariants (design section 6), checked as things happen and once more in the end.

use pares_gateway::{Answer, SessionId};
use pares_types::{Position, RequestId};

use crate::Broken;
use crate::log::Log;
use crate::random::mix;
use crate::record::RecorderEntry;
use crate::scenario::Durability;

use super::World;

/// What of a recorder's log nothing can take back, by shard; kept up to date as the log grows.
pub(super) struct Safe {
    cursor: u64,
    next: Vec<Position>,
}

impl Safe {
    pub(super) fn new(shards: usize) -> Self {
        Self { cursor: 0, next: vec![Position(0); shards] }
    }

    fn catch_up(&mut self, log: &Log<RecorderEntry>, to: u64) {
        for entry in log.range(self.cursor, to.max(self.cursor)) {
            if let RecorderEntry::Result(record) = entry {
                self.next[usize::from(record.shard().0)] = record.position.next();
            }
        }
        self.cursor = to.max(self.cursor);
    }
}

impl World<'_> {
    /// I2: `position` of the shard is where it must be for an answer.
    fn check_durable(&mut self, shard: usize, position: Position) -> Result<(), Broken> {
        let disk = self.scenario.durability == Durability::Disk;
        let mut have = 0;
        for host in &mut self.recorders {
            let to = if disk { host.log.synced() } else { host.log.published() };
            host.safe.catch_up(&host.log, to);
            have += usize::from(host.safe.next[shard] > position);
        }
        if have >= self.scenario.quorum {
            return Ok(());
        }
        let what = format!("shard {shard} position {position} is answered and safe at {have} recorders");
        Err(Broken { invariant: "I2 durability", what })
    }

    /// I2, after everything went down.
    pub(super) fn check_answered_is_kept(&mut self) -> Result<(), Broken> {
        let shards = self.scenario.shards;
        for host in &mut self.recorders {
            host.safe = Safe::new(shards);
            host.safe.catch_up(&host.log, host.log.kept());
        }
        for shard in 0..shards {
            if let Some(last) = self.answered[shard].0.checked_sub(1) {
                let have = self.recorders.iter().filter(|host| host.safe.next[shard].0 > last).count();
                if have < self.scenario.quorum {
                    let what =
                        format!("answered position {last} of shard {shard} is left at {have} recorders");
                    return Err(Broken { invariant: "I2 durability", what });
                }
            }
        }
        Ok(())
    }

    /// I2, I3, I4: an answer reached a client.
    pub(super) fn check_answer(
        &mut self,
        client: usize,
        session: SessionId,
        answer: &Answer,
    ) -> Result<(), Broken> {
        self.ledger.check_answer(self.clients[client].member, answer)?;
        let shard = usize::from(answer.shard.0);
        self.check_durable(shard, answer.position)?;
        self.answered[shard] = self.answered[shard].max(answer.position.next());
        self.ledger.witness.on_answered(shard, answer.position, self.now_ns);
        let name = answer.client_order_id.0;
        let once = Answer { repeat: false, ..*answer };
        let first = *self.clients[client].answers.entry(name).or_insert(once);
        if first != once && !self.ledger.looks_away {
            let what = format!("client {client} was told {first:?}, then {answer:?}");
            return Err(Broken { invariant: "I3 exactly once", what });
        }
        if !answer.repeat && !self.clients[client].first_answers.insert((session, name)) {
            let what = format!("client {client} has two first answers on one connection: {answer:?}");
            return Err(Broken { invariant: "I3 exactly once", what });
        }
        self.check_completion(client, name, shard)
    }

    /// I2: *accepted* means journalled.
    pub(super) fn check_journalled(&mut self, gateway: usize, request: RequestId) -> Result<(), Broken> {
        let log = &self.gateways[gateway].log;
        let safe = if self.scenario.durability == Durability::Disk { log.synced() } else { log.published() };
        match log.range(0, safe).binary_search_by_key(&request, |journalled| journalled.id) {
            Ok(_) => Ok(()),
            Err(_) => Err(Broken {
                invariant: "I2 durability",
                what: format!("{request} is accepted, not journalled"),
            }),
        }
    }

    /// I6: what a gateway holds is bounded.
    pub(super) fn check_gateway(&mut self, gateway: usize) -> Result<(), Broken> {
        let node = self.gateways[gateway].node.as_ref().expect("it has just stepped");
        let most = self.in_flight_max();
        let in_flight = node.gateway.in_flight();
        let ahead = self.ahead_len(crate::record::NodeId::Gateway(gateway));
        if in_flight <= most && ahead <= 64 * (self.gateways.len() + self.recorders.len()) {
            return Ok(());
        }
        Err(Broken { invariant: "I6 bounded", what: format!("gateway {gateway} has {in_flight} in flight") })
    }

    /// What a gateway may have in flight.
    fn in_flight_max(&self) -> usize {
        // A repeated mass cancel of everything has its missing parts taken in on top.
        self.scenario.in_flight_max + self.scenario.shards * self.clients.len()
    }

    /// What may be undecided at all.
    pub(super) fn pending_max(&self) -> usize {
        self.in_flight_max() * self.gateways.len()
    }

    /// I1, I6: equal positions have equal states; what a venue holds is bounded by what gateways have in flight.
    pub(super) fn check_venue(&mut self, venue: usize) -> Result<(), Broken> {
        let node = self.venues[venue].node.as_ref().expect("it has just stepped");
        let pending = node.pending_len();
        if pending > self.pending_max() {
            let what = format!("venue {venue} has {pending} pending");
            return Err(Broken { invariant: "I6 bounded", what });
        }
        for (shard, seat) in node.seats.iter().enumerate() {
            let Some(seated) = &seat.shard else { continue };
            self.ledger.on_state(shard, seated.position(), seated.state_hash())?;
        }
        Ok(())
    }

    /// Faults stopped long ago and somebody still waits.
    pub(super) fn unanswered(&self) -> Broken {
        let mut what = String::from("not at rest long after faults stopped:");
        for (index, client) in self.clients.iter().enumerate() {
            for (name, open) in client.open.iter().take(3) {
                what += &format!("\n  client {index} waits for {name}: {:?}", open.request);
            }
        }
        for (index, host) in self.venues.iter().enumerate() {
            let Some(node) = &host.node else { continue };
            let seats = node.seats.iter().map(|seat| {
                let pending = seat.shard.as_ref().map(crate::shard::AnyShard::pending_len);
                (seat.reached.0, pending)
            });
            what += &format!("\n  venue {index} (position, pending): {:?}", seats.collect::<Vec<_>>());
        }
        for (index, host) in self.recorders.iter().enumerate() {
            let (next, _) = crate::recorder::recorded(&host.log, host.log.end(), self.scenario.shards);
            what += &format!("\n  recorder {index}: {next:?}");
        }
        Broken { invariant: "everything is answered", what }
    }

    /// All is at rest: everything answered, every replica the same, every share accounted for.
    pub(super) fn check_end(&mut self) -> Result<(), Broken> {
        if !self.clients.iter().all(crate::client::Client::is_done) {
            return Err(self.unanswered());
        }
        for shard in 0..self.scenario.shards {
            let len = self.ledger.len(shard)?;
            for host in &self.recorders {
                let (next, _) = crate::recorder::recorded(&host.log, host.log.end(), self.scenario.shards);
                if next[shard] != len {
                    return Err(self.unanswered());
                }
            }
            self.ledger.check_poison(shard, self.poison())?;
            let resting = self.ledger.accounts(shard)?;
            let replayed = self.ledger.replay(shard, &self.instruments[shard])?;
            self.ledger.tally(shard, &mut self.summary);
            for (venue, host) in self.venues.iter().enumerate() {
                let node = host.node.as_ref().expect("in the end all are up");
                let seated = node.seats[shard].shard.as_ref().filter(|seated| seated.position() == len);
                let Some(seated) = seated else { return Err(self.unanswered()) };
                let books = seated.market_hash();
                if books != replayed {
                    let what =
                        format!("venue {venue} shard {shard}: books {books:016x}, replayed {replayed:016x}");
                    return Err(Broken { invariant: "sequential replay", what });
                }
                let on_book: std::collections::BTreeMap<_, _> = seated.resting().into_iter().collect();
                if on_book != resting {
                    let what = format!("venue {venue} shard {shard}: {on_book:?} rest, {resting:?} should");
                    return Err(Broken { invariant: "I5 conservation", what });
                }
            }
        }
        self.collect_counts();
        Ok(())
    }

    /// What all replicas hold.
    pub(super) fn state_hash(&self) -> u64 {
        let seats = self.venues.iter().filter_map(|host| host.node.as_ref()).flat_map(|node| &node.seats);
        let states = seats.filter_map(|seat| Some(seat.shard.as_ref()?.state_hash()));
        let records = self.recorders.iter().flat_map(|host| host.log.range(0, host.log.end()));
        let records = records.map(|entry| match entry {
            RecorderEntry::Result(record) => record.position.0 ^ record.request.id.to_bits(),
            RecorderEntry::CheckpointStored { position, .. } => !position.0,
        });
        states.chain(records).fold(0, |hash, word| mix(hash ^ mix(word)))
    }

    fn collect_counts(&mut self) {
        for host in &self.venues {
            let node = host.node.as_ref().expect("in the end all are up");
            self.counts.add(node.counts);
        }
    }
}
