//! A publication as bytes, so that a publisher need not read a record from its first position each time it starts.
//!
//! ```text
//! publication  magic | shard | session is on, 1 << 8 if begun | listings n | listing* | orders n | order*
//! listing      instrument (rule_codec.rs of pares-book) | phase
//! order        id | codes | limit | display | trigger | executed | remaining | reference | price | shares
//! codes        side | kind << 8 | has a trigger << 16 | shown << 24 | told << 25 | locate << 32
//! ```
//! Every number is a little-endian u64. Listings ascend by id, and so do orders: equal publications give equal bytes. What is not there
//! is 0. The publisher that keeps the bytes guards them against damage, and keeps the position beside them.

use pares_book::Instrument;
use pares_types::{OrderId, OrderKind, Peg, Phase, Price, Quantity, RequestId, ShardId, Side};

use crate::listings::{Listing, Listings};
use crate::living::{Living, Order, Shown};
use crate::publication::Publication;

const MAGIC: u64 = u64::from_le_bytes(*b"PARESF01");
const BEGUN: u64 = 1 << 8;
const HAS_TRIGGER: u64 = 1 << 16;
const SHOWN: u64 = 1 << 24;
const TOLD: u64 = 1 << 25;
const ORDER_WORDS: usize = 10;

/// Why bytes are not a publication to continue with. Nothing was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicationError {
    /// Not a publication, or one of another version.
    #[error("not a publication of this version")]
    Magic,
    /// It ends before its last field.
    #[error("the publication is cut short")]
    Truncated,
    /// Bytes follow its last field.
    #[error("{0} bytes follow the end of the publication")]
    TrailingBytes(usize),
    /// A value no publication holds.
    #[error("field `{0}` is outside its legal range")]
    InvalidField(&'static str),
    /// It is of another shard.
    #[error("the publication is of shard {0}")]
    OtherShard(ShardId),
}

use PublicationError::InvalidField;

impl Publication {
    /// Writes the publication behind what is in `sink`, as it is between two records.
    pub fn store(&self, sink: &mut Vec<u8>) {
        let mut put = |word: u64| sink.extend_from_slice(&word.to_le_bytes());
        put(MAGIC);
        put(self.shard.0.into());
        put(u64::from(self.on) | if self.begun { BEGUN } else { 0 });
        put(self.listings.iter().count() as u64);
        for (_, Listing { rules, phase, .. }) in self.listings.iter() {
            rules.write(&mut put);
            put(*phase as u64);
        }
        let orders = self.living.sorted();
        put(orders.len() as u64);
        orders.into_iter().flat_map(order_words).for_each(put);
    }

    /// The publication of a shard that [`Publication::store`] wrote into all of `bytes`. It continues as the one that was stored would.
    ///
    /// # Errors
    /// If they are no publication of that shard.
    pub fn restore(shard: ShardId, bytes: &[u8]) -> Result<Self, PublicationError> {
        let mut input = Input(bytes);
        if input.word()? != MAGIC {
            return Err(PublicationError::Magic);
        }
        match u16::try_from(input.word()?).map(ShardId) {
            Ok(of) if of == shard => {}
            Ok(other) => return Err(PublicationError::OtherShard(other)),
            Err(_) => return Err(InvalidField("shard")),
        }
        let (on, begun) = match input.word()? {
            0 => (false, false),
            BEGUN => (false, true),
            flags if flags == BEGUN | 1 => (true, true),
            _ => return Err(InvalidField("flags")),
        };
        let (listings, living) = (input.listings()?, input.living()?);
        match input.0.len() {
            0 => Ok(Self { shard, listings, living, on, begun }),
            trailing => Err(PublicationError::TrailingBytes(trailing)),
        }
    }
}

fn order_words(order: &Order) -> [u64; ORDER_WORDS] {
    let Order { id, locate, side, kind, display, trigger, executed, remaining, shown } = *order;
    let (kind, limit) = match kind {
        OrderKind::Limit { price } => (1, price),
        OrderKind::Market => (2, Price(0)),
        OrderKind::Pegged { to, limit } => (2 + to as u64, limit),
    };
    let mut codes = side as u64 | kind << 8 | u64::from(locate) << 32;
    codes |= if trigger.is_some() { HAS_TRIGGER } else { 0 };
    codes |= shown.map_or(0, |shown| if shown.told { SHOWN | TOLD } else { SHOWN });
    let Shown { reference, price, shares, .. } = shown.unwrap_or(Shown::NOWHERE);
    let [limit, trigger, price] =
        [limit, trigger.unwrap_or_default(), price].map(|price| price.0.cast_unsigned());
    let shares = shares.0;
    [id.0.to_bits(), codes, limit, display.0, trigger, executed.0, remaining.0, reference, price, shares]
}

fn order(words: [u64; ORDER_WORDS]) -> Result<Order, PublicationError> {
    let [id, codes, limit, display, trigger, executed, remaining, reference, price, shares] = words;
    let [limit, trigger, price] = [limit, trigger, price].map(|word| Price(word.cast_signed()));
    let kind = match (codes >> 8) as u8 {
        1 => OrderKind::Limit { price: limit },
        2 => OrderKind::Market,
        3 => OrderKind::Pegged { to: Peg::Best, limit },
        4 => OrderKind::Pegged { to: Peg::Mid, limit },
        _ => return Err(InvalidField("kind")),
    };
    let shown = Shown { reference, price, shares: Quantity(shares), told: codes & TOLD != 0 };
    let order = Order {
        id: OrderId(RequestId::from_bits(id).ok_or(InvalidField("order"))?),
        locate: (codes >> 32) as u16,
        side: if codes as u8 == Side::Buy as u8 { Side::Buy } else { Side::Sell },
        kind,
        display: Quantity(display),
        trigger: (codes & HAS_TRIGGER != 0).then_some(trigger),
        executed: Quantity(executed),
        remaining: Quantity(remaining),
        shown: (codes & SHOWN != 0).then_some(shown),
    };
    // What was not read above must be 0, and no order has two spellings.
    let spelled = order_words(&order) == words && !order.remaining.is_zero();
    if spelled { Ok(order) } else { Err(InvalidField("order")) }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    fn word(&mut self) -> Result<u64, PublicationError> {
        self.next().ok_or(PublicationError::Truncated)
    }

    /// How many things of at least `words` each follow: checked before anything is allocated for them.
    fn count(&mut self, words: usize) -> Result<usize, PublicationError> {
        let most = (self.0.len() / 8).saturating_sub(1) / words;
        let count = usize::try_from(self.word()?).ok().filter(|count| *count <= most);
        count.ok_or(PublicationError::Truncated)
    }

    fn listings(&mut self) -> Result<Listings, PublicationError> {
        let (mut listings, mut last) = (Listings::default(), None);
        for _ in 0..self.count(Instrument::WORDS_MIN + 1)? {
            let rules = Instrument::read(&mut || self.next()).ok_or(InvalidField("instrument"))?;
            let locate = u16::try_from(rules.id.0).map_err(|_| InvalidField("instrument"))?;
            let code = self.word()?;
            let phase = Phase::ALL.into_iter().find(|phase| *phase as u64 == code);
            if last >= Some(locate) {
                return Err(InvalidField("instrument"));
            }
            last = Some(locate);
            listings.insert(locate, Listing::new(rules, phase.ok_or(InvalidField("phase"))?));
        }
        Ok(listings)
    }

    fn living(&mut self) -> Result<Living, PublicationError> {
        let mut living = Living::default();
        let mut last = None;
        for _ in 0..self.count(ORDER_WORDS)? {
            let mut words = [0; ORDER_WORDS];
            for word in &mut words {
                *word = self.word()?;
            }
            let order = order(words)?;
            if last >= Some(order.id) {
                return Err(InvalidField("order"));
            }
            last = Some(order.id);
            living.put(order);
        }
        Ok(living)
    }
}
