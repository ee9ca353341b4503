//! Each member's orders that are in flight or live, and the shares of them that may trade yet.
//!
//! Limits refer to both, so they are kept as they change: what an entry of the table says before a change, and what it says after.
//! Nothing is kept of a member or an instrument without any: an order may name any instrument, and be refused.

use std::collections::BTreeMap;

use pares_types::{InstrumentId, MemberId, Quantity, Side};

use super::kind::Kind;
use super::name::Name;

/// What one name stands for, as long as it may trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    pub(super) member: MemberId,
    pub(super) instrument: InstrumentId,
    pub(super) side: Side,
    pub(super) shares: Quantity,
    pub(super) is_order: bool,
}

impl Name {
    pub(super) fn work(&self) -> Option<Work> {
        let (side, is_order) = match self.kind {
            Kind::Enter { side, .. } => (side, true),
            Kind::Amend(side) => (side, false),
            Kind::Cancel | Kind::Other | Kind::FanOut => return None,
        };
        let Self { member, instrument, remaining: shares, .. } = *self;
        (shares != Quantity::ZERO).then_some(Work { member, instrument, side, shares, is_order })
    }
}

/// Of all members.
#[derive(Default)]
pub(super) struct AtWork(BTreeMap<MemberId, OfMember>);

#[derive(Default)]
struct OfMember {
    orders: u32,
    open: BTreeMap<InstrumentId, Open>,
}

/// For one instrument.
#[derive(Default, PartialEq, Eq)]
struct Open {
    orders: u32,
    /// Shares. An order may ask for any number before its shard refuses it, so there is room for that many of all.
    buy: u128,
    sell: u128,
}

impl AtWork {
    pub(super) fn orders(&self, member: MemberId) -> u32 {
        self.0.get(&member).map_or(0, |one| one.orders)
    }

    pub(super) fn orders_for(&self, member: MemberId, instrument: InstrumentId) -> u32 {
        self.of(member, instrument).map_or(0, |open| open.orders)
    }

    /// Shares that the member's orders may buy or sell yet.
    pub(super) fn open(&self, member: MemberId, instrument: InstrumentId, side: Side) -> u128 {
        self.of(member, instrument).map_or(0, |open| if side == Side::Buy { open.buy } else { open.sell })
    }

    fn of(&self, member: MemberId, instrument: InstrumentId) -> Option<&Open> {
        self.0.get(&member)?.open.get(&instrument)
    }

    /// Whether nothing is kept.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A name stood for `before`, and stands for `after` from now on.
    pub(super) fn replace(&mut self, before: Option<Work>, after: Option<Work>) {
        if before == after {
            return;
        }
        if let Some(work) = after {
            let member = self.0.entry(work.member).or_default();
            member.orders += u32::from(work.is_order);
            let open = member.open.entry(work.instrument).or_default();
            open.orders += u32::from(work.is_order);
            *open.shares(work.side) += u128::from(work.shares.0);
        }
        if let Some(work) = before {
            self.take_away(&work);
        }
    }

    fn take_away(&mut self, work: &Work) {
        let Some(member) = self.0.get_mut(&work.member) else { return };
        member.orders = member.orders.saturating_sub(work.is_order.into());
        let open = member.open.entry(work.instrument).or_default();
        open.orders = open.orders.saturating_sub(work.is_order.into());
        let shares = open.shares(work.side);
        *shares = shares.saturating_sub(work.shares.0.into());
        if *open == Open::default() {
            member.open.remove(&work.instrument);
        }
        if member.orders == 0 && member.open.is_empty() {
            self.0.remove(&work.member);
        }
    }
}

impl Open {
    fn shares(&mut self, side: Side) -> &mut u128 {
        if side == Side::Buy { &mut self.buy } else { &mut self.sell }
    }
}
