//! `pares replay` as a user runs it: small made-up days through the real processes, some of them killed.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests too

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pares_flow::Random;
use pares_os::CountersReader;
use serde_json::Value;
use tempfile::TempDir;

/// The legal prices of each side; as many as levels are published, so that all of the book is.
const BIDS: [i64; 3] = [999_900, 999_800, 999_700];
const OFFERS: [i64; 3] = [1_000_000, 1_000_100, 1_000_200];

struct Order {
    id: u64,
    size: u64,
}

/// A LOBSTER day of orders that come, shrink, go and are executed at the head of their queues.
struct MadeUpDay {
    random: Random,
    /// Three queues of bids, then three of offers.
    queues: [VecDeque<Order>; 6],
    next_id: u64,
    messages: String,
    rows: String,
    executions: u64,
}

impl MadeUpDay {
    fn new(seed: u64, events: u64) -> Self {
        let (messages, rows) = (String::new(), String::new());
        let queues = Default::default();
        let mut day = Self { random: Random::new(seed), queues, next_id: 1, messages, rows, executions: 0 };
        (0..events).for_each(|event| day.event(event));
        day
    }

    fn event(&mut self, event: u64) {
        let at = self.random.below(6) as usize;
        let (kind, id, size) = match (self.random.below(4), self.queues[at].len()) {
            (0, 1..) => self.execute(at),
            (1, 1..) => self.reduce_or_delete(at),
            _ => self.submit(at),
        };
        // Executions take the best level: anything else would be out of turn.
        let at = if kind == 4 { self.best(at) } else { at };
        if kind == 4 {
            self.take_front(at, size);
        }
        let price = BIDS.iter().chain(&OFFERS).nth(at).unwrap();
        let direction = if at < 3 { 1 } else { -1 };
        let time = 34_200.0 + event as f64 / 1_000.0;
        writeln!(self.messages, "{time:.3},{kind},{id},{size},{price},{direction}").unwrap();
        self.publish();
    }

    fn submit(&mut self, at: usize) -> (u8, u64, u64) {
        let order = Order { id: self.next_id, size: 1 + self.random.below(100) };
        let message = (1, order.id, order.size);
        self.next_id += 1;
        self.queues[at].push_back(order);
        message
    }

    fn reduce_or_delete(&mut self, at: usize) -> (u8, u64, u64) {
        let index = self.random.below(self.queues[at].len() as u64) as usize;
        let order = &mut self.queues[at][index];
        let cut = 1 + self.random.below(order.size);
        order.size -= cut;
        let message = (if order.size == 0 { 3 } else { 2 }, order.id, cut);
        self.queues[at].retain(|order| order.size > 0);
        message
    }

    /// The message of an execution; [`MadeUpDay::take_front`] carries it out.
    fn execute(&mut self, at: usize) -> (u8, u64, u64) {
        let best = self.best(at);
        let (id, size) = (self.queues[best][0].id, self.queues[best][0].size);
        self.executions += 1;
        (4, id, 1 + self.random.below(size))
    }

    fn best(&self, at: usize) -> usize {
        let side = if at < 3 { 0..3 } else { 3..6 };
        side.into_iter().find(|&at| !self.queues[at].is_empty()).unwrap()
    }

    fn take_front(&mut self, at: usize, size: u64) {
        self.queues[at][0].size -= size;
        self.queues[at].retain(|order| order.size > 0);
    }

    fn publish(&mut self) {
        let level = |at: usize, price: i64| {
            let size: u64 = self.queues[at].iter().map(|order| order.size).sum();
            (size > 0).then(|| format!("{price},{size}"))
        };
        let side = |first: usize, prices: &[i64; 3], none: &str| {
            let mut levels: Vec<_> = (0..3).filter_map(|n| level(first + n, prices[n])).collect();
            levels.resize(3, format!("{none},0"));
            levels
        };
        let (bids, offers) = (side(0, &BIDS, "-9999999999"), side(3, &OFFERS, "9999999999"));
        let row: Vec<_> = offers.into_iter().zip(bids).map(|(offer, bid)| format!("{offer},{bid}")).collect();
        writeln!(self.rows, "{}", row.join(",")).unwrap();
    }

    fn write(&self, dir: &Path) -> (PathBuf, PathBuf) {
        let (messages, rows) = (dir.join("MADEUP_message_3.csv"), dir.join("MADEUP_orderbook_3.csv"));
        std::fs::write(&messages, &self.messages).unwrap();
        std::fs::write(&rows, &self.rows).unwrap();
        (messages, rows)
    }
}

fn pares(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pares-lab")).arg("replay").args(args).output().unwrap()
}

fn replay_lobster(dir: &TempDir, day: &MadeUpDay, more: &[&str]) -> Output {
    let (messages, rows) = day.write(dir.path());
    let (messages, rows) = (messages.to_str().unwrap(), rows.to_str().unwrap());
    pares(&[&["--lobster-messages", messages, "--lobster-book", rows, "--json"], more].concat())
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn figures(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", complaint(output)))
}

#[test]
#[ignore = "all: replays a day of orders"]
fn day_is_reproduced_despite_repeated_venue_kills() {
    let figures = reproduced(&MadeUpDay::new(7, 1_250), &[]);
    assert_eq!(figures["feed"], Value::Null);
}

/// The figures of a day of 1,250 events, whose leading venue is killed four times.
fn reproduced(day: &MadeUpDay, more: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let kills = ["--kill-venue-every", "300", "--in-flight", "64"];
    let output = replay_lobster(&dir, day, &[&kills[..], more].concat());
    let figures = figures(&output);
    assert!(output.status.success(), "{}", complaint(&output));
    let expected = [
        ("events", 1_250),
        ("rows_checked", 1_250),
        ("mismatched_rows", 0),
        ("executions", day.executions),
        ("executions_of_known_orders", day.executions),
        ("executions_at_head_of_queue", day.executions),
        ("kills", 4),
        ("lost", 0),
        ("duplicated", 0),
        ("recorder_disagreements", 0),
        ("unexpected_deaths", 0),
    ];
    for (name, value) in expected {
        assert_eq!(figures[name], value, "{name} in {figures}");
    }
    assert_eq!(figures["commands"], figures["recorded"]);
    figures
}

/// Nothing that was received may differ, and everything is compared: each of `rows`, and a book after each of `commands`.
fn assert_received(feed: &Value, rows: u64, commands: &Value) {
    let receivers = &feed["receivers"];
    let wrong = ["wrong_while_current", "books_differing", "messages_missing", "messages_differing"];
    for name in wrong {
        assert_eq!(receivers[name], 0, "{name} in {feed}");
    }
    for name in ["books_differing", "rows_differing"] {
        assert_eq!(feed[name], 0, "{name} in {feed}");
    }
    assert_eq!((&feed["books_compared"], &feed["rows_compared"]), (commands, &rows.into()));
    // Lines lost something, and one receiver came late.
    assert!(receivers["packets_lost"].as_u64() > Some(0), "{feed}");
    assert!(receivers["snapshots"].as_u64() > Some(0), "{feed}");
    assert!(
        receivers["messages"].as_u64() > commands.as_u64(),
        "a message of each command, and more: {feed}"
    );
}

#[test]
#[ignore = "all: a whole day of real orders"]
fn receivers_reproduce_day_books_despite_losses_and_kills() {
    let figures = reproduced(&MadeUpDay::new(12, 1_250), &["--feed", "--feed-loss", "20"]);
    assert_received(&figures["feed"], 1_250, &figures["recorded"]);
}

/// The files of a published sample, unpacked; `None` (said aloud) where it is not at hand.
fn real_day(zip: &str, dir: &Path) -> Option<[PathBuf; 2]> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/data");
    let root = std::env::var_os("PARES_DATA").map_or_else(|| PathBuf::from(beside), PathBuf::from);
    let path = root.join("lobster").join(zip);
    if !path.exists() {
        println!("skipped: {} is not there (set PARES_DATA to the samples' folder)", path.display());
        return None;
    }
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).unwrap()).unwrap();
    archive.extract(dir).unwrap();
    let named = |part: &str| {
        let mut files = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
        files.find(|file| file.to_string_lossy().contains(part)).unwrap()
    };
    Some([named("_message_"), named("_orderbook_")])
}

#[test]
#[ignore = "all: a whole day of real orders"]
fn amazon_of_2012_is_received_book_by_book_while_lines_lose() {
    let dir = tempfile::tempdir().unwrap();
    let Some([messages, rows]) = real_day("LOBSTER_SampleFile_AMZN_2012-06-21_5.zip", dir.path()) else {
        return;
    };
    let (messages, rows) = (messages.to_str().unwrap(), rows.to_str().unwrap());
    let files = ["--lobster-messages", messages, "--lobster-book", rows];
    let output = pares(&[&files[..], &["--json", "--feed", "--kill-venue-every", "5000"]].concat());
    assert!(output.status.success(), "{}", complaint(&output));
    let figures = figures(&output);
    assert_received(&figures["feed"], 155_935, &figures["recorded"]);
}

#[test]
#[ignore = "all: replays a day of orders"]
fn a_row_that_was_never_so_is_found_and_the_command_fails() {
    let (dir, mut day) = (tempfile::tempdir().unwrap(), MadeUpDay::new(8, 40));
    day.messages += "34201.0,1,9000,5,999900,1\n";
    day.rows += day.rows.clone().lines().next_back().unwrap(); // as if the submission had not been
    day.rows += "\n";
    let output = replay_lobster(&dir, &day, &["--feed"]);
    assert_eq!(figures(&output)["mismatched_rows"], 1);
    assert_eq!(figures(&output)["feed"]["rows_differing"], 1);
    assert!(!output.status.success());
    assert!(complaint(&output).contains("event 41: published"), "{}", complaint(&output));
}

/// An ITCH message: type, stock locate 1, time zero, then `fields`.
fn itch(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let body = [&[kind, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0], fields.concat().as_slice()].concat();
    [u16::try_from(body.len()).unwrap().to_be_bytes().as_slice(), &body].concat()
}

fn add(id: u64, side: u8, shares: u32, price: u32) -> Vec<u8> {
    let (id, shares, price) = (id.to_be_bytes(), shares.to_be_bytes(), price.to_be_bytes());
    itch(b'A', &[&id, &[side], &shares, b"MADEUP  ", &price])
}

fn execute(id: u64, shares: u32) -> Vec<u8> {
    itch(b'E', &[&id.to_be_bytes(), &shares.to_be_bytes(), &[0; 8]])
}

#[test]
#[ignore = "all: replays a day of orders"]
fn an_itch_day_trades_at_the_head_of_the_queue() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("day.itch");
    let day = [
        add(1, b'B', 100, 50_000),
        add(2, b'B', 50, 50_000),
        add(3, b'S', 70, 50_100),
        execute(1, 100),
        execute(2, 20),
        execute(3, 70),
    ];
    std::fs::write(&file, day.concat()).unwrap();
    let output = pares(&["--itch", file.to_str().unwrap(), "--symbol", "MADEUP", "--json"]);
    let figures = figures(&output);
    assert!(output.status.success(), "{}", complaint(&output));
    assert_eq!((&figures["events"], &figures["mismatched_rows"]), (&6.into(), &0.into()));
    assert_eq!(figures["executions_at_head_of_queue"], 3);
}

#[test]
fn price_refused_order_is_refused_by_compared_book() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("day.itch");
    let too_dear = u32::MAX - 1;
    let (one, two, shares) = (1_u64.to_be_bytes(), 3_u64.to_be_bytes(), 10_u32.to_be_bytes());
    let replace = itch(b'U', &[&one, &two, &shares, &too_dear.to_be_bytes()]);
    let day = [add(1, b'B', 100, 50_000), add(2, b'B', 10, too_dear), replace];
    std::fs::write(&file, day.concat()).unwrap();
    let output = pares(&["--itch", file.to_str().unwrap(), "--symbol", "MADEUP", "--json", "--feed"]);
    assert!(!complaint(&output).contains("but it gives"), "{}", complaint(&output));
    assert_eq!(figures(&output)["feed"]["books_differing"], 0);
}

#[test]
fn what_cannot_be_replayed_is_said_before_anything_starts() {
    let dir = tempfile::tempdir().unwrap();
    let (day, file) = (MadeUpDay::new(9, 5), dir.path().join("day.itch"));
    std::fs::write(&file, add(1, b'B', 1, 1)).unwrap();
    let itch = file.to_str().unwrap();
    let missing = pares(&["--itch", "no-such-file"]);
    let unknown = pares(&["--itch", itch, "--symbol", "OTHER"]);
    let (messages, _) = day.write(dir.path());
    let messages = messages.to_str().unwrap();
    let swapped = pares(&["--lobster-messages", messages, "--lobster-book", messages]);
    for (output, says) in [
        (missing, "cannot open no-such-file"),
        (unknown, "no order of `OTHER`"),
        (swapped, "is this the LOBSTER orderbook file?"),
    ] {
        assert!(!output.status.success() && output.stdout.is_empty());
        assert!(complaint(&output).contains(says), "{}", complaint(&output));
    }
}

#[test]
fn a_directory_in_use_is_left_alone() {
    let (dir, day) = (tempfile::tempdir().unwrap(), MadeUpDay::new(10, 20));
    let system = dir.path().join("system");
    let more = ["--dir", system.to_str().unwrap()];
    let first = replay_lobster(&dir, &day, &more);
    assert!(first.status.success(), "{}", complaint(&first));
    let second = replay_lobster(&dir, &day, &more);
    assert!(complaint(&second).contains("already contains a system"), "{}", complaint(&second));
}

/// Once the gateway has taken in a request: its process.
fn gateway_at_work(system: &Path) -> rustix::process::Pid {
    let begun = std::time::Instant::now();
    let requests = || CountersReader::open(&system.join("run/gateway-0.counters")).ok()?.get("requests");
    while requests().is_none_or(|requests| requests == 0) {
        assert!(begun.elapsed().as_secs() < 60, "the replay does not start");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = std::fs::read_to_string(system.join("run/gateway-0.pid")).unwrap();
    rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap()
}

#[test]
#[ignore = "all: replays a day of orders"]
fn a_gateway_that_dies_ends_the_replay_and_is_named() {
    let (dir, day) = (tempfile::tempdir().unwrap(), MadeUpDay::new(11, 100));
    let system = dir.path().join("system");
    let output = std::thread::scope(|scope| {
        // At a thousandth of the recorded pace: a hundred seconds, if nothing happened.
        let more = ["--speed", "0.001", "--dir", system.to_str().unwrap()];
        let replay = scope.spawn(move || replay_lobster(&dir, &day, &more));
        rustix::process::kill_process(gateway_at_work(&system), rustix::process::Signal::KILL).unwrap();
        replay.join().unwrap()
    });
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(complaint(&output).contains("gateway-0 ended (signal: 9 (SIGKILL))"), "{}", complaint(&output));
}
