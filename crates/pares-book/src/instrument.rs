//! What can be traded, and the limits every request must keep.
//!
//! The checks live here, apart from the books, because they need no book: a gateway can run them
//! before it spends a position on a request that no book would take, and both books run the same
//! ones again, since a venue trusts nobody's checks but its own.

use core::fmt;
use pares_types::{Command, InstrumentId, NewOrder, OrderKind, Price, Quantity, Reason, TimeInForce};

/// The name members know an instrument by: 1 to 16 printable ASCII characters without spaces.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol([u8; Symbol::LENGTH_MAX]);

impl Symbol {
    /// The most characters a symbol can have.
    pub const LENGTH_MAX: usize = 16;

    /// The symbol spelled `name`.
    ///
    /// # Errors
    /// [`InstrumentError::Symbol`] if `name` is empty, too long, or has a character that is not
    /// printable ASCII.
    pub fn new(name: &str) -> Result<Self, InstrumentError> {
        let legal =
            (1..=Self::LENGTH_MAX).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
        if !legal {
            return Err(InstrumentError::Symbol);
        }
        let mut bytes = [0; Self::LENGTH_MAX];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Self(bytes))
    }

    /// The symbol of a fixed-width field: the name, then zero bytes.
    ///
    /// # Errors
    /// [`InstrumentError::Symbol`] if the field holds no legal name or something follows the zeros.
    pub fn from_bytes(bytes: [u8; Self::LENGTH_MAX]) -> Result<Self, InstrumentError> {
        let length = bytes.iter().position(|&b| b == 0).unwrap_or(Self::LENGTH_MAX);
        let name = core::str::from_utf8(&bytes[..length]).map_err(|_| InstrumentError::Symbol)?;
        let symbol = Self::new(name)?;
        if symbol.0 == bytes { Ok(symbol) } else { Err(InstrumentError::Symbol) }
    }

    /// The fixed-width field: the name, then zero bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH_MAX] {
        self.0
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&b| b == 0).unwrap_or(Self::LENGTH_MAX);
        core::str::from_utf8(&self.0[..length]).expect("a symbol is ASCII by construction")
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Symbol({})", self.as_str())
    }
}

/// One tradable instrument and its limits. Read the fields freely; only [`Instrument::new`] makes one
/// that is known to be consistent, and every book asks for that again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Its number in requests.
    pub id: InstrumentId,
    /// Its name.
    pub symbol: Symbol,
    /// The smallest price step, in price units; above zero.
    pub tick: Price,
    /// The smallest quantity step, in shares; above zero.
    pub lot: Quantity,
    /// The largest order, in shares; a multiple of the lot, above zero.
    pub quantity_max: Quantity,
    /// The lowest legal limit price; a multiple of the tick.
    pub price_min: Price,
    /// The highest legal limit price; a multiple of the tick, not below `price_min`.
    pub price_max: Price,
    /// The most orders that may rest at one time; above zero.
    pub orders_max: u32,
}

/// Why an instrument's definition is inconsistent. Nothing was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    /// The symbol is not a legal name.
    #[error("a symbol is 1 to 16 printable ASCII characters without spaces")]
    Symbol,
    /// The id is 0.
    #[error("instrument id 0 means all instruments; use an id from 1")]
    Id,
    /// The tick is not above zero.
    #[error("the tick must be above zero")]
    Tick,
    /// The lot is zero.
    #[error("the lot must be above zero")]
    Lot,
    /// The largest order is zero or off the lot.
    #[error("the largest order must be a positive multiple of the lot")]
    QuantityMax,
    /// The price range is empty or off the tick.
    #[error("the lowest and highest price must be multiples of the tick, lowest first")]
    PriceRange,
    /// No order could rest, or a full book could hold more shares than a quantity counts.
    #[error("the order limit must be above zero, and order limit times largest order below 2^63")]
    OrdersMax,
}

impl Instrument {
    /// `instrument`, if it is consistent.
    ///
    /// # Errors
    /// The first rule broken, see [`InstrumentError`].
    pub fn new(instrument: Self) -> Result<Self, InstrumentError> {
        if instrument.id.0 == 0 {
            return Err(InstrumentError::Id);
        }
        if instrument.tick.0 <= 0 {
            return Err(InstrumentError::Tick);
        }
        if instrument.lot.is_zero() {
            return Err(InstrumentError::Lot);
        }
        if instrument.quantity_max.is_zero() || !instrument.on_lot(instrument.quantity_max) {
            return Err(InstrumentError::QuantityMax);
        }
        if !instrument.range_is_legal() {
            return Err(InstrumentError::PriceRange);
        }
        if !instrument.totals_fit() {
            return Err(InstrumentError::OrdersMax);
        }
        Ok(instrument)
    }

    /// Checks everything about a command that can be told without the book. A command that passes
    /// can still be refused by the book (unknown order, post-only that would trade, book full ...).
    ///
    /// # Errors
    /// The reason to refuse it with: quantity first, then price, then the combination.
    pub fn validate(&self, command: &Command) -> Result<(), Reason> {
        match command {
            Command::Enter(order) => self.validate_enter(order),
            Command::Amend { price, quantity, .. } => self.validate_terms(*price, *quantity),
            Command::Cancel { .. } | Command::MassCancel => Ok(()),
        }
    }

    fn validate_enter(&self, order: &NewOrder) -> Result<(), Reason> {
        self.validate_quantity(order.quantity)?;
        if let OrderKind::Limit { price } = order.kind {
            self.validate_price(price)?;
        }
        let may_rest =
            matches!(order.kind, OrderKind::Limit { .. }) && order.time_in_force == TimeInForce::Day;
        if order.post_only && !may_rest {
            return Err(Reason::InvalidCombination);
        }
        Ok(())
    }

    /// Checks the price and total quantity of an order that rests or is to rest.
    pub(crate) fn validate_terms(&self, price: Price, quantity: Quantity) -> Result<(), Reason> {
        self.validate_quantity(quantity)?;
        self.validate_price(price)
    }

    fn validate_quantity(&self, quantity: Quantity) -> Result<(), Reason> {
        if quantity.is_zero() {
            Err(Reason::ZeroQuantity)
        } else if quantity > self.quantity_max {
            Err(Reason::QuantityTooLarge)
        } else if !self.on_lot(quantity) {
            Err(Reason::OffLot)
        } else {
            Ok(())
        }
    }

    fn validate_price(&self, price: Price) -> Result<(), Reason> {
        if !(self.price_min..=self.price_max).contains(&price) {
            Err(Reason::PriceOutOfRange)
        } else if !self.on_tick(price) {
            Err(Reason::OffTick)
        } else {
            Ok(())
        }
    }

    fn on_lot(&self, quantity: Quantity) -> bool {
        // Most shares trade in lots of one, and a division is the dearest instruction of this check.
        self.lot.0 == 1 || quantity.0.is_multiple_of(self.lot.0)
    }

    fn on_tick(&self, price: Price) -> bool {
        price.0 % self.tick.0 == 0
    }

    fn range_is_legal(&self) -> bool {
        self.price_min <= self.price_max && self.on_tick(self.price_min) && self.on_tick(self.price_max)
    }

    /// Whether the shares of a full book can be counted: sums of quantities then never overflow.
    fn totals_fit(&self) -> bool {
        let total = self.quantity_max.0.checked_mul(u64::from(self.orders_max));
        // The highest u32 marks "no slot" in the fast book's links.
        (1..u32::MAX).contains(&self.orders_max) && total.is_some_and(|shares| shares <= i64::MAX as u64)
    }
}
