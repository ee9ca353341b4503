//! The bytes of the journal's records.
//!
//! A Raft log is rewritten at its end (a new delegate replaces what was never committed) and cut at its beginning. The
//! journal can do neither in place, it only appends: so a record *means* a change, and reading all of them gives the state.
//!
//! ```text
//!   0      1        2          3        4       8        16        24       32
//!   +------+--------+----------+--------+-------+--------+---------+--------+------------
//!   | kind | number | 0        | format | owner | term   | index   | extra  | body ...
//!   +------+--------+----------+--------+-------+--------+---------+--------+------------
//!   1 entry     the entry at index; what was at index or above is replaced          extra 0         body: payload
//!   2 hard      Raft's hard state; index is its commit index, a hint                extra: vote     no body
//!   3 base      everything up to index, which was of term, is compacted             extra 0         body: members at index
//!   4 change    as entry: the members change                                        extra 0         body: the change
//!   5 begin     the log begins behind index, which was of term; nothing before counts  extra 0      body: members at index
//! ```
//! `owner` is a digest of whose log it is: of which database, which member, in which life of its disk.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::members::MemberId;

const FORMAT: u8 = 2;

/// Bytes before a record's body.
pub(crate) const HEAD_BYTES: usize = 32;

/// What a record means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Entry = 1,
    Hard = 2,
    Base = 3,
    Change = 4,
    Begin = 5,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        let all = [Kind::Entry, Kind::Hard, Kind::Base, Kind::Change, Kind::Begin];
        all.into_iter().find(|&kind| kind as u8 == byte)
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
    pub(crate) number: u8,
    digest: u32,
}

impl Owner {
    /// The log of `id` in the database that `database` names.
    pub(crate) fn of(database: &str, id: MemberId) -> Owner {
        let digest = crc32c::crc32c_append(crc32c::crc32c(database.as_bytes()), &id.raft_id().to_le_bytes());
        Owner { number: id.number, digest }
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Layout {
    kind: u8,
    number: u8,
    reserved: u8,
    format: u8,
    owner: U32,
    term: U64,
    index: U64,
    extra: U64,
}

const _: () = assert!(size_of::<Layout>() == HEAD_BYTES);

/// The bytes of `head`.
pub(crate) fn encode(owner: Owner, head: Head) -> [u8; HEAD_BYTES] {
    let layout = Layout {
        kind: head.kind as u8,
        number: owner.number,
        reserved: 0,
        format: FORMAT,
        owner: owner.digest.into(),
        term: head.term.into(),
        index: head.index.into(),
        extra: head.extra.into(),
    };
    zerocopy::transmute!(layout)
}

/// Owner, head and body of a record; or what is wrong with it.
pub(crate) fn decode(record: &[u8]) -> Result<(Owner, Head, &[u8]), &'static str> {
    let (layout, body) = Layout::ref_from_prefix(record).map_err(|_| "it is shorter than a header")?;
    if layout.format != FORMAT {
        return Err("its format version differs");
    }
    let kind = Kind::of(layout.kind).ok_or("its kind is unknown")?;
    let owner = Owner { number: layout.number, digest: layout.owner.get() };
    let head = Head { kind, term: layout.term.get(), index: layout.index.get(), extra: layout.extra.get() };
    Ok((owner, head, body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::Incarnation;

    fn owner() -> Owner {
        Owner::of("bank", MemberId { number: 2, incarnation: Incarnation(0) })
    }

    #[test]
    fn the_bytes_of_a_record_are_frozen() {
        let head = Head { kind: Kind::Hard, term: 0x0102, index: 3, extra: 4 };
        let bytes = encode(owner(), head);
        let mut expected = [0; 32];
        expected[..4].copy_from_slice(&[2, 2, 0, 2]);
        expected[4..8].copy_from_slice(&owner().digest.to_le_bytes());
        expected[8..10].copy_from_slice(&[2, 1]);
        expected[16] = 3;
        expected[24] = 4;
        assert_eq!(bytes, expected);
        assert_eq!(decode(&bytes).unwrap(), (owner(), head, &[][..]));
    }

    #[test]
    fn a_log_is_of_one_database_one_member_and_one_life_of_its_disk() {
        let other =
            |database, number, life| Owner::of(database, MemberId { number, incarnation: Incarnation(life) });
        for stranger in [other("bank", 2, 1), other("bank", 1, 0), other("other", 2, 0)] {
            assert_ne!(stranger, owner());
        }
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let good = encode(owner(), Head { kind: Kind::Entry, term: 1, index: 1, extra: 0 });
        assert!(decode(&good[..31]).is_err());
        for (at, value) in [(0, 0), (0, 6), (3, 1)] {
            let mut bad = good;
            bad[at] = value;
            assert!(decode(&bad).is_err(), "byte {at} = {value}");
        }
    }
}
