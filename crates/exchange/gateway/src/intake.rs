//! Taking requests in: is the name new, is there room, number it, journal it.

use pares_types::{
    ClientOrderId, ClientRequest, Command, InstrumentId, MemberId, Reason, Refuser, Reply, Request,
    RequestId, Timestamp,
};

use crate::flights::{Undurable, Weight};
use crate::look_up::LookUp;
use crate::names::{Asked, Kind, Name, NameIndex, State};
use crate::route::Route;
use crate::{Gateway, GatewaySink, SessionId, clock, days};

/// What one call works on.
#[derive(Clone, Copy)]
pub(crate) struct Asking {
    pub(crate) now: Timestamp,
    pub(crate) session: SessionId,
    pub(crate) member: MemberId,
    pub(crate) client_order_id: ClientOrderId,
}

impl Asking {
    fn stamp(&self) -> Stamp {
        (self.now, self.member, self.client_order_id)
    }
}

/// When, who, and under which name.
pub(crate) type Stamp = (Timestamp, MemberId, ClientOrderId);

impl Gateway {
    /// A client asks for something. It is journalled, or joined to the same request made before, or
    /// rejected with a reason; a rejected request leaves no trace and its name free (but for a request to
    /// all shards whose journal fails half way: what was taken in stands, and a repeat adds the rest).
    pub fn on_request(
        &mut self,
        now: Timestamp,
        session: SessionId,
        request: ClientRequest,
        sink: &mut impl GatewaySink,
    ) {
        let client_order_id = request.client_order_id();
        if let Err(reason) = self.take_in(now, session, request, sink) {
            self.reject(now, session, client_order_id, reason, sink);
        }
    }

    /// A client sent a request that makes no sense; `client_order_id` is its name, 0 if even that is missing.
    pub fn on_unreadable(
        &mut self,
        now: Timestamp,
        session: SessionId,
        client_order_id: ClientOrderId,
        sink: &mut impl GatewaySink,
    ) {
        self.reject(now, session, client_order_id, Reason::MalformedRequest, sink);
    }

    pub(crate) fn reject(
        &mut self,
        now: Timestamp,
        session: SessionId,
        client_order_id: ClientOrderId,
        reason: Reason,
        sink: &mut impl GatewaySink,
    ) {
        debug_assert!(reason.refuser().is_some_and(Refuser::is_gateway), "{reason} is no gateway's");
        sink.reply(session, Reply::Rejected { client_order_id, reason });
        let is_early = reason == Reason::Overloaded && self.flights.share_left() < usize::MAX;
        self.slow_down(now, session, is_early, sink);
    }

    /// Has a session that asks for too much read more slowly.
    fn slow_down(&mut self, now: Timestamp, session: SessionId, is_early: bool, sink: &mut impl GatewaySink) {
        let pause_ns = self.sessions.on_refused(session, is_early, now);
        if pause_ns > 0 {
            sink.read_later(session, pause_ns);
        }
    }

    /// Tells the time to every shard that is due for it (see [`Gateway::with_clock`]), begins and ends business days
    /// ([`Gateway::with_days`]), and has cancelled what ended sessions guarded. What the log does not take is tried again at the next call, or a little later.
    pub fn on_time(&mut self, now: Timestamp, sink: &mut impl GatewaySink) {
        self.cancel_guarded(now, sink);
        if let Some(command) = self.days.due_now(now) {
            // Whatever keeps it, it is asked again.
            let _ = self.pass_day(now, command, sink);
        }
        while let Some(shard) = self.clock.due_now(now) {
            // One a shard, so that it needs no room: a shard that is full must not keep the others from being told.
            if self.journal_unasked(now, shard, Command::TIME, sink).is_err() {
                return;
            }
            self.clock.on_journalled(shard, self.sequence_last, now);
        }
    }

    /// When [`Gateway::on_time`] has something to do, unless something is committed before; `None` for never.
    #[must_use]
    pub fn time_due(&self) -> Option<Timestamp> {
        let guards = self.guards.is_due().then_some(Timestamp(0));
        [guards, self.clock.next_due(), self.days.next_due()].into_iter().flatten().min()
    }

    /// Asks all shards to begin or end a day, those that nobody has asked yet.
    fn pass_day(
        &mut self,
        now: Timestamp,
        command: Command,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        let stamp = (now, MemberId(0), days::name_of(command));
        match self.names.find(stamp.1, stamp.2) {
            Some(name) => self.journal_missing_parts(stamp, name, sink),
            None => {
                let route = Route::new(InstrumentId(0), None, command);
                self.journal_new(stamp, &route, None, sink).map(|_| ())
            }
        }
    }

    /// Journals a request under a name that is new, or lost; for all shards perhaps not all of it.
    fn journal_new(
        &mut self,
        stamp: Stamp,
        route: &Route,
        lost: Option<NameIndex>,
        sink: &mut impl GatewaySink,
    ) -> Result<(NameIndex, RequestId, u64), Reason> {
        let (numbered, offset) = self.journal(stamp, route, route.shard.unwrap_or(0), sink)?;
        let name = lost.unwrap_or_else(|| self.names.insert(&numbered));
        self.names.identify(name, &numbered);
        self.note_part(name, &numbered);
        if route.shard.is_none() {
            // Those before a failure stand: a repeat has the rest taken in.
            self.journal_missing_parts(stamp, name, sink)?;
        }
        Ok((name, numbered.id, offset))
    }

    fn take_in(
        &mut self,
        now: Timestamp,
        session: SessionId,
        request: ClientRequest,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        let asker = self.sessions.asker(session).ok_or(Reason::NotSignedOn)?;
        // The member whose streams it receives is another one, which trades.
        if asker.is_copy() {
            return Err(Reason::NoRight);
        }
        let member = asker.member;
        let asking = Asking { now, session, member, client_order_id: request.client_order_id() };
        if clock::is_reserved(member, asking.client_order_id) {
            return Err(Reason::MalformedRequest);
        }
        let is_order = request.adds_risk();
        let is_paced = matches!(request, ClientRequest::Enter { .. } | ClientRequest::Amend { .. });
        let pace = if is_paced { self.sessions.check_pace(session, now) } else { Ok(()) };
        let known = self.names.find(member, asking.client_order_id);
        match (pace, known) {
            (Err(reason), None) => return Err(reason),
            // It was taken in before: a member that hears that it was not enters it again.
            (Err(_), Some(_)) => self.slow_down(now, session, false, sink),
            (Ok(()), _) => {}
        }
        // Nor does a repeat take room.
        if is_order && known.is_none() {
            self.sessions.check_share(session, self.flights.share_left())?;
        }
        match known {
            None if self.names.is_below_floor(member, asking.client_order_id) => {
                sink.look_up(LookUp::before_asking(session, member, request));
                Ok(())
            }
            known => self.take_or_repeat(asking, known, request, sink),
        }
    }

    /// A name that is known, or surely not used, or looked for without success: only its shard can say then.
    pub(crate) fn take_or_repeat(
        &mut self,
        asking: Asking,
        known: Option<NameIndex>,
        request: ClientRequest,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        match known {
            Some(name) if self.is_lost(name) => self.take_new(asking, Some(name), request, sink),
            // Only one of the two will be executed.
            Some(name) if self.names.get(name).asks_otherwise(Asked::by(&request)) => {
                Err(Reason::DuplicateRequest)
            }
            Some(name) if self.cancels_another(asking.member, name, &request) => {
                Err(Reason::DuplicateRequest)
            }
            Some(name) => self.repeat(asking, name, sink),
            None => self.take_new(asking, None, request, sink),
        }
    }

    /// Whether an order that is known here is to be cancelled under the name of another one's cancel: that one's answer would be taken for this one's. Answers of
    /// all other kinds say what was asked.
    fn cancels_another(&self, member: MemberId, name: NameIndex, request: &ClientRequest) -> bool {
        let ClientRequest::Cancel { target, .. } = *request else { return false };
        let is_order = |known: NameIndex| matches!(self.names.get(known).kind, Kind::Enter { .. });
        self.names.find(member, target).is_some_and(is_order)
            && self.names.get(name).has_cancelled_another(Asked::by(request))
    }

    pub(crate) fn repeat(
        &mut self,
        asking: Asking,
        name: NameIndex,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        match self.names.get(name).state() {
            State::Answered(Some(place)) => {
                sink.answer_again(asking.session, place, asking.client_order_id);
                Ok(())
            }
            State::Answered(None) => {
                let (member, name) = (asking.member, asking.client_order_id);
                sink.look_up(LookUp::of_known(asking.session, member, name));
                Ok(())
            }
            State::Pending(asker) => {
                if asker != Some(asking.session) {
                    self.sessions.check_room(asking.session, self.config.session_in_flight_max, false)?;
                }
                self.journal_missing_parts(asking.stamp(), name, sink)?;
                self.await_answer(name, asking.session);
                Ok(())
            }
        }
    }

    /// Whether the request of that name will not be committed, or late: a later one of its gateway was, so that venues could
    /// not read it. Should it be ordered after all, the second one is refused as a duplicate, as ever.
    pub(crate) fn is_lost(&self, name: NameIndex) -> bool {
        let entry = self.names.get(name);
        if entry.is_answered() || entry.kind == Kind::FanOut {
            return false;
        }
        self.shard_asked(entry).is_some_and(|shard| self.shards[shard].has_passed(entry.id))
    }

    /// The shard's place that a request to one shard concerns. Only those about the register name no instrument.
    pub(crate) fn shard_asked(&self, entry: &Name) -> Option<usize> {
        let shard =
            if entry.instrument == InstrumentId(0) { Some(0) } else { self.shard_of(entry.instrument) };
        shard.filter(|&shard| shard < self.shards.len())
    }

    /// `session` is the one to be told from now on.
    fn await_answer(&mut self, name: NameIndex, session: SessionId) {
        let before = self.names.get(name).state();
        self.names.set_state(name, State::Pending(Some(session)));
        if let State::Pending(Some(asker)) = before {
            self.sessions.end(asker);
        }
        self.sessions.begin(session);
    }

    fn take_new(
        &mut self,
        asking: Asking,
        lost: Option<NameIndex>,
        request: ClientRequest,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        let guards = self.check_guard(&asking, &request)?;
        let route = self.route(asking.member, request)?;
        days::check_ahead(route.command, asking.now)?;
        if let Some(lost) = lost {
            self.names.set_lost(lost);
        }
        if let Some(asker) = self.sessions.asker(asking.session).filter(|_| self.config.sign_on_required) {
            self.check_permit(asker, &request, &route, asking.now)?;
        }
        if self.patience.is_over(route.shard) {
            return Err(Reason::NotRecorded);
        }
        self.check_room((asking.session, asking.member), &request, &route)?;
        let (name, id, offset) = self.journal_new(asking.stamp(), &route, lost, sink)?;
        self.await_answer(name, asking.session);
        self.await_durable(asking, id, offset);
        if guards {
            self.sessions.guard(asking.session);
        }
        Ok(())
    }

    fn check_room(
        &self,
        (session, member): (SessionId, MemberId),
        request: &ClientRequest,
        route: &Route,
    ) -> Result<(), Reason> {
        let reduces_risk = !request.adds_risk();
        let weight = if reduces_risk { relief_of(member) } else { Weight::Order };
        self.sessions.check_room(session, self.config.session_in_flight_max, reduces_risk)?;
        let names_max = match weight {
            Weight::Order => self.config.names_max - self.config.names_max / 16,
            Weight::RiskReducing => self.config.names_max,
            Weight::Exchange => usize::MAX,
        };
        let names_room = self.names.needed() < names_max;
        let flight_room = self.flights.has_room(route.shard, weight);
        // A device that does not sync holds up only those who wait for it.
        let durable_room = self.flights.has_undurable_room() || !self.sessions.wants_journalled(session);
        if names_room && flight_room && durable_room { Ok(()) } else { Err(Reason::Overloaded) }
    }

    /// Numbers, stamps and journals a request for the `shard`-th shard. On an error nothing changed.
    pub(crate) fn journal(
        &mut self,
        (now, member, client_order_id): Stamp,
        route: &Route,
        shard: usize,
        sink: &mut impl GatewaySink,
    ) -> Result<(Request, u64), Reason> {
        let mut request = Request {
            id: RequestId::new(self.config.id, self.sequence_last + 1),
            stamp: now.max(Timestamp(self.stamp_last.0 + 1)),
            member,
            client_order_id,
            instrument: route.instrument,
            shard: self.shards[shard].id,
            command: match route.command {
                Command::Time { .. } => Command::Time { draw: sink.draw() },
                command => command,
            },
        };
        if request.is_of_operator() {
            // Behind all that operators asked for, whatever this clock says: else its shard would refuse it as overtaken. A record of a wrong
            // venue may say anything.
            let behind = self.operator_stamp_max.0.min(i64::MAX.cast_unsigned()) + 1;
            request.stamp = request.stamp.max(Timestamp(behind));
        }
        let offset = sink.journal(&request)?;
        self.sequence_last += 1;
        self.stamp_last = request.stamp;
        self.flights.take_off(shard, (request.id.sequence(), offset), is_order(request.command));
        Ok((request, offset))
    }

    /// Journals the parts of a request to all shards that nobody has journalled, or whose journal nobody could read.
    fn journal_missing_parts(
        &mut self,
        stamp: Stamp,
        name: NameIndex,
        sink: &mut impl GatewaySink,
    ) -> Result<(), Reason> {
        let Some(fan_out) = self.fan_outs.get(&name) else { return Ok(()) };
        // As in `is_lost`: a part that the venues could not read will not be committed.
        let lost = |shard: usize, part: RequestId| self.shards[shard].has_passed(part);
        let missing: Vec<usize> = fan_out.missing(lost).collect();
        let weight = relief_of(stamp.1);
        if !missing.iter().all(|&shard| self.flights.has_room(Some(shard), weight)) {
            return Err(Reason::Overloaded);
        }
        let route = Route::new(InstrumentId(0), None, fan_out.command);
        for shard in missing {
            let (part, _) = self.journal(stamp, &route, shard, sink)?;
            self.note_part(name, &part);
        }
        Ok(())
    }

    fn await_durable(&mut self, asking: Asking, request: RequestId, offset: u64) {
        let Asking { session, client_order_id, .. } = asking;
        if self.sessions.wants_journalled(session) {
            self.flights.await_durable(Undurable { offset, session, client_order_id, request });
        }
    }
}

pub(crate) fn is_order(command: Command) -> bool {
    match command {
        Command::Enter(_) => true,
        Command::Amend(amendment) => !amendment.reduces,
        _ => false,
    }
}

/// The weight of what reduces risk: the exchange's own requests never lack room.
fn relief_of(member: MemberId) -> Weight {
    if member == MemberId(0) { Weight::Exchange } else { Weight::RiskReducing }
}
