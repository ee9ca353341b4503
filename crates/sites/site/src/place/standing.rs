//! What sites say of their places, and how copies travel.
//!
//! | between sites | | |
//! |---|---|---|
//! | STANDING | to all | whether an answer is wanted, incarnation, which sites there are, what it is: new, empty, filling (from a place of the log), member; from version 5 on, under another kind, also which version its sender speaks |
//! | FORM | to the cluster | the log begins now, among these members; after the loss of all its disks, and promising nothing before an era |
//! | JOIN | to the cluster | let this incarnation in |
//! | LACK | to who gives | a copy of this is lacking: the next piece, the key before it, and how many may come |
//! | HEAD | to who lacks | what the copy is |
//! | PIECE | to who lacks | items in the order of their keys; the last one says so |
//! | DIGEST | to all | the version of the store, the digest of all that it has applied up to there, the sites it agrees with |

use pares_cluster::{Beginning, Incarnation, Members};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Base, Configuration, Era, Key, SiteId, Stored, Value};

use super::Behind;
use crate::comparison::Said;
use crate::config::number_of;
use crate::protocol::WantedPieces;

/// What a site is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its directory was made for a database that is to begin.
    New,
    /// It has no past.
    Empty,
    /// It gets a copy, and will need its cluster's log from behind this place on.
    Filling(u64),
    /// It participates.
    Member(Member),
}

/// What a site that participates says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The last configuration it knows.
    pub(crate) configuration: Configuration,
    /// Whether it has never shown a version: its database is founded, and no client counts on it yet.
    pub(crate) is_fresh: bool,
    /// Its log's term, and whether it leads.
    pub(crate) term: u64,
    pub(crate) leads: bool,
    /// Whether it can give a copy.
    pub(crate) gives: bool,
    /// Whether its log knows the receiver. Only in an answer.
    pub(crate) knows: bool,
    /// Whose votes count in its cluster, as far as it has read its log.
    pub(crate) voters: Numbers,
}

/// Numbers of a cluster's sites: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers(pub(crate) u16);

impl Numbers {
    pub(crate) fn contains(self, number: u8) -> bool {
        self.0 >> number & 1 == 1
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u8> {
        (0..9).filter(move |number| self.contains(*number))
    }
}

impl FromIterator<u8> for Numbers {
    fn from_iter<I: IntoIterator<Item = u8>>(numbers: I) -> Self {
        Self(numbers.into_iter().fold(0, |bits, number| bits | 1 << number))
    }
}

/// What a site says of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Whether it wants to know the same of the receiver.
    pub(crate) asks: bool,
    /// Which life of its disk.
    pub(crate) incarnation: Incarnation,
    /// Which sites its `sites.toml` names, as [`list_of`] says.
    pub(crate) list: u32,
    /// The version that it speaks.
    pub(crate) speaks: u16,
    pub(crate) role: Role,
}

/// Tells lists of sites apart. All must have the same when a database is founded; afterwards members are what the logs say, and lists differ while
/// `sites.toml` is changed at one site after the other.
pub(crate) fn list_of(sites: &[SiteId]) -> u32 {
    let mut numbers: Vec<u16> = sites.iter().map(|site| number_of(*site)).collect();
    numbers.sort_unstable();
    crc32c::crc32c(&numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>())
}

/// How a cluster's log begins: among which members, and what its cluster returns to, if it has lost everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) members: Members,
    pub(crate) returns_to: Option<Era>,
}

/// What a site lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Everything up to this place of its cluster's log, or a later one.
    Log(u64),
    /// The items of this version, or a later one; its store is to say that it was written there.
    Items(Stored),
}

/// A request for pieces of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) lack: Lack,
    pub(crate) pieces: WantedPieces,
}

/// What a copy is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) copy: u64,
    /// Where the log continues, and what it had come to there. Only of the own cluster's, where that is lacking.
    pub(crate) log: Option<(Behind, Base)>,
    /// What the store is to say of itself.
    pub(crate) stored: Stored,
}

/// A piece of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) copy: u64,
    pub(crate) number: u32,
    pub(crate) items: Vec<(Key, Value)>,
    pub(crate) is_last: bool,
}

/// A frame between sites about their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Standing(Standing),
    Form(Form),
    Join(u64),
    Lack(Request),
    Head(Head),
    Piece(Piece),
    Digest(Said),
}

/// Ticks between two words to all sites.
pub(crate) const WORD_TICKS: u64 = 20;

/// The version from which on a site says which it speaks.
const SAYS_VERSION: u16 = 5;
const _: () = assert!(SAYS_VERSION <= pares_link::SPEAKS, "this build says which version it speaks");

/// The first byte of such a frame; those of [`Between`](crate::protocol::Between) are lower.
const FIRST_KIND: u8 = 16;
/// That of a standing which says which version its sender speaks.
const SAYING: u8 = 23;

impl Word {
    /// Its bytes, for a connection of that version.
    pub(crate) fn to_bytes(&self, version: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Standing(standing) if version >= SAYS_VERSION => {
                ((SAYING, *standing), u32::from(standing.speaks)).encode(&mut bytes);
            }
            word => word.encode(&mut bytes),
        }
        assert!(bytes.first().is_some_and(|kind| *kind >= FIRST_KIND), "other frames have the kinds below");
        bytes
    }

    /// From its bytes.
    ///
    /// # Errors
    /// If they are none.
    pub(crate) fn from_bytes(mut from: &[u8]) -> Result<Self, DecodeError> {
        let from = &mut from;
        let word = if from.first() == Some(&SAYING) {
            let ((_, standing), speaks) = <((u8, Standing), u32)>::decode(from)?;
            let speaks = u16::try_from(speaks).map_err(|_| DecodeError::Length)?;
            Self::Standing(Standing { speaks, ..standing })
        } else {
            Self::decode(from)?
        };
        if from.is_empty() { Ok(word) } else { Err(DecodeError::Length) }
    }
}

pares_wice::fields! {
    Piece { copy, number, is_last, items }
    Request { lack, pieces }
    Head { copy, log, stored }
    Member { configuration, is_fresh, term, leads, gives, knows, voters }
}
pares_wice::kinds! {
    Lack, "lack" { 0 => Log(at_least), 1 => Items(stored) }
    Role, "standing" { 0 => New, 1 => Empty, 2 => Filling(from), 3 => Member(member) }
    Word, "word" {
        16 => Standing(standing),
        17 => Form(form),
        18 => Join(incarnation),
        19 => Lack(request),
        20 => Head(head),
        21 => Piece(piece),
        22 => Digest(said),
    }
}

impl Coded for Standing {
    fn encode(&self, to: &mut Vec<u8>) {
        ((self.asks, self.incarnation.0), (self.list, self.role)).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let ((asks, incarnation), (list, role)) = Coded::decode(from)?;
        let incarnation = Incarnation::drawn(incarnation);
        Ok(Self { asks, incarnation, list, role, speaks: SAYS_VERSION - 1 })
    }
}

impl Coded for Numbers {
    fn encode(&self, to: &mut Vec<u8>) {
        u32::from(self.0).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        u32::decode(from).map(|bits| Self(bits as u16))
    }
}

impl Coded for Form {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.members.to_bytes(), self.returns_to).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (members, returns_to) = <(Vec<u8>, Option<Era>)>::decode(from)?;
        let members = Members::from_bytes(&members).ok_or(DecodeError::Length)?;
        Ok(Self { members, returns_to })
    }
}

impl Coded for Behind {
    fn encode(&self, to: &mut Vec<u8>) {
        let Beginning { index, term, members } = &self.0;
        ((*index, *term), members.to_bytes()).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let ((index, term), members) = <((u64, u64), Vec<u8>)>::decode(from)?;
        let members = Members::from_bytes(&members).ok_or(DecodeError::Length)?;
        Ok(Self(Beginning { index, term, members }))
    }
}

#[cfg(test)]
mod tests {
    use pares_wice::{ClusterId, ClusterSet, Version};

    use super::*;

    #[test]
    fn words_are_read_as_they_were_written_and_no_part_of_them_is() {
        let first = Configuration::first(ClusterSet(3), ClusterId(1));
        let voters = [0, 2].into_iter().collect();
        let (is_fresh, term, leads, gives, knows) = (true, 3, true, false, true);
        let member = Member { configuration: first, is_fresh, term, leads, gives, knows, voters };
        let standing = |role| {
            Word::Standing(Standing { asks: true, incarnation: Incarnation(9), list: 7, speaks: 6, role })
        };
        let form = Form { members: Members::first(3), returns_to: Some(Era::default()) };
        let stored = Stored { version: Version(4), position: 5, era: Era::default(), digest: 6 };
        let beginning = Beginning { index: 4, term: 2, members: Members::first(2) };
        let after = Key::from("a");
        let pieces = WantedPieces { copy: 8, next: 2, after: after.clone(), until: 4 };
        let request = |lack| Word::Lack(Request { lack, pieces: pieces.clone() });
        let items = vec![(after.clone(), Value::from("x"))];
        let words = [
            standing(Role::New),
            standing(Role::Empty),
            standing(Role::Filling(8)),
            standing(Role::Member(member)),
            Word::Form(form),
            Word::Join(6),
            request(Lack::Log(4)),
            request(Lack::Items(stored)),
            Word::Head(Head { copy: 8, log: Some((Behind(beginning), Base::first(first))), stored }),
            Word::Piece(Piece { copy: 8, number: 2, items, is_last: true }),
            Word::Digest(Said { version: Version(3), digest: 1 << 60, agrees: vec![SiteId::new(1, 2)] }),
        ];
        for word in words {
            let bytes = word.to_bytes(SAYS_VERSION);
            assert_eq!(Word::from_bytes(&bytes).as_ref(), Ok(&word));
            (0..bytes.len())
                .for_each(|len| assert!(Word::from_bytes(&bytes[..len]).is_err(), "{len} of {word:?}"));
        }
    }

    #[test]
    fn who_speaks_an_older_version_gets_the_frames_that_it_has() {
        let standing =
            Standing { asks: false, incarnation: Incarnation(9), list: 7, speaks: 5, role: Role::Empty };
        let bytes = Word::Standing(standing).to_bytes(4);
        assert_eq!(bytes, [16, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1]);
        assert_eq!(Word::from_bytes(&bytes), Ok(Word::Standing(Standing { speaks: 4, ..standing })));
    }
}
