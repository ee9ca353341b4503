//! Rules and phases as an operator writes them.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pares_book::{Timetable, TimetableRow};
use pares_types::{Band, DAY_NS, Phase, Price, Quantity, Rule, TieBreak, Timestamp};

use crate::utc;

/// A phase by its name. Hyphens are taken too, as other words of the command line have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum PhaseName {
    /// Orders may only be cancelled
    Closed,
    /// Orders collect for the opening auction
    #[value(alias = "opening-call")]
    OpeningCall,
    /// Orders match on arrival
    Continuous,
    /// Orders collect for the closing auction
    #[value(alias = "closing-call")]
    ClosingCall,
    /// Orders match at the closing price
    #[value(alias = "post-close")]
    PostClose,
    /// Stopped: orders may only be cancelled
    Halted,
}

impl From<PhaseName> for Phase {
    fn from(name: PhaseName) -> Self {
        match name {
            PhaseName::Closed => Self::Closed,
            PhaseName::OpeningCall => Self::OpeningCall,
            PhaseName::Continuous => Self::Continuous,
            PhaseName::ClosingCall => Self::ClosingCall,
            PhaseName::PostClose => Self::PostClose,
            PhaseName::Halted => Self::Halted,
        }
    }
}

/// Which of several auction prices is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum TieBreakName {
    /// The candidate price nearest to the last price
    Latest,
    /// The limit price nearest to the last price; the higher of two equally near
    NearestLimit,
}

/// A rule with its new value.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum NewRule {
    /// Lowest and highest legal price, decimals such as 223.82 (`pares.toml` uses price units); only while the book is empty
    PriceRange {
        /// Lowest
        #[arg(value_parser = price, allow_negative_numbers = true)]
        min: Price,
        /// Highest
        #[arg(value_parser = price, allow_negative_numbers = true)]
        max: Price,
    },
    /// Tick size from a price upwards, decimals such as 0.05 (`pares.toml` uses price units); only while the book is empty
    Tick {
        /// The lowest price with this tick size
        #[arg(value_parser = price, allow_negative_numbers = true)]
        from: Price,
        /// The tick size; 0 removes the row
        #[arg(value_parser = price, allow_negative_numbers = true)]
        tick: Price,
    },
    /// Lot size; only while the book is empty
    Lot {
        /// Shares
        shares: u64,
    },
    /// Largest order
    QuantityMax {
        /// Shares
        shares: u64,
    },
    /// Largest order by value
    ValueMax {
        /// Price units (1/10,000) times shares; 0 for no limit
        value: u64,
    },
    /// Most orders in the book
    OrdersMax {
        /// Orders, including held ones
        orders: u32,
    },
    /// Most events that one request may cause
    StepMax {
        /// Events
        events: u32,
    },
    /// Static price band: distance from the reference price
    StaticBand {
        /// Hundredths of a percent; 0 for no limit
        width: u32,
        /// Smallest width of the band, a decimal such as 0.05: for prices near or below zero
        #[arg(value_parser = price, default_value = "0")]
        least: Price,
    },
    /// Dynamic price band: distance from the last trade
    DynamicBand {
        /// Hundredths of a percent; 0 for no limit
        width: u32,
        /// Smallest width of the band, a decimal such as 0.05: for prices near or below zero
        #[arg(value_parser = price, default_value = "0")]
        least: Price,
    },
    /// Length of a volatility call. While its auction would trade outside a band, `extension` prolongs it: set both
    Call {
        /// Milliseconds; 0 for none
        ms: u64,
    },
    /// Start time of a phase on each day. A row whose time has passed today takes effect at once if the instrument never received
    /// the time: set the whole timetable, or send `pares admin time` first
    Schedule {
        /// Time of day, UTC: 09:00:00
        #[arg(value_parser = time_of_day)]
        at: u64,
        /// The phase; omit it to remove the row
        #[arg(value_parser = scheduled())]
        phase: Option<PhaseName>,
    },
    /// Extension of a call that would end outside a price band
    Extension {
        /// Length of one extension, milliseconds
        ms: u64,
        /// Most extensions, after which only prices within the bands count; 0 for none
        max: u8,
        /// Also extend if market orders would stay unfilled
        #[arg(long)]
        market: bool,
    },
    /// Random delay of the end of a call
    RandomEnd {
        /// Longest delay, milliseconds; 0 for none
        ms: u64,
    },
    /// Least auction volume that sets the closing and the reference price
    AuctionMin {
        /// Shares; 0 for any
        shares: u64,
    },
    /// Tie-break between equally good auction prices
    TieBreak {
        /// The last price itself, or the limit price nearest to it
        one: TieBreakName,
    },
    /// Largest move of the auction price by market pressure, from the last price
    PressureLimit {
        /// Hundredths of a percent; 0 for no limit
        width: u32,
    },
    /// Refill an iceberg's display to a full peak after an order that took more than it displayed
    IcebergRefill {
        /// true or false
        #[arg(action = clap::ArgAction::Set)]
        fresh: bool,
    },
    /// Rest the remainder of a partly filled market order at the last price
    MarketRemainder {
        /// true or false
        #[arg(action = clap::ArgAction::Set)]
        rests: bool,
    },
    /// Keep an iceberg's priority when its display decreases
    DisplayDecrease {
        /// true or false
        #[arg(action = clap::ArgAction::Set)]
        keeps: bool,
    },
    /// Reference price of the static band and of auctions
    Reference {
        /// The price
        #[arg(value_parser = price, allow_negative_numbers = true)]
        price: Price,
    },
}

impl NewRule {
    /// The rule in the exchange's terms.
    ///
    /// # Errors
    /// If a time is beyond the end of time.
    pub fn rule(&self) -> Result<Rule, String> {
        Ok(match *self {
            Self::PriceRange { min, max } => Rule::PriceRange { min, max },
            Self::Tick { from, tick } => Rule::Tick { from, tick },
            Self::Lot { shares } => Rule::Lot(Quantity(shares)),
            Self::QuantityMax { shares } => Rule::QuantityMax(Quantity(shares)),
            Self::ValueMax { value } => Rule::ValueMax(value),
            Self::OrdersMax { orders } => Rule::OrdersMax(orders),
            Self::StepMax { events } => Rule::StepMax(events),
            Self::StaticBand { width, least } => Rule::StaticBand(Band { width, least }),
            Self::DynamicBand { width, least } => Rule::DynamicBand(Band { width, least }),
            Self::Call { ms } => Rule::Call { ns: nanoseconds(ms)? },
            Self::Extension { ms, max, market } => Rule::Extension { ns: nanoseconds(ms)?, max, market },
            Self::RandomEnd { ms } => Rule::RandomEnd { ns: nanoseconds(ms)? },
            Self::AuctionMin { shares } => Rule::AuctionMin(Quantity(shares)),
            Self::TieBreak { one: TieBreakName::Latest } => Rule::TieBreak(TieBreak::Latest),
            Self::TieBreak { one: TieBreakName::NearestLimit } => Rule::TieBreak(TieBreak::NearestLimit),
            Self::PressureLimit { width } => Rule::PressureLimit(width),
            Self::IcebergRefill { fresh } => Rule::IcebergRefill { fresh },
            Self::MarketRemainder { rests } => Rule::MarketRemainder { rests },
            Self::DisplayDecrease { keeps } => Rule::DisplayDecrease { keeps },
            Self::Schedule { at, phase } => Rule::Schedule { at_ns: at, phase: phase.map(Phase::from) },
            Self::Reference { price } => Rule::Reference(price),
        })
    }
}

fn nanoseconds(ms: u64) -> Result<u64, String> {
    ms.checked_mul(1_000_000).ok_or_else(|| "the length is too large".to_owned())
}

/// When a refused rule is legal, where the reason alone does not say what to change.
pub(super) fn condition(rule: Rule) -> &'static str {
    match rule {
        Rule::PriceRange { .. } => {
            " MIN must not exceed MAX, and both must be multiples of their tick sizes."
        }
        Rule::Tick { .. } => {
            " FROM must be a multiple of TICK, the lowest and the highest price must be multiples of their tick sizes, and only an existing row can be removed."
        }
        _ => "",
    }
}

/// Whether a new row of a timetable is past already, and so carried out at once. `done` is up to when the instrument's timetable
/// is done, zero if it was never told the time: then since midnight.
pub(super) fn is_due(row: TimetableRow, done: Timestamp, now: Timestamp) -> bool {
    let done = if done.0 == 0 { Timestamp(now.0 - now.0 % DAY_NS) } else { done };
    let next = Timetable::from_rows(&[row]).and_then(|timetable| timetable.next_after(done));
    next.is_some_and(|(at, _)| at <= now)
}

/// Reads a price in currency, with up to four decimals.
pub fn price(text: &str) -> Result<Price, String> {
    let wrong = || format!("`{text}` is not a price; expected up to four decimals, such as 223.82");
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let number =
        |digits: &str| digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok());
    if fraction.is_empty() || fraction.len() > 4 {
        return Err(wrong());
    }
    let units = || {
        let (whole, fraction) = (number(whole)??, number(&format!("{fraction:0<4}"))??);
        whole.checked_mul(10_000)?.checked_add(fraction)
    };
    let units = units().ok_or_else(wrong)?;
    Ok(Price(if text.starts_with('-') { -units } else { units }))
}

/// Reads a phase that a row of a timetable may have: all but a halt.
fn scheduled() -> impl TypedValueParser<Value = PhaseName> {
    let phases = PhaseName::value_variants().iter().filter(|phase| **phase != PhaseName::Halted);
    PossibleValuesParser::new(phases.filter_map(ValueEnum::to_possible_value))
        .map(|word| PhaseName::from_str(&word, false).expect("it is one of those listed"))
}

fn time_of_day(text: &str) -> Result<u64, String> {
    utc::parse_time(text)
        .ok_or_else(|| format!("`{text}` is not a time of day; expected HH:MM:SS, such as 09:30:00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_as_they_print() {
        for (text, units) in [("223.82", 2_238_200), ("0.0001", 1), ("-0.5", -5_000), ("7", 70_000)] {
            assert_eq!(price(text), Ok(Price(units)), "{text}");
        }
        for wrong in ["", ".", "1.23456", "1,5", "1.", "x", "--1", "+1", "9223372036854775807"] {
            assert!(price(wrong).is_err(), "{wrong}");
        }
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(subcommand)]
        rule: NewRule,
    }

    fn read(line: &str) -> Result<Rule, String> {
        let words = std::iter::once("rule").chain(line.split(' '));
        let line = <Line as clap::Parser>::try_parse_from(words).map_err(|error| error.to_string())?;
        line.rule.rule()
    }

    #[test]
    fn a_timetable_takes_every_phase_but_a_halt() {
        let row = Rule::Schedule { at_ns: 32_400_000_000_000, phase: Some(Phase::PostClose) };
        assert_eq!(read("schedule 09:00:00 post_close"), Ok(row));
        assert_eq!(read("schedule 09:00:00 post-close"), Ok(row));
        assert!(read("schedule 09:00:00 halted").is_err());
    }

    #[test]
    fn timetable_row_due_when_passed_since_last_time() {
        let hour = 3_600_000_000_000;
        let row = TimetableRow { at_ns: 7 * hour, phase: Phase::OpeningCall };
        let at = |hours: u64| Timestamp(20_000 * DAY_NS + hours * hour);
        assert!(is_due(row, Timestamp(0), at(10)), "never told the time");
        assert!(!is_due(row, Timestamp(0), at(6)), "it is still to come");
        assert!(!is_due(row, at(8), at(10)), "told the time since");
        assert!(is_due(row, at(6), at(10)), "told the time before, and not since");
    }

    #[test]
    fn earlier_name_of_a_rule_is_refused_with_the_present_one() {
        assert_eq!(read("call 120000"), Ok(Rule::Call { ns: 120_000_000_000 }));
        let refused = read("call-time 120000").unwrap_err();
        assert!(refused.contains("'call'"), "{refused}");
    }

    #[test]
    fn prices_may_be_negative() {
        let range = Rule::PriceRange { min: Price(-50_000), max: Price(-1) };
        assert_eq!(read("price-range -5 -0.0001"), Ok(range));
        assert_eq!(read("tick -5 0.05"), Ok(Rule::Tick { from: Price(-50_000), tick: Price(500) }));
        assert_eq!(read("reference -7"), Ok(Rule::Reference(Price(-70_000))));
    }

    #[test]
    fn times_of_day_are_nanoseconds_since_midnight() {
        assert_eq!(time_of_day("00:01:30"), Ok(90_000_000_000));
        assert!(time_of_day("24:00").is_err());
    }
}
