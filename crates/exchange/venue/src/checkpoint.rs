//! A shard's state as bytes, so that a new venue need not replay the day (paper 1 section 4, step 2).
//!
//! ```text
//! head   "PARESC11" or "PARESC12" | shard | position | gateways n | (gateway, through)* | notes
//!        | time | day | blocked n | member* | books n
//! books  book*, in ascending order of instrument id
//! tail   state hash | checksum
//! ```
//! The modules `notes`, `book` and `day` say what those are made of, `words.rs` of `pares-register` and of `pares-book` what the register and an instrument are made of. The instrument with all its rules is part of it, for instruments come,
//! change and go while a shard lives, and what is configured is only what it began with.
//!
//! Every number is a little-endian u64, counts included: plain beats small, since a checkpoint is written
//! now and then, off the leading venue. The checksum covers every word before it, so that a
//! damaged checkpoint is refused before it is read; the state hash is computed by the venue that took it and
//! checked as it is restored, so that a wrongly restored one is. (The hash alone would not do: it covers
//! ordering and books, and a damaged name would let its request be executed twice.)
//!
//! A large state is not written at once, for its venue would do nothing else meanwhile. The head is, when the checkpoint begins, and
//! with it the state hash; the books follow piece by piece while requests are executed
//! ([`Market::begin_copy`] keeps what they change). So nobody knows the length before the end, and the checksum
//! takes it in last. The bytes are the same either way.

mod book;
mod day;
mod notes;
mod view;

use pares_book::{Book, Copied, Day, Market, MarketError, Pause, RestoreError};
use pares_types::{GatewayId, InstrumentId, MemberId, Position, ShardId, Timestamp};

use crate::notes::Notes;
pub use view::view;

const MAGIC: u64 = u64::from_le_bytes(*b"PARESC11");
/// The same where a floor says that its member gave lower series back: builds that do not know that would read it as a number.
const MAGIC_GIVEN_BACK: u64 = u64::from_le_bytes(*b"PARESC12");

/// Why bytes are not a checkpoint to start from. Nothing was built: try an older one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Not a checkpoint, or one of another version.
    #[error("not a checkpoint of this version")]
    Magic,
    /// Not the bytes that were written.
    #[error("the checkpoint is damaged or cut short")]
    Damaged,
    /// It ends before its last field.
    #[error("the checkpoint is cut short")]
    Truncated,
    /// It continues after its last field.
    #[error("{0} bytes follow the end of the checkpoint")]
    TrailingBytes(usize),
    /// A value no checkpoint holds.
    #[error("field `{0}` is outside its legal range")]
    InvalidField(&'static str),
    /// It is of another shard.
    #[error("the checkpoint is of shard {0}")]
    OtherShard(ShardId),
    /// A book cannot be in that state.
    #[error("instrument {0}: {1}")]
    Book(InstrumentId, RestoreError),
    /// Such books are not those of one shard.
    #[error(transparent)]
    Market(#[from] MarketError),
    /// The restored state is not the one that was saved.
    #[error("restored state hash {restored:016x} differs from the saved {saved:016x}")]
    HashDiffers {
        /// As computed after restoring.
        restored: u64,
        /// As saved.
        saved: u64,
    },
}

/// What a piece of a checkpoint was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// There is more.
    Part,
    /// The checkpoint is whole.
    Last,
    /// No checkpoint is under way, or a request ended it that had many books kept at once; what was written of it is of no use.
    NoCheckpoint,
}

/// What a checkpoint holds.
pub(crate) struct State<B> {
    pub(crate) position: Position,
    pub(crate) through: Vec<(GatewayId, u64)>,
    pub(crate) notes: Notes,
    pub(crate) market: Market<B>,
    pub(crate) state_hash: u64,
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes what comes before the books into `out` (emptied first).
fn put_head<B: Book>(
    out: &mut Vec<u8>,
    (shard, position): (ShardId, Position),
    through: impl ExactSizeIterator<Item = (GatewayId, u64)>,
    notes: &Notes,
    market: &Market<B>,
) {
    out.clear();
    put(out, if notes.names.has_given_back() { MAGIC_GIVEN_BACK } else { MAGIC });
    put(out, u64::from(shard.0));
    put(out, position.0);
    put(out, through.len() as u64);
    for (gateway, sequence) in through {
        put(out, u64::from(gateway.0));
        put(out, sequence);
    }
    notes::encode(out, notes);
    put(out, market.time().0);
    day::encode(out, market.day());
    put(out, market.blocked().len() as u64);
    market.blocked().iter().for_each(|member| put(out, u64::from(member.0)));
    put(out, market.books().len() as u64);
}

/// A checkpoint whose head is written and whose books are not, or not all.
pub(crate) struct Taking {
    checksum: Checksum,
    state_hash: u64,
}

impl Taking {
    /// Writes the head into `out` (emptied first), and has `market` keep what the rest is made of.
    pub(crate) fn begin<B: Book>(
        out: &mut Vec<u8>,
        place: (ShardId, Position),
        through: impl ExactSizeIterator<Item = (GatewayId, u64)>,
        notes: &Notes,
        market: &mut Market<B>,
        state_hash: u64,
    ) -> Self {
        put_head(out, place, through, notes, market);
        market.begin_copy(book::encode);
        let mut checksum = Checksum::default();
        checksum.add(out);
        Self { checksum, state_hash }
    }

    /// Writes further books behind what is in `out` until they are `bytes` or more, and the tail after the last.
    pub(crate) fn piece<B: Book>(
        &mut self,
        out: &mut Vec<u8>,
        market: &mut Market<B>,
        bytes: usize,
        pause: Pause<'_>,
    ) -> Piece {
        let start = out.len();
        let mut is_whole = false;
        while !is_whole && out.len() - start < bytes {
            match market.copy_book(out, pause) {
                Copied::Book => {}
                Copied::All => is_whole = true,
                Copied::NoCopy => return Piece::NoCheckpoint,
            }
        }
        if is_whole {
            put(out, self.state_hash);
        }
        self.checksum.add(&out[start..]);
        if is_whole {
            put(out, self.checksum.value());
        }
        if is_whole { Piece::Last } else { Piece::Part }
    }
}

/// Each step is a bijection of the sum so far and of the word, so no change of one word goes unnoticed.
#[derive(Default)]
struct Checksum {
    sum: u64,
    length: u64,
}

impl Checksum {
    /// Takes in whole words, and at the very end perhaps a part of one.
    fn add(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        self.sum = words.iter().fold(self.sum, |sum, word| step(sum, u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.sum = step(self.sum, u64::from_le_bytes(word));
        }
        self.length += bytes.len() as u64;
    }

    fn value(&self) -> u64 {
        step(self.sum, self.length)
    }
}

fn step(sum: u64, word: u64) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    (sum ^ word).wrapping_mul(ODD).rotate_left(29)
}

/// All of a checkpoint but its tail, with what `book` makes of each book.
struct Content<T> {
    position: Position,
    through: Vec<(GatewayId, u64)>,
    notes: Notes,
    time: Timestamp,
    day: Day,
    blocked: Vec<MemberId>,
    books: Vec<T>,
    state_hash: u64,
}

/// Reads a checkpoint of that shard, book by book.
fn read<T>(
    shard: ShardId,
    bytes: &[u8],
    mut book: impl FnMut(book::Written) -> Result<T, CheckpointError>,
) -> Result<Content<T>, CheckpointError> {
    let mut input = open(shard, bytes)?;
    let content = Content {
        position: Position(input.u64()?),
        through: input.list(16, |input| Ok((GatewayId(input.u16("gateway")?), input.u64()?)))?,
        notes: notes::decode(&mut input)?,
        time: Timestamp(input.u64()?),
        day: day::decode(&mut input)?,
        blocked: input.list(8, |input| Ok(MemberId(input.u32("blocked")?)))?,
        books: input.list(book::BYTES_MIN, |input| book(book::decode(input)?))?,
        state_hash: input.u64()?,
    };
    match input.0.len() {
        0 => Ok(content),
        trailing => Err(CheckpointError::TrailingBytes(trailing)),
    }
}

/// What comes behind the shard, if the bytes are those that were written.
fn open(shard: ShardId, bytes: &[u8]) -> Result<Input<'_>, CheckpointError> {
    if ![MAGIC, MAGIC_GIVEN_BACK].contains(&Input(bytes).u64()?) {
        return Err(CheckpointError::Magic);
    }
    let (content, saved) = bytes.split_last_chunk().ok_or(CheckpointError::Truncated)?;
    let mut checksum = Checksum::default();
    checksum.add(content);
    if checksum.value() != u64::from_le_bytes(*saved) {
        return Err(CheckpointError::Damaged);
    }
    let mut input = Input(&content[size_of_val(&MAGIC)..]);
    match ShardId(input.u16("shard")?) {
        of if of == shard => Ok(input),
        other => Err(CheckpointError::OtherShard(other)),
    }
}

pub(crate) fn decode<B: Book>(shard: ShardId, bytes: &[u8]) -> Result<State<B>, CheckpointError> {
    let Content { position, through, notes, time, day, blocked, books, state_hash } =
        read(shard, bytes, book::Written::restore::<B>)?;
    let (books, beside) = books.into_iter().unzip();
    let market = Market::restore(books, beside, blocked, time, day)?;
    Ok(State { position, through, notes, market, state_hash })
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn u64(&mut self) -> Result<u64, CheckpointError> {
        let (value, rest) = self.0.split_first_chunk().ok_or(CheckpointError::Truncated)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*value))
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, CheckpointError> {
        u32::try_from(self.u64()?).map_err(|_| CheckpointError::InvalidField(field))
    }

    fn u8(&mut self, field: &'static str) -> Result<u8, CheckpointError> {
        u8::try_from(self.u64()?).map_err(|_| CheckpointError::InvalidField(field))
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, CheckpointError> {
        u16::try_from(self.u64()?).map_err(|_| CheckpointError::InvalidField(field))
    }

    /// A count and so many things of at least `bytes` each: checked before anything is allocated for them.
    fn list<T>(
        &mut self,
        bytes: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, CheckpointError>,
    ) -> Result<Vec<T>, CheckpointError> {
        let count = self.u64()?;
        let fits =
            usize::try_from(count).ok().filter(|n| n.checked_mul(bytes).is_some_and(|b| b <= self.0.len()));
        (0..fits.ok_or(CheckpointError::Truncated)?).map(|_| read(self)).collect()
    }
}
