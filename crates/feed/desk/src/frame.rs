//! What servers, traders and peers say to each other over TCP (docs/protocols/member.md, *Frames*).
//!
//! ```text
//!  0        4      5         6        8
//!  | length | kind | version | zero   | payload ...          length: of the payload, little-endian
//! ```
//! A [`StreamBatch`](crate::blocks::StreamBatch) is frames of kind *block* one after the other; each holds a MoldUDP64 packet as it goes out by
//! multicast too.

mod layouts;
mod reasons;

use pares_types::Position;
use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::item::BODY_BYTES_MAX;

pub use layouts::{
    DeskSignOn, DeskSignedOn, EndedBytes, PeerHello, PlacedBytes, RefusedBytes, SubmitHead, Through,
};
pub use reasons::{CutOff, Refusal};

/// Bytes of a frame's head.
pub const HEAD_BYTES: usize = 8;
/// The version of all frames here.
pub const VERSION: u8 = 1;
/// The longest payload a server takes from a trader.
pub const REQUEST_BYTES_MAX: usize = BODY_BYTES_MAX + 64;
/// The longest payload a server sends.
pub const NEWS_BYTES_MAX: usize = 512 << 10;

/// Kinds of frames.
pub mod kind {
    /// [`super::DeskSignOn`].
    pub const SIGN_ON: u8 = 1;
    /// [`super::SubmitHead`], body.
    pub const SUBMIT: u8 = 2;
    /// [`super::PeerHello`].
    pub const PEER_HELLO: u8 = 8;
    /// [`super::Through`]: the peer wants the stream from there on.
    pub const ASK: u8 = 9;
    /// [`super::Through`]: the peer has all below in its log.
    pub const TOOK: u8 = 10;
    /// [`super::DeskSignedOn`].
    pub const SIGNED_ON: u8 = 17;
    /// A packet of the local stream.
    pub const BLOCK: u8 = 18;
    /// [`super::PlacedBytes`].
    pub const PLACED: u8 = 19;
    /// [`super::RefusedBytes`].
    pub const REFUSED: u8 = 20;
    /// [`super::EndedBytes`].
    pub const ENDED: u8 = 21;
    /// [`super::Through`]: the server is there, and all below was sent or is on its way.
    pub const ALIVE: u8 = 22;
    /// The latest state of a book.
    pub const BOOK: u8 = 23;
    /// How a shard's market data are.
    pub const FEED_STATE: u8 = 24;
    /// [`super::Through`]: the server has all below in its log.
    pub const HAVE: u8 = 25;
    /// A packet of the local stream for a peer.
    pub const CHUNK: u8 = 26;
}

/// [`DeskSignOn::wants`]: the local stream.
pub const WANTS_LOCAL: u16 = 1;
/// [`DeskSignOn::wants`]: the latest state of each book.
pub const WANTS_BOOKS: u16 = 2;
/// [`DeskSignOn::next`]: from now on.
pub const FROM_NOW: u64 = u64::MAX;

/// A frame's head.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    length: U32,
    kind: u8,
    version: u8,
    reserved: U16,
}

const _: () = assert!(size_of::<Head>() == HEAD_BYTES);

/// What came is no frame that this build understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown frame of kind {kind} with {length} bytes")]
pub struct FrameError {
    /// What it says it is.
    pub kind: u8,
    /// How long it says it is.
    pub length: u32,
}

/// What a server receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeskRequest<'a> {
    /// A trader is there.
    SignOn(DeskSignOn),
    /// A trader submits something.
    Submit {
        /// Its number.
        number: u64,
        /// What the body is.
        kind: u8,
        /// The body.
        body: &'a [u8],
    },
    /// A peer is there.
    PeerHello(PeerHello),
    /// The peer wants the stream from there on.
    Ask(Position),
    /// The peer has all below.
    Took(Position),
}

/// What a server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeskNews<'a> {
    /// The trader is signed on.
    SignedOn(DeskSignedOn),
    /// A packet of the local stream.
    Block(&'a [u8]),
    /// What was repeated stands there.
    Placed {
        /// Its number.
        number: u64,
        /// Where, if that is remembered.
        position: Option<Position>,
    },
    /// What was submitted was not taken in.
    Refused {
        /// Its number.
        number: u64,
        /// Why.
        refusal: Refusal,
    },
    /// The connection ends.
    Ended(CutOff),
    /// The server is there; all below was sent.
    Alive(Position),
    /// A book's latest state.
    Book(&'a [u8]),
    /// How a shard's market data are.
    FeedState(&'a [u8]),
    /// The server has all below.
    Have(Position),
    /// A packet of the local stream for a peer.
    Chunk(&'a [u8]),
}

/// Appends a frame.
pub fn write(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let length = u32::try_from(length).expect("frames are short").into();
    out.extend_from_slice(Head { length, kind, version: VERSION, reserved: 0.into() }.as_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// Writes the head of a frame over the first bytes of one that is whole otherwise.
pub(crate) fn write_head(frame: &mut [u8], kind: u8) {
    let length = u32::try_from(frame.len() - HEAD_BYTES).expect("frames are short").into();
    let head = Head { length, kind, version: VERSION, reserved: 0.into() };
    frame[..HEAD_BYTES].copy_from_slice(head.as_bytes());
}

/// Appends a frame that says a place in the stream.
pub fn write_through(out: &mut Vec<u8>, kind: u8, next: Position) {
    write(out, kind, &[Through { next: next.0.into() }.as_bytes()]);
}

/// Appends the frame that ends a connection.
pub fn write_ended(out: &mut Vec<u8>, cut_off: CutOff) {
    write(out, kind::ENDED, &[EndedBytes { cut_off: cut_off as u8, reserved: [0; 7] }.as_bytes()]);
}

/// Appends the frame that submits a body.
pub fn write_submit(out: &mut Vec<u8>, number: u64, kind: u8, body: &[u8]) {
    let head = SubmitHead { number: number.into(), kind, reserved: [0; 7] };
    write(out, self::kind::SUBMIT, &[head.as_bytes(), body]);
}

/// A frame: its kind, its payload, what follows it.
pub type Split<'a> = (u8, &'a [u8], &'a [u8]);

/// The first frame of `bytes`, if all of it is there.
///
/// # Errors
/// If it is longer than `bytes_max`, or of another version.
pub fn split(bytes: &[u8], bytes_max: usize) -> Result<Option<Split<'_>>, FrameError> {
    let Ok((head, rest)) = Head::read_from_prefix(bytes) else { return Ok(None) };
    let error = FrameError { kind: head.kind, length: head.length.get() };
    let length = usize::try_from(head.length.get()).map_err(|_| error)?;
    if head.version != VERSION || length > bytes_max {
        return Err(error);
    }
    Ok(rest.split_at_checked(length).map(|(payload, rest)| (head.kind, payload, rest)))
}

fn whole<T: FromBytes>(kind: u8, payload: &[u8]) -> Result<T, FrameError> {
    T::read_from_bytes(payload).map_err(|_| unknown(kind, payload))
}

fn unknown(kind: u8, payload: &[u8]) -> FrameError {
    FrameError { kind, length: u32::try_from(payload.len()).unwrap_or(u32::MAX) }
}

fn through(kind: u8, payload: &[u8]) -> Result<Position, FrameError> {
    whole::<Through>(kind, payload).map(|through| Position(through.next.get()))
}

/// Reads what a server receives.
///
/// # Errors
/// If it is no such frame.
pub fn read_request(kind: u8, payload: &[u8]) -> Result<DeskRequest<'_>, FrameError> {
    match kind {
        kind::SIGN_ON => whole(kind, payload).map(DeskRequest::SignOn),
        kind::SUBMIT => {
            let read = SubmitHead::read_from_prefix(payload);
            let (head, body) = read.map_err(|_| unknown(kind, payload))?;
            Ok(DeskRequest::Submit { number: head.number.get(), kind: head.kind, body })
        }
        kind::PEER_HELLO => whole(kind, payload).map(DeskRequest::PeerHello),
        kind::ASK => through(kind, payload).map(DeskRequest::Ask),
        kind::TOOK => through(kind, payload).map(DeskRequest::Took),
        _ => Err(unknown(kind, payload)),
    }
}

/// Reads what a server says.
///
/// # Errors
/// If it is no such frame.
pub fn read_news(kind: u8, payload: &[u8]) -> Result<DeskNews<'_>, FrameError> {
    let error = || unknown(kind, payload);
    Ok(match kind {
        kind::SIGNED_ON => DeskNews::SignedOn(whole(kind, payload)?),
        kind::BLOCK => DeskNews::Block(payload),
        kind::PLACED => {
            let placed: PlacedBytes = whole(kind, payload)?;
            let position = Some(Position(placed.position.get())).filter(|position| position.0 != u64::MAX);
            DeskNews::Placed { number: placed.number.get(), position }
        }
        kind::REFUSED => {
            let refused: RefusedBytes = whole(kind, payload)?;
            let refusal = Refusal::of(refused.refusal).ok_or_else(error)?;
            DeskNews::Refused { number: refused.number.get(), refusal }
        }
        kind::ENDED => {
            let ended: EndedBytes = whole(kind, payload)?;
            DeskNews::Ended(CutOff::of(ended.cut_off).ok_or_else(error)?)
        }
        kind::ALIVE => DeskNews::Alive(through(kind, payload)?),
        kind::BOOK => DeskNews::Book(payload),
        kind::FEED_STATE => DeskNews::FeedState(payload),
        kind::HAVE => DeskNews::Have(through(kind, payload)?),
        kind::CHUNK => DeskNews::Chunk(payload),
        _ => return Err(error()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_once_all_of_it_is_there() {
        let mut out = Vec::new();
        write_submit(&mut out, 7, 1, b"body");
        write_through(&mut out, kind::TOOK, Position(9));
        let first = HEAD_BYTES + 16 + 4;
        for length in 0..first {
            assert_eq!(split(&out[..length], REQUEST_BYTES_MAX), Ok(None));
        }
        let (kind, payload, rest) = split(&out, REQUEST_BYTES_MAX).unwrap().unwrap();
        let submit = DeskRequest::Submit { number: 7, kind: 1, body: b"body" };
        assert_eq!(read_request(kind, payload), Ok(submit));
        let (kind, payload, rest) = split(rest, REQUEST_BYTES_MAX).unwrap().unwrap();
        assert_eq!(read_request(kind, payload), Ok(DeskRequest::Took(Position(9))));
        assert!(rest.is_empty());
    }

    #[test]
    fn what_is_too_long_or_unknown_is_refused() {
        let mut out = Vec::new();
        write(&mut out, 99, &[&[0; 100]]);
        assert_eq!(split(&out, 99), Err(FrameError { kind: 99, length: 100 }));
        let (kind, payload, _) = split(&out, 100).unwrap().unwrap();
        assert!(read_request(kind, payload).is_err() && read_news(kind, payload).is_err());
        assert!(read_news(kind::ENDED, &[77; 8]).is_err() && read_request(kind::SUBMIT, &[1]).is_err());
        out[5] = 2;
        assert!(split(&out, 100).is_err(), "another version");
    }
}
