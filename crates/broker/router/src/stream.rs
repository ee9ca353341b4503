//! A shard's stream, message after message: each is asked to be applied when the one before it is.

use pares_broker::{CustomerOrderId, OrderAsked, OrderEvent, OrderRead, Settlement};

use crate::exchange::Told;
use crate::router::{Question, Router, RouterEffect};

impl Router {
    /// A message comes. What came before is not taken again.
    pub(crate) fn take(&mut self, told: Told, effects: &mut Vec<RouterEffect>) {
        let Some(stream) = self.streams.get_mut(&told.shard) else { return };
        if told.number < stream.next {
            return;
        }
        if told.number > stream.next {
            // A gap: nothing behind it may be applied. The stream is asked for again from where it is.
            effects.push(RouterEffect::Resume { shard: told.shard, next: stream.next });
            return;
        }
        stream.next += 1;
        stream.queue.push_back(told);
        self.apply(told.shard, effects);
    }

    /// Asks for the next of a shard to be applied, if none is under way.
    pub(crate) fn apply(&mut self, shard: u32, effects: &mut Vec<RouterEffect>) {
        let Some(stream) = self.streams.get(&shard).filter(|stream| !stream.is_asked) else { return };
        let Some(first) = stream.queue.front().copied() else { return };
        if let Some(event) = first.event {
            if let Some(routed) = self.orders.get(&first.name) {
                let of = routed.of.clone();
                return self.settle(first, of, event, effects);
            }
            if is_of_shares(event) {
                // The order has ended, as it must have for a void trade: whose it was stands in the items.
                self.mark(shard);
                let read = OrderRead::Named { name: first.name };
                return self.read(read, Question::Owner { shard }, effects);
            }
        }
        self.pass(shard, first.number, effects);
    }

    fn mark(&mut self, shard: u32) {
        if let Some(stream) = self.streams.get_mut(&shard) {
            stream.is_asked = true;
        }
    }

    /// The first of a shard, and all behind it that have no effect either, are counted.
    fn pass(&mut self, shard: u32, from: u64, effects: &mut Vec<RouterEffect>) {
        let Some(stream) = self.streams.get(&shard) else { return };
        let has_effect = |told: &Told| match told.event {
            Some(event) => self.orders.contains_key(&told.name) || is_of_shares(event),
            None => false,
        };
        let count = stream.queue.iter().skip(1).take_while(|told| !has_effect(told)).count() + 1;
        self.mark(shard);
        let asked = OrderAsked::Pass { term: self.term, shard, from, to: from + count as u64 };
        self.ask(asked, Question::Pass { shard, count }, effects);
    }

    fn settle(
        &mut self,
        told: Told,
        of: CustomerOrderId,
        event: OrderEvent,
        effects: &mut Vec<RouterEffect>,
    ) {
        let Told { shard, number, name, .. } = told;
        self.mark(shard);
        let settlement = Settlement { term: self.term, shard, number, of, event };
        self.ask(OrderAsked::Settle { settlement }, Question::Settle { shard, name }, effects);
    }

    pub(crate) fn take_owner(
        &mut self,
        shard: u32,
        owner: Option<CustomerOrderId>,
        effects: &mut Vec<RouterEffect>,
    ) {
        let Some(stream) = self.streams.get_mut(&shard) else { return };
        stream.is_asked = false;
        let Some(first) = stream.queue.front().copied() else { return };
        match (owner, first.event) {
            (Some(of), Some(event)) => self.settle(first, of, event, effects),
            _ => self.pass(shard, first.number, effects),
        }
    }

    /// So many of a shard are applied.
    pub(crate) fn applied(&mut self, shard: u32, count: usize) {
        if let Some(stream) = self.streams.get_mut(&shard) {
            stream.is_asked = false;
            stream.queue.drain(..count.min(stream.queue.len()));
        }
    }
}

/// Whether it would be wrong to pass over it, whatever is known of its order.
fn is_of_shares(event: OrderEvent) -> bool {
    !matches!(event, OrderEvent::Accepted | OrderEvent::Refused { .. })
}
