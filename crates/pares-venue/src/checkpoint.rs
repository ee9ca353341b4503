//! A shard's state as bytes, so that a new venue need not replay the day (paper 1 section 4, step 2).
//!
//! ```text
//! "PARESCK1" | position | gateways n | (gateway, through)* | names n | (member, name)* |
//! books n | ( instrument | priority_next | orders n | order* )* | state hash | checksum
//! order: order id | member | client order id | side | price | remaining | executed | priority
//! ```
//! Every number is a little-endian u64, counts included: plain beats small, since a checkpoint is written
//! once every few thousand requests, off the leading venue. The checksum covers every word before it, so that a
//! damaged checkpoint is refused before it is read; the state hash is computed by the venue that took it and
//! checked by whoever restores it, so that a wrongly restored one is. (The hash alone would not do: it covers
//! ordering and books, and a damaged name would let its request be executed twice.)

use pares_book::{Book, Instrument, Priority, RestingOrder, RestoreError, Snapshot};
use pares_types::{
    ClientOrderId, GatewayId, InstrumentId, MemberId, OrderId, Position, Price, Quantity, RequestId, Side,
};

use crate::names::{NAMES_MAX, RecentNames};

const MAGIC: u64 = u64::from_le_bytes(*b"PARESCK1");

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
    /// It goes on after its last field.
    #[error("{0} bytes follow the end of the checkpoint")]
    TrailingBytes(usize),
    /// A value no checkpoint holds.
    #[error("field `{0}` is outside its legal range")]
    InvalidField(&'static str),
    /// It has a book for an instrument that is not configured, or lacks one that is.
    #[error("the checkpoint's books do not match the configured instruments of the shard")]
    OtherInstruments,
    /// A book cannot be in that state.
    #[error("instrument {0}: {1}")]
    Book(InstrumentId, RestoreError),
    /// The restored state is not the one that was saved.
    #[error("restored state hash {restored:016x} differs from the saved {saved:016x}")]
    HashDiffers {
        /// As computed after restoring.
        restored: u64,
        /// As saved.
        saved: u64,
    },
}

/// What a checkpoint holds.
pub(crate) struct State<B> {
    pub(crate) position: Position,
    pub(crate) through: Vec<(GatewayId, u64)>,
    pub(crate) names: RecentNames,
    pub(crate) books: Vec<B>,
    pub(crate) state_hash: u64,
}

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a shard's state into `out` (emptied first).
pub(crate) fn encode<B: Book>(
    out: &mut Vec<u8>,
    position: Position,
    through: impl Iterator<Item = (GatewayId, u64)> + Clone,
    names: &RecentNames,
    books: &[B],
    state_hash: u64,
) {
    out.clear();
    put(out, MAGIC);
    put(out, position.0);
    put(out, through.clone().count() as u64);
    for (gateway, sequence) in through {
        put(out, u64::from(gateway.0));
        put(out, sequence);
    }
    put(out, names.iter().len() as u64);
    for (member, name) in names.iter() {
        put(out, u64::from(member.0));
        put(out, name.0);
    }
    put(out, books.len() as u64);
    for book in books {
        encode_book(out, book);
    }
    put(out, state_hash);
    put(out, checksum(out));
}

/// Each step is a bijection of the sum so far and of the word, so no change of one word goes unnoticed.
fn checksum(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    words.fold(bytes.len() as u64, |sum, word| (sum ^ word).wrapping_mul(ODD).rotate_left(29))
}

fn encode_book<B: Book>(out: &mut Vec<u8>, book: &B) {
    put(out, u64::from(book.instrument().id.0));
    put(out, book.priority_next().0);
    put(out, book.orders_len() as u64);
    for side in [Side::Buy, Side::Sell] {
        book.for_each_order(side, &mut |order| {
            put(out, order.order.0.to_bits());
            put(out, u64::from(order.member.0));
            put(out, order.client_order_id.0);
            put(out, order.side as u64);
            put(out, order.price.0 as u64);
            put(out, order.remaining.0);
            put(out, order.executed.0);
            put(out, order.priority.0);
        });
    }
}

/// Reads a checkpoint for exactly these instruments.
pub(crate) fn decode<B: Book>(bytes: &[u8], instruments: &[Instrument]) -> Result<State<B>, CheckpointError> {
    if Input(bytes).u64()? != MAGIC {
        return Err(CheckpointError::Magic);
    }
    let (content, saved) = bytes.split_last_chunk().ok_or(CheckpointError::Truncated)?;
    if checksum(content) != u64::from_le_bytes(*saved) {
        return Err(CheckpointError::Damaged);
    }
    let mut input = Input(&content[size_of_val(&MAGIC)..]);
    let position = Position(input.u64()?);
    let through = (0..input.count(16)?)
        .map(|_| Ok((GatewayId(input.u16("gateway")?), input.u64()?)))
        .collect::<Result<_, _>>()?;
    let mut names = RecentNames::new();
    let names_len = input.count(16)?;
    for _ in 0..names_len {
        if !names.insert(MemberId(input.u32("member")?), ClientOrderId(input.u64()?)) || names_len > NAMES_MAX
        {
            return Err(CheckpointError::InvalidField("names"));
        }
    }
    if input.count(24)? != instruments.len() {
        return Err(CheckpointError::OtherInstruments);
    }
    let books = instruments.iter().map(|instrument| input.book(*instrument)).collect::<Result<_, _>>()?;
    let state_hash = input.u64()?;
    match input.0.len() {
        0 => Ok(State { position, through, names, books, state_hash }),
        trailing => Err(CheckpointError::TrailingBytes(trailing)),
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn u64(&mut self) -> Result<u64, CheckpointError> {
        let (value, rest) = self.0.split_first_chunk().ok_or(CheckpointError::Truncated)?;
        self.0 = rest;
        Ok(u64::from_le_bytes(*value))
    }

    /// A count of things of at least `bytes` each: checked before anything is allocated for them.
    fn count(&mut self, bytes: usize) -> Result<usize, CheckpointError> {
        let count = self.u64()?;
        let fits =
            usize::try_from(count).ok().filter(|n| n.checked_mul(bytes).is_some_and(|b| b <= self.0.len()));
        fits.ok_or(CheckpointError::Truncated)
    }

    fn u32(&mut self, field: &'static str) -> Result<u32, CheckpointError> {
        u32::try_from(self.u64()?).map_err(|_| CheckpointError::InvalidField(field))
    }

    fn u16(&mut self, field: &'static str) -> Result<u16, CheckpointError> {
        u16::try_from(self.u64()?).map_err(|_| CheckpointError::InvalidField(field))
    }

    fn book<B: Book>(&mut self, instrument: Instrument) -> Result<B, CheckpointError> {
        if self.u32("instrument")? != instrument.id.0 {
            return Err(CheckpointError::OtherInstruments);
        }
        let priority_next = Priority(self.u64()?);
        let orders = (0..self.count(64)?).map(|_| self.order()).collect::<Result<_, _>>()?;
        B::restore(instrument, &Snapshot { priority_next, orders })
            .map_err(|error| CheckpointError::Book(instrument.id, error))
    }

    fn order(&mut self) -> Result<RestingOrder, CheckpointError> {
        let id = RequestId::from_bits(self.u64()?).ok_or(CheckpointError::InvalidField("order"))?;
        Ok(RestingOrder {
            order: OrderId(id),
            member: MemberId(self.u32("member")?),
            client_order_id: ClientOrderId(self.u64()?),
            side: match self.u64()? {
                1 => Side::Buy,
                2 => Side::Sell,
                _ => return Err(CheckpointError::InvalidField("side")),
            },
            price: Price(self.u64()? as i64),
            remaining: Quantity(self.u64()?),
            executed: Quantity(self.u64()?),
            priority: Priority(self.u64()?),
        })
    }
}
