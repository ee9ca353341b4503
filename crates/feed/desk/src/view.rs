//! What is shown of a book: the ten best prices of each side, and a checksum over them (docs/protocols/member.md, *Books*).
//!
//! Who keeps a book from changes cannot know whether he keeps the right one. So each state carries a checksum of what it shows, computed from
//! text that any language can write down again.

use pares_feed::books::ReceivedBook;
use pares_types::{Price, Quantity, Side};
use zerocopy::little_endian::{I64, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Prices shown of a side.
pub const LEVELS_MAX: usize = 10;

/// One price of a side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewLevel {
    /// The price.
    pub price: Price,
    /// Shares there.
    pub quantity: Quantity,
    /// In how many orders.
    pub orders: u32,
}

/// What is shown of a book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookView {
    /// The instrument's name.
    pub symbol: String,
    /// H halted or closed, Q a call, T trading.
    pub state: u8,
    /// The last trade: price, shares.
    pub last: Option<(Price, Quantity)>,
    /// In a call, what its auction would do: price, shares.
    pub indicative: Option<(Price, Quantity)>,
    /// The best bids, best first.
    pub bids: Vec<ViewLevel>,
    /// The best offers, best first.
    pub offers: Vec<ViewLevel>,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct ViewHead {
    shard: U16,
    locate: U16,
    state: u8,
    bids: u8,
    offers: u8,
    reserved: u8,
    symbol: [u8; 8],
    sequence: U64,
    last: I64,
    last_quantity: U64,
    indicative: I64,
    indicative_quantity: U64,
    checksum: U32,
    reserved_2: U32,
}

const _: () = assert!(size_of::<ViewHead>() == 64);

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LevelBytes {
    price: I64,
    quantity: U64,
    orders: U32,
    reserved: U32,
}

/// A book as a server tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldView {
    /// Of which shard and instrument.
    pub key: (u16, u16),
    /// Which state of the instrument it is at that server, from 1.
    pub sequence: u64,
    /// What is shown.
    pub view: BookView,
}

impl BookView {
    /// What is shown of a receiver's book.
    #[must_use]
    pub fn of(book: ReceivedBook<'_>) -> Self {
        Self {
            symbol: book.symbol.to_owned(),
            state: book.state,
            last: book.last,
            indicative: book.indicative,
            bids: levels(book, Side::Buy),
            offers: levels(book, Side::Sell),
        }
    }

    /// CRC-32 (IEEE) of `PRICE:QUANTITY:` of each bid, then of each offer, best first, prices in units of 1/10,000.
    #[must_use]
    pub fn checksum(&self) -> u32 {
        let levels = self.bids.iter().chain(&self.offers);
        let text: String = levels.map(|level| format!("{}:{}:", level.price.0, level.quantity.0)).collect();
        crc32(text.as_bytes())
    }

    /// Appends its bytes.
    pub fn write(&self, key: (u16, u16), sequence: u64, out: &mut Vec<u8>) {
        let pair = |pair: Option<(Price, Quantity)>| pair.unwrap_or((Price(0), Quantity(0)));
        let (last, indicative) = (pair(self.last), pair(self.indicative));
        let count = |levels: &[ViewLevel]| levels.len().min(LEVELS_MAX) as u8;
        let mut symbol = [b' '; 8];
        symbol.iter_mut().zip(self.symbol.bytes()).for_each(|(to, from)| *to = from);
        let head = ViewHead {
            shard: key.0.into(),
            locate: key.1.into(),
            state: self.state,
            bids: count(&self.bids),
            offers: count(&self.offers),
            reserved: 0,
            symbol,
            sequence: sequence.into(),
            last: last.0.0.into(),
            last_quantity: last.1.0.into(),
            indicative: indicative.0.0.into(),
            indicative_quantity: indicative.1.0.into(),
            checksum: self.checksum().into(),
            reserved_2: 0.into(),
        };
        out.extend_from_slice(head.as_bytes());
        for level in self.bids.iter().take(LEVELS_MAX).chain(self.offers.iter().take(LEVELS_MAX)) {
            let (price, quantity) = (level.price.0.into(), level.quantity.0.into());
            let bytes = LevelBytes { price, quantity, orders: level.orders.into(), reserved: 0.into() };
            out.extend_from_slice(bytes.as_bytes());
        }
    }
}

impl ToldView {
    /// Reads what [`BookView::write`] wrote. `None` if it is none, or its checksum is not that of what it shows.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (head, levels) = ViewHead::read_from_prefix(bytes).ok()?;
        let count = usize::from(head.bids) + usize::from(head.offers);
        if levels.len() != count * size_of::<LevelBytes>() {
            return None;
        }
        let level = |bytes: &[u8]| {
            let read = LevelBytes::read_from_bytes(bytes).ok()?;
            let (price, quantity) = (Price(read.price.get()), Quantity(read.quantity.get()));
            Some(ViewLevel { price, quantity, orders: read.orders.get() })
        };
        let mut levels = levels.chunks(size_of::<LevelBytes>()).filter_map(level);
        let pair = |price: I64, quantity: U64| {
            Some((Price(price.get()), Quantity(quantity.get()))).filter(|pair| !pair.1.is_zero())
        };
        let view = BookView {
            symbol: String::from_utf8_lossy(&head.symbol).trim_end().to_owned(),
            state: head.state,
            last: pair(head.last, head.last_quantity),
            indicative: pair(head.indicative, head.indicative_quantity),
            bids: levels.by_ref().take(head.bids.into()).collect(),
            offers: levels.collect(),
        };
        let key = (head.shard.get(), head.locate.get());
        let is_whole = view.checksum() == head.checksum.get();
        is_whole.then_some(Self { key, sequence: head.sequence.get(), view })
    }
}

/// The best levels of a side.
fn levels(book: ReceivedBook<'_>, side: Side) -> Vec<ViewLevel> {
    let level = |(price, quantity, orders)| ViewLevel {
        price,
        quantity,
        orders: u32::try_from(orders).unwrap_or(u32::MAX),
    };
    book.levels(side).take(LEVELS_MAX).map(level).collect()
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut crc, mut bit) = (index as u32, 0);
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

/// CRC-32 as zip, Ethernet and most languages' libraries have it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| crc >> 8 ^ TABLE[((crc ^ u32::from(byte)) & 0xff) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_feed::books::ReceivedBooks;
    use pares_feed::itch::{AddOrder, Head, TradingAction};
    use pares_types::Timestamp;

    fn level(price: i64, quantity: u64) -> ViewLevel {
        ViewLevel { price: Price(price), quantity: Quantity(quantity), orders: 2 }
    }

    fn view() -> BookView {
        BookView {
            symbol: "ALFA".into(),
            state: b'T',
            last: Some((Price(100_000), Quantity(5))),
            indicative: None,
            bids: vec![level(99_000, 10), level(98_000, 20)],
            offers: vec![level(101_000, 7)],
        }
    }

    #[test]
    fn checksum_is_standard_over_plain_text() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926, "the check value of CRC-32");
        assert_eq!(view().checksum(), crc32(b"99000:10:98000:20:101000:7:"));
    }

    #[test]
    fn what_is_written_is_read_and_a_wrong_checksum_shows_nothing() {
        let mut bytes = Vec::new();
        view().write((3, 4), 9, &mut bytes);
        assert_eq!(ToldView::read(&bytes), Some(ToldView { key: (3, 4), sequence: 9, view: view() }));
        for length in 0..bytes.len() {
            assert_eq!(ToldView::read(&bytes[..length]), None);
        }
        let price = size_of::<ViewHead>();
        bytes[price] ^= 1;
        assert_eq!(ToldView::read(&bytes), None);
    }

    #[test]
    fn orders_at_one_price_are_one_level_and_ten_are_shown() {
        let mut books = ReceivedBooks::with_seed(0);
        let head = |kind| Head::new(kind, 1, Timestamp(0));
        let action = TradingAction {
            head: head(b'H'),
            stock: *b"ALFA    ",
            state: b'T',
            reserved: b' ',
            reason: *b"    ",
        };
        let mut directory = [b' '; 39];
        directory[..11].copy_from_slice(head(b'R').as_bytes());
        directory[11..19].copy_from_slice(b"ALFA    ");
        books.on_message(&directory);
        books.on_message(action.as_bytes());
        for order in 0..40_u32 {
            let (reference, shares, price) = (u64::from(order).into(), 1.into(), (100 - order / 3).into());
            let (head, stock) = (head(b'A'), *b"ALFA    ");
            books.on_message(AddOrder { head, reference, side: b'B', shares, stock, price }.as_bytes());
        }
        let levels = BookView::of(books.book(1).unwrap()).bids;
        assert_eq!((levels.len(), levels[0].orders, levels[9].quantity), (10, 3, Quantity(3)));
    }
}
