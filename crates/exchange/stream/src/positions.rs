//! What each member bought and sold on a business day.
//!
//! A limit on a position has to hold at every gateway, right after a start too. So it counts what the record says: a shard counts for its
//! checkpoint and a gateway as it follows the committed stream, and both count here. What members had before the day, and what they
//! transfer elsewhere, the exchange does not know: a position is that of the day.

use std::collections::BTreeMap;

use pares_types::{
    BusinessDay, Command, InstrumentId, MemberId, NetPositions, Outcome, Position, Quantity, Reply, Request,
    Side, Status,
};

/// The day's positions in a shard: shares bought less shares sold.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    day: BusinessDay,
    /// Where it began.
    since: Position,
    /// None of 0.
    nets: BTreeMap<InstrumentId, BTreeMap<MemberId, i64>>,
}

impl Positions {
    /// What a committed record says before its events are looked at: a day begins without positions, in a step or several, and a trade of the
    /// day that is declared void did not happen.
    #[inline]
    pub(crate) fn follow(&mut self, position: Position, request: &Request, outcome: &Outcome) {
        match request.command {
            Command::BeginDay { day } if outcome.status == Status::Accepted && day != self.day => {
                *self = Self { day, since: position, ..Self::default() };
            }
            Command::Bust(trade) if outcome.status == Status::Accepted && trade.position >= self.since => {
                let resting_sold = trade.resting_side.opposite();
                self.add(trade.resting_owner.0, request.instrument, resting_sold, trade.quantity);
                self.add(trade.incoming_owner.0, request.instrument, trade.resting_side, trade.quantity);
            }
            _ => {}
        }
    }

    /// The member receives that.
    #[inline]
    pub(crate) fn tell(&mut self, member: MemberId, reply: &Reply) {
        if let Reply::Trade(trade) = reply {
            self.add(member, trade.instrument, trade.side, trade.quantity);
        }
    }

    fn add(&mut self, member: MemberId, instrument: InstrumentId, side: Side, quantity: Quantity) {
        let of_instrument = self.nets.entry(instrument).or_default();
        let net = of_instrument.entry(member).or_default();
        // A venue that is wrong may have recorded any number.
        *net = match side {
            Side::Buy => net.saturating_add_unsigned(quantity.0),
            Side::Sell => net.saturating_sub_unsigned(quantity.0),
        };
        if *net == 0 {
            of_instrument.remove(&member);
        }
    }

    /// What the member bought less what it sold.
    #[must_use]
    pub fn net(&self, member: MemberId, instrument: InstrumentId) -> i64 {
        let net = self.nets.get(&instrument).and_then(|members| members.get(&member));
        net.copied().unwrap_or_default()
    }

    /// All of them.
    #[must_use]
    pub fn written(&self) -> NetPositions {
        let all = self.nets.iter().flat_map(|(instrument, members)| {
            members.iter().map(|(member, net)| (*instrument, *member, *net))
        });
        NetPositions { day: self.day, since: self.since, nets: all.collect() }
    }

    /// What [`written`](Self::written) gave; `None` if it could not have.
    #[must_use]
    pub fn restore(written: &NetPositions) -> Option<Self> {
        let rises = written.nets.windows(2).all(|pair| (pair[0].0, pair[0].1) < (pair[1].0, pair[1].1));
        let counts = written.nets.iter().all(|(_, _, net)| *net != 0);
        (rises && counts).then(|| {
            let mut positions = Self { day: written.day, since: written.since, ..Self::default() };
            for &(instrument, member, net) in &written.nets {
                positions.nets.entry(instrument).or_default().insert(member, net);
            }
            positions
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: InstrumentId = InstrumentId(1);

    #[test]
    fn what_is_restored_counts_on() {
        let mut positions = Positions::default();
        positions.add(MemberId(9), InstrumentId(2), Side::Sell, Quantity(30));
        positions.add(MemberId(9), ONE, Side::Buy, Quantity(10));
        positions.add(MemberId(3), ONE, Side::Buy, Quantity(5));
        positions.add(MemberId(3), ONE, Side::Sell, Quantity(5));
        let written = positions.written();
        assert_eq!(written.nets, [(ONE, MemberId(9), 10), (InstrumentId(2), MemberId(9), -30)]);
        let mut restored = Positions::restore(&written).unwrap();
        restored.add(MemberId(9), ONE, Side::Sell, Quantity(4));
        assert_eq!((restored.net(MemberId(9), ONE), restored.net(MemberId(3), ONE)), (6, 0));
    }

    #[test]
    fn no_shard_has_counted_so() {
        let written = |nets: &[_]| NetPositions { nets: nets.to_vec(), ..<_>::default() };
        assert!(Positions::restore(&written(&[(ONE, MemberId(3), 0)])).is_none(), "nothing");
        assert!(Positions::restore(&written(&[(ONE, MemberId(3), 1), (ONE, MemberId(3), 1)])).is_none());
        assert!(Positions::restore(&written(&[(ONE, MemberId(3), 1), (ONE, MemberId(2), 1)])).is_none());
    }

    #[test]
    fn any_quantity_can_be_recorded() {
        let mut positions = Positions::default();
        for _ in 0..3 {
            positions.add(MemberId(1), ONE, Side::Buy, Quantity(u64::MAX));
            positions.add(MemberId(2), ONE, Side::Sell, Quantity(u64::MAX));
        }
        assert_eq!((positions.net(MemberId(1), ONE), positions.net(MemberId(2), ONE)), (i64::MAX, i64::MIN));
    }
}
