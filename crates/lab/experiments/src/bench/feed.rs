//! `pares bench feed`: market data, from the record to books and to a member's traders.
//!
//! Others publish rates of theirs on machines of theirs over days of theirs. Two of them run here, in the same rounds over the same
//! bytes; of the third there is its figure. The figures are the medians of the rounds.
//!
//! | module | what |
//! |---|---|
//! | `published` | records become messages and packets |
//! | `decoded` | packets become messages |
//! | `built` | packets become messages and books |
//! | `itchy` | the crate of that name over the same messages |
//! | `itch_book` | the Python package of that name over the same messages |
//! | `day`, `packets` | what these four read |
//! | `books` | the rounds of these four |
//! | `received` | two lines' sockets to books |
//! | `sent` | from a committed position to its packets |
//! | `traders` | a member server and its traders |
//! | `figures` | what was measured |

mod books;
mod built;
mod day;
mod decoded;
mod figures;
mod itch_book;
mod itchy;
mod packets;
mod published;
mod received;
mod sent;
mod traders;

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Instant;

use clap::ValueEnum;
use hdrhistogram::Histogram;
use pares_config::FeedConfig;
use pares_load::{LabError, LabResult, print_figures};
use pares_text::progress;

pub(crate) use figures::Figures;
use traders::{Plan, Way};

/// Arguments of `pares bench feed`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Rounds; everything runs once in each
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Measure only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    /// Instruments whose books are built
    #[arg(long, default_value_t = 8_000, value_parser = clap::value_parser!(u16).range(1..=60_000))]
    instruments: u16,
    /// Open orders during the count
    #[arg(long, default_value_t = 1_600_000, value_parser = clap::value_parser!(u32).range(1_000..=20_000_000))]
    orders: u32,
    /// Messages to count
    #[arg(long, default_value_t = 8_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    messages: u32,
    /// Traders per member server
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(10..=10_000))]
    traders: u32,
    /// Items per second to each trader
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    items: u64,
    /// Items per second to the UDP listener
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cast: u64,
    /// Running time of publishers and member servers in each round, seconds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Measure only our own programs
    #[arg(long)]
    no_peers: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What can be measured by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Records to packets
    Published,
    /// A committed position to its packet
    Sent,
    /// Packets to messages, packets to books
    Books,
    /// Packets through sockets to books
    Received,
    /// Traders by TCP
    Traders,
    /// Traders by WebSocket
    Web,
    /// One who listens by UDP
    Cast,
}

impl Args {
    fn measures(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
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
        median(&self.0)
    }
}

/// The middle one.
fn median<T: Copy + PartialOrd>(of: &[T]) -> Option<T> {
    let mut sorted = of.to_vec();
    sorted.sort_unstable_by(|one, other| one.partial_cmp(other).expect("numbers"));
    sorted.get(sorted.len() / 2).copied()
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If ours and another's books are not the same at the end, or something that was sent does not come.
pub fn run(args: &Args) -> LabResult {
    let figures = measure(args)?;
    print_figures(args.json, &figures);
    Ok(())
}

/// Runs the benchmark.
///
/// # Errors
/// See [`run`].
pub(crate) fn measure(args: &Args) -> Result<Figures, LabError> {
    let mut figures = Figures { runs: args.runs, ..Figures::default() };
    if args.measures(Part::Published) {
        figures.published_per_s = published::measure(args.runs);
    }
    if args.measures(Part::Books) || args.measures(Part::Received) {
        books::measure(args, &mut figures)?;
    }
    if args.measures(Part::Sent) {
        measure_sent(args, &mut figures)?;
    }
    if args.measures(Part::Traders) {
        measure_traders(args, &mut figures)?;
    }
    if args.measures(Part::Web) {
        let (rate, delays) = serve(args, Way::Web, false)?;
        (figures.web_deliveries_per_s, figures.web_p99_us) = (rate, delays.map(|[_, p99]| p99));
    }
    if args.measures(Part::Cast) {
        let casts = rounds(args, "casting", || traders::cast(args.cast, args.seconds))?;
        let middle = |of: fn(&traders::Cast) -> u64| median(&casts.iter().map(of).collect::<Vec<_>>());
        figures.cast_messages_per_s = middle(|cast| cast.messages_per_s);
        figures.packets_per_s = middle(|cast| cast.packets_per_s);
        figures.cast_lost = Some(casts.iter().map(|cast| cast.lost).sum());
    }
    Ok(figures)
}

/// Both lines' ends, sockets of this process, and the settings of a publisher that sends there.
pub(super) fn lines() -> Result<([UdpSocket; 2], FeedConfig), LabError> {
    let line = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LabError::io("binding a line"));
    let address = |line: &UdpSocket| line.local_addr().map_err(LabError::io("asking for a port"));
    let [a, b] = [line()?, line()?];
    let (line_a, line_b, replayers) = (address(&a)?, address(&b)?, vec![([127, 0, 0, 1], 0).into()]);
    Ok(([a, b], FeedConfig { publishers: 1, line_a, line_b, replayers, ..FeedConfig::default() }))
}

/// So many rounds of something.
fn rounds<T>(
    args: &Args,
    what: &'static str,
    mut round: impl FnMut() -> Result<T, LabError>,
) -> Result<Vec<T>, LabError> {
    progress::over(what, 0..args.runs).map(|_| round()).collect()
}

/// No delays yet: up to a minute, nanoseconds.
fn delays() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are sound")
}

/// Microseconds: the middle of rounds, and the worst of a hundred.
fn quantiles<'a>(rounds: impl Iterator<Item = &'a Histogram<u64>> + Clone) -> Option<[f64; 2]> {
    let middle = |quantile| {
        let us = rounds.clone().map(|delays| delays.value_at_quantile(quantile) as f64 / 1_000.0);
        median(&us.collect::<Vec<_>>())
    };
    Some([middle(0.5)?, middle(0.99)?])
}

fn measure_sent(args: &Args, figures: &mut Figures) -> LabResult {
    let all = rounds(args, "sending", || sent::measure(args.seconds))?;
    if let Some([p50, p99]) = quantiles(all.iter()) {
        (figures.committed_to_sent_p50_us, figures.committed_to_sent_p99_us) = (Some(p50), Some(p99));
    }
    Ok(())
}

fn measure_traders(args: &Args, figures: &mut Figures) -> LabResult {
    let (rate, delays) = serve(args, Way::Stream, false)?;
    figures.traders = args.traders;
    figures.deliveries_per_s = rate;
    if let Some([p50, p99]) = delays {
        (figures.fast_p50_us, figures.fast_p99_us) = (Some(p50), Some(p99));
    }
    let (rate, delays) = serve(args, Way::Stream, true)?;
    figures.slow_traders = args.traders / 10;
    figures.deliveries_slow_per_s = rate;
    figures.fast_p99_slow_us = delays.map(|[_, p99]| p99);
    Ok(())
}

/// Deliveries a second, and delays.
fn serve(args: &Args, way: Way, slow: bool) -> Result<(Option<u64>, Option<[f64; 2]>), LabError> {
    let plan = Plan { way, traders: args.traders, slow, rate: args.items, seconds: args.seconds };
    let served = rounds(args, "serving traders", || traders::measure(&plan))?;
    let rates: Vec<u64> = served.iter().map(|served| served.deliveries_per_s).collect();
    Ok((median(&rates), quantiles(served.iter().map(|served| &served.delays))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(only: &[Part]) -> Args {
        Args {
            runs: 1,
            only: only.to_vec(),
            instruments: 10,
            orders: 1_000,
            messages: 20_000,
            traders: 20,
            items: 100,
            cast: 100,
            seconds: 1,
            no_peers: true,
            json: false,
        }
    }

    #[test]
    fn a_small_day_gives_every_figure_of_ours() {
        let figures = measure(&args(&[])).unwrap();
        assert!((500..2_000).contains(&figures.living_orders), "{}", figures.living_orders);
        let printed = serde_json::json!(figures);
        for key in [
            "published_per_s",
            "committed_to_sent_p50_us",
            "committed_to_sent_p99_us",
            "decoded_per_s",
            "books_per_s",
            "received_per_s",
            "traders",
            "deliveries_per_s",
            "fast_p50_us",
            "fast_p99_us",
            "slow_traders",
            "deliveries_slow_per_s",
            "fast_p99_slow_us",
            "web_deliveries_per_s",
            "web_p99_us",
            "cast_messages_per_s",
            "packets_per_s",
            "cpptrader_published_decoded_per_s",
            "cpptrader_published_books_per_s",
        ] {
            assert!(printed[key].as_f64() > Some(0.0), "{key} in {printed}");
        }
    }

    #[test]
    fn what_is_not_asked_for_is_not_measured() {
        let figures = measure(&args(&[Part::Received])).unwrap();
        assert!(figures.received_per_s.is_some() && figures.books_per_s.is_none());
    }

    #[test]
    fn the_rate_of_the_middle_round_is_told() {
        let mut rates = Rates::default();
        [30, 10, 20].into_iter().for_each(|messages| rates.add(messages, 1_000_000_000));
        assert_eq!(rates.median(), Some(20));
        assert_eq!(Rates::default().median(), None);
    }
}
