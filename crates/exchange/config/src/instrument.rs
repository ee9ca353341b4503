//! The settings of one instrument, as it is when a shard begins.
//!
//! The exchange may change, add and remove instruments while a shard lives; what it made of them is in the record, and
//! these settings only say what the record begins with.

use pares_book::{Instrument, Symbol, TickRow, TickTable, Timetable, TimetableRow};
use pares_types::{Band, InstrumentId, Phase, Price, Quantity, TieBreak};
use serde::{Deserialize, Serialize};

use crate::ConfigError;

/// One instrument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InstrumentConfig {
    /// Its id, from 1.
    pub id: u32,
    /// What people call it: at most 16 ASCII characters.
    pub symbol: String,
    /// The total order it belongs to; by default each instrument has its own.
    pub shard: Option<u16>,
    /// Smallest price step, price units (1/10,000).
    pub tick: i64,
    /// Smallest quantity step.
    pub lot: u64,
    /// Largest order.
    pub quantity_max: u64,
    /// Largest order, price units times shares; 0 for no limit.
    pub value_max: u64,
    /// Lowest legal price, price units.
    pub price_min: i64,
    /// Highest legal price, price units.
    pub price_max: i64,
    /// Orders its book holds at most.
    pub orders_max: u32,
    /// Events one request may cause.
    pub step_max: u32,
    /// How far from the reference price trades may be, hundredths of a percent; 0 for no limit.
    pub static_band: u32,
    /// The same in price units; the larger holds.
    pub static_band_least: i64,
    /// How far from the last trade trades may be, hundredths of a percent; 0 for no limit.
    pub dynamic_band: u32,
    /// The same in price units; the larger holds.
    pub dynamic_band_least: i64,
    /// How long a volatility call lasts, milliseconds; 0 for none.
    pub call_ms: u64,
    /// How long a call continues that would end outside a band, milliseconds each time.
    pub extension_ms: u64,
    /// How often at most.
    pub extensions_max: u8,
    /// Whether a call continues that would leave market orders over, too.
    pub extends_for_market: bool,
    /// Within which time after its end a call ends at random, milliseconds; 0 for at its end.
    pub random_end_ms: u64,
    /// Shares an auction needs to set the closing and the reference price.
    pub auction_min: u64,
    /// Which of several auction prices is taken that are as good.
    pub tie_break: TieBreakSetting,
    /// How far from the latest price what is left over moves an auction's price, hundredths of a percent; 0 for no limit.
    pub pressure_limit: u32,
    /// Whether an iceberg that is to show less keeps its priority.
    pub display_decrease_keeps: bool,
    /// Whether an iceberg shows a whole peak after an order that took more than it showed.
    pub iceberg_refill_fresh: bool,
    /// Whether a market order that has traded and finds nobody any more rests at the latest price.
    pub market_remainder_rests: bool,
    /// Price steps by price, in place of `tick`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ticks: Vec<TickSetting>,
    /// When it enters which phase; without any it trades all the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timetable: Vec<TimetableSetting>,
}

/// From which price on which price step holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TickSetting {
    /// The first price of the row, price units.
    pub from: i64,
    /// Smallest price step, price units.
    pub tick: i64,
}

/// At a time of day the instrument enters a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimetableSetting {
    /// Hours, minutes, seconds and perhaps parts of one, UTC: `08:00:00`.
    pub at: String,
    /// The phase.
    pub phase: PhaseSetting,
}

/// A phase that a timetable can name, as all commands write it; the words with hyphens were written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseSetting {
    /// Orders may only be cancelled.
    Closed,
    /// Orders gather for the opening auction.
    #[serde(alias = "opening-call")]
    OpeningCall,
    /// Orders match as they come.
    Continuous,
    /// Orders gather for the closing auction.
    #[serde(alias = "closing-call")]
    ClosingCall,
    /// Orders match at the closing price.
    #[serde(alias = "post-close")]
    PostClose,
}

impl From<PhaseSetting> for Phase {
    fn from(setting: PhaseSetting) -> Self {
        match setting {
            PhaseSetting::Closed => Self::Closed,
            PhaseSetting::OpeningCall => Self::OpeningCall,
            PhaseSetting::Continuous => Self::Continuous,
            PhaseSetting::ClosingCall => Self::ClosingCall,
            PhaseSetting::PostClose => Self::PostClose,
        }
    }
}

/// Which of several auction prices is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TieBreakSetting {
    /// The latest price, as near as they allow.
    Latest,
    /// The limit next to it, of two as near the higher.
    NearestLimit,
}

/// What a file that leaves a setting out means; id and symbol are never left out.
impl Default for InstrumentConfig {
    fn default() -> Self {
        Self::new(0, "")
    }
}

impl InstrumentConfig {
    /// An instrument with the default rules and a shard of its own.
    #[must_use]
    pub fn new(id: u32, symbol: &str) -> Self {
        Self {
            id,
            symbol: symbol.to_owned(),
            shard: None,
            tick: 100,
            lot: 1,
            quantity_max: 1_000_000,
            value_max: 0,
            price_min: 100,
            price_max: 100_000_000,
            orders_max: 20_000,
            step_max: 4_096,
            static_band: 0,
            static_band_least: 0,
            dynamic_band: 0,
            dynamic_band_least: 0,
            call_ms: 0,
            extension_ms: 120_000,
            extensions_max: 2,
            extends_for_market: false,
            random_end_ms: 0,
            auction_min: 0,
            tie_break: TieBreakSetting::Latest,
            pressure_limit: 0,
            display_decrease_keeps: true,
            iceberg_refill_fresh: true,
            market_remainder_rests: false,
            ticks: Vec::new(),
            timetable: Vec::new(),
        }
    }

    /// The instrument as the books want it.
    ///
    /// # Errors
    /// If no instrument can be like that.
    pub fn instrument(&self) -> Result<Instrument, ConfigError> {
        let wrong = |what: &dyn std::fmt::Display| ConfigError(format!("instrument {}: {what}", self.id));
        let symbol = Symbol::new(&self.symbol).map_err(|error| wrong(&error))?;
        Instrument::new(Instrument {
            ticks: self.tick_table().map_err(|what| wrong(&what))?,
            lot: Quantity(self.lot),
            quantity_max: Quantity(self.quantity_max),
            value_max: self.value_max,
            price_min: Price(self.price_min),
            price_max: Price(self.price_max),
            orders_max: self.orders_max,
            step_max: self.step_max,
            static_band: Band { width: self.static_band, least: Price(self.static_band_least) },
            dynamic_band: Band { width: self.dynamic_band, least: Price(self.dynamic_band_least) },
            call_ns: nanoseconds_of(self.call_ms).ok_or_else(|| wrong(&"`call_ms` is too large"))?,
            extension_ns: nanoseconds_of(self.extension_ms)
                .ok_or_else(|| wrong(&"`extension_ms` is too large"))?,
            extensions_max: self.extensions_max,
            extends_for_market: self.extends_for_market,
            random_end_ns: nanoseconds_of(self.random_end_ms)
                .ok_or_else(|| wrong(&"`random_end_ms` is too large"))?,
            auction_min: Quantity(self.auction_min),
            tie_break: match self.tie_break {
                TieBreakSetting::Latest => TieBreak::Latest,
                TieBreakSetting::NearestLimit => TieBreak::NearestLimit,
            },
            pressure_limit: self.pressure_limit,
            display_decrease_keeps: self.display_decrease_keeps,
            iceberg_refill_fresh: self.iceberg_refill_fresh,
            market_remainder_rests: self.market_remainder_rests,
            timetable: self.timetable().map_err(|what| wrong(&what))?,
            ..Instrument::listed(InstrumentId(self.id), symbol)
        })
        .map_err(|error| wrong(&error))
    }

    fn tick_table(&self) -> Result<TickTable, &'static str> {
        if self.ticks.is_empty() {
            return Ok(TickTable::flat(Price(self.tick)));
        }
        let rows = self.ticks.iter().map(|row| TickRow { from: Price(row.from), tick: Price(row.tick) });
        let rows: Vec<TickRow> = rows.collect();
        TickTable::from_rows(&rows).ok_or(
            "`ticks` must have 1 to 8 rows, lowest price first, each starting at a multiple of its tick",
        )
    }

    fn timetable(&self) -> Result<Timetable, &'static str> {
        let row = |row: &TimetableSetting| {
            Some(TimetableRow { at_ns: nanoseconds(&row.at)?, phase: row.phase.into() })
        };
        let rows: Option<Vec<TimetableRow>> = self.timetable.iter().map(row).collect();
        let rows = rows.ok_or("`at` in `timetable` must be a time of day, such as 08:00:00")?;
        Timetable::from_rows(&rows).ok_or("`timetable` may have at most 16 rows, at different times")
    }
}

fn nanoseconds_of(ms: u64) -> Option<u64> {
    ms.checked_mul(1_000_000)
}

/// Nanoseconds since midnight of `HH:MM:SS` or `HH:MM`.
pub(crate) fn nanoseconds(at: &str) -> Option<u64> {
    let (at, fraction) = at.split_once('.').map_or((at, "0"), |(at, fraction)| (at, fraction));
    let is_number = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let mut fields =
        at.split(':').map(|field| if is_number(field, 2) { field.parse::<u64>().ok() } else { None });
    let (hours, minutes) = (fields.next()??, fields.next()??);
    let seconds = fields.next().map_or(Some(0), |field| field)?;
    let legal =
        hours < 24 && minutes < 60 && seconds < 60 && fields.next().is_none() && is_number(fraction, 9);
    let fraction_ns: u64 = format!("{fraction:0<9}").parse().ok()?;
    legal.then_some((hours * 3_600 + minutes * 60 + seconds) * 1_000_000_000 + fraction_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Instrument, String> {
        let config: InstrumentConfig = toml::from_str(text).map_err(|error| error.to_string())?;
        assert_eq!(toml::from_str::<InstrumentConfig>(&toml::to_string(&config).unwrap()).unwrap(), config);
        config.instrument().map_err(|error| error.to_string())
    }

    #[test]
    fn two_settings_make_an_instrument_that_always_trades() {
        let instrument = read("id = 3\nsymbol = \"ALFA\"").unwrap();
        assert_eq!((instrument.id, instrument.first_phase()), (InstrumentId(3), Phase::Continuous));
        assert_eq!(instrument.ticks, TickTable::flat(Price(100)));
        assert_eq!((instrument.step_max, instrument.orders_max), (4_096, 20_000));
    }

    #[test]
    fn every_rule_can_be_set() {
        let text = "id = 3\nsymbol = \"ALFA\"\nvalue_max = 5\nstep_max = 7\nstatic_band = 500\ndynamic_band = 200\n\
                    call_ms = 120000\nticks = [{ from = 100, tick = 1 }, { from = 10000, tick = 100 }]\n\
                    [[timetable]]\nat = \"08:00:00\"\nphase = \"opening-call\"\n[[timetable]]\nat = \"9:30\"\nphase = \"post_close\"";
        let instrument = read(text).unwrap();
        assert_eq!((instrument.value_max, instrument.step_max), (5, 7));
        assert_eq!((instrument.static_band, instrument.dynamic_band), (Band::of(500), Band::of(200)));
        assert_eq!(instrument.call_ns, 120_000_000_000);
        assert_eq!(instrument.ticks.tick_at(Price(20_000)), Price(100));
        let hour = 3_600_000_000_000;
        let rows = instrument.timetable.rows().iter().map(|row| (row.at_ns * 2 / hour, row.phase));
        assert!(rows.eq([(16, Phase::OpeningCall), (19, Phase::PostClose)]));
        assert_eq!(instrument.first_phase(), Phase::Closed);
    }

    #[test]
    fn a_time_of_day_may_have_parts_of_a_second() {
        assert_eq!(nanoseconds("00:00:01.5"), Some(1_500_000_000));
        assert_eq!((nanoseconds("00:00:00.000000001"), nanoseconds("00:00:00.0000000001")), (Some(1), None));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |line: &str| read(&format!("id = 3\nsymbol = \"ALFA\"\n{line}")).unwrap_err();
        assert!(of("timetable = [{ at = \"25:00:00\", phase = \"closed\" }]").contains("`at`"));
        assert!(of("timetable = [{ at = \"10:00:00\", phase = \"halted\" }]").contains("halted"));
        assert!(of("timetable = [{ at = \"10:00:00.x\", phase = \"closed\" }]").contains("`at`"));
        assert!(of("ticks = [{ from = 150, tick = 100 }]").contains("`ticks`"));
        assert!(of("step_max = 0").contains("step"));
        assert!(of("call_ms = 9000000000000000000").contains("call_ms"));
    }
}
