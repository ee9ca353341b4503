//! Orders whose name stands for another request.
//!
//! A name is unique in a shard only. A member that has two gateways take it in at once, for instruments of two shards, has two orders under
//! it, and both live. To remember one would hide the other from limits, lists and guards. So a name stands for the first that is
//! seen of it, and the other order has a place in the table without it: it counts, and is found by its id.

use pares_types::{Answer, Command, OrderId, Request, Status};

use crate::answer::left_of;
use crate::names::{NameIndex, State};
use crate::{Gateway, Place, SessionId};

impl Gateway {
    /// The name that a record answers, with the session that waits for it; `None` if it was answered before, or the record is of an
    /// order without a name, which is answered then.
    pub(crate) fn name_to_settle(
        &mut self,
        answer: &Answer,
        request: &Request,
        place: Place,
    ) -> Option<(NameIndex, Option<SessionId>)> {
        let is_order = matches!(request.command, Command::Enter(_));
        let known = self.names.find(request.member, request.client_order_id);
        let by_id = is_order.then(|| self.names.find_order(OrderId(request.id))).flatten();
        if let Some(nameless) = by_id.filter(|found| Some(*found) != known) {
            self.names.answer(nameless, Some(place), (answer.executed, left_of(answer, request)));
            return None;
        }
        let name = known.unwrap_or_else(|| self.names.insert(request));
        let State::Pending(asker) = self.names.get(name).state() else {
            if is_order && answer.status != Status::Refused && self.names.get(name).id != request.id {
                let nameless = self.names.insert_nameless(request);
                self.names.answer(nameless, Some(place), (answer.executed, answer.remaining));
            }
            return None;
        };
        let in_flight = self.names.get(name).kind.is_order() && !self.is_lost(name);
        if in_flight && self.is_of_another_shard(name, request) {
            self.names.set_aside(name);
        }
        Some((name, asker))
    }

    /// A gateway took an order in under a name that a request of another shard has.
    pub(crate) fn take_in_nameless(&mut self, name: NameIndex, request: &Request) {
        let is_order = matches!(request.command, Command::Enter(_));
        if is_order
            && self.is_of_another_shard(name, request)
            && self.names.find_order(OrderId(request.id)).is_none()
        {
            self.names.insert_nameless(request);
        }
    }

    pub(crate) fn is_of_another_shard(&self, name: NameIndex, request: &Request) -> bool {
        self.shard_of(self.names.get(name).instrument) != self.shard_index(request.shard)
    }
}
