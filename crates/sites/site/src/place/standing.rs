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
    /// It takes part.
    Member(Member),
}

/// What a site that takes part says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// The last configuration it knows.
    pub(crate) configuration: Configuration,
    /// Whether it has never shown anybody a version: its database is founded, and nobody counts on it yet.
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
    /// Where the log goes on, and what it had come to there. Only of the own cluster's, where that is lacking.
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
    Join(Incarnation),
    Lack(Request),
    Head(Head),
    Piece(Piece),
    Digest(Said),
}

/// The version from which on a site says which it speaks.
const SAYS_VERSION: u16 = 5;
const _: () = assert!(SAYS_VERSION <= pares_link::SPEAKS, "this build says which version it speaks");

/// The first byte of such a frame; those of [`Between`](crate::protocol::Between) are lower.
pub(crate) const FIRST_KIND: u8 = 16;

impl Word {
    /// Its bytes, for a connection of that version.
    pub(crate) fn to_bytes(&self, version: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Self::Standing(standing) if version >= SAYS_VERSION => {
                ((FIRST_KIND + 7, *standing), u32::from(standing.speaks)).encode(&mut bytes);
            }
            Self::Standing(standing) => (FIRST_KIND, *standing).encode(&mut bytes),
            Self::Form(form) => (FIRST_KIND + 1, form.clone()).encode(&mut bytes),
            Self::Join(incarnation) => (FIRST_KIND + 2, incarnation.0).encode(&mut bytes),
            Self::Lack(request) => {
                (FIRST_KIND + 3, request.lack).encode(&mut bytes);
                request.pieces.encode(&mut bytes);
            }
            Self::Head(head) => {
                ((FIRST_KIND + 4, head.copy), (head.log.clone(), head.stored)).encode(&mut bytes);
            }
            Self::Piece(piece) => {
                bytes.push(FIRST_KIND + 5);
                piece.encode(&mut bytes);
            }
            Self::Digest(said) => {
                ((FIRST_KIND + 6, said.version), (said.digest, said.agrees.clone())).encode(&mut bytes);
            }
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
        let word = match u8::decode(from)?.wrapping_sub(FIRST_KIND) {
            0 => Self::Standing(Coded::decode(from)?),
            1 => Self::Form(Coded::decode(from)?),
            2 => Self::Join(Incarnation::drawn(Coded::decode(from)?)),
            3 => {
                let lack = Lack::decode(from)?;
                Self::Lack(Request { lack, pieces: Coded::decode(from)? })
            }
            4 => {
                let (copy, (log, stored)) = Coded::decode(from)?;
                Self::Head(Head { copy, log, stored })
            }
            5 => Self::Piece(Coded::decode(from)?),
            6 => {
                let (version, (digest, agrees)) = Coded::decode(from)?;
                Self::Digest(Said { version, digest, agrees })
            }
            7 => {
                let (standing, speaks) = <(Standing, u32)>::decode(from)?;
                let speaks = u16::try_from(speaks).map_err(|_| DecodeError::Length)?;
                Self::Standing(Standing { speaks, ..standing })
            }
            other => return Err(DecodeError::Kind(other, "word")),
        };
        if from.is_empty() { Ok(word) } else { Err(DecodeError::Length) }
    }
}

impl Coded for Piece {
    fn encode(&self, to: &mut Vec<u8>) {
        (self.copy, (self.number, self.is_last)).encode(to);
        self.items.encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let (copy, (number, is_last)) = Coded::decode(from)?;
        Ok(Self { copy, number, is_last, items: Coded::decode(from)? })
    }
}

impl Coded for Standing {
    fn encode(&self, to: &mut Vec<u8>) {
        ((self.asks, self.incarnation.0), self.list).encode(to);
        match self.role {
            Role::New => to.push(0),
            Role::Empty => to.push(1),
            Role::Filling(from) => (2u8, from).encode(to),
            Role::Member(member) => (3u8, member).encode(to),
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let ((asks, incarnation), list) = <((bool, u64), u32)>::decode(from)?;
        let role = match u8::decode(from)? {
            0 => Role::New,
            1 => Role::Empty,
            2 => Role::Filling(Coded::decode(from)?),
            3 => Role::Member(Coded::decode(from)?),
            other => return Err(DecodeError::Kind(other, "standing")),
        };
        let incarnation = Incarnation::drawn(incarnation);
        Ok(Self { asks, incarnation, list, role, speaks: SAYS_VERSION - 1 })
    }
}

impl Coded for Member {
    fn encode(&self, to: &mut Vec<u8>) {
        ((self.configuration, self.is_fresh), self.term).encode(to);
        ((self.leads, self.gives), (self.knows, u32::from(self.voters.0))).encode(to);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let ((configuration, is_fresh), term) = Coded::decode(from)?;
        let ((leads, gives), (knows, voters)) = <((bool, bool), (bool, u32))>::decode(from)?;
        Ok(Self { configuration, is_fresh, term, leads, gives, knows, voters: Numbers(voters as u16) })
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

impl Coded for Lack {
    fn encode(&self, to: &mut Vec<u8>) {
        match self {
            Self::Log(at_least) => (0u8, *at_least).encode(to),
            Self::Items(stored) => (1u8, *stored).encode(to),
        }
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        match u8::decode(from)? {
            0 => Ok(Self::Log(Coded::decode(from)?)),
            1 => Ok(Self::Items(Coded::decode(from)?)),
            other => Err(DecodeError::Kind(other, "lack")),
        }
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
            Word::Join(Incarnation(6)),
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
