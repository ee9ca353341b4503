//! Rules and phases as an operator writes them.

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pares_types::{Phase, Price, Quantity, Rule};

use crate::utc;

/// A phase by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PhaseName {
    /// Orders may only be cancelled
    Closed,
    /// Orders gather for the opening auction
    OpeningCall,
    /// Orders match as they come
    Continuous,
    /// Orders gather for the closing auction
    ClosingCall,
    /// Orders match at the closing price
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

/// A rule with its new value. Prices are in currency: 223.82.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
#[command(allow_negative_numbers = true)]
pub enum NewRule {
    /// Lowest and highest legal price; only while no order is there
    PriceRange {
        /// Lowest
        #[arg(value_parser = price)]
        min: Price,
        /// Highest
        #[arg(value_parser = price)]
        max: Price,
    },
    /// Price step from a price upwards; only while no order is there
    Tick {
        /// The first price it holds for
        #[arg(value_parser = price)]
        from: Price,
        /// The step; 0 removes the row
        #[arg(value_parser = price)]
        tick: Price,
    },
    /// Smallest quantity step; only while no order is there
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
    /// Orders the book takes
    OrdersMax {
        /// Orders, held ones included
        orders: u32,
    },
    /// Events one request may cause
    StepMax {
        /// Events
        events: u32,
    },
    /// How far from the reference price trades may be
    StaticBand {
        /// Hundredths of a percent; 0 for no limit
        width: u32,
    },
    /// How far from the last trade trades may be
    DynamicBand {
        /// Hundredths of a percent; 0 for no limit
        width: u32,
    },
    /// How long a volatility call lasts
    CallTime {
        /// Milliseconds; 0 for none
        ms: u64,
    },
    /// When a phase begins each day
    Schedule {
        /// Time of day, UTC: 09:00:00
        #[arg(value_parser = time_of_day)]
        at: u64,
        /// The phase; leave it out to remove the row
        #[arg(value_parser = scheduled())]
        phase: Option<PhaseName>,
    },
    /// Reference price of the static band and of auctions
    Reference {
        /// The price
        #[arg(value_parser = price)]
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
            Self::StaticBand { width } => Rule::StaticBand(width),
            Self::DynamicBand { width } => Rule::DynamicBand(width),
            Self::CallTime { ms } => {
                let ns = ms.checked_mul(1_000_000).ok_or("that call would never end")?;
                Rule::CallTime { ns }
            }
            Self::Schedule { at, phase } => Rule::Schedule { at_ns: at, phase: phase.map(Phase::from) },
            Self::Reference { price } => Rule::Reference(price),
        })
    }
}

/// Reads a price in currency, with up to four decimals.
pub fn price(text: &str) -> Result<Price, String> {
    let wrong = || format!("`{text}` is no price; one looks like 223.82, with up to four decimals");
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
    utc::parse_time(text).ok_or_else(|| format!("`{text}` is no time of day; one looks like 09:30:00"))
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

    #[test]
    fn a_timetable_takes_every_phase_but_a_halt() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(subcommand)]
            rule: NewRule,
        }
        let read = |phase| <Line as clap::Parser>::try_parse_from(["rule", "schedule", "09:00:00", phase]);
        let row = read("post-close").unwrap().rule.rule().unwrap();
        assert_eq!(row, Rule::Schedule { at_ns: 32_400_000_000_000, phase: Some(Phase::PostClose) });
        assert!(read("halted").is_err());
    }

    #[test]
    fn times_of_day_are_nanoseconds_since_midnight() {
        assert_eq!(time_of_day("00:01:30"), Ok(90_000_000_000));
        assert!(time_of_day("24:00").is_err());
    }
}
