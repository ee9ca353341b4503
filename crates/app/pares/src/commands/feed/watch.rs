//! `pares feed watch`: a book, or the best of all, as the feed gives it, with a word for what it is worth.
//!
//! It receives as any member would: lines A and B, messages asked for again, snapshots. Of the system's directory it takes no more than addresses.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_node::Layout;
use pares_receiver::{
    FeedEvent, FeedLines, FeedReceiver, Received, ReceivedBook, ReceiverConfig, ReceiverError,
    SubscriptionState, Trust,
};
use pares_types::{ShardId, Side};

use super::{feed_of, shown};
use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// Between two looks at what is to be shown.
const SHOW_EVERY: Duration = Duration::from_millis(100);

/// Instruments that are named where another was asked for.
const SYMBOLS_TOLD_MAX: usize = 20;

/// What to watch.
#[derive(clap::Args)]
pub struct WatchArgs {
    /// The symbol of an instrument [default: the best bid and offer of all]
    symbol: Option<String>,
    /// Price levels of each side, on the screen and in --json; --plain shows only the best
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=100))]
    levels: u64,
    /// Address of line A of shard 0, in place of pares.toml; needs --line-b and --replayer
    #[arg(long, requires_all = ["line_b", "replayer"])]
    line_a: Option<SocketAddr>,
    /// Address of line B of shard 0
    #[arg(long, requires = "line_a")]
    line_b: Option<SocketAddr>,
    /// Address of a replayer; repeatable. Without lines, all data come from replayers over TCP
    #[arg(long)]
    replayer: Vec<SocketAddr>,
    /// Address of the network interface that receives multicast lines [default: that of pares.toml; with --replayer, the system's choice]
    #[arg(long, value_name = "ADDRESS")]
    interface: Option<Ipv4Addr>,
    /// Number of shards, with --replayer
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    shards: u16,
    /// Do not join the lines; receive everything from the replayers over TCP
    #[arg(long)]
    tcp: bool,
    /// The exchange's CA certificate (ca.pem), if its replayers use TLS; needs --replayer
    #[arg(long, value_name = "FILE", requires = "replayer")]
    feed_ca: Option<PathBuf>,
    /// Stop after this many seconds [default: at Ctrl-C]
    #[arg(long)]
    seconds: Option<u64>,
    /// Print lines instead of a screen, as without a terminal
    #[arg(long)]
    plain: bool,
    /// One JSON object for each change
    #[arg(long)]
    json: bool,
}

/// How what comes is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Face {
    Screen,
    Lines,
    Json,
}

/// Shows what the feed gives.
///
/// # Errors
/// If there is no such system, it has no market data, sockets cannot be had, nothing came of what was to be watched, or it was never current.
pub(super) fn run(args: &WatchArgs, dir: &Path) -> CommandResult {
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    let config = config(args, dir)?;
    let mut watch = Watch::new(args, &config.shards);
    let mut receiver = open(config, args.tcp)?;
    let begun = Instant::now();
    let is_over = || args.seconds.is_some_and(|seconds| begun.elapsed() >= Duration::from_secs(seconds));
    while !stop.load(Ordering::Relaxed) && !is_over() {
        receiver.poll(SHOW_EVERY, |from| watch.on_received(from.shard, &from.received)).map_err(failed)?;
        watch.show_if_due(&receiver);
    }
    watch.tell_all();
    if watch.watched(&receiver).is_empty() {
        return Err(CommandError::Failed(watch.nothing()));
    }
    if watch.came.values().all(|came| !came.was_current) {
        return Err(CommandError::Failed(watch.never_current()));
    }
    Ok(())
}

fn failed(error: ReceiverError) -> CommandError {
    CommandError::Failed(error.to_string())
}

/// What to receive, and from where.
fn config(args: &WatchArgs, dir: &Path) -> Result<ReceiverConfig, CommandError> {
    let config = if args.replayer.is_empty() { of_system(dir)? } else { of_arguments(args)? };
    Ok(ReceiverConfig { interface: args.interface.unwrap_or(config.interface), ..config })
}

/// What the system in a directory says of its feed.
fn of_system(dir: &Path) -> Result<ReceiverConfig, CommandError> {
    let layout = Layout::new(dir);
    let config = configuration(&layout)?;
    let feed = feed_of(&config, &layout)?;
    let replayers = pares_node::config::replayers(&layout, &config);
    Ok(ReceiverConfig {
        shards: config.shards()?.into_keys().collect(),
        lines: FeedLines::From(feed.line_a, feed.line_b),
        requests: replayers.clone(),
        tcp: replayers,
        tls: pares_node::config::feed_authority(&layout, feed).as_deref().map(believe).transpose()?,
        interface: feed.interface,
        ..ReceiverConfig::default()
    })
}

fn of_arguments(args: &WatchArgs) -> Result<ReceiverConfig, CommandError> {
    let lines = args.line_a.zip(args.line_b).map_or(FeedLines::None, |(a, b)| FeedLines::From(a, b));
    Ok(ReceiverConfig {
        shards: (0..args.shards).map(ShardId).collect(),
        lines,
        requests: args.replayer.clone(),
        tcp: args.replayer.clone(),
        tls: args.feed_ca.as_deref().map(believe).transpose()?,
        ..ReceiverConfig::default()
    })
}

/// Whom that authority certifies.
fn believe(authority: &Path) -> Result<Trust, CommandError> {
    Trust::load(authority).map_err(|error| CommandError::Usage(error.to_string()))
}

/// Joins the lines; where another program of this host has them, as only one can have what is not multicast, all comes by TCP.
fn open(config: ReceiverConfig, tcp: bool) -> Result<FeedReceiver, CommandError> {
    let by_tcp = ReceiverConfig { lines: FeedLines::None, ..config.clone() };
    match FeedReceiver::open(if tcp { &by_tcp } else { &config }) {
        Err(ReceiverError::Socket { address, error }) if error.kind() == std::io::ErrorKind::AddrInUse => {
            pares_text::aside!("{address} is in use by another receiver: receiving everything over TCP");
            FeedReceiver::open(&by_tcp)
        }
        opened => opened,
    }
    .map_err(failed)
}

/// What has come of a shard.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Came {
    /// Messages handed out.
    pub(super) messages: u64,
    /// Times the books were replaced by a snapshot.
    pub(super) resets: u64,
    /// Times messages were missing.
    pub(super) gaps: u64,
    /// Whether the books ever were the market's.
    pub(super) was_current: bool,
}

/// What is watched.
struct Watch<'a> {
    args: &'a WatchArgs,
    face: Face,
    came: BTreeMap<ShardId, Came>,
    shown_at: Instant,
    /// What was shown last of each instrument.
    last: BTreeMap<(ShardId, u16), String>,
    /// That the instrument is not among those there are.
    unknown: Option<String>,
    /// What was said last of replayers.
    blamed: Option<String>,
}

impl<'a> Watch<'a> {
    fn new(args: &'a WatchArgs, shards: &[ShardId]) -> Self {
        let face = match (args.json, args.plain || !std::io::stdout().is_terminal()) {
            (true, _) => Face::Json,
            (false, true) => Face::Lines,
            (false, false) => Face::Screen,
        };
        Self {
            args,
            face,
            came: shards.iter().map(|&shard| (shard, Came::default())).collect(),
            shown_at: Instant::now(),
            last: BTreeMap::new(),
            unknown: None,
            blamed: None,
        }
    }

    fn on_received(&mut self, shard: ShardId, received: &Received<'_>) {
        let came = self.came.entry(shard).or_default();
        match received {
            Received::Event(FeedEvent::Message { .. }) => came.messages += 1,
            Received::Event(FeedEvent::Reset { .. }) => came.resets += 1,
            Received::State(SubscriptionState::Gap { .. }) => came.gaps += 1,
            Received::State(SubscriptionState::Current | SubscriptionState::Over) => came.was_current = true,
            _ => {}
        }
    }

    fn show_if_due(&mut self, receiver: &FeedReceiver) {
        if self.shown_at.elapsed() >= SHOW_EVERY {
            self.shown_at = Instant::now();
            self.show(receiver);
        }
    }

    /// The instruments that are watched, with what is known of them.
    fn watched<'b>(
        &self,
        receiver: &'b FeedReceiver,
    ) -> Vec<(ShardId, SubscriptionState, u16, ReceivedBook<'b>)> {
        let wanted = |symbol: &str| self.args.symbol.as_ref().is_none_or(|w| w.eq_ignore_ascii_case(symbol));
        let mut watched = Vec::new();
        for &shard in self.came.keys() {
            let (Some(books), Some(state)) = (receiver.books(shard), receiver.state(shard)) else { continue };
            let found = books.all().filter(|(_, book)| wanted(book.symbol));
            watched.extend(found.map(|(locate, book)| (shard, state, locate, book)));
        }
        watched
    }

    /// Notes once that the instrument is not among those there are, once all are known. It may be listed yet.
    fn note_unknown(&mut self, receiver: &FeedReceiver) {
        let Some(symbol) = self.args.symbol.as_ref().filter(|_| self.unknown.is_none()) else { return };
        let knows = |state| matches!(state, SubscriptionState::Current | SubscriptionState::Over);
        if !self.came.keys().all(|&shard| receiver.state(shard).is_some_and(knows)) {
            return;
        }
        let books = self.came.keys().filter_map(|&shard| receiver.books(shard));
        let symbols: Vec<&str> = books.flat_map(|books| books.all().map(|(_, book)| book.symbol)).collect();
        let some = symbols.iter().take(SYMBOLS_TOLD_MAX).copied().collect::<Vec<_>>().join(", ");
        let more = if symbols.len() > SYMBOLS_TOLD_MAX { ", ..." } else { "" };
        let came = text::count(symbols.len() as u64, "instrument");
        let told = format!("{symbol} is not one of the {came} received: {some}{more}");
        if self.face != Face::Screen {
            pares_text::aside!("{told}");
        }
        self.unknown = Some(told);
    }

    fn show(&mut self, receiver: &FeedReceiver) {
        let watched = self.watched(receiver);
        if watched.is_empty() {
            self.note_unknown(receiver);
        }
        if self.face == Face::Screen {
            let came = |shard: &ShardId| self.came.get(shard).copied().unwrap_or_default();
            let page = match (&self.args.symbol, watched.first()) {
                (Some(_), Some((shard, state, _, book))) => {
                    shown::ladder(*state, *book, came(shard), self.levels())
                }
                (Some(symbol), None) => {
                    self.unknown.clone().unwrap_or_else(|| format!("{symbol}: no data received yet"))
                }
                (None, _) => shown::table(watched.iter().map(|(_, state, _, book)| (*state, *book))),
            };
            self.blamed = self.blame(receiver);
            let blamed = self.blamed.as_deref().unwrap_or_default();
            return text::print(&format!("\x1b[H\x1b[J{page}\n{blamed}"));
        }
        self.say_if_blamed(receiver);
        for (shard, state, locate, book) in watched {
            let line = match self.face {
                Face::Json => shown::json(shard, state, book, self.levels()),
                _ => shown::line(state, book),
            };
            if self.last.get(&(shard, locate)) != Some(&line) {
                text::print(&match self.face {
                    Face::Json => line.clone(),
                    _ => format!(
                        "{}  {line}",
                        text::time_of_day(pares_os::clock::now_ns() % pares_types::DAY_NS)
                    ),
                });
                self.last.insert((shard, locate), line);
            }
        }
    }

    /// Why books are worth nothing, as far as replayers are to blame.
    fn blame(&self, receiver: &FeedReceiver) -> Option<String> {
        self.came.keys().find_map(|&shard| failure(receiver, shard))
    }

    fn say_if_blamed(&mut self, receiver: &FeedReceiver) {
        let Some(why) = self.blame(receiver).filter(|why| self.blamed.as_ref() != Some(why)) else { return };
        if self.face == Face::Lines {
            text::print(&why);
        }
        self.blamed = Some(why);
    }

    fn levels(&self) -> usize {
        usize::try_from(self.args.levels).unwrap_or(usize::MAX)
    }

    /// The end: what came in all.
    fn tell_all(&self) {
        if self.face == Face::Json {
            return;
        }
        let mut all = Came::default();
        for came in self.came.values() {
            all.messages += came.messages;
            all.resets += came.resets;
            all.gaps += came.gaps;
        }
        let [messages, gaps, snapshots] =
            [(all.messages, "message"), (all.gaps, "gap"), (all.resets, "snapshot")]
                .map(|(number, what)| text::count(number, what));
        text::print(&format!("{messages}, {gaps}, {snapshots}"));
    }

    /// Books came, and nobody told how far they are.
    fn never_current(&self) -> String {
        let why = match &self.blamed {
            Some(why) => why.as_str(),
            None => {
                "no packets on the lines? --interface ADDRESS selects the network interface for multicast; --tcp does without the lines"
            }
        };
        format!("no book ever became current: {why}")
    }

    /// Why nothing of what is watched came, as far as that can be told.
    fn nothing(&self) -> String {
        let what = self.args.symbol.as_ref().map_or(String::new(), |symbol| format!(" of {symbol}"));
        let up = match (&self.unknown, &self.blamed) {
            (None, None) => {
                ": check that the system is up; a shard publishes from its first order on".to_owned()
            }
            (None, Some(why)) => format!(": {why}"),
            (Some(_), _) => String::new(),
        };
        let shards = match self.args.replayer[..] {
            [] => String::new(),
            _ => format!(". Received shards: {} (--shards)", text::count(self.came.len() as u64, "shard")),
        };
        format!("nothing received{what}{up}{shards}")
    }
}

/// The same of a shard.
fn failure(receiver: &FeedReceiver, shard: ShardId) -> Option<String> {
    receiver.failure(shard).map(|why| format!("shard {shard}: {why}"))
}

/// Prices and shares of a side's best.
pub(super) fn best(book: ReceivedBook<'_>, side: Side) -> Option<(String, u64)> {
    book.best(side).map(|(price, shares, _)| (text::cents(price), shares.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: WatchArgs,
    }

    #[test]
    fn the_card_that_hears_the_lines_can_be_chosen() {
        let given = "watch --replayer 192.0.2.7:7300 --line-a 239.1.1.1:17100 --line-b 239.1.1.2:27100";
        let card = |more: &str| {
            let line = Line::try_parse_from(format!("{given} {more}").split_whitespace()).unwrap();
            config(&line.args, Path::new("nowhere")).unwrap().interface
        };
        assert_eq!(card(""), Ipv4Addr::UNSPECIFIED);
        assert_eq!(card("--interface 192.0.2.9"), Ipv4Addr::new(192, 0, 2, 9));
    }
}
