//! What a member asks of a gateway besides how one order is: lists, and what its session may do.
//!
//! A list is sent in portions, so that a long one holds up no other session. Meanwhile the committed stream continues: an order or an instrument that is
//! there from the question to the end is sent once, as it is at that moment; one that comes or goes meanwhile may be left out.

use pares_book::{Listing, TickRow};
use pares_types::{
    InstrumentId, InstrumentStatus, Limits, List, ListRequest, MemberId, OrderStatus, OwnLimits, Position,
    Reason, Rights, ShardId, Symbol,
};

use crate::permits::Asker;
use crate::{Gateway, SessionId};

/// Names looked at for a portion, and orders or instruments told in it.
const LOOKS_MAX: usize = 1_024;
const TOLD_MAX: usize = 256;

/// What a list is made of.
#[derive(Clone, Copy, Debug)]
pub enum Listed<'a> {
    /// An order of the member.
    Order(OrderStatus),
    /// An instrument, with its tick table.
    Instrument(InstrumentStatus, &'a [TickRow]),
}

impl Gateway {
    /// Tells the session a portion of a list, from place `from` on; 0 is the beginning. Gives where the next begins, `None` at the end of it.
    ///
    /// # Errors
    /// [`Reason::NotSignedOn`] if the session speaks for no member.
    pub fn tell_list(
        &self,
        session: SessionId,
        request: &ListRequest,
        from: usize,
        tell: &mut impl FnMut(Listed<'_>),
    ) -> Result<Option<usize>, Reason> {
        let member = self.sessions.told_of(session).ok_or(Reason::NotSignedOn)?;
        Ok(match request.list {
            List::Orders => self.tell_orders((member, request.instrument), from, tell),
            List::Instruments => self.tell_instruments(request.instrument, from, tell),
        })
    }

    /// The instrument of that symbol.
    #[must_use]
    pub fn instrument_of(&self, symbol: Symbol) -> Option<InstrumentId> {
        self.listings.of_symbol(symbol)
    }

    fn tell_orders(
        &self,
        (member, instrument): (MemberId, Option<InstrumentId>),
        from: usize,
        tell: &mut impl FnMut(Listed<'_>),
    ) -> Option<usize> {
        let to = self.names.places().min(from.saturating_add(LOOKS_MAX));
        let mut told = 0;
        for (next, entry) in self.names.orders_in(member, from..to) {
            let is_asked = instrument.is_none_or(|one| one == entry.instrument);
            if let Some(status) = self.status_of(entry).filter(|_| is_asked) {
                tell(Listed::Order(status));
                told += 1;
                if told == TOLD_MAX {
                    return Some(next);
                }
            }
        }
        (to < self.names.places()).then_some(to)
    }

    /// A place is the id of the instrument before it.
    fn tell_instruments(
        &self,
        instrument: Option<InstrumentId>,
        from: usize,
        tell: &mut impl FnMut(Listed<'_>),
    ) -> Option<usize> {
        let mut last = InstrumentId(u32::try_from(from).ok()?);
        if let Some(one) = instrument {
            last = InstrumentId(one.0.checked_sub(1)?);
        }
        for _ in 0..TOLD_MAX {
            let (shard, listing, quarantined) = self.listings.after(last)?;
            last = listing.instrument.id;
            if instrument.is_some_and(|one| one != last) {
                return None;
            }
            let status = status_of(listing, (shard, self.committed(shard)), quarantined);
            tell(Listed::Instrument(status, listing.instrument.ticks.rows()));
        }
        Some(last.0 as usize).filter(|_| instrument.is_none())
    }

    /// What the session may do, and what is used of it.
    ///
    /// # Errors
    /// [`Reason::NotSignedOn`] if it speaks for nobody.
    pub fn own_limits(&self, session: SessionId, token: u64) -> Result<OwnLimits, Reason> {
        let asker = self.sessions.asker(session).ok_or(Reason::NotSignedOn)?;
        let Asker { member, number, permit, .. } = asker;
        let (pace, in_flight) = self.sessions.used(session).ok_or(Reason::NotSignedOn)?;
        let (rate_max, burst_max) = pace.rate();
        Ok(OwnLimits {
            token,
            // The lowest shard keeps the register.
            next: self.shards.first().and_then(|shard| shard.next).unwrap_or_default(),
            member,
            session: number,
            rights: if asker.is_copy() { Rights::NONE } else { permit.rights },
            limits: Limits { rate_max, burst_max, ..permit.limits },
            position_max: permit.position_max,
            orders: self.names.orders_of(member),
            in_flight,
            in_flight_max: self.config.session_in_flight_max,
        })
    }
}

fn status_of(listing: &Listing, (shard, next): (ShardId, Position), quarantined: bool) -> InstrumentStatus {
    let Listing { instrument, phase, last, reference } = *listing;
    InstrumentStatus {
        instrument: instrument.id,
        symbol: instrument.symbol,
        shard,
        next,
        phase,
        quarantined,
        last,
        reference,
        lot: instrument.lot,
        quantity_max: instrument.quantity_max,
        value_max: instrument.value_max,
        price_min: instrument.price_min,
        price_max: instrument.price_max,
        orders_max: instrument.orders_max,
        static_band: instrument.static_band.width,
        dynamic_band: instrument.dynamic_band.width,
        call_ns: instrument.call_ns,
        tick_rows: u8::try_from(instrument.ticks.rows().len()).expect("a table has few rows"),
    }
}
