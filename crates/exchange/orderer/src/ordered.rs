//! What is ordered: the state that all members share.
//!
//! Of each shard the next position, and of each gateway the highest sequence ordered there. One number per gateway would do if nothing
//! ever stood still. But a shard whose window is full is not proposed for, and then all later requests of the same gateways would have
//! to wait with it: one poisonous request would stop every shard.
//!
//! ```text
//!   | 1 | 0 | shards u16 | of each: shard u16, gateways u16, next u64, of each gateway: gateway u16, through u64 |     little endian
//! ```
//! Shards and gateways are in rising order, and nothing follows.

use std::collections::BTreeMap;

use pares_types::{GatewayId, Position, RequestId, ShardId};

const FORMAT: u8 = 1;

/// A shard's part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShardOrder {
    next: Position,
    /// The highest sequence ordered, of gateways that have any.
    through: BTreeMap<GatewayId, u64>,
}

/// The highest sequence ordered per gateway and shard, and each shard's next position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    shards: BTreeMap<ShardId, ShardOrder>,
}

/// What became of a request that was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placed {
    /// It has this position.
    At(Position),
    /// It, or a later one of its gateway, has one already.
    Repeat,
    /// There is no such shard.
    Unknown,
}

impl Ordered {
    /// Nothing is ordered in these shards.
    pub fn new(shards: impl IntoIterator<Item = ShardId>) -> Self {
        let mut ordered = Self::default();
        ordered.cover(shards);
        ordered
    }

    /// Adds those of the shards that are new.
    pub fn cover(&mut self, shards: impl IntoIterator<Item = ShardId>) {
        shards.into_iter().for_each(|shard| _ = self.shards.entry(shard).or_default());
    }

    /// The shards.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> + '_ {
        self.shards.keys().copied()
    }

    /// The position of the request that is ordered next in a shard.
    #[must_use]
    pub fn next(&self, shard: ShardId) -> Option<Position> {
        self.shards.get(&shard).map(|shard| shard.next)
    }

    /// The highest sequence of a gateway that is ordered in a shard; 0 if none is.
    #[must_use]
    pub fn through(&self, shard: ShardId, gateway: GatewayId) -> u64 {
        let through = self.shards.get(&shard).and_then(|shard| shard.through.get(&gateway));
        through.copied().unwrap_or_default()
    }

    /// A request is committed: gives it its position, unless it has one.
    pub fn place(&mut self, id: RequestId, shard: ShardId) -> Placed {
        let Some(order) = self.shards.get_mut(&shard) else { return Placed::Unknown };
        let through = order.through.entry(id.gateway()).or_default();
        if id.sequence() <= *through {
            return Placed::Repeat;
        }
        *through = id.sequence();
        let position = order.next;
        order.next = position.next();
        Placed::At(position)
    }

    /// Forgets what is ordered of a gateway, to be found out.
    #[cfg(test)]
    pub(crate) fn forget(&mut self, shard: ShardId, gateway: GatewayId) {
        self.shards.get_mut(&shard).and_then(|order| order.through.remove(&gateway));
    }

    /// Its bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let count = |len: usize| u16::try_from(len).expect("their numbers have 16 bits").to_le_bytes();
        let mut bytes = vec![FORMAT, 0];
        bytes.extend(count(self.shards.len()));
        for (shard, order) in &self.shards {
            bytes.extend(shard.0.to_le_bytes());
            bytes.extend(count(order.through.len()));
            bytes.extend(order.next.0.to_le_bytes());
            for (gateway, through) in &order.through {
                bytes.extend(gateway.0.to_le_bytes());
                bytes.extend(through.to_le_bytes());
            }
        }
        bytes
    }

    /// What [`Ordered::to_bytes`] gave; none if it is nothing that it gives.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut bytes = bytes.strip_prefix(&[FORMAT, 0])?;
        let mut ordered = Self::default();
        for _ in 0..take_u16(&mut bytes)? {
            let (shard, gateways) = (ShardId(take_u16(&mut bytes)?), take_u16(&mut bytes)?);
            let mut order = ShardOrder { next: Position(take_u64(&mut bytes)?), ..ShardOrder::default() };
            for _ in 0..gateways {
                let (gateway, through) = (GatewayId(take_u16(&mut bytes)?), take_u64(&mut bytes)?);
                let follows = order.through.last_key_value().is_none_or(|(last, _)| *last < gateway);
                if !follows || !(1..=RequestId::SEQUENCE_MAX).contains(&through) {
                    return None;
                }
                order.through.insert(gateway, through);
            }
            if ordered.shards.last_key_value().is_some_and(|(last, _)| *last >= shard) {
                return None;
            }
            ordered.shards.insert(shard, order);
        }
        // No position is beyond what one request each can have reached, so that none runs out.
        let is_sound = |order: &ShardOrder| order.next.0 <= RequestId::SEQUENCE_MAX;
        (bytes.is_empty() && ordered.shards.values().all(is_sound)).then_some(ordered)
    }
}

pub(crate) fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u16::from_le_bytes(*taken))
}

pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*taken))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn id(gateway: u16, sequence: u64) -> RequestId {
        RequestId::new(GatewayId(gateway), sequence)
    }

    fn some() -> Ordered {
        let mut ordered = Ordered::new([ShardId(0), ShardId(3)]);
        for (id, shard) in [(id(0, 5), 0), (id(1, 1), 0), (id(0, 4), 3)] {
            assert!(matches!(ordered.place(id, ShardId(shard)), Placed::At(_)));
        }
        ordered
    }

    #[test]
    fn request_proposed_twice_has_one_position() {
        let mut ordered = some();
        assert_eq!(ordered.place(id(0, 6), ShardId(0)), Placed::At(Position(2)));
        assert_eq!(ordered.place(id(0, 6), ShardId(0)), Placed::Repeat);
        assert_eq!(ordered.place(id(0, 5), ShardId(0)), Placed::Repeat);
        assert_eq!(ordered.place(id(0, 5), ShardId(3)), Placed::At(Position(1)), "another shard");
        assert_eq!(ordered.place(id(0, 7), ShardId(1)), Placed::Unknown);
        assert_eq!(ordered.next(ShardId(0)), Some(Position(3)));
    }

    #[test]
    fn bytes_are_frozen_and_read_as_they_were_written() {
        let bytes = some().to_bytes();
        assert_eq!(bytes[..16], [1, 0, 2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes.len(), 4 + 2 * 12 + 3 * 10);
        assert_eq!(Ordered::from_bytes(&bytes), Some(some()));
        assert!((0..bytes.len()).all(|len| Ordered::from_bytes(&bytes[..len]).is_none()));
        assert_eq!(Ordered::from_bytes(&[&bytes[..], &[0]].concat()), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_again(at in 0_usize..58, byte in any::<u8>()) {
            let mut bytes = some().to_bytes();
            bytes[at] = byte;
            if let Some(ordered) = Ordered::from_bytes(&bytes) {
                prop_assert_eq!(ordered.to_bytes(), bytes);
            }
        }
    }
}
