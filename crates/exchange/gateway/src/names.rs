//! The names of requests lately taken in, and what became of each.
//!
//! Every name ever used would be the obvious thing to keep, and ends in a gateway that is full for life. A name is needed while its request
//! is in flight and while its order lives, since amends and cancels name it. After that it only serves to answer a repeat, and
//! makes room for newer ones, the longest finished first. What was forgotten, or lies before all that was read, is below the *floor* of its series
//! (decision 15): a repeat of it is looked for on disk. A shard never executes a name twice, whatever is known here.
//!
//! Names come by the million, so each costs 56 bytes in one vector plus an 8-byte slot or two in open-addressing indexes over it.
//!
//! ```text
//!  (member, client order id) --by_name--+
//!                                       v
//!                              entries: Name, Name, free, Name, ...
//!                                       ^
//!  OrderId of an entered order --by_order+
//!
//!  in flight --answered--> lives (an order on the book) --nothing remains--> finished --room is needed--> forgotten
//!                    \--(all others)-------------------------------------------^
//! ```

mod amends;
mod asked;
mod at_work;
mod floors;
mod kind;
mod name;
mod scan;

use std::collections::VecDeque;

use pares_types::{
    ClientOrderId, InstrumentId, MemberId, OpenOrder, OrderId, Quantity, Request, RequestId, Side,
};

use crate::Place;
use crate::index::Index;

use amends::Amends;
pub(crate) use asked::Asked;
use at_work::AtWork;
use floors::Floors;
pub(crate) use kind::Kind;
pub use name::NAME_BYTES;
pub(crate) use name::{Name, State};

/// A name's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameIndex(u32);

/// The table.
pub(crate) struct Names {
    entries: Vec<Name>,
    /// Entries that hold no name.
    free: Vec<u32>,
    /// Those that hold a finished one, the longest finished first.
    finished: VecDeque<u32>,
    by_name: Index,
    by_order: Index,
    floors: Floors,
    names_max: usize,
    seed: u64,
    at_work: AtWork,
    amends: Amends,
}

impl Names {
    /// A table of `names_max` names; it has more only while more are in flight or live. `seed` keeps a member from choosing names
    /// that all fall on one slot; nothing observable depends on it.
    pub(crate) fn new(names_max: usize, seed: u64) -> Self {
        Self {
            entries: Vec::with_capacity(names_max),
            free: Vec::new(),
            finished: VecDeque::new(),
            by_name: Index::new(names_max),
            by_order: Index::new(names_max),
            floors: Floors::default(),
            names_max,
            seed,
            at_work: AtWork::default(),
            amends: Amends::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// Names that cannot make room: in flight, or of orders that live.
    pub(crate) fn needed(&self) -> usize {
        self.len() - self.finished.len()
    }

    pub(crate) fn find(&self, member: MemberId, name: ClientOrderId) -> Option<NameIndex> {
        let hash = hash_name(self.seed, member, name);
        let found = self.by_name.find(hash, |index| {
            let entry = &self.entries[index as usize];
            entry.client_order_id == name && entry.member == member
        });
        found.map(NameIndex)
    }

    /// Orders of the member that are in flight or live.
    pub(crate) fn orders_of(&self, member: MemberId) -> u32 {
        self.at_work.orders(member)
    }

    /// Orders of the member for that instrument that are in flight or live.
    pub(crate) fn orders_for(&self, member: MemberId, instrument: InstrumentId) -> u32 {
        self.at_work.orders_for(member, instrument)
    }

    /// Shares that orders of the member may buy or sell yet, and those that its amends in flight would add.
    pub(crate) fn open(&self, member: MemberId, instrument: InstrumentId, side: Side) -> u128 {
        self.at_work.open(member, instrument, side)
    }

    /// Whether the name, which is not in the table, may have been used.
    pub(crate) fn is_below_floor(&self, member: MemberId, name: ClientOrderId) -> bool {
        self.floors.is_below((member, name.series()), name.number())
    }

    /// The name of an order, by the id of the request that entered it.
    pub(crate) fn find_order(&self, order: OrderId) -> Option<NameIndex> {
        let hash = hash_id(self.seed, order.0);
        self.by_order.find(hash, |index| self.entries[index as usize].id == order.0).map(NameIndex)
    }

    pub(crate) fn get(&self, index: NameIndex) -> &Name {
        &self.entries[index.0 as usize]
    }

    /// The session that waits under the name was refused, since that was asked first.
    pub(crate) fn refuse(&mut self, index: NameIndex, asked: Asked) {
        self.change(index, |entry| entry.refuse(asked.digest));
    }

    /// So many orders were cancelled by the fan-out.
    pub(crate) fn set_cancelled(&mut self, index: NameIndex, cancelled: Quantity) {
        self.entries[index.0 as usize].executed = cancelled;
    }

    /// The request is lost, and asked again: what it would have done does not count any more.
    pub(crate) fn set_lost(&mut self, index: NameIndex) {
        self.change(index, |entry| {
            entry.remaining = Quantity::ZERO;
            if let Kind::Amend(_) = entry.kind {
                entry.kind = Kind::Other;
            }
        });
        self.forget_amends(OrderId(self.get(index).id));
    }

    pub(crate) fn set_state(&mut self, index: NameIndex, state: State) {
        self.change(index, |entry| entry.set_state(state));
    }

    /// The name's request is committed; so many shares of the order that it entered have traded, and so many are there.
    pub(crate) fn answer(
        &mut self,
        index: NameIndex,
        place: Option<Place>,
        (executed, remaining): (Quantity, Quantity),
    ) {
        self.change(index, |entry| {
            (entry.executed, entry.remaining) = (executed, remaining);
            entry.set_state(State::Answered(place));
        });
    }

    /// Something happened to the order. One of which nothing is known changes nothing.
    pub(crate) fn change_order(&mut self, order: OrderId, change: impl FnOnce(&mut Name)) {
        if let Some(index) = self.find_order(order) {
            self.change(index, change);
        }
    }

    /// So many shares of the order are still there.
    pub(crate) fn set_remaining(&mut self, order: OrderId, remaining: Quantity) {
        self.change_order(order, |entry| entry.remaining = remaining);
    }

    /// Changes an entry that may be finished by it. Who is finished stays so: nothing brings an order back.
    fn change(&mut self, index: NameIndex, change: impl FnOnce(&mut Name)) {
        let entry = &mut self.entries[index.0 as usize];
        let before = *entry;
        change(entry);
        if before.is_finished() {
            entry.remaining = before.remaining;
            return;
        }
        self.at_work.replace(before.work(), entry.work());
        self.amends.follow(&before, entry, &mut self.at_work);
        if entry.is_finished() {
            self.finished.push_back(index.0);
            // There are more while more are in flight or alive at once.
            self.make_room(self.names_max);
        }
    }

    /// Forgets those that have been finished for the longest time until there are `to` names, or none is finished.
    fn make_room(&mut self, to: usize) {
        while self.len() > to
            && let Some(oldest) = self.finished.pop_front()
        {
            self.forget(oldest);
        }
    }

    /// The entry of the request's name; a new one, pending, if there is none.
    pub(crate) fn find_or_insert(&mut self, request: &Request) -> NameIndex {
        match self.find(request.member, request.client_order_id) {
            Some(index) => index,
            None => self.insert(request),
        }
    }

    /// Adds a name that is not in the table; forgets those finished for the longest time, if there is no room.
    pub(crate) fn insert(&mut self, request: &Request) -> NameIndex {
        self.make_room(self.names_max.saturating_sub(1));
        let entry = self.named(request);
        self.add(entry)
    }

    /// Adds the name of an order that lives, unless it is there already.
    pub(crate) fn insert_living(&mut self, order: &OpenOrder) {
        match self.find(order.member, order.client_order_id).map(|index| self.get(index).id) {
            None => _ = self.add(Name::living(order)),
            Some(id) if id == order.order.0 => {}
            Some(_) => _ = self.add_nameless(Name::living(order)),
        }
    }

    /// A shard took in an order whose name another shard's request has: a name is unique in a shard only, and a member had two gateways
    /// take it in at once. The name stands for the first; the other counts, and is found by its id.
    pub(crate) fn insert_nameless(&mut self, request: &Request) -> NameIndex {
        self.make_room(self.names_max.saturating_sub(1));
        self.add_nameless(Name::new(request, self.asked(request)))
    }

    /// What is in flight under the name continues without it, with the session that waits: another shard's request comes first under the name,
    /// which is identified as that.
    pub(crate) fn set_aside(&mut self, index: NameIndex) -> NameIndex {
        let entry = *self.get(index);
        self.entries[index.0 as usize].leave();
        self.at_work.replace(entry.work(), None);
        let aside = self.add_nameless(entry);
        if !entry.kind.is_order() {
            self.by_order.insert(aside.0, hash_id(self.seed, entry.id));
        }
        aside
    }

    /// A request without its name is lost: nobody can ask for it again.
    pub(crate) fn drop_nameless(&mut self, index: NameIndex) {
        self.set_lost(index);
        self.by_order.remove(index.0, hash_id(self.seed, self.get(index).id));
        self.free.push(index.0);
    }

    fn add(&mut self, entry: Name) -> NameIndex {
        let hash = hash_name(self.seed, entry.member, entry.client_order_id);
        let index = self.add_nameless(entry);
        self.by_name.insert(index.0, hash);
        index
    }

    fn add_nameless(&mut self, entry: Name) -> NameIndex {
        let index = match self.free.pop() {
            Some(index) => {
                self.entries[index as usize] = entry;
                index
            }
            None => {
                self.entries.push(entry);
                u32::try_from(self.entries.len() - 1).expect("names_max is far below 2^32")
            }
        };
        self.at_work.replace(None, entry.work());
        self.index_order(index);
        NameIndex(index)
    }

    fn forget(&mut self, index: u32) {
        let Name { id, member, client_order_id: name, .. } = self.entries[index as usize];
        self.by_name.remove(index, hash_name(self.seed, member, name));
        self.by_order.remove(index, hash_id(self.seed, id));
        self.free.push(index);
        self.raise_floor((member, name.series()), name.number() + 1);
    }

    /// Names of the series with a number below that one may have been used.
    pub(crate) fn raise_floor(&mut self, series: (MemberId, u16), to: u64) {
        self.floors.raise(series, to);
    }

    /// The name's request turned out to be `request`: another gateway's came first.
    pub(crate) fn identify(&mut self, index: NameIndex, request: &Request) {
        if self.get(index).id == request.id {
            return;
        }
        self.by_order.remove(index.0, hash_id(self.seed, self.get(index).id));
        let new = self.named(request);
        let entry = &mut self.entries[index.0 as usize];
        let before = std::mem::replace(entry, new);
        match before.is_refused() {
            true => entry.refuse(before.asked()),
            false => entry.set_state(before.state()),
        }
        self.at_work.replace(before.work(), entry.work());
        self.amends.replace(&before, &mut self.at_work);
        self.index_order(index.0);
    }

    fn index_order(&mut self, index: u32) {
        let entry = &self.entries[index as usize];
        if entry.kind.is_order() {
            self.by_order.insert(index, hash_id(self.seed, entry.id));
        }
    }
}

fn hash_name(seed: u64, member: MemberId, name: ClientOrderId) -> u64 {
    side_by_side(name.0, |eight| mix(eight ^ seed, u64::from(member.0) ^ seed.rotate_left(32)))
}

fn hash_id(seed: u64, id: RequestId) -> u64 {
    side_by_side(id.to_bits(), |eight| mix(eight ^ seed, seed.rotate_left(32)))
}

/// Numbers are given upwards, so eight of them in a row have places in a row, which are one line of the processor's cache: of eight names
/// taken in one after the other seven are looked up where the one before was. Where the eight lie nobody can guess.
fn side_by_side(number: u64, hash: impl FnOnce(u64) -> u64) -> u64 {
    hash(number >> 3) & !7 | number & 7
}

/// Multiplies to 128 bits and folds the halves: each bit of the result depends on every bit given.
fn mix(a: u64, b: u64) -> u64 {
    const ODD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];
    let fold = |a: u64, b: u64| {
        let wide = u128::from(a) * u128::from(b);
        (wide >> 64) as u64 ^ wide as u64
    };
    fold(fold(a ^ ODD[0], b ^ ODD[1]) ^ b, ODD[0])
}

#[cfg(test)]
mod tests;
