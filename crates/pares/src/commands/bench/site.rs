//! `pares bench site`: what a transaction costs at a site.
//!
//! A broker's transaction (reads three items, changes two, writes two new ones, and its reply) is executed by an application that runs in the
//! site's own process, as a broker's would: from the request to the answer there is the certification, the cluster's log on
//! disk, and with three sites a majority of them. Conflicts are rare: each client trades on its own account.
//!
//! ```text
//!   at full speed:  N open requests, one answered, one begun   --> transactions per second
//!   at a rate:      begun on schedule, late or not             --> latency from the scheduled time to the answer
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_site::config::{Config, Level, Place, Promise};
use pares_site::items::Items;
use pares_site::protocol::{Code, OPEN_MAX};
use pares_site::{Process, ProcessError};
use pares_wice::{SiteId, TransactionId};
use serde::Serialize;

use super::ScratchDirectory;
use crate::error::{CommandError, CommandResult};
use crate::text::grouped;

/// Until the sites are up and certifying.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// Not counted at the beginning.
const WARM_UP: Duration = Duration::from_secs(1);

/// Arguments of `pares bench site`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Sites of the one cluster: 1 or 3
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=5))]
    sites: u8,
    /// What an answer promises: `os` or `disk`
    #[arg(long, default_value = "disk", value_parser = promise)]
    durability: Promise,
    /// Seconds of each part
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Open requests at full speed; 64 of them are one client's
    #[arg(long, default_value_t = 4_096, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    in_flight: u64,
    /// Transactions per second of the part at a rate
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    rate: u64,
    /// Where to keep the files (default: a temporary directory)
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn promise(text: &str) -> Result<Promise, String> {
    match text {
        "os" => Ok(Promise::Os),
        "disk" => Ok(Promise::Disk),
        _ => Err("os or disk".into()),
    }
}

/// Latencies of a part, microseconds, and how many transactions it had.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Part {
    /// Per second.
    pub transactions_per_s: f64,
    /// From the request, or when it was due, to the answer.
    pub p50_us: f64,
    /// The same.
    pub p99_us: f64,
    /// The same.
    pub max_us: f64,
}

/// What the benchmark gave.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Sites.
    pub sites: u8,
    /// `os` or `disk`.
    pub durability: Promise,
    /// With so many open requests.
    pub in_flight: u64,
    /// As many as possible.
    pub full_speed: Part,
    /// At the given rate.
    pub at_rate: Part,
    /// Answers that were not *done*.
    pub not_done: u64,
}

/// Runs the benchmark and prints what it gave.
///
/// # Errors
/// If a site ends.
pub fn run(args: &Args) -> CommandResult {
    let scratch = ScratchDirectory::create(args.dir.as_deref())?;
    let figures = measure(args, scratch.path()).map_err(|error| CommandError::Failed(error.to_string()))?;
    if args.json {
        println!("{}", serde_json::to_string(&figures).expect("figures are JSON"));
        return Ok(());
    }
    let Figures { full_speed, at_rate, .. } = &figures;
    println!("{} site(s), durability {:?}", figures.sites, figures.durability);
    for (what, part) in [("at full speed", full_speed), ("at a rate", at_rate)] {
        println!(
            "{what:>14}  {:>9}/s   p50 {:>8.0} us   p99 {:>8.0} us   max {:>8.0} us",
            grouped(part.transactions_per_s as u64),
            part.p50_us,
            part.p99_us,
            part.max_us
        );
    }
    println!("{:>14}  {}", "not done", figures.not_done);
    Ok(())
}

fn measure(args: &Args, dir: &Path) -> Result<Figures, ProcessError> {
    let config = configuration(args)?;
    std::fs::write(dir.join("sites.toml"), config.to_text())?;
    let first = SiteId::new(0, 0);
    let mut site = Process::open(&config, first, dir, Items)?;
    let others = Others::start(&config, dir);
    wait_until_certifying(&mut site)?;
    let mut load = Load::new(args.in_flight);
    let full_speed = load.run(&mut site, None, args.seconds)?;
    let at_rate = load.run(&mut site, Some(args.rate), args.seconds)?;
    drop(others);
    Ok(Figures {
        sites: args.sites,
        durability: args.durability,
        in_flight: args.in_flight,
        full_speed,
        at_rate,
        not_done: load.not_done,
    })
}

fn configuration(args: &Args) -> std::io::Result<Config> {
    let free = || std::net::TcpListener::bind("127.0.0.1:0")?.local_addr();
    let place = |number| Ok(Place { cluster: 0, number, peers: free()?, clients: free()?, far: None });
    let sites: std::io::Result<Vec<Place>> = (0..args.sites).map(place).collect();
    Ok(Config {
        system: "bench".into(),
        durability: args.durability,
        isolation: Level::Snapshot,
        certifier: 0,
        tls: None,
        sites: sites?,
    })
}

/// The cluster's other sites, a thread each.
struct Others {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Others {
    fn start(config: &Config, dir: &Path) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let run = |place: &Place| {
            let (config, dir, site, stop) = (config.clone(), dir.to_owned(), place.id(), Arc::clone(&stop));
            std::thread::spawn(move || {
                let mut site =
                    Process::open(&config, site, &dir, Items).expect("a site of a fresh directory");
                while !stop.load(Ordering::Relaxed) {
                    site.turn(Duration::from_millis(50)).expect("a site that goes on");
                }
            })
        };
        let threads = config.sites.iter().skip(1).map(run).collect();
        Self { stop, threads }
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn wait_until_certifying(site: &mut Process<Items>) -> Result<(), ProcessError> {
    let began = Instant::now();
    while site.report().heard.is_empty() && began.elapsed() < START_PATIENCE {
        site.turn(Duration::from_millis(10))?;
    }
    Ok(())
}

/// Transactions, by clients with 64 open ones each.
struct Load {
    in_flight: u64,
    /// Next sequence of each client.
    sequences: Vec<u64>,
    /// When each open request was begun, or due: by client and slot.
    begun: Vec<[Option<Instant>; OPEN_MAX as usize]>,
    /// Clients that may begin a request, as often as they may.
    free: Vec<usize>,
    not_done: u64,
}

impl Load {
    fn new(in_flight: u64) -> Self {
        let clients = usize::try_from(in_flight.div_ceil(OPEN_MAX)).expect("few");
        let free = (0..usize::try_from(in_flight).expect("few")).map(|slot| slot % clients).collect();
        let begun = vec![[None; OPEN_MAX as usize]; clients];
        Self { in_flight, sequences: vec![0; clients], begun, free, not_done: 0 }
    }

    fn begin(&mut self, site: &mut Process<Items>, due: Instant) -> bool {
        let Some(at) = self.free.iter().rposition(|&client| self.next_slot_is_free(client)) else {
            return false;
        };
        let client = self.free.swap_remove(at);
        let sequence = self.sequences[client];
        self.sequences[client] += 1;
        self.begun[client][(sequence % OPEN_MAX) as usize] = Some(due);
        // A client has 64 accounts, so that its open requests do not meet.
        let account = format!("{client}-{}", sequence % OPEN_MAX);
        let request =
            format!("trade cash/{account} holding/{account} rate/{} 100 {client}-{sequence}", sequence % 7);
        site.submit(TransactionId { client: client as u64 + 1, sequence }, request.into_bytes());
        true
    }

    fn next_slot_is_free(&self, client: usize) -> bool {
        self.begun[client][(self.sequences[client] % OPEN_MAX) as usize].is_none()
    }

    /// Takes answers; how long each took.
    fn take(&mut self, site: &mut Process<Items>, mut took: impl FnMut(Duration)) {
        for answered in site.answered().collect::<Vec<_>>() {
            let client = usize::try_from(answered.id.client - 1).expect("few");
            let begun = self.begun[client][(answered.id.sequence % OPEN_MAX) as usize].take();
            self.free.push(client);
            self.not_done += u64::from(answered.answer.code != Code::Done);
            took(begun.expect("it was open").elapsed());
        }
    }

    fn run(
        &mut self,
        site: &mut Process<Items>,
        rate: Option<u64>,
        seconds: u64,
    ) -> Result<Part, ProcessError> {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        let began = Instant::now();
        let end = WARM_UP + Duration::from_secs(seconds);
        let mut sent = 0u64;
        while began.elapsed() < end {
            let elapsed = began.elapsed();
            match rate {
                None => while self.begin(site, Instant::now()) {},
                Some(rate) => {
                    let due = |count: u64| Duration::from_nanos(count * 1_000_000_000 / rate);
                    while due(sent) <= elapsed && self.begin(site, began + due(sent)) {
                        sent += 1;
                    }
                }
            }
            site.turn(Duration::from_micros(100))?;
            let counts = began.elapsed() > WARM_UP;
            self.take(site, |took| {
                if counts {
                    histogram.record(took.as_nanos() as u64).expect("a histogram that grows");
                }
            });
        }
        self.drain(site)?;
        let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        let transactions_per_s = histogram.len() as f64 / (end - WARM_UP).as_secs_f64();
        Ok(Part { transactions_per_s, p50_us: us(0.5), p99_us: us(0.99), max_us: us(1.0) })
    }

    /// Until nothing is open.
    fn drain(&mut self, site: &mut Process<Items>) -> Result<(), ProcessError> {
        let began = Instant::now();
        while self.free.len() < usize::try_from(self.in_flight).expect("few")
            && began.elapsed() < START_PATIENCE
        {
            site.turn(Duration::from_millis(1))?;
            self.take(site, |_| {});
        }
        Ok(())
    }
}
