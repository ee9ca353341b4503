//! Who may sign on, and what those who have may ask.
//!
//! Where sign-on is required, the register says it, which the gateway follows like everything else: from the committed stream. What a
//! session may do is looked up when it signs on and when the register changes, so a request costs a comparison or two. It is
//! refused before it is numbered: no venue sees it, and its name stays free. Cancels pass, whatever the limits are,
//! and so do amends that only reduce, which the rate alone holds up.
//!
//! A session receives one member's streams: its own, or those that the register says; and one that receives another's may ask for nothing, cancels
//! included. Whose they are is looked up when it signs on. If the register says another one, the session is disconnected: a connection serves one member.

use pares_register::{EXCHANGE, Permit, Register};
use pares_table::Network;
use pares_types::{
    ClientRequest, Command, Entry, InstrumentId, Key, Limits, MemberId, NewOrder, NewTerms, OrderKind,
    Outcome, Price, Proposal, Quantity, Reason, Registration, Request, Rights, Side, Status, TimeInForce,
    Timestamp,
};

use crate::names::Kind;
use crate::route::Route;
use crate::{Gateway, GatewaySink, SessionId};

/// Who asks, and what that session may do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) member: MemberId,
    pub(crate) number: u16,
    pub(crate) permit: Permit,
    /// The member whose streams and orders it receives.
    pub(crate) told_of: MemberId,
}

impl Asker {
    /// Whether it receives another member's, and may ask for nothing.
    pub(crate) fn is_copy(&self) -> bool {
        self.told_of != self.member
    }
}

impl Gateway {
    /// The same, and it begins with that register: that of the lowest shard before its first position, or as far as the gateway follows it.
    #[must_use]
    pub fn with_register(self, register: Register) -> Self {
        Self { register, ..self }
    }

    /// Who may do what, as far as the committed stream is followed.
    #[must_use]
    pub fn register(&self) -> &Register {
        &self.register
    }

    /// Whether sessions have to prove who they are.
    #[must_use]
    pub fn is_sign_on_required(&self) -> bool {
        self.config.sign_on_required
    }

    /// Whether the session is signed on.
    #[must_use]
    pub fn is_signed_on(&self, session: SessionId) -> bool {
        self.sessions.is_signed_on(session)
    }

    /// The member whose streams and orders the session receives, if that is not its own.
    #[must_use]
    pub fn copied(&self, session: SessionId) -> Option<MemberId> {
        self.sessions.asker(session).filter(Asker::is_copy).map(|asker| asker.told_of)
    }

    /// The key that a session has to prove; `None` if there is no such session. `from`: where its client is, `None` on this machine.
    ///
    /// # Errors
    /// [`Reason::TooManyAttempts`] if too many wrong ones came from there lately: nothing is to be looked at.
    pub fn key_to_prove(
        &self,
        (member, session): (MemberId, u16),
        from: Option<Network>,
        now: Timestamp,
    ) -> Result<Option<Key>, Reason> {
        if from.is_none_or(|network| self.attempts.may_try(network, now.0)) {
            Ok(self.register.key(member, session))
        } else {
            Err(Reason::TooManyAttempts)
        }
    }

    /// A proof from there was wrong, or there is no such session. A client on this machine may try as often as it takes: an operator's way in is
    /// never barred.
    pub fn on_wrong_key(&mut self, from: Option<Network>, now: Timestamp) {
        if let Some(network) = from {
            self.attempts.count(network, now.0);
        }
    }

    /// What the session may do; `None` if it may not sign on.
    pub(crate) fn permit_of(&self, (member, number): (MemberId, u16)) -> Option<Permit> {
        if self.config.sign_on_required { self.register.permit(member, number) } else { Some(Permit::FREE) }
    }

    /// A change of the register that is committed.
    pub(crate) fn follow_register(&mut self, request: &Request, outcome: &Outcome) -> Option<Registration> {
        let Command::Register(change) = request.command else { return None };
        let is_done = outcome.status == Status::Accepted && request.member == EXCHANGE;
        // A venue that is wrong may record anything.
        (is_done && self.register.apply(request.stamp, &change).is_ok()).then_some(change)
    }

    /// Disconnects sessions that the change shuts out, or whose streams are no longer those that the register says; has the member's others keep to it.
    pub(crate) fn enforce(&mut self, change: &Registration, sink: &mut impl GatewaySink) {
        let is_new_key = matches!(change.entry, Entry::SetKey(_)) && self.config.sign_on_required;
        for session in self.sessions.concerned(change.member) {
            let Some(Asker { member, number, told_of, .. }) = self.sessions.asker(session) else { continue };
            let is_of_change = is_new_key && (member, number) == (change.member, change.session);
            let is_told_rightly = self.register.told_of(member, number) == told_of;
            match self.permit_of((member, number)) {
                Some(permit) if is_told_rightly && !is_of_change => {
                    self.sessions.set_permit(session, permit, self.config.session_pace);
                }
                _ => {
                    self.on_disconnect(session);
                    sink.disconnect(session, Reason::Revoked);
                }
            }
        }
    }

    /// A session of that name has proved its key again: who signed on as it before goes.
    pub(crate) fn take_over(&mut self, who: (MemberId, u16), sink: &mut impl GatewaySink) {
        let before = self.sessions.of_session(who).next();
        if let Some(before) = before {
            self.on_disconnect(before);
            sink.disconnect(before, Reason::TakenOver);
        }
    }

    /// Whether the session may ask for that.
    pub(crate) fn check_permit(
        &self,
        asker: Asker,
        request: &ClientRequest,
        route: &Route,
        now: Timestamp,
    ) -> Result<(), Reason> {
        match request {
            ClientRequest::Enter { order, .. } => self.check_order(asker, order, route.instrument),
            ClientRequest::Amend { terms, .. } if !terms.reduces => self.check_amend(asker, terms, route),
            ClientRequest::Amend { .. } | ClientRequest::Cancel { .. } | ClientRequest::MassCancel { .. } => {
                Ok(())
            }
            ClientRequest::Exchange { command, client_order_id, .. } if asker.member == EXCHANGE => {
                if client_order_id.series() != asker.number {
                    return Err(Reason::OtherSeries);
                }
                self.check_operator(asker, command, route.instrument, now)
            }
            ClientRequest::Exchange { .. } => Ok(()),
        }
    }

    fn check_order(&self, asker: Asker, order: &NewOrder, instrument: InstrumentId) -> Result<(), Reason> {
        let Permit { rights, limits, .. } = asker.permit;
        let price = limit_of(order);
        let needed = if price.is_none() { Rights::ENTER.or(Rights::MARKET_ORDERS) } else { Rights::ENTER };
        check_right(rights, needed.or(Rights::of_side(order.side)))?;
        self.check_instrument(asker, instrument)?;
        self.check_position(asker, instrument, order.side, order.quantity)?;
        self.check_orders(asker, order, instrument)?;
        check_size(&limits, (order.side, price, order.quantity), self.listings.price(instrument))
    }

    /// Whether the member has room for one more order: in all, or where it has no such limit, its share of the book.
    fn check_orders(&self, asker: Asker, order: &NewOrder, instrument: InstrumentId) -> Result<(), Reason> {
        let Asker { member, permit: Permit { limits, .. }, .. } = asker;
        let stays = !matches!(order.time_in_force, TimeInForce::Ioc | TimeInForce::Fok);
        let has_room = match (limits.orders_max, self.listings.orders_share(instrument, self.config.gateways))
        {
            (0, Some(share)) if stays => self.names.orders_for(member, instrument) < share,
            (0, _) => true,
            (most, _) => self.names.orders_of(member) < most,
        };
        if has_room { Ok(()) } else { Err(Reason::OrdersLimit) }
    }

    fn check_amend(&self, asker: Asker, terms: &NewTerms, route: &Route) -> Result<(), Reason> {
        let Permit { rights, limits, .. } = asker.permit;
        check_right(rights, Rights::AMEND)?;
        self.check_instrument(asker, route.instrument)?;
        let Some(order) = &route.target else { return Ok(()) };
        let Kind::Enter { side, at_market } = order.kind else { return Ok(()) };
        check_right(rights, Rights::of_side(side))?;
        self.check_position(asker, route.instrument, side, order.added_by(terms.quantity))?;
        let price = Some(terms.price).filter(|_| !at_market);
        check_size(&limits, (side, price, terms.quantity), self.listings.price(route.instrument))
    }

    /// Whether the member stays within its limit, should all its orders on that side trade and so many shares more.
    fn check_position(
        &self,
        asker: Asker,
        instrument: InstrumentId,
        side: Side,
        shares: Quantity,
    ) -> Result<(), Reason> {
        let Asker { member, permit: Permit { position_max, .. }, .. } = asker;
        if position_max == 0 || shares == Quantity::ZERO {
            return Ok(());
        }
        let shard = self.shard_of(instrument).map(|at| &self.shards[at]);
        let net = shard.map_or(0, |shard| i128::from(shard.positions.net(member, instrument)));
        let net = if side == Side::Buy { net } else { -net };
        let open = i128::try_from(self.names.open(member, instrument, side)).unwrap_or(i128::MAX);
        let would_be = open.saturating_add(net).saturating_add(shares.0.into());
        if would_be > i128::from(position_max) { Err(Reason::PositionLimit) } else { Ok(()) }
    }

    fn check_instrument(&self, asker: Asker, instrument: InstrumentId) -> Result<(), Reason> {
        let Asker { member, number, permit, .. } = asker;
        let every = permit.rights.has(Rights::EVERY_INSTRUMENT);
        if every || self.register.may_trade(member, number, instrument) {
            Ok(())
        } else {
            Err(Reason::NoRight)
        }
    }

    fn check_operator(
        &self,
        asker: Asker,
        command: &Command,
        instrument: InstrumentId,
        now: Timestamp,
    ) -> Result<(), Reason> {
        let rights = asker.permit.rights;
        match command {
            // To propose is the first half of what is proposed.
            Command::Register(Registration { entry: Entry::Propose(_), session, .. }) => {
                check_right(rights, Rights::CONTROL)?;
                if *session == asker.number { Ok(()) } else { Err(Reason::NoRight) }
            }
            Command::Register(_) => {
                check_right(rights, Rights::REGISTER)?;
                self.check_second(asker.number, Proposal::of(instrument, command), now)
            }
            _ => {
                check_right(rights, Rights::CONTROL)?;
                self.check_second(asker.number, Proposal::of(instrument, command), now)
            }
        }
    }

    /// Whether another operator has proposed what needs it.
    fn check_second(&self, session: u16, needed: Option<Proposal>, now: Timestamp) -> Result<(), Reason> {
        let is_seconded = |proposal| self.register.is_seconded(session, proposal, now);
        let needed = needed.filter(|_| self.register.needs_four_eyes());
        if needed.is_none_or(is_seconded) { Ok(()) } else { Err(Reason::SecondOperator) }
    }
}

fn check_right(rights: Rights, needed: Rights) -> Result<(), Reason> {
    if rights.has(needed) { Ok(()) } else { Err(Reason::NoRight) }
}

fn limit_of(order: &NewOrder) -> Option<Price> {
    match order.kind {
        OrderKind::Limit { price } | OrderKind::Pegged { limit: price, .. } => Some(price),
        OrderKind::Market => None,
    }
}

/// An order to buy is worth its price; one to sell its price or the last trade's, whichever is more, since it takes what is bid; one at
/// market what the last trade says.
fn check_size(
    limits: &Limits,
    (side, price, quantity): (Side, Option<Price>, Quantity),
    last: Option<Price>,
) -> Result<(), Reason> {
    if limits.quantity_max != 0 && quantity.0 > limits.quantity_max {
        return Err(Reason::QuantityLimit);
    }
    let each = |price: Price| u128::from(price.0.unsigned_abs());
    let own = price.map(each);
    let last_each = last.map(each).filter(|_| own.is_none() || side == Side::Sell);
    let worth = own.max(last_each).unwrap_or(0) * u128::from(quantity.0);
    if limits.value_max != 0 && worth > u128::from(limits.value_max) {
        return Err(Reason::ValueLimit);
    }
    match (price, last) {
        (Some(price), Some(last)) if limits.collar != 0 && is_beyond(price, last, limits.collar) => {
            Err(Reason::PriceCollar)
        }
        _ => Ok(()),
    }
}

/// Whether the price is more than `collar` hundredths of a percent away.
fn is_beyond(price: Price, last: Price, collar: u32) -> bool {
    let away = u128::from(price.0.abs_diff(last.0)) * 10_000;
    away > u128::from(last.0.unsigned_abs()) * u128::from(collar)
}
