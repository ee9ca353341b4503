//! Each member's orders that are in flight or live, and the shares of them that may trade yet.
//!
//! Limits refer to both, so they are kept as they change: what an entry of the table says before a change, and what it says after.

use std::collections::BTreeMap;

use pares_types::{InstrumentId, MemberId, Quantity, Side};

use super::Entry;
use super::kind::Kind;

/// What one name stands for, as long as it may trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    member: MemberId,
    instrument: InstrumentId,
    side: Side,
    shares: Quantity,
    is_order: bool,
}

impl Entry {
    pub(super) fn work(&self) -> Option<Work> {
        let (side, is_order) = match self.kind {
            Kind::Enter(side) => (side, true),
            Kind::Raise(side) => (side, false),
            Kind::Other | Kind::FanOut => return None,
        };
        let Self { member, instrument, remaining: shares, .. } = *self;
        (!self.is_finished()).then_some(Work { member, instrument, side, shares, is_order })
    }
}

/// Of all members.
#[derive(Default)]
pub(super) struct AtWork(BTreeMap<MemberId, OfMember>);

#[derive(Default)]
struct OfMember {
    orders: u32,
    /// Shares to buy and to sell.
    open: BTreeMap<InstrumentId, (u64, u64)>,
}

impl AtWork {
    /// Orders of the member.
    pub(super) fn orders(&self, member: MemberId) -> u32 {
        self.0.get(&member).map_or(0, |one| one.orders)
    }

    /// Shares that the member's orders may buy or sell yet.
    pub(super) fn open(&self, member: MemberId, instrument: InstrumentId, side: Side) -> u64 {
        let open = self.0.get(&member).and_then(|one| one.open.get(&instrument));
        open.map_or(0, |&(buy, sell)| if side == Side::Buy { buy } else { sell })
    }

    /// A name stood for `before`, and stands for `after` from now on. What a wrong venue has had recorded need not add up.
    pub(super) fn replace(&mut self, before: Option<Work>, after: Option<Work>) {
        if before == after {
            return;
        }
        if let Some(work) = before {
            let member = self.0.entry(work.member).or_default();
            member.orders = member.orders.saturating_sub(work.is_order.into());
            let shares = member.shares(&work);
            *shares = shares.saturating_sub(work.shares.0);
        }
        if let Some(work) = after {
            let member = self.0.entry(work.member).or_default();
            member.orders += u32::from(work.is_order);
            let shares = member.shares(&work);
            *shares = shares.saturating_add(work.shares.0);
        }
    }
}

impl OfMember {
    fn shares(&mut self, work: &Work) -> &mut u64 {
        let (buy, sell) = self.open.entry(work.instrument).or_default();
        if work.side == Side::Buy { buy } else { sell }
    }
}
