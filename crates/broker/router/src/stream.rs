//! What the exchange says; of it a shard's stream, message after message: each is asked to be applied when the one before it is.

use pares_broker::{CustomerOrderId, OrderAsked, OrderEvent, OrderRead, Refusal, Settlement};
use pares_types::{Reason, Reply};

use crate::exchange::{self, Told, is_for_now, is_order};
use crate::router::{CLAIM_EVERY_MS, PAUSE_MS, Question, REPEAT_AFTER_MS, Router, RouterEffect, Stage};

impl Router {
    /// The exchange says something.
    pub fn told(&mut self, reply: &Reply, now_ms: u64) {
        self.now_ms = now_ms;
        if self.stage != Stage::Working {
            return;
        }
        match reply {
            Reply::Rejected { client_order_id, reason: reason @ Reason::TooOld } => {
                self.repeated(client_order_id.0, *reason);
            }
            Reply::Rejected { client_order_id, reason } => self.turned_away(client_order_id.0, *reason),
            Reply::Answer(answer) if answer.number == 0 => {
                self.repeated(answer.client_order_id.0, answer.reason);
            }
            numbered => {
                if let Some(told) = exchange::told(numbered) {
                    self.take(told);
                }
            }
        }
    }

    /// A gateway did not take it in.
    fn turned_away(&mut self, name: u64, reason: Reason) {
        let Some(routed) = self.orders.get_mut(&name).filter(|_| is_order(name)) else { return };
        if is_for_now(reason) {
            routed.due_ms = self.now_ms + PAUSE_MS;
        } else if routed.is_plugged {
            routed.due_ms = self.now_ms + CLAIM_EVERY_MS;
        } else {
            (routed.is_plugged, routed.due_ms) = (true, 0);
        }
    }

    /// An answer outside of the stream: the first one is in it, unless the name is too old to be used.
    fn repeated(&mut self, name: u64, reason: Reason) {
        let Some(routed) = self.orders.get_mut(&name) else { return };
        routed.due_ms = self.now_ms + REPEAT_AFTER_MS;
        if reason != Reason::TooOld {
            return;
        }
        let shard = self.listed.get(&routed.terms.symbol).map(|listing| listing.shard);
        let stream = shard.and_then(|shard| self.streams.get(&shard));
        if stream.is_some_and(|stream| stream.is_live && stream.queue.is_empty()) {
            let asked =
                OrderAsked::TurnAway { term: self.term, of: routed.of.clone(), name, reason: reason as u8 };
            self.ask(asked, Question::TurnAway { name });
        }
    }

    /// A message comes. What came before is not taken again.
    pub(crate) fn take(&mut self, told: Told) {
        let Some(stream) = self.streams.get_mut(&told.shard) else { return };
        if told.number < stream.next {
            return;
        }
        if told.number > stream.next {
            // A gap: nothing behind it may be applied. The stream is asked for again from where it is.
            self.effects.push(RouterEffect::Resume { shard: told.shard, next: stream.next });
            return;
        }
        stream.next += 1;
        stream.queue.push_back(told);
        self.apply(told.shard);
    }

    /// Asks for the next of a shard to be applied, if none is under way.
    pub(crate) fn apply(&mut self, shard: u32) {
        let Some(stream) = self.streams.get(&shard).filter(|stream| !stream.is_asked) else { return };
        let Some(first) = stream.queue.front().copied() else { return };
        if let Some(event) = first.event {
            if let Some(routed) = self.orders.get(&first.name) {
                let of = routed.of.clone();
                return self.settle(first, of, event);
            }
            if is_of_shares(event) {
                // The order has ended, as it must have for a void trade: whose it was stands in the items.
                self.mark(shard);
                let read = OrderRead::Named { name: first.name };
                return self.read(read, Question::Owner { shard });
            }
        }
        self.pass(shard, first.number);
    }

    fn mark(&mut self, shard: u32) {
        if let Some(stream) = self.streams.get_mut(&shard) {
            stream.is_asked = true;
        }
    }

    /// The first of a shard, and all behind it that have no effect either, are counted.
    fn pass(&mut self, shard: u32, from: u64) {
        let Some(stream) = self.streams.get(&shard) else { return };
        let has_effect = |told: &Told| match told.event {
            Some(event) => self.orders.contains_key(&told.name) || is_of_shares(event),
            None => false,
        };
        let count = stream.queue.iter().skip(1).take_while(|told| !has_effect(told)).count() + 1;
        self.mark(shard);
        let asked = OrderAsked::Pass { term: self.term, shard, from, to: from + count as u64 };
        self.ask(asked, Question::Pass { shard, count });
    }

    fn settle(&mut self, told: Told, of: CustomerOrderId, event: OrderEvent) {
        let Told { shard, number, name, .. } = told;
        self.mark(shard);
        let settlement = Settlement { term: self.term, shard, number, of, event };
        self.ask(OrderAsked::Settle { settlement }, Question::Settle { shard, name });
    }

    pub(crate) fn take_owner(&mut self, shard: u32, owner: Option<CustomerOrderId>) {
        let Some(stream) = self.streams.get_mut(&shard) else { return };
        stream.is_asked = false;
        let Some(first) = stream.queue.front().copied() else { return };
        match (owner, first.event) {
            (Some(of), Some(event)) => self.settle(first, of, event),
            (None, Some(event)) if is_of_shares(event) => self.halt(Refusal::OtherOrder),
            _ => self.pass(shard, first.number),
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
