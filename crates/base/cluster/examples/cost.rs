//! What the cluster's log costs: proposals per second, and the time from proposing to being handed out at the delegate.
//!
//! `cargo run --release -p pares-cluster --example cost -- [--json] [--seconds N] [--in DIRECTORY]`
//!
//! A thread per replica, channels between them for a network, payloads of 300 bytes, 1 or up to 256 in flight. All replicas share one disk and
//! the machine's processors, which in a cluster they do not.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_cluster::{ClusterLog, Durability, Files, MemberRole, Replica, ReplicaConfig, Sink};

const PAYLOAD: [u8; 300] = [7; 300];
const TICK: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_secs(1);

type Mail = (u8, Vec<u8>);

/// One setting to measure.
#[derive(Clone, Copy)]
struct Setting {
    replicas: u8,
    durability: Durability,
    in_flight: usize,
}

/// A site that only measures.
struct Site {
    member: u8,
    network: Vec<Sender<Mail>>,
    leads: bool,
    /// When each was proposed.
    proposed: VecDeque<Instant>,
    /// From when on latencies count.
    from: Instant,
    latency_ns: Histogram<u64>,
}

impl Sink for Site {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        // A replica that has ended hears nothing more.
        let _ = self.network[usize::from(to)].send((self.member, message));
    }

    fn committed(&mut self, _index: u64, _term: u64, _payload: &[u8]) {
        let Some(proposed) = self.proposed.pop_front() else { return };
        if proposed >= self.from {
            self.latency_ns.saturating_record(proposed.elapsed().as_nanos() as u64);
        }
    }

    fn role(&mut self, role: MemberRole) {
        self.leads = role.leads;
    }

    fn lacks(&mut self, _at_least: u64) {}
}

/// One replica's thread: what has come, what is to be proposed, a cycle; and when there is nothing, sleep.
fn live(
    mut log: Replica<Files>,
    mut site: Site,
    inbox: &Receiver<Mail>,
    in_flight: usize,
    stop: &AtomicBool,
) -> Site {
    let mut next_tick = Instant::now() + TICK;
    while !stop.load(Ordering::Relaxed) {
        inbox.try_iter().for_each(|(from, message)| log.receive(from, &message).expect("a message"));
        if Instant::now() >= next_tick {
            next_tick += TICK;
            log.tick();
        }
        while site.leads && site.proposed.len() < in_flight && log.propose(&PAYLOAD).is_ok() {
            site.proposed.push_back(Instant::now());
        }
        if log.pending() {
            log.cycle(&mut site).expect("the disk works");
            if log.handed_out().0 - log.held().0 > 100_000 {
                log.compact(log.handed_out().0 - 10_000);
            }
            continue;
        }
        match inbox.recv_timeout(next_tick.saturating_duration_since(Instant::now())) {
            Ok((from, message)) => log.receive(from, &message).expect("a message"),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
    }
    site
}

fn measure(setting: Setting, seconds: u64, parent: &Path) -> Histogram<u64> {
    let stop = Arc::new(AtomicBool::new(false));
    let (senders, inboxes): (Vec<_>, Vec<_>) = (0..setting.replicas).map(|_| channel()).unzip();
    let from = Instant::now() + WARM_UP;
    let threads: Vec<_> = (0..setting.replicas)
        .zip(inboxes)
        .map(|(member, inbox)| {
            let dir = tempfile::tempdir_in(parent).expect("a directory");
            let files = Files::open(dir.path(), setting.durability, 64 << 20).expect("a log");
            let log = Replica::open(files, &ReplicaConfig::new(member, setting.replicas)).expect("a replica");
            let latency_ns = Histogram::new_with_max(60_000_000_000, 3).expect("three digits");
            let (network, proposed) = (senders.clone(), VecDeque::new());
            let site = Site { member, network, leads: false, proposed, from, latency_ns };
            let stop = stop.clone();
            std::thread::spawn(move || {
                let site = live(log, site, &inbox, setting.in_flight, &stop);
                drop(dir);
                site
            })
        })
        .collect();
    std::thread::sleep(WARM_UP + Duration::from_secs(seconds));
    stop.store(true, Ordering::Relaxed);
    let sites = threads.into_iter().map(|thread| thread.join().expect("no replica panics"));
    sites.map(|site| site.latency_ns).max_by_key(Histogram::len).expect("a replica")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let option = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let json = arguments.iter().any(|argument| argument == "--json");
    let seconds = option("--seconds").map_or(5, |text| text.parse().expect("--seconds N"));
    let parent = option("--in").map_or_else(std::env::temp_dir, PathBuf::from);
    if !json {
        println!("replicas  durability  in flight  proposals/s     p50 us     p99 us     max us");
    }
    for replicas in [1, 3] {
        for durability in [Durability::Os, Durability::Disk] {
            for in_flight in [1, 256] {
                let latency_ns = measure(Setting { replicas, durability, in_flight }, seconds, &parent);
                print_line(json, replicas, durability, in_flight, latency_ns.len() / seconds, &latency_ns);
            }
        }
    }
}

fn print_line(
    json: bool,
    replicas: u8,
    durability: Durability,
    in_flight: usize,
    per_second: u64,
    latency_ns: &Histogram<u64>,
) {
    let name = match durability {
        Durability::Os => "os",
        Durability::Disk => "disk",
    };
    let us = |quantile| latency_ns.value_at_quantile(quantile) as f64 / 1000.0;
    if json {
        let line = serde_json::json!({
            "replicas": replicas, "durability": name, "in_flight": in_flight, "payload_bytes": PAYLOAD.len(),
            "proposals_per_second": per_second, "p50_us": us(0.5), "p99_us": us(0.99), "max_us": us(1.0),
        });
        println!("{line}");
    } else {
        println!(
            "{replicas:>8}  {name:>10}  {in_flight:>9}  {per_second:>11}  {:>9.1}  {:>9.1}  {:>9.1}",
            us(0.5),
            us(0.99),
            us(1.0)
        );
    }
}
