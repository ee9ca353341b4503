//! What waits to be ordered: received from the gateways' logs, and not committed yet.
//!
//! A lane holds what one gateway asked of one shard, in the gateway's order. Who leads proposes from the lanes of a shard in order of arrival,
//! so that no gateway is preferred; what was proposed keeps its place in its lane until it is ordered, because a lead may be lost
//! with everything that was proposed under it. It is proposed again under the next, and whichever entry commits first counts.

use std::collections::{BTreeMap, VecDeque};

use pares_types::{GatewayId, RequestId, ShardId};

use crate::entry::Body;

#[derive(Clone, Copy, Debug)]
struct Waiting {
    sequence: u64,
    arrival: u64,
    taken_ns: u64,
    body: Body,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    /// Highest sequence taken.
    newest: u64,
    queue: VecDeque<Waiting>,
    /// So many from the front are proposed.
    proposed: usize,
}

#[derive(Clone, Debug, Default)]
struct ShardLanes {
    /// Of gateways that asked anything, in rising order.
    lanes: BTreeMap<GatewayId, Lane>,
    proposed: u64,
}

/// All that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    shards: BTreeMap<ShardId, ShardLanes>,
    /// Of each gateway, so many wait.
    counts: BTreeMap<GatewayId, usize>,
    arrivals: u64,
    waiting: usize,
    proposed: usize,
}

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    pub(crate) fn of(&self, gateway: GatewayId) -> usize {
        self.counts.get(&gateway).copied().unwrap_or_default()
    }

    /// Proposed in a shard and not ordered yet.
    pub(crate) fn proposed(&self, shard: ShardId) -> u64 {
        self.shards.get(&shard).map_or(0, |shard| shard.proposed)
    }

    /// Whether something waits that is not proposed.
    pub(crate) fn has_unproposed(&self) -> bool {
        self.waiting > self.proposed
    }

    /// Takes a request whose gateway's sequences up to `through` are ordered in that shard. Says whether it was new.
    pub(crate) fn take(
        &mut self,
        id: RequestId,
        shard: ShardId,
        (through, now_ns): (u64, u64),
        body: Body,
    ) -> bool {
        let lane = self.shards.entry(shard).or_default().lanes.entry(id.gateway()).or_default();
        if id.sequence() <= lane.newest.max(through) {
            return false;
        }
        lane.newest = id.sequence();
        lane.queue.push_back(Waiting {
            sequence: id.sequence(),
            arrival: self.arrivals,
            taken_ns: now_ns,
            body,
        });
        *self.counts.entry(id.gateway()).or_default() += 1;
        self.arrivals += 1;
        self.waiting += 1;
        true
    }

    /// A request is ordered: it waits no more, nor what its gateway asked before. Gives when it was taken, if it waited here.
    pub(crate) fn on_ordered(&mut self, id: RequestId, shard: ShardId) -> Option<u64> {
        let lanes = self.shards.get_mut(&shard)?;
        let lane = lanes.lanes.get_mut(&id.gateway())?;
        let mut taken = None;
        while let Some(front) = lane.queue.pop_front_if(|front| front.sequence <= id.sequence()) {
            taken = (front.sequence == id.sequence()).then_some(front.taken_ns);
            let was_proposed = lane.proposed > 0;
            lane.proposed -= usize::from(was_proposed);
            lanes.proposed -= u64::from(was_proposed);
            self.proposed -= usize::from(was_proposed);
            self.waiting -= 1;
            *self.counts.get_mut(&id.gateway()).expect("it waited") -= 1;
        }
        taken
    }

    /// Another term: what was proposed may be lost.
    pub(crate) fn forget_proposed(&mut self) {
        self.proposed = 0;
        for shard in self.shards.values_mut() {
            shard.proposed = 0;
            shard.lanes.values_mut().for_each(|lane| lane.proposed = 0);
        }
    }

    /// Gives the body of the request of that shard that is to be proposed next, and takes it for proposed.
    pub(crate) fn propose_next(&mut self, shard: ShardId) -> Option<(GatewayId, Body)> {
        let lanes = self.shards.get_mut(&shard)?;
        let heads = lanes.lanes.iter_mut().filter_map(|(gateway, lane)| {
            let next = lane.queue.get(lane.proposed).copied()?;
            Some((next, *gateway, lane))
        });
        let (next, gateway, lane) = heads.min_by_key(|(next, ..)| next.arrival)?;
        lane.proposed += 1;
        lanes.proposed += 1;
        self.proposed += 1;
        Some((gateway, next.body))
    }

    /// The last request of that shard and gateway that was taken for proposed is not.
    pub(crate) fn take_back(&mut self, shard: ShardId, gateway: GatewayId) {
        let lanes = self.shards.get_mut(&shard).expect("it was proposed");
        lanes.lanes.get_mut(&gateway).expect("it was proposed").proposed -= 1;
        lanes.proposed -= 1;
        self.proposed -= 1;
    }

    /// When the one was taken that waits for the longest in a shard that has room.
    pub(crate) fn oldest_ns(&self, has_room: impl Fn(ShardId) -> bool) -> Option<u64> {
        if self.waiting == 0 {
            return None;
        }
        let shards = self.shards.iter().filter(|(shard, _)| has_room(**shard));
        let lanes = shards.flat_map(|(_, shard)| shard.lanes.values());
        lanes.filter_map(|lane| lane.queue.front()).map(|front| front.taken_ns).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARD: ShardId = ShardId(0);

    fn id(gateway: u16, sequence: u64) -> RequestId {
        RequestId::new(GatewayId(gateway), sequence)
    }

    fn take(pending: &mut Pending, gateway: u16, sequence: u64) -> bool {
        let body = Body::new(&[gateway as u8, sequence as u8]).unwrap();
        pending.take(id(gateway, sequence), SHARD, (0, 10 * sequence), body)
    }

    fn proposed(pending: &mut Pending) -> Vec<[u8; 2]> {
        std::iter::from_fn(|| pending.propose_next(SHARD))
            .map(|(_, body)| body.bytes().try_into().unwrap())
            .collect()
    }

    #[test]
    fn all_is_proposed_by_arrival_and_again_under_another_lead() {
        let mut pending = Pending::default();
        for (gateway, sequence) in [(2, 1), (1, 4), (2, 2)] {
            assert!(take(&mut pending, gateway, sequence));
        }
        assert!(!take(&mut pending, 1, 4));
        let all = [[2, 1], [1, 4], [2, 2]];
        assert_eq!(proposed(&mut pending), all);
        assert!(!pending.has_unproposed());
        pending.take_back(SHARD, GatewayId(2));
        assert_eq!(proposed(&mut pending), all[2..]);
        assert_eq!(pending.on_ordered(id(2, 1), SHARD), Some(10));
        pending.forget_proposed();
        assert_eq!(proposed(&mut pending), all[1..]);
    }

    #[test]
    fn what_is_ordered_takes_along_what_its_gateway_asked_before() {
        let mut pending = Pending::default();
        (1..4).for_each(|sequence| assert!(take(&mut pending, 1, sequence)));
        assert_eq!(pending.oldest_ns(|_| true), Some(10));
        assert_eq!(pending.on_ordered(id(1, 2), SHARD), Some(20));
        assert_eq!((pending.len(), pending.of(GatewayId(1)), pending.oldest_ns(|_| true)), (1, 1, Some(30)));
        assert_eq!((pending.oldest_ns(|_| false), pending.on_ordered(id(2, 9), SHARD)), (None, None));
    }
}
