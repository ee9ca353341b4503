//! The day in words: a sentence for lines, a few words for the dashboard.

use std::fmt;
use std::time::Duration;

use pares_book::Indication;
use pares_text::{cents, count, grouped, name};
use pares_types::{Phase, Price, Quantity, Side, Timestamp};

use super::log::{Auction, Course};

/// Something to tell of the day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// A sentence.
    pub text: String,
    /// A few words.
    pub brief: String,
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A phase entered, with all there is to say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The phase left.
    pub from: Phase,
    /// The phase.
    pub to: Phase,
    /// When a volatility call ends.
    pub until: Timestamp,
    /// Whether a request of the exchange asked for it.
    pub asked: bool,
    /// The auction held on the way.
    pub auction: Option<Auction>,
    /// Trades of the request that brought it.
    pub fills: usize,
    /// The last trade's price.
    pub last: Option<Price>,
    /// Orders held until then that joined the book.
    pub released: u64,
    /// In a call or a halt, what an auction would do.
    pub crossing: Option<Indication>,
}

impl Entry {
    /// A phase of which nothing else is known.
    pub fn to(to: Phase) -> Self {
        Self {
            from: Phase::Closed,
            to,
            until: Timestamp::NEVER,
            asked: false,
            auction: None,
            fills: 0,
            last: None,
            released: 0,
            crossing: None,
        }
    }
}

/// What to tell of a phase that the course has just entered: its auction first.
pub fn of(course: &Course, entry: &Entry) -> impl Iterator<Item = News> {
    let auction = entry.auction.map(|auction| of_auction(&course.symbol, &auction));
    let text = format!("{}  {}", course.symbol, sentence(course, entry));
    let brief = format!("{} {}", course.symbol, name(&entry.to));
    auction.into_iter().chain([News { text, brief }])
}

fn of_auction(symbol: &str, auction: &Auction) -> News {
    let Auction { of, price, quantity, surplus, surplus_side, trades, carried, .. } = *auction;
    let held = match of {
        Phase::OpeningCall => "opening auction",
        Phase::ClosingCall => "closing auction",
        _ => "auction",
    };
    let left = match surplus_side {
        _ if surplus.is_zero() => "nothing left over".to_owned(),
        Side::Buy => format!("{} more wanted at that price", grouped(surplus.0)),
        Side::Sell => format!("{} more offered at that price", grouped(surplus.0)),
    };
    let carried = match carried {
        0 => String::new(),
        carried => format!("; orders of yesterday took part in {carried} of them"),
    };
    let (price, shares, trades) = (cents(price), grouped(quantity.0), count(trades, "trade"));
    News {
        text: format!("{symbol}  {held}: {shares} shares at {price} in {trades}, {left}{carried}"),
        brief: format!("{symbol} auction {shares} at {price}"),
    }
}

fn sentence(course: &Course, entry: &Entry) -> String {
    let orders = count(course.carried.len() as u64, "order");
    match (entry.from, entry.to) {
        (_, Phase::OpeningCall) if course.times(Phase::OpeningCall) > 1 => {
            format!("opening call of the next day, with {orders} left from yesterday")
        }
        (_, Phase::OpeningCall) => "opening call: orders collect, nothing trades yet".into(),
        (Phase::Halted, Phase::Continuous) => "resumed by the exchange: continuous trading".into(),
        (_, Phase::Continuous) => "continuous trading: orders match on arrival".into(),
        (Phase::VolatilityCall, Phase::VolatilityCall) => {
            let call = call_s(course, entry);
            format!(
                "the call is extended by {call:.1} s: {} would be outside the price band",
                crossing(entry)
            )
        }
        (Phase::Halted, Phase::VolatilityCall) => {
            format!(
                "resumed by the exchange: {} cross, so a call of {:.1} s opens it",
                crossing(entry),
                call_s(course, entry)
            )
        }
        (_, Phase::VolatilityCall) => breach(course, entry),
        (_, Phase::Halted) => {
            format!("halted by the exchange: {} cross, and nothing trades", crossing(entry))
        }
        (_, Phase::ClosingCall) => {
            let waiting = count(entry.released, "order");
            format!("closing call: {waiting} held for it until now can trade in its auction")
        }
        (_, Phase::PostClose) => "after the close: trades at the closing price only".into(),
        (_, Phase::Closed) => format!(
            "closed: {} of the day expired, {orders} good till cancelled stay",
            count(course.expired, "order")
        ),
    }
}

/// The shares that cross.
fn crossing(entry: &Entry) -> String {
    match entry.crossing {
        Some(Indication { price, quantity, .. }) => {
            format!("{} shares at {}", grouped(quantity.0), cents(price))
        }
        None => "no orders".into(),
    }
}

/// How long the call lasts.
fn call_s(course: &Course, entry: &Entry) -> f64 {
    let at = course.phases.last().map_or(0, |entered| entered.at.0);
    Duration::from_nanos(entry.until.0.saturating_sub(at)).as_secs_f64()
}

fn breach(course: &Course, entry: &Entry) -> String {
    let call = call_s(course, entry);
    let last = entry.last.map(cents).unwrap_or_default();
    format!(
        "volatility call for {call:.1} s: {} down to {last}, and the next would be outside the price band",
        count(entry.fills as u64, "trade")
    )
}

/// A member enters an order that will run through the band.
pub fn of_sweep(symbol: &str, quantity: Quantity, limit: Price) -> News {
    let (shares, limit) = (grouped(quantity.0), cents(limit));
    News {
        text: format!("{symbol}  a member sells {shares} shares at once, down to {limit}"),
        brief: format!("{symbol} {shares} sold at once"),
    }
}

/// The member takes back what is left of that order.
pub fn of_taking_back(symbol: &str) -> News {
    News {
        text: format!("{symbol}  the member cancels the rest of that order, which a halt allows"),
        brief: format!("{symbol} taken back"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_auction_comes_before_the_phase_it_leads_to() {
        let course = Course::new("ALFA".into());
        let auction = Auction {
            of: Phase::OpeningCall,
            at: Timestamp(0),
            price: Price(1_825_000),
            quantity: Quantity(12_300),
            surplus: Quantity(400),
            surplus_side: Side::Sell,
            trades: 31,
            carried: 0,
        };
        let entry =
            Entry { from: Phase::OpeningCall, auction: Some(auction), ..Entry::to(Phase::Continuous) };
        let told: Vec<String> = of(&course, &entry).map(|news| news.to_string()).collect();
        assert_eq!(
            told,
            [
                "ALFA  opening auction: 12,300 shares at 182.50 in 31 trades, 400 more offered at that price",
                "ALFA  continuous trading: orders match on arrival",
            ]
        );
    }
}
