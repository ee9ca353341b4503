//! `pares bench feed`: market data, from the record to books, on one core.
//!
//! Others publish rates of theirs on machines of theirs over days of theirs. Two of them run here, in the same rounds over the same
//! bytes; of the third there is its figure. What is told is the median of the rounds.
//!
//! | module | what |
//! |---|---|
//! | `published` | records become messages and packets |
//! | `decoded` | packets become messages |
//! | `built` | packets become messages and books |
//! | `itchy` | the crate of that name over the same messages |
//! | `itch_book` | the Python package of that name over the same messages |
//! | `day`, `packets` | what the last four read |

mod built;
mod day;
mod decoded;
mod itch_book;
mod itchy;
mod packets;
mod published;
mod table;

use std::time::Instant;

use pares_load::{LabError, LabResult};
use pares_text::progress;
use serde::Serialize;

use day::Day;
use packets::Packets;

/// Arguments of `pares bench feed`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Rounds; everything runs once in each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Instruments whose books are built
    #[arg(long, default_value_t = 8_000, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    instruments: u16,
    /// Orders that live while messages are counted
    #[arg(long, default_value_t = 1_600_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    orders: u32,
    /// Messages that are counted
    #[arg(long, default_value_t = 8_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    messages: u32,
    /// Only our own
    #[arg(long)]
    no_peers: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// All that was measured: messages per second.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Figures {
    /// From records to packets.
    pub(crate) published_per_s: u64,
    /// From packets to messages.
    pub(crate) decoded_per_s: u64,
    /// From packets to books.
    pub(crate) books_per_s: u64,
    /// From bytes to messages, by `itchy`.
    pub(crate) itchy_per_s: Option<u64>,
    /// From bytes to books, by `itch-book`.
    pub(crate) itch_book_per_s: Option<u64>,
    /// Why there is no figure of `itch-book`.
    pub(crate) itch_book_missing: Option<String>,
    /// Instruments of the books.
    pub(crate) instruments: u16,
    /// Orders in them at the end.
    pub(crate) living_orders: u64,
    /// Rounds of each.
    pub(crate) runs: u32,
}

/// Messages per second of each round.
#[derive(Debug, Default)]
struct Rates(Vec<u64>);

impl Rates {
    /// Times one round of so many messages.
    fn time<T>(&mut self, messages: u64, round: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = round();
        self.add(messages, begun.elapsed().as_nanos());
        result
    }

    fn add(&mut self, messages: u64, elapsed_ns: u128) {
        self.0.push((u128::from(messages) * 1_000_000_000 / elapsed_ns.max(1)) as u64);
    }

    fn median(&self) -> Option<u64> {
        let mut rates = self.0.clone();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied()
    }
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If ours and another's books are not the same at the end.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    if args.json {
        pares_text::say!("{}", serde_json::json!(figures));
    } else {
        table::print(&figures);
    }
    Ok(())
}

/// Runs the benchmark.
///
/// # Errors
/// See [`run`].
pub(crate) fn measure(args: &Args) -> Result<Figures, LabError> {
    let published_per_s = published::measure(args.runs);
    let day = Day::new(args.instruments, args.orders as usize, args.messages as usize);
    let (opening, trading) = (Packets::of(&day.opening), Packets::of(&day.trading));
    let (mut peer, itch_book_missing) = match args.no_peers {
        true => (None, Some("left out".to_owned())),
        false => match itch_book::Peer::start(&day) {
            Ok(peer) => (Some(peer), None),
            Err(reason) => (None, Some(reason)),
        },
    };
    let messages = trading.messages();
    let [mut decoded, mut built, mut itchy, mut itch_book] = [(); 4].map(|()| Rates::default());
    let (mut living_orders, bar) = (0, progress::steps("books", args.runs.into()));
    for _ in 0..args.runs {
        decoded::round(&trading, &mut decoded);
        living_orders = built::round(&opening, &trading, &mut built)?;
        if !args.no_peers {
            itchy.time(messages, || itchy::decode(&day.trading, messages));
        }
        if let Some(peer) = &mut peer {
            peer.round(messages, living_orders, &mut itch_book)?;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Figures {
        published_per_s,
        decoded_per_s: decoded.median().unwrap_or_default(),
        books_per_s: built.median().unwrap_or_default(),
        itchy_per_s: itchy.median(),
        itch_book_per_s: itch_book.median(),
        itch_book_missing,
        instruments: args.instruments,
        living_orders,
        runs: args.runs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_day_gives_every_figure_of_ours() {
        let args =
            Args { runs: 1, instruments: 10, orders: 1_000, messages: 20_000, no_peers: true, json: false };
        let figures = measure(&args).unwrap();
        assert!(figures.published_per_s > 0 && figures.decoded_per_s > 0 && figures.books_per_s > 0);
        assert!((500..2_000).contains(&figures.living_orders), "{}", figures.living_orders);
    }

    #[test]
    fn the_rate_of_the_middle_round_is_told() {
        let mut rates = Rates::default();
        [30, 10, 20].into_iter().for_each(|messages| rates.add(messages, 1_000_000_000));
        assert_eq!(rates.median(), Some(20));
        assert_eq!(Rates::default().median(), None);
    }
}
