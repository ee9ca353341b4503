//! What can be traded, and the limits every request must keep.
//!
//! The checks live here, apart from the books, because they need no book: a gateway can run them
//! before it spends a position on a request that no book would take, and both books run the same
//! ones again, since a venue trusts nobody's checks but its own.

use pares_types::{Band, InstrumentId, Phase, Price, Quantity, Reason, Rule, Symbol, TieBreak};

use crate::ticks::{TickTable, Timetable};

/// One tradable instrument and its limits. Read the fields freely; only [`Instrument::new`] makes one
/// that is known to be consistent, and every book asks for that again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument {
    /// Its number in requests.
    pub id: InstrumentId,
    /// Its name.
    pub symbol: Symbol,
    /// The smallest price steps, by price; see [`TickTable::flat`] for one tick at all prices.
    pub ticks: TickTable,
    /// The smallest quantity step, in shares; above zero.
    pub lot: Quantity,
    /// The largest order, in shares; a multiple of the lot, above zero.
    pub quantity_max: Quantity,
    /// The largest order, in price units times shares; zero for no limit.
    pub value_max: u64,
    /// The lowest legal limit price; a multiple of the tick.
    pub price_min: Price,
    /// The highest legal limit price; a multiple of the tick, not below `price_min`.
    pub price_max: Price,
    /// The most orders that may be there at one time; above zero.
    pub orders_max: u32,
    /// The most events one step may cause; above zero.
    pub step_max: u32,
    /// How far from the reference price trades may be.
    pub static_band: Band,
    /// How far from the last trade trades may be.
    pub dynamic_band: Band,
    /// How long a volatility call lasts; zero for none.
    pub call_ns: u64,
    /// How long a call is extended each time.
    pub extension_ns: u64,
    /// How often at most.
    pub extensions_max: u8,
    /// Whether a call is extended that would leave market orders over, too.
    pub extends_for_market: bool,
    /// Within which time after its end a call ends at random; zero for at its end.
    pub random_end_ns: u64,
    /// Shares of an auction that sets the closing and the reference price.
    pub auction_min: Quantity,
    /// Which of several prices an auction takes that are as good.
    pub tie_break: TieBreak,
    /// How far from the latest price what is left over of one side moves an auction's price, in hundredths of a percent; zero for no limit.
    pub pressure_limit: u32,
    /// Whether an iceberg that is to show less keeps its priority.
    pub display_decrease_keeps: bool,
    /// Whether an iceberg shows a whole peak after an order that took more than it showed.
    pub iceberg_refill_fresh: bool,
    /// Whether a market order that has traded and finds nobody any more rests at the latest price.
    pub market_remainder_rests: bool,
    /// When it enters which phase; empty for an instrument that is always in continuous trading.
    pub timetable: Timetable,
}

/// Why an instrument's definition is inconsistent. Nothing was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InstrumentError {
    /// The id is 0.
    #[error("instrument id 0 is reserved (it means all instruments): use an id from 1")]
    Id,
    /// No tick holds at the lowest price, or a row does not begin at a multiple of its tick.
    #[error("the tick table must cover the price range, and its rows begin at multiples of their tick")]
    Tick,
    /// The lot is zero.
    #[error("the lot must be above zero")]
    Lot,
    /// The largest order is zero or off the lot.
    #[error("the largest order must be a positive multiple of the lot")]
    QuantityMax,
    /// The price range is empty, off the tick, or too long.
    #[error(
        "the lowest and highest price must be multiples of the tick, lowest first, at most 2^30 ticks apart"
    )]
    PriceRange,
    /// No order could rest, or a full book could hold more shares than a quantity counts.
    #[error("the order limit must be above zero, and order limit times largest order below 2^63")]
    OrdersMax,
    /// No step could do anything.
    #[error("a step must allow between 1 and {} events", Instrument::STEP_MAX)]
    StepMax,
    /// A band of more than the price itself, or of less than nothing.
    #[error("a price band must be at most 10,000 hundredths of a percent, and its least width not negative")]
    Band,
    /// Extensions that last no time.
    #[error("an extension of a call needs a positive length; for no extensions set their number to 0")]
    Extension,
}

impl Instrument {
    /// The most events any step may cause: a result must fit its record.
    pub const STEP_MAX: u32 = 4_096;
    /// Levels and orders that are looked at, at most, to say whether a quantity is available.
    pub const LOOKS_MAX: usize = 4_096;
    /// The most prices from the lowest to the highest, in steps of the finest tick: from 0.0001 to 100,000 and more.
    pub const PRICES_MAX: u64 = 1 << 30;

    /// An instrument as [`pares_types::Command::AddInstrument`] lists it (docs/rules.md, section 8).
    #[must_use]
    pub fn listed(id: InstrumentId, symbol: Symbol) -> Self {
        Self {
            id,
            symbol,
            ticks: TickTable::flat(Price(100)),
            lot: Quantity(1),
            quantity_max: Quantity(1_000_000),
            value_max: 0,
            price_min: Price(100),
            price_max: Price(1_000_000_000),
            orders_max: 20_000,
            step_max: Self::STEP_MAX,
            static_band: Band::NONE,
            dynamic_band: Band::NONE,
            call_ns: 0,
            extension_ns: 120_000_000_000,
            extensions_max: 2,
            extends_for_market: false,
            random_end_ns: 0,
            auction_min: Quantity::ZERO,
            tie_break: TieBreak::Latest,
            pressure_limit: 0,
            display_decrease_keeps: true,
            iceberg_refill_fresh: true,
            market_remainder_rests: false,
            timetable: Timetable::EMPTY,
        }
    }

    /// `instrument`, if it is consistent.
    ///
    /// # Errors
    /// The first rule broken, see [`InstrumentError`].
    pub fn new(instrument: Self) -> Result<Self, InstrumentError> {
        if instrument.id.0 == 0 {
            return Err(InstrumentError::Id);
        }
        if !instrument.ticks.is_legal() || instrument.ticks.rows()[0].from > instrument.price_min {
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
        if !(1..=Self::STEP_MAX).contains(&instrument.step_max) {
            return Err(InstrumentError::StepMax);
        }
        let illegal = |band: Band| band.width > 10_000 || band.least < Price(0);
        let width = instrument.pressure_limit;
        if illegal(instrument.static_band) || illegal(instrument.dynamic_band) || width > 10_000 {
            return Err(InstrumentError::Band);
        }
        if instrument.extensions_max > 0 && instrument.extension_ns == 0 {
            return Err(InstrumentError::Extension);
        }
        Ok(instrument)
    }

    /// Whether trades are held to a band.
    #[must_use]
    #[inline]
    pub fn is_banded(&self) -> bool {
        self.static_band.is_set() || self.dynamic_band.is_set()
    }

    /// The phase it starts in: continuous trading, unless a timetable says when that is.
    #[must_use]
    pub fn first_phase(&self) -> Phase {
        if self.timetable.rows().is_empty() { Phase::Continuous } else { Phase::Closed }
    }

    /// The instrument with one rule changed (docs/rules.md, section 8). `orders` says whether an order is there.
    ///
    /// # Errors
    /// The reason to refuse the change with.
    pub fn with_rule(&self, rule: Rule, orders: bool) -> Result<Self, Reason> {
        let mut changed = *self;
        let needs_empty = match rule {
            Rule::PriceRange { min, max } => {
                (changed.price_min, changed.price_max) = (min, max);
                true
            }
            Rule::Tick { from, tick } => {
                changed.ticks = self.ticks.with_row(from, tick).ok_or(Reason::InvalidRule)?;
                true
            }
            Rule::Lot(lot) => {
                changed.lot = lot;
                true
            }
            other => {
                changed.set_limit(other)?;
                false
            }
        };
        let changed = Self::new(changed).map_err(|_| Reason::InvalidRule)?;
        match () {
            () if needs_empty && orders => Err(Reason::BookNotEmpty),
            () if changed == *self && !matches!(rule, Rule::Reference(_)) => Err(Reason::NothingChanged),
            () => Ok(changed),
        }
    }

    /// Changes a rule that does not touch orders that are there. The reference price is the book's.
    fn set_limit(&mut self, rule: Rule) -> Result<(), Reason> {
        match rule {
            Rule::QuantityMax(quantity) => self.quantity_max = quantity,
            Rule::ValueMax(value) => self.value_max = value,
            Rule::OrdersMax(orders) => self.orders_max = orders,
            Rule::StepMax(events) => self.step_max = events,
            Rule::StaticBand(band) => self.static_band = band,
            Rule::DynamicBand(band) => self.dynamic_band = band,
            Rule::Call { ns } => self.call_ns = ns,
            Rule::Extension { ns, max, market } => {
                (self.extension_ns, self.extensions_max, self.extends_for_market) = (ns, max, market);
            }
            Rule::RandomEnd { ns } => self.random_end_ns = ns,
            Rule::AuctionMin(shares) => self.auction_min = shares,
            Rule::TieBreak(one) => self.tie_break = one,
            Rule::PressureLimit(width) => self.pressure_limit = width,
            Rule::DisplayDecrease { keeps } => self.display_decrease_keeps = keeps,
            Rule::IcebergRefill { fresh } => self.iceberg_refill_fresh = fresh,
            Rule::MarketRemainder { rests } => self.market_remainder_rests = rests,
            Rule::Schedule { at_ns, phase } => {
                self.timetable = self.timetable.with_row(at_ns, phase).ok_or(Reason::InvalidRule)?;
            }
            Rule::Reference(price) => {
                self.validate_price(price).map_err(|_| Reason::InvalidRule)?;
            }
            Rule::PriceRange { .. } | Rule::Tick { .. } | Rule::Lot(_) => {
                unreachable!("these change the layout of the book")
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn validate_quantity(&self, quantity: Quantity) -> Result<(), Reason> {
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

    #[inline]
    pub(crate) fn validate_price(&self, price: Price) -> Result<(), Reason> {
        if !(self.price_min..=self.price_max).contains(&price) {
            Err(Reason::PriceOutOfRange)
        } else if !self.ticks.on_tick(price) {
            Err(Reason::OffTick)
        } else {
            Ok(())
        }
    }

    pub(crate) fn validate_value(&self, price: Price, quantity: Quantity) -> Result<(), Reason> {
        let value = u128::from(price.0.max(0).unsigned_abs()) * u128::from(quantity.0);
        let within = self.value_max == 0 || value <= u128::from(self.value_max);
        if within { Ok(()) } else { Err(Reason::ValueTooLarge) }
    }

    #[inline]
    pub(crate) fn on_lot(&self, quantity: Quantity) -> bool {
        // Most shares trade in lots of one, and a division is the dearest instruction of this check.
        self.lot.0 == 1 || quantity.0.is_multiple_of(self.lot.0)
    }

    fn range_is_legal(&self) -> bool {
        let on_tick = |price| self.ticks.on_tick(price);
        let prices = self.price_max.0.abs_diff(self.price_min.0) / self.ticks.grid().0.unsigned_abs();
        prices < Self::PRICES_MAX
            && self.price_min <= self.price_max
            && on_tick(self.price_min)
            && on_tick(self.price_max)
    }

    /// Whether the shares of a full book can be counted: sums of quantities then never overflow.
    fn totals_fit(&self) -> bool {
        let total = self.quantity_max.0.checked_mul(u64::from(self.orders_max));
        // The highest u32 marks "no slot" in the fast book's links.
        (1..u32::MAX).contains(&self.orders_max) && total.is_some_and(|shares| shares <= i64::MAX as u64)
    }
}
