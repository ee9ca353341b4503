//! What a gateway knows.

use std::collections::BTreeMap;

use pares_book::Instrument;
use pares_register::Register;
use pares_stream::{Positions, StreamNumbers};
use pares_table::{Attempts, Network};
use pares_types::{
    GatewayId, InstrumentId, MemberId, Position, Reason, Reply, Request, RequestId, ShardId, Timestamp,
};

use crate::clock::{self, Clock};
use crate::days::{DayTimes, Days};
use crate::fan_out::FanOut;
use crate::flights::Flights;
use crate::guards::Guards;
use crate::listings::Listings;
use crate::names::{NameIndex, Names};
use crate::patience::Patience;
use crate::permits::Asker;
use crate::recover::Before;
use crate::sessions::Sessions;
use crate::{GatewayConfig, GatewaySink, SessionId};

/// A gateway. See the crate's page for the rules; feed it, in any interleaving, what clients ask
/// ([`Gateway::on_request`]), what is committed ([`Gateway::on_committed`]), what other gateways took in
/// ([`Gateway::on_peer_request`]) and how far its log is durable ([`Gateway::on_journalled`]).
///
/// All state is derived from the logs: after a restart the `recover_` methods rebuild it.
pub struct Gateway {
    pub(crate) config: GatewayConfig,
    /// Sorted by instrument.
    pub(crate) instruments: Box<[(InstrumentId, ShardId)]>,
    /// Sorted by id.
    pub(crate) shards: Box<[Shard]>,
    pub(crate) names: Names,
    pub(crate) fan_outs: BTreeMap<NameIndex, FanOut>,
    /// Requests in flight without their name, by the place of their shard.
    pub(crate) nameless: BTreeMap<(usize, RequestId), NameIndex>,
    pub(crate) sessions: Sessions,
    pub(crate) register: Register,
    /// Wrong proofs, by where they came from.
    pub(crate) attempts: Attempts<Network>,
    pub(crate) listings: Listings,
    pub(crate) flights: Flights,
    pub(crate) clock: Clock,
    pub(crate) days: Days,
    pub(crate) guards: Guards,
    pub(crate) patience: Patience,
    /// The highest sequence of this gateway seen anywhere.
    pub(crate) sequence_last: u64,
    pub(crate) stamp_last: Timestamp,
    /// The latest stamp of an operator's request that was read.
    pub(crate) operator_stamp_max: Timestamp,
}

/// How far a shard's committed stream has been followed.
pub(crate) struct Shard {
    pub(crate) id: ShardId,
    /// The position to come; `None` before the first.
    pub(crate) next: Option<Position>,
    /// The highest sequence committed in the shard, by gateway id.
    committed: Vec<u64>,
    /// The names used before the checkpoint from which it was recovered.
    pub(crate) before: Before,
    /// How many messages each member's stream has.
    pub(crate) numbers: StreamNumbers,
    /// What they bought and sold on the day.
    pub(crate) positions: Positions,
}

impl Shard {
    pub(crate) fn note_committed(&mut self, gateway: GatewayId, sequence: u64) {
        let gateway = usize::from(gateway.0);
        if gateway >= self.committed.len() {
            self.committed.resize(gateway + 1, 0);
        }
        self.committed[gateway] = self.committed[gateway].max(sequence);
    }

    /// Whether the request is committed here, or never will be: one gateway's requests are, in the order of their sequence.
    pub(crate) fn has_passed(&self, id: RequestId) -> bool {
        id.sequence() <= self.committed_of(id.gateway())
    }

    /// The highest sequence of that gateway committed in the shard.
    fn committed_of(&self, gateway: GatewayId) -> u64 {
        self.committed.get(usize::from(gateway.0)).copied().unwrap_or_default()
    }
}

impl Gateway {
    /// A gateway that knows nothing yet, trading `instruments`. They and their shards must be the same on
    /// all gateways, and over restarts as long as names are remembered: an instrument that is not among them
    /// belongs to the shard at place (id modulo number of shards) of the list of shards, whose venues know
    /// whether it has been added.
    ///
    /// # Panics
    /// If an instrument is 0 or named twice, or a limit of `config` is too small to take in a request.
    pub fn new(config: GatewayConfig, instruments: impl IntoIterator<Item = (Instrument, ShardId)>) -> Self {
        let instruments: Vec<_> = instruments.into_iter().collect();
        let listings = Listings::new(instruments.iter().copied());
        let mut instruments: Vec<_> = instruments.iter().map(|(one, shard)| (one.id, *shard)).collect();
        instruments.sort_unstable();
        assert!(instruments.windows(2).all(|pair| pair[0].0 != pair[1].0), "an instrument is in one shard");
        assert!(instruments.iter().all(|(id, _)| *id != InstrumentId(0)), "instrument 0 means all");
        let mut ids: Vec<_> = instruments.iter().map(|(_, shard)| *shard).collect();
        ids.sort_unstable();
        ids.dedup();
        assert!(
            config.in_flight_max >= ids.len().max(1),
            "a mass cancel needs room for one request per shard"
        );
        assert!(config.session_in_flight_max >= 1, "a session needs room for one request");
        assert!(config.member_sessions_max >= 1, "a member needs a session");
        let shard = |id| Shard {
            id,
            next: None,
            committed: Vec::new(),
            before: Before::default(),
            numbers: StreamNumbers::default(),
            positions: Positions::default(),
        };
        Self {
            instruments: instruments.into(),
            flights: Flights::new(ids.len(), config.in_flight_max, config.wait_target_ns),
            clock: Clock::new(ids.len()),
            days: Days::new(ids.len()),
            guards: Guards::new(ids.len()),
            patience: Patience::new(ids.len(), config.patience_ns),
            shards: ids.into_iter().map(shard).collect(),
            names: Names::new(config.names_max, 0),
            fan_outs: BTreeMap::new(),
            nameless: BTreeMap::new(),
            sessions: Sessions::default(),
            register: Register::new(None),
            attempts: Attempts::default(),
            listings,
            sequence_last: 0,
            stamp_last: Timestamp(0),
            operator_stamp_max: Timestamp(0),
            config,
        }
    }

    /// The same with a secret for its table of names, so that no member can choose names that collide.
    /// Nothing observable depends on it. Call before anything else.
    #[must_use]
    pub fn with_hash_seed(mut self, seed: u64) -> Self {
        self.names = Names::new(self.config.names_max, seed);
        self
    }

    /// The same with a clock: every `every_ns` nanoseconds, [`Gateway::on_time`] tells the time to each shard
    /// in which something can become due. Those of `timed` can from the start; others once their committed
    /// stream holds an order with a date, a call, or a rule with a time. Call before anything else.
    #[must_use]
    pub fn with_clock(mut self, every_ns: u64, timed: impl IntoIterator<Item = ShardId>) -> Self {
        self.clock.start(every_ns);
        timed.into_iter().for_each(|shard| self.watch_clock(shard));
        self
    }

    /// The same with a timetable of business days, by which [`Gateway::on_time`] begins and ends them. Call before anything else.
    ///
    /// # Panics
    /// If a time is none of a day.
    #[must_use]
    pub fn with_days(mut self, times: DayTimes) -> Self {
        self.days.start(times);
        self
    }

    /// A session speaks for a member from now on, as the one of that number. It receives that member's streams or those that the register says, and with
    /// `wants_journalled` a reply when each of its requests is durable in the gateway's log. Where sign-on is required it has proved its key
    /// ([`Gateway::key_to_prove`]); a session that signed on as the same before is disconnected.
    ///
    /// # Errors
    /// [`Reason::MalformedRequest`] if it is signed on already, [`Reason::WrongKey`] if the register has no such session,
    /// [`Reason::TooManySessions`] if the member has as many as it may. Nothing is changed, and the session is best disconnected.
    pub fn on_sign_on(
        &mut self,
        session: SessionId,
        (member, number): (MemberId, u16),
        wants_journalled: bool,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        let permit = self.permit_of((member, number)).ok_or(Reason::WrongKey)?;
        if self.config.sign_on_required && !self.sessions.is_signed_on(session) {
            self.take_over((member, number), sink);
        }
        let told_of = self.register.told_of(member, number);
        let asker = Asker { member, number, permit, told_of };
        self.sessions.sign_on(session, asker, wants_journalled, self.config.member_sessions_max)?;
        self.sessions.set_permit(session, permit, self.config.session_pace);
        Ok(())
    }

    /// Another gateway took `request` in: its name is taken.
    pub fn on_peer_request(&mut self, request: &Request) {
        if clock::is_unasked(request) {
            return;
        }
        let known = self.names.find(request.member, request.client_order_id);
        // Its answer was followed and forgotten, or it never comes: nobody would settle the name.
        let is_over =
            self.shard_index(request.shard).is_some_and(|at| self.shards[at].has_passed(request.id));
        if known.is_none() && is_over {
            return;
        }
        if let Some(name) = known.filter(|_| !is_over) {
            self.take_in_nameless(name, request);
        }
        let name = known.unwrap_or_else(|| self.names.insert(request));
        self.note_part(name, request);
    }

    /// The gateway's log is durable below `durable_offset`: the sessions that want to know receive a reply.
    pub fn on_journalled(&mut self, durable_offset: u64, sink: &mut impl GatewaySink) {
        while let Some(durable) = self.flights.next_durable(durable_offset) {
            if self.sessions.wants_journalled(durable.session) {
                let (client_order_id, request) = (durable.client_order_id, durable.request);
                sink.reply(durable.session, Reply::Journalled { client_order_id, request });
            }
        }
    }

    /// The offset below which every request in this gateway's log is answered, given where the log ends:
    /// older segments may be dropped, and a joining venue starts reading here.
    #[must_use]
    pub fn answered_offset(&self, end_of_log: u64) -> u64 {
        self.flights.oldest_offset().unwrap_or(end_of_log)
    }

    /// A turn begins, and with it a look whether the exchange makes progress: to be called again and again, at least four times within
    /// `patience_ns`. `now_ns`: by a clock that only goes forward, from any beginning.
    pub fn on_turn(&mut self, now_ns: u64) {
        let Self { patience, flights, .. } = self;
        flights.on_turn(now_ns);
        patience.watch(now_ns, |shard| flights.waits(shard));
    }

    /// Shards whose requests are refused because recording has stalled.
    #[must_use]
    pub fn standing_still(&self) -> usize {
        self.patience.still()
    }

    /// Whether any session receives a reply when its requests are durable.
    #[must_use]
    pub fn wants_journalled(&self) -> bool {
        self.sessions.want_journalled()
    }

    /// Requests of this gateway that are journalled and not committed.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.flights.in_flight()
    }

    /// Orders that may wait at present; `in_flight_max` if none waits long.
    #[must_use]
    pub fn room(&self) -> usize {
        self.flights.room()
    }

    /// Names known, of all gateways.
    #[must_use]
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// Of these, names that cannot make room for others: in flight, or of orders that live.
    #[must_use]
    pub fn names_needed(&self) -> usize {
        self.names.needed()
    }

    /// The id of the last request of this gateway seen anywhere; [`RequestId::NONE`] before the first.
    #[must_use]
    pub fn last_request(&self) -> RequestId {
        match self.sequence_last {
            0 => RequestId::NONE,
            sequence => RequestId::new(self.config.id, sequence),
        }
    }

    /// `None` for instrument 0, or if nothing is traded at all.
    pub(crate) fn shard_of(&self, instrument: InstrumentId) -> Option<usize> {
        if instrument == InstrumentId(0) || self.shards.is_empty() {
            return None;
        }
        match self.instruments.binary_search_by_key(&instrument, |(id, _)| *id) {
            Ok(at) => self.shard_index(self.instruments[at].1),
            Err(_) => Some(instrument.0 as usize % self.shards.len()),
        }
    }

    /// Most often a shard's id is its place among them.
    pub(crate) fn shard_index(&self, shard: ShardId) -> Option<usize> {
        let likely = usize::from(shard.0);
        match self.shards.get(likely) {
            Some(one) if one.id == shard => Some(likely),
            _ => self.shards.binary_search_by_key(&shard, |shard| shard.id).ok(),
        }
    }
}
