//! Every name ever used, and what became of its request.
//!
//! Names live for ever and come by the million, so each costs 40 bytes in one vector plus a 4-byte slot
//! or two in open-addressing indexes over it. The usual map of maps would cost three times that and stall
//! on growth; these are sized for `names_max` at the start and only grow if other gateways overshoot it.
//!
//! ```text
//!  (member, client order id) --by_name--+
//!                                       v
//!                              entries: Entry, Entry, Entry, ...   (in order of arrival)
//!                                       ^
//!  OrderId of an entered order --by_order+
//! ```

use pares_types::{ClientOrderId, Command, InstrumentId, MemberId, OrderId, RecorderId, Request, RequestId};

use crate::{Place, SessionId};

/// A name's place in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NameIndex(u32);

/// What kind of request a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An order, which amends and cancels may name.
    Enter,
    /// Any other request to one shard.
    Other,
    /// A request to all shards, with a part for each.
    FanOut,
}

impl Kind {
    fn of(request: &Request) -> Self {
        match request.command {
            Command::Enter(_) => Self::Enter,
            // No instrument has the id 0.
            _ if request.instrument == InstrumentId(0) => Self::FanOut,
            _ => Self::Other,
        }
    }
}

/// What became of a name's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Journalled by some gateway, not committed yet; the session that asked here last waits for it.
    Pending(Option<SessionId>),
    /// Committed: the first answer lies there.
    Answered(Place),
}

/// [`State`] without its payload, which shares a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Pending,
    Asked,
    Answered,
}

/// One name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The request that was committed under it, or until then the first one seen.
    pub(crate) id: RequestId,
    pub(crate) client_order_id: ClientOrderId,
    /// The asking session while pending, the record's offset once answered.
    word: u64,
    pub(crate) member: MemberId,
    pub(crate) instrument: InstrumentId,
    /// Orders cancelled by an answered fan-out.
    pub(crate) cancelled: u32,
    recorder: RecorderId,
    tag: Tag,
    pub(crate) kind: Kind,
}
/// What a name takes, its places in two indexes aside, bytes.
pub const NAME_BYTES: usize = size_of::<Entry>();
const _: () = assert!(NAME_BYTES == 40);

impl Entry {
    fn new(request: &Request) -> Self {
        Self {
            id: request.id,
            client_order_id: request.client_order_id,
            word: 0,
            member: request.member,
            instrument: request.instrument,
            cancelled: 0,
            recorder: RecorderId(0),
            tag: Tag::Pending,
            kind: Kind::of(request),
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.tag {
            Tag::Pending => State::Pending(None),
            Tag::Asked => State::Pending(Some(SessionId(self.word))),
            Tag::Answered => State::Answered(Place { recorder: self.recorder, offset: self.word }),
        }
    }

    pub(crate) fn is_answered(&self) -> bool {
        self.tag == Tag::Answered
    }

    pub(crate) fn set_state(&mut self, state: State) {
        match state {
            State::Pending(None) => self.tag = Tag::Pending,
            State::Pending(Some(session)) => (self.tag, self.word) = (Tag::Asked, session.0),
            State::Answered(place) => {
                (self.tag, self.word, self.recorder) = (Tag::Answered, place.offset, place.recorder);
            }
        }
    }
}

/// The table.
pub(crate) struct Names {
    entries: Vec<Entry>,
    by_name: Index,
    by_order: Index,
    seed: u64,
}

impl Names {
    /// A table that takes `names_max` names without growing. `seed` keeps a member from choosing names
    /// that all fall on one slot; nothing observable depends on it.
    pub(crate) fn new(names_max: usize, seed: u64) -> Self {
        Self {
            entries: Vec::with_capacity(names_max),
            by_name: Index::new(names_max),
            by_order: Index::new(names_max),
            seed,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn find(&self, member: MemberId, name: ClientOrderId) -> Option<NameIndex> {
        let hash = hash_name(self.seed, member, name);
        self.by_name.find(hash, |index| {
            let entry = &self.entries[index as usize];
            entry.client_order_id == name && entry.member == member
        })
    }

    /// The entry of an order, by the id of the request that entered it.
    pub(crate) fn find_order(&self, order: OrderId) -> Option<&Entry> {
        let hash = hash_id(self.seed, order.0);
        let found = self.by_order.find(hash, |index| self.entries[index as usize].id == order.0);
        found.map(|index| self.get(index))
    }

    pub(crate) fn get(&self, index: NameIndex) -> &Entry {
        &self.entries[index.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, index: NameIndex) -> &mut Entry {
        &mut self.entries[index.0 as usize]
    }

    /// The entry of the request's name; a new one, pending, if there is none.
    pub(crate) fn find_or_insert(&mut self, request: &Request) -> NameIndex {
        match self.find(request.member, request.client_order_id) {
            Some(index) => index,
            None => self.insert(request),
        }
    }

    /// Adds a name that is not in the table.
    pub(crate) fn insert(&mut self, request: &Request) -> NameIndex {
        let index = u32::try_from(self.entries.len()).expect("names_max is far below 2^32");
        self.entries.push(Entry::new(request));
        let (entries, seed) = (&self.entries, self.seed);
        self.by_name.insert(index, |index| {
            let entry = &entries[index as usize];
            hash_name(seed, entry.member, entry.client_order_id)
        });
        self.index_order(index);
        NameIndex(index)
    }

    /// The name's request turned out to be `request`: another gateway's came first.
    pub(crate) fn identify(&mut self, index: NameIndex, request: &Request) {
        let entry = self.get_mut(index);
        if entry.id != request.id {
            entry.id = request.id;
            entry.instrument = request.instrument;
            entry.kind = Kind::of(request);
            self.index_order(index.0);
        }
    }

    fn index_order(&mut self, index: u32) {
        if self.entries[index as usize].kind == Kind::Enter {
            let (entries, seed) = (&self.entries, self.seed);
            self.by_order.insert(index, |index| hash_id(seed, entries[index as usize].id));
        }
    }
}

/// An open-addressing index of entries, linear probing, at most three quarters full. Nothing is removed.
struct Index {
    /// Entry number plus one; 0 is empty.
    slots: Vec<u32>,
    used: usize,
}

impl Index {
    fn new(entries_max: usize) -> Self {
        Self { slots: vec![0; (entries_max / 3 * 4 + 8).next_power_of_two()], used: 0 }
    }

    fn find(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<NameIndex> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let index = self.slots[at].checked_sub(1)?;
            if is_it(index) {
                return Some(NameIndex(index));
            }
            at = (at + 1) & mask;
        }
    }

    fn insert(&mut self, index: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            self.grow(&hash_of);
        }
        self.put(index, hash_of(index));
    }

    fn put(&mut self, index: u32, hash: u64) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = index + 1;
        self.used += 1;
    }

    fn grow(&mut self, hash_of: &impl Fn(u32) -> u64) {
        let doubled = vec![0; self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        self.used = 0;
        for index in old.into_iter().filter_map(|slot| slot.checked_sub(1)) {
            self.put(index, hash_of(index));
        }
    }
}

fn hash_name(seed: u64, member: MemberId, name: ClientOrderId) -> u64 {
    mix(name.0 ^ seed, u64::from(member.0) ^ seed.rotate_left(32))
}

fn hash_id(seed: u64, id: RequestId) -> u64 {
    mix(id.to_bits() ^ seed, seed.rotate_left(32))
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
mod tests {
    use super::*;
    use pares_types::{GatewayId, NewOrder, Quantity, ShardId, Side, Timestamp};

    fn enter(sequence: u64, member: u32, name: u64) -> Request {
        let order = NewOrder::market(Side::Buy, Quantity(1));
        Request {
            id: RequestId::new(GatewayId(1), sequence),
            stamp: Timestamp(0),
            member: MemberId(member),
            client_order_id: ClientOrderId(name),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: Command::Enter(order),
        }
    }

    #[test]
    fn every_name_and_order_is_found_after_growth() {
        let mut names = Names::new(4, 7);
        for sequence in 1..=1_000 {
            names.insert(&enter(sequence, sequence as u32 % 3, sequence));
        }
        for sequence in 1..=1_000 {
            let request = enter(sequence, sequence as u32 % 3, sequence);
            let index = names.find(request.member, request.client_order_id).unwrap();
            assert_eq!(names.get(index).id, request.id);
            assert_eq!(names.find_order(OrderId(request.id)).unwrap().client_order_id.0, sequence);
        }
    }

    #[test]
    fn the_same_name_of_two_members_is_two_names() {
        let mut names = Names::new(4, 0);
        names.insert(&enter(1, 1, 5));
        assert_eq!(names.find(MemberId(2), ClientOrderId(5)), None);
    }

    #[test]
    fn an_order_that_lost_the_race_for_its_name_is_no_longer_found() {
        let mut names = Names::new(4, 0);
        let index = names.insert(&enter(1, 1, 5));
        names.identify(index, &enter(2, 1, 5));
        assert!(names.find_order(OrderId(RequestId::new(GatewayId(1), 1))).is_none());
        assert!(names.find_order(OrderId(RequestId::new(GatewayId(1), 2))).is_some());
    }

    #[test]
    fn a_state_comes_back_as_it_was_set() {
        let mut entry = Entry::new(&enter(1, 1, 1));
        let answered = State::Answered(Place { recorder: RecorderId(2), offset: 99 });
        for state in [State::Pending(Some(SessionId(u64::MAX))), State::Pending(None), answered] {
            entry.set_state(state);
            assert_eq!(entry.state(), state);
        }
    }
}
