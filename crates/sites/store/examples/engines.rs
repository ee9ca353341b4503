//! How the engines compare under the writes and reads of a broker (docs/decisions/0011-store.md).
//!
//! ```text
//! cargo run --release -p pares-store --example engines -- [--json] [--seconds S] [--runs N] [--rows N]
//!     [--batches 1,16,256] [--flush-every VERSIONS] [--dir DIR] [--engines redb,postgres]
//!     [--postgres "host=/run/postgresql user=postgres dbname=scratch"]
//! ```
//! Each version puts 2 of the rows again and appends 2; versions are applied in batches, with a flush every 4096 versions
//! unless told otherwise. Meanwhile another thread takes a snapshot, gets 3 rows from it and drops it, over and over.
//! Every engine takes its turn in each run; what is printed are medians over the runs. PostgreSQL needs an empty
//! database, which is left empty.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a measurement that fails has nothing to tell

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_random::Random;
use pares_store::postgres::{Options, PostgresStore, clear};
use pares_store::{Applied, Memory, RedbStore, Store};
use pares_wice::{Key, Value, Version};

const VALUE_BYTES: usize = 100;

struct Arguments {
    json: bool,
    seconds: f64,
    runs: usize,
    rows: u64,
    batches: Vec<u64>,
    flush_every: u64,
    dir: PathBuf,
    engines: Vec<String>,
    postgres: Option<String>,
}

/// What one run of one engine showed. Times are in microseconds.
#[derive(Clone, Default)]
struct Shown([f64; COLUMNS.len()]);

const COLUMNS: [&str; 12] = [
    "versions_per_s",
    "apply_p50",
    "apply_p99",
    "apply_max",
    "read_p50",
    "read_p99",
    "read_max",
    "reads_per_s",
    "flush_p50",
    "flush_max",
    "megabytes",
    "reopen_ms",
];

fn main() {
    let arguments = arguments();
    let mut rows = Vec::new();
    for &batch in &arguments.batches {
        let mut shown = vec![Vec::new(); arguments.engines.len()];
        for _ in 0..arguments.runs {
            for (engine, shown) in arguments.engines.iter().zip(&mut shown) {
                shown.push(run(engine, batch, &arguments));
            }
        }
        for (engine, shown) in arguments.engines.iter().zip(shown) {
            rows.push((engine.clone(), batch, median(&shown)));
        }
    }
    if arguments.json { print_json(&rows) } else { print_table(&rows) }
}

fn arguments() -> Arguments {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = given.iter().position(|argument| argument == name)?;
        Some(given.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).clone())
    };
    let postgres = value("--postgres");
    let usual = if postgres.is_some() { "redb,postgres" } else { "redb" };
    Arguments {
        json: given.iter().any(|argument| argument == "--json"),
        seconds: value("--seconds").map_or(2.0, |seconds| seconds.parse().unwrap()),
        runs: value("--runs").map_or(5, |runs| runs.parse().unwrap()),
        rows: value("--rows").map_or(200_000, |rows| rows.parse().unwrap()),
        batches: value("--batches")
            .unwrap_or("1,16,256".into())
            .split(',')
            .map(|batch| batch.parse().unwrap())
            .collect(),
        flush_every: value("--flush-every").map_or(4096, |versions| versions.parse().unwrap()),
        dir: value("--dir").map_or_else(std::env::temp_dir, PathBuf::from),
        engines: value("--engines").unwrap_or(usual.into()).split(',').map(str::to_owned).collect(),
        postgres,
    }
}

fn open(engine: &str, directory: &Path, arguments: &Arguments) -> Box<dyn Store> {
    match engine {
        "memory" => Box::new(Memory::default()),
        "redb" => Box::new(RedbStore::open(directory).unwrap()),
        "postgres" => {
            let connection = arguments.postgres.as_ref().expect("--postgres says where");
            Box::new(PostgresStore::open(Options::new(connection)).unwrap())
        }
        other => panic!("no engine is called {other}"),
    }
}

fn run(engine: &str, batch: u64, arguments: &Arguments) -> Shown {
    let directory = tempfile::tempdir_in(&arguments.dir).unwrap();
    empty(engine, arguments);
    let store = open(engine, directory.path(), arguments);
    fill(&*store, arguments.rows);
    let done = AtomicBool::new(false);
    let (written, read) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(&*store, &done, arguments.rows));
        let written = write(&*store, batch, arguments);
        done.store(true, Ordering::Relaxed);
        (written, reader.join().unwrap())
    });
    let megabytes = bytes(directory.path()) as f64 / 1e6;
    drop(store);
    let begun = Instant::now();
    drop(open(engine, directory.path(), arguments));
    let reopen_ms = begun.elapsed().as_secs_f64() * 1e3;
    empty(engine, arguments);
    let Written { applies, flushes, per_second } = written;
    let micros = |histogram: &Histogram<u64>, part| histogram.value_at_quantile(part) as f64 / 1e3;
    Shown([
        per_second,
        micros(&applies, 0.5),
        micros(&applies, 0.99),
        micros(&applies, 1.0),
        micros(&read, 0.5),
        micros(&read, 0.99),
        micros(&read, 1.0),
        read.len() as f64 / arguments.seconds,
        micros(&flushes, 0.5),
        micros(&flushes, 1.0),
        megabytes,
        reopen_ms,
    ])
}

/// The server's tables stay when a directory would go.
fn empty(engine: &str, arguments: &Arguments) {
    if let ("postgres", Some(connection)) = (engine, &arguments.postgres) {
        clear(&Options::new(connection)).unwrap();
    }
}

fn row(number: u64) -> Key {
    Key::new([&b"order/"[..], &number.to_be_bytes()].concat())
}

/// Bytes that do not compress to nothing.
fn value(random: &mut Random) -> Option<Value> {
    let bytes: Vec<u8> = (0..VALUE_BYTES.div_ceil(8)).flat_map(|_| random.next_u64().to_le_bytes()).collect();
    Some(Value::new(&bytes[..VALUE_BYTES]))
}

fn fill(store: &dyn Store, rows: u64) {
    let mut random = Random::new(1);
    let rows: Vec<_> = (0..rows).map(|number| (row(number), value(&mut random))).collect();
    for (version, rows) in (1..).zip(rows.chunks(10_000)) {
        store.apply(&[Applied { version: Version(version), writes: rows.to_vec() }], None).unwrap();
    }
    store.flush().unwrap();
}

struct Written {
    applies: Histogram<u64>,
    flushes: Histogram<u64>,
    per_second: f64,
}

fn write(store: &dyn Store, batch: u64, arguments: &Arguments) -> Written {
    let (mut applies, mut flushes) = (Histogram::new(3).unwrap(), Histogram::new(3).unwrap());
    let (mut random, mut rows) = (Random::new(2), arguments.rows);
    let begun = Instant::now();
    let first = store.applied().0;
    let mut busy = Duration::ZERO;
    while begun.elapsed().as_secs_f64() < arguments.seconds {
        let last = store.applied().0;
        let versions: Vec<Applied> = (last + 1..=last + batch)
            .map(|version| {
                let mut keys =
                    vec![row(random.next_u64() % arguments.rows), row(random.next_u64() % arguments.rows)];
                keys.extend([row(rows), row(rows + 1)]);
                rows += 2;
                let writes = keys.into_iter().map(|key| (key, value(&mut random))).collect();
                Applied { version: Version(version), writes }
            })
            .collect();
        let now = Instant::now();
        store.apply(&versions, None).unwrap();
        let took = now.elapsed();
        applies.record(took.as_nanos() as u64).unwrap();
        busy += took;
        if (last - first) / arguments.flush_every != (store.applied().0 - first) / arguments.flush_every {
            let now = Instant::now();
            store.flush().unwrap();
            flushes.record(now.elapsed().as_nanos() as u64).unwrap();
            busy += now.elapsed();
        }
    }
    let per_second = (store.applied().0 - first) as f64 / busy.as_secs_f64();
    Written { applies, flushes, per_second }
}

fn read(store: &dyn Store, done: &AtomicBool, rows: u64) -> Histogram<u64> {
    let mut times = Histogram::new(3).unwrap();
    let mut random = Random::new(3);
    while !done.load(Ordering::Relaxed) {
        let keys = [(); 3].map(|()| row(random.next_u64() % rows));
        let now = Instant::now();
        let snapshot = store.snapshot().unwrap();
        for key in &keys {
            assert!(snapshot.get(key).unwrap().is_some());
        }
        drop(snapshot);
        times.record(now.elapsed().as_nanos() as u64).unwrap();
    }
    times
}

fn bytes(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap().flatten();
    let sizes = entries.map(|entry| match entry.file_type().unwrap().is_dir() {
        true => bytes(&entry.path()),
        false => entry.metadata().map_or(0, |metadata| metadata.len()),
    });
    sizes.sum()
}

fn median(runs: &[Shown]) -> Shown {
    let mut median = Shown::default();
    for (column, middle) in median.0.iter_mut().enumerate() {
        let mut values: Vec<f64> = runs.iter().map(|run| run.0[column]).collect();
        values.sort_by(f64::total_cmp);
        *middle = values[values.len() / 2];
    }
    median
}

fn print_table(rows: &[(String, u64, Shown)]) {
    println!("{:<9}{:>6}  {}", "engine", "batch", COLUMNS.map(|column| format!("{column:>15}")).concat());
    for (engine, batch, shown) in rows {
        println!("{engine:<9}{batch:>6}  {}", shown.0.map(|value| format!("{value:>15.1}")).concat());
    }
}

fn print_json(rows: &[(String, u64, Shown)]) {
    let rows: Vec<serde_json::Value> = rows
        .iter()
        .map(|(engine, batch, shown)| {
            let columns = COLUMNS.iter().zip(shown.0).map(|(name, value)| ((*name).to_owned(), value.into()));
            let mut row: serde_json::Map<_, _> = columns.collect();
            row.insert("engine".into(), engine.as_str().into());
            row.insert("batch".into(), (*batch).into());
            row.into()
        })
        .collect();
    println!("{}", serde_json::Value::from(rows));
}
