//! Rebuilding a gateway from the logs after a restart.
//!
//! First of each shard what a checkpoint of it says, if there is one; then every committed record behind that, of all gateways, and
//! every record that too few recorders have to commit it; then every request of the gateway's own log; then the other gateways' logs through
//! [`Gateway::on_peer_request`]; at last [`Gateway::recover_guards`]. What is in its own log and not committed is
//! in flight again with nobody waiting for it: it is still in the log the venues read, so it needs no
//! second offer, and is answered when it commits or when its member repeats it.

use pares_book::Listing;
use pares_register::Register;
use pares_stream::{Positions, StreamNumbers, Told};
use pares_types::{
    ClientOrderId, Command, Event, InstrumentId, MemberId, Outcome, Position, Request, RequestId, ShardId,
    ShardView, Timestamp,
};

use crate::fan_out::FanOut;
use crate::gateway::Shard;
use crate::names::{Kind, NameIndex};
use crate::{Gateway, Place, clock};

/// Names that a shard had used, or may have, before all that this gateway has read of it.
#[derive(Debug, Default)]
pub(crate) struct Before {
    kept: Box<[(MemberId, ClientOrderId)]>,
    floors: Box<[((MemberId, u16), u64)]>,
}

impl Before {
    fn of(view: &ShardView) -> Self {
        let (mut kept, mut floors) = (view.kept.clone(), view.floors.clone());
        kept.sort_unstable();
        floors.sort_unstable();
        Self { kept: kept.into(), floors: floors.into() }
    }

    /// Whether the name was used there. Below a floor it is refused, if it comes again.
    fn has(&self, (member, name): (MemberId, ClientOrderId)) -> bool {
        let floor = self.floors.binary_search_by_key(&(member, name.series()), |(series, _)| *series);
        self.kept.binary_search(&(member, name)).is_ok()
            || floor.is_ok_and(|at| name.number() < self.floors[at].1)
    }
}

impl Gateway {
    /// A checkpoint says what a shard was when it was taken. Before all records of the shard, which are ignored below that.
    ///
    /// Names that it has executed lie below their floors from then on, and repeats of them are looked for on disk; those of orders that
    /// live are known.
    pub fn recover_shard(
        &mut self,
        shard: ShardId,
        view: &ShardView,
        register: Register,
        listings: &[Listing],
    ) {
        let Some(at) = self.shard_index(shard) else { return };
        // The lowest shard keeps it.
        if at == 0 {
            self.register = register;
        }
        self.shards[at].next = Some(view.position);
        self.operator_stamp_max = self.operator_stamp_max.max(view.operator_stamp_max);
        self.days.restore(at, view.day, view.stage);
        self.shards[at].numbers =
            StreamNumbers::restore(&view.told).expect("a checkpoint's numbers are checked as it is read");
        self.shards[at].positions =
            Positions::restore(&view.positions).expect("a checkpoint's positions are checked as it is read");
        self.listings.restore(shard, listings, &view.quarantined);
        for &(gateway, sequence) in &view.through {
            self.shards[at].note_committed(gateway, sequence);
            if gateway == self.config.id {
                self.note_own(sequence, view.time);
            }
        }
        view.floors.iter().for_each(|&(series, floor)| self.names.raise_floor(series, floor));
        for &(member, name) in &view.kept {
            self.names.raise_floor((member, name.series()), name.number() + 1);
        }
        self.shards[at].before = Before::of(view);
        view.orders.iter().for_each(|order| self.names.insert_living(order));
        if view.timed {
            self.clock.watch(at);
        }
    }

    /// A committed record, of whichever gateway, lies at `place`. In order of
    /// position within each shard; positions seen before are ignored.
    ///
    /// # Panics
    /// If a position is skipped.
    pub fn recover_committed(
        &mut self,
        position: Position,
        request: &Request,
        outcome: &Outcome,
        events: &[Event],
        place: Place,
    ) {
        if self.follow(request, outcome, position) {
            if let Some(shard) = self.shard_index(request.shard) {
                let Shard { numbers, positions, .. } = &mut self.shards[shard];
                Told { position, request, outcome, events }.count(numbers, positions, |_, _, _| ());
            }
            self.settle(pares_stream::answer(position, request, outcome, events.len()), request, place);
            self.follow_orders(request, outcome, events);
            self.listings.follow(request, outcome, events);
            self.follow_register(request, outcome);
        }
    }

    /// A record lies in some recorder's log, but in too few of them to be committed. It will be: what any
    /// recorder has is final. A power failure may have taken the request from this gateway's own log, and
    /// then only this record says that its sequence is used.
    pub fn recover_uncommitted(&mut self, request: &Request) {
        if request.id.gateway() == self.config.id {
            self.note_own(request.id.sequence(), request.stamp);
        }
        self.on_peer_request(request);
    }

    /// A request lies in this gateway's own log at `offset`. In the order of the log, after all committed
    /// records.
    ///
    /// # Panics
    /// If it is another gateway's, or not in the order of the log.
    pub fn recover_own(&mut self, request: &Request, offset: u64) {
        assert_eq!(request.id.gateway(), self.config.id, "a gateway's log holds its own requests");
        self.note_own(request.id.sequence(), request.stamp);
        let Some(shard) = self.shard_index(request.shard) else { return };
        if !self.shards[shard].has_passed(request.id) {
            let is_order = crate::intake::is_order(request.command);
            self.flights.take_off(shard, (request.id.sequence(), offset), is_order);
            if clock::is_unasked(request) {
                if matches!(request.command, Command::Time { .. }) {
                    self.clock.on_journalled(shard, request.id.sequence(), Timestamp(0));
                }
            } else {
                let name = self.names.find_or_insert(request);
                self.take_in_nameless(name, request);
                self.note_part(name, request);
            }
        }
    }

    /// A request is whole in this gateway's own damaged log. Whether it belongs into the one that is made from it: it is the
    /// gateway's own, and comes in the order of the log.
    pub fn salvage(&mut self, request: &Request, last: &mut u64) -> bool {
        let follows = request.id.gateway() == self.config.id && request.id.sequence() > *last;
        if follows {
            *last = request.id.sequence();
            self.note_own(request.id.sequence(), request.stamp);
        }
        follows
    }

    /// Requests that say nothing but their numbers, one for each shard: with them the numbers continue behind `lost` requests that
    /// no gateway can read. Once they are committed, every gateway knows that those never will be.
    pub fn skip_numbers(&mut self, now: Timestamp, lost: u64) -> Vec<Request> {
        self.sequence_last += lost;
        let shards: Vec<ShardId> = self.shards.iter().map(|shard| shard.id).collect();
        let telling = |shard| {
            let id = RequestId::new(self.config.id, self.sequence_last + 1);
            self.note_own(id.sequence(), now.max(Timestamp(self.stamp_last.0 + 1)));
            let (member, client_order_id) = (MemberId(0), ClientOrderId::of_gateway(id));
            let (stamp, instrument) = (self.stamp_last, InstrumentId(0));
            Request { id, stamp, member, client_order_id, instrument, shard, command: Command::TIME }
        };
        shards.into_iter().map(telling).collect()
    }

    /// Whether the record is news of its shard; if so it is noted as the last.
    pub(crate) fn follow(&mut self, request: &Request, outcome: &Outcome, position: Position) -> bool {
        let own = request.id.gateway() == self.config.id;
        if let Some(shard) = self.shard_index(request.shard) {
            let followed = &mut self.shards[shard];
            if followed.next.is_some_and(|next| position < next) {
                return false;
            }
            assert!(followed.next.is_none_or(|next| position == next), "gap in a shard's committed stream");
            followed.next = Some(position.next());
            followed.note_committed(request.id.gateway(), request.id.sequence());
            self.patience.on_record(shard);
            self.days.follow(shard, request, outcome);
            if clock::needed_after(request, outcome) {
                self.clock.watch(shard);
            }
            if own {
                self.flights.land(shard, request.id.sequence());
                self.clock.on_own_committed(shard, request, outcome.reason);
                self.guards.on_own_committed(shard, request.id.sequence(), outcome.reason);
            }
        }
        if own {
            self.note_own(request.id.sequence(), request.stamp);
        }
        if request.is_of_operator() {
            self.operator_stamp_max = self.operator_stamp_max.max(request.stamp);
        }
        true
    }

    /// Something may become due in the shard.
    pub(crate) fn watch_clock(&mut self, shard: ShardId) {
        if let Some(shard) = self.shard_index(shard) {
            self.clock.watch(shard);
        }
    }

    /// No later request may have this sequence, or a stamp not above this one.
    fn note_own(&mut self, sequence: u64, stamp: Timestamp) {
        self.sequence_last = self.sequence_last.max(sequence);
        self.stamp_last = self.stamp_last.max(stamp);
    }

    /// If `request` is a part of a pending request to all shards, it is no longer missing.
    pub(crate) fn note_part(&mut self, name: NameIndex, request: &Request) {
        let entry = self.names.get(name);
        if entry.kind != Kind::FanOut || entry.is_answered() {
            return;
        }
        if let Some(shard) = self.shard_index(request.shard) {
            self.fan_out(name, request).on_journalled(shard, request.id);
        }
    }

    /// The request to all shards of that name, of which `request` is a part.
    pub(crate) fn fan_out(&mut self, name: NameIndex, request: &Request) -> &mut FanOut {
        let key = (request.member, request.client_order_id);
        let before = self.shards.iter().map(|shard| shard.before.has(key));
        self.fan_outs.entry(name).or_insert_with(|| FanOut::new(before, request.command))
    }
}
