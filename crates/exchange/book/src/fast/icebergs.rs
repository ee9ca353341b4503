//! Icebergs show more (docs/rules.md, section 2).

use super::incoming::Incoming;
use super::node::Node;
use super::terms::Terms;
use super::{FastBook, Step};
use pares_table::SlabIndex;
use pares_types::{Event, EventSink, Price, RestCause};

impl FastBook {
    /// An iceberg has its turn again in one matching: it trades all it has, and shows a whole peak of what is left.
    #[cold]
    pub(super) fn fill_whole<S: EventSink>(
        &mut self,
        incoming: &mut Incoming,
        slot: SlabIndex<Node>,
        price: Price,
        step: &mut Step<'_, S>,
    ) {
        let order = self.store.order(slot);
        let quantity = incoming.left.min(order.remaining);
        incoming.trade(quantity);
        if quantity == order.remaining {
            let fill = self.take(slot, price, quantity, order.side);
            return step.emit(fill);
        }
        let (remaining, executed) = (order.remaining.minus(quantity), order.executed.plus(quantity));
        step.emit(Event::Fill {
            resting: order.order,
            resting_member: order.member,
            resting_client_order_id: order.client_order_id,
            resting_side: order.side,
            price,
            quantity,
            resting_remaining: remaining,
        });
        self.store.detach(slot);
        self.store.set_terms(slot, &Terms { remaining, executed, ..Terms::of(&order) });
        let priority = self.next_priority();
        self.store.attach(slot, order.price, priority);
        step.emit(self.event_rested(slot, RestCause::Refilled));
    }

    /// An iceberg goes to the end of its queue and shows more.
    #[cold]
    pub(super) fn refill<S: EventSink>(&mut self, slot: SlabIndex<Node>, step: &mut Step<'_, S>) {
        let price = self.store.levels[self.store.nodes[slot].level].price;
        self.requeue(slot, price);
        step.emit(self.event_rested(slot, RestCause::Refilled));
    }

    /// Moves an attached order to the end of the queue at a price.
    fn requeue(&mut self, slot: SlabIndex<Node>, price: Price) {
        self.store.detach(slot);
        let priority = self.next_priority();
        self.store.attach(slot, price, priority);
    }
}
