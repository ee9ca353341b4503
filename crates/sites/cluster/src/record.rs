//! The bytes of the journal's records.
//!
//! A Raft log is rewritten at its end (a new delegate replaces what was never committed) and cut at its beginning. The
//! journal can do neither in place, it only appends: so a record *means* a change, and reading all of them gives the state.
//!
//! ```text
//!   0      1        2         3        4          8        16        24       32
//!   +------+--------+---------+--------+----------+--------+---------+--------+------------
//!   | kind | member | members | format | 0        | term   | index   | extra  | body ...
//!   +------+--------+---------+--------+----------+--------+---------+--------+------------
//!   1 entry     the entry at index; whatever was at index or above is replaced    extra 0          body: payload
//!   2 hard      Raft's hard state; index is its commit index, a hint              extra: vote      no body
//!   3 base      everything up to index, which was of term, is compacted           extra: bytes of the state, 0 if
//!               or replaced by the state whose parts precede                      only compacted   no body
//!   4 part      a piece of the state at index                                     extra: its place body: the piece
//! ```

use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

const FORMAT: u8 = 1;

/// Bytes before a record's body.
pub(crate) const HEAD_BYTES: usize = 32;

/// What a record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Entry = 1,
    Hard = 2,
    Base = 3,
    Part = 4,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        [Kind::Entry, Kind::Hard, Kind::Base, Kind::Part].into_iter().find(|&kind| kind as u8 == byte)
    }
}

/// A record without its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) term: u64,
    pub(crate) index: u64,
    pub(crate) extra: u64,
}

/// Whose log it is: in every record, because a vote cast from another member's log could be its second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) member: u8,
    pub(crate) members: u8,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    kind: u8,
    member: u8,
    members: u8,
    format: u8,
    reserved: [u8; 4],
    term: U64,
    index: U64,
    extra: U64,
}

const _: () = assert!(size_of::<Layout>() == HEAD_BYTES);

/// The bytes of `head`.
pub(crate) fn encode(owner: Owner, head: Head) -> [u8; HEAD_BYTES] {
    let layout = Layout {
        kind: head.kind as u8,
        member: owner.member,
        members: owner.members,
        format: FORMAT,
        reserved: [0; 4],
        term: head.term.into(),
        index: head.index.into(),
        extra: head.extra.into(),
    };
    zerocopy::transmute!(layout)
}

/// Owner, head and body of a record; or what is wrong with it.
pub(crate) fn decode(record: &[u8]) -> Result<(Owner, Head, &[u8]), &'static str> {
    let (layout, body) = Layout::ref_from_prefix(record).map_err(|_| "it is shorter than a head")?;
    if layout.format != FORMAT {
        return Err("its format is another version's");
    }
    let kind = Kind::of(layout.kind).ok_or("its kind is unknown")?;
    let owner = Owner { member: layout.member, members: layout.members };
    let head = Head { kind, term: layout.term.get(), index: layout.index.get(), extra: layout.extra.get() };
    Ok((owner, head, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_record_are_frozen() {
        let head = Head { kind: Kind::Hard, term: 0x0102, index: 3, extra: 4 };
        let bytes = encode(Owner { member: 2, members: 3 }, head);
        let mut expected = [0; 32];
        expected[..4].copy_from_slice(&[2, 2, 3, 1]);
        expected[8..10].copy_from_slice(&[2, 1]);
        expected[16] = 3;
        expected[24] = 4;
        assert_eq!(bytes, expected);
        assert_eq!(decode(&bytes).unwrap(), (Owner { member: 2, members: 3 }, head, &[][..]));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let good =
            encode(Owner { member: 0, members: 1 }, Head { kind: Kind::Entry, term: 1, index: 1, extra: 0 });
        assert!(decode(&good[..31]).is_err());
        for (at, value) in [(0, 0), (0, 5), (3, 2)] {
            let mut bad = good;
            bad[at] = value;
            assert!(decode(&bad).is_err(), "byte {at} = {value}");
        }
    }
}
