//! Requests whose name stands for another one.
//!
//! A name is unique in a shard only. A member that has two gateways take it in at once, for instruments of two shards, has two requests executed under
//! it; if they are orders, both live. To remember one would hide the other from limits, lists and guards, and tell its session what became of the first.
//! So a name stands for the first that is seen of it, and the other has a place in the table without it: it counts, is found by its id, and its session waits
//! for its own answer. If it is lost, its session is refused.

use pares_types::{Answer, Command, OrderId, Request, RequestId, Status};

use crate::names::{Kind, NameIndex, State};
use crate::{Gateway, GatewaySink, Place, SessionId};

impl Gateway {
    /// The name that a record answers, or the place without one, with the session that waits for it; `None` if it was answered before, or the record is of
    /// an order without a name that was not known, which is answered then.
    pub(crate) fn name_to_settle(
        &mut self,
        answer: &Answer,
        request: &Request,
        place: Place,
    ) -> Option<(NameIndex, Option<SessionId>)> {
        let is_order = matches!(request.command, Command::Enter(_));
        let known = self.names.find(request.member, request.client_order_id);
        if let Some(shard) = self.shard_index(request.shard) {
            self.nameless.remove(&(shard, request.id));
        }
        let nameless = self.names.find_order(OrderId(request.id)).filter(|found| Some(*found) != known);
        let name = nameless.or(known).unwrap_or_else(|| self.names.insert(request));
        let State::Pending(asker) = self.names.get(name).state() else {
            if is_order && answer.status != Status::Refused && self.names.get(name).id != request.id {
                let nameless = self.names.insert_nameless(request);
                self.names.answer(nameless, Some(place), (answer.executed, answer.remaining));
            }
            return None;
        };
        let entry = self.names.get(name);
        let is_other = entry.id != request.id && self.is_of_another_shard(name, request);
        let is_waited_for = entry.kind.is_order() || asker.is_some() && entry.kind != Kind::FanOut;
        if is_other && is_waited_for && !self.is_lost(name) {
            let (shard, id) = (self.shard_asked(entry), entry.id);
            let aside = self.names.set_aside(name);
            self.nameless.extend(shard.map(|shard| ((shard, id), aside)));
            return Some((name, None));
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
            let nameless = self.names.insert_nameless(request);
            let shard = self.shard_index(request.shard);
            self.nameless.extend(shard.map(|shard| ((shard, request.id), nameless)));
        }
    }

    /// A record tells that requests of its gateway before it are lost. Those without a name cannot be asked for again: a repeat is one of the request
    /// that has the name. So their sessions are refused: nothing of theirs is done.
    pub(crate) fn refuse_lost(&mut self, request: &Request, sink: &mut impl GatewaySink) {
        let Some(shard) = self.shard_index(request.shard) else { return };
        let lost = (shard, RequestId::new(request.id.gateway(), 1))..(shard, request.id);
        while let Some((&key, &name)) = self.nameless.range(lost.clone()).next() {
            self.nameless.remove(&key);
            let entry = *self.names.get(name);
            self.names.drop_nameless(name);
            if let State::Pending(Some(asker)) = entry.state() {
                self.refuse_asker(asker, entry.client_order_id, sink);
            }
        }
    }

    pub(crate) fn is_of_another_shard(&self, name: NameIndex, request: &Request) -> bool {
        self.shard_of(self.names.get(name).instrument) != self.shard_index(request.shard)
    }
}
