//! What a server that is filled costs its peer's traders (paper 2, figures 7 and 8): `fill [MIB] [ITEMS_A_SECOND]`, by default 64 and 500.
//!
//! A stream of so many MiB is made, one server's disk is lost, and a trader of the other notes how long each item takes before the transfer and
//! during it. The delay is from the server's stamp on an item to its being read.
#![allow(clippy::print_stdout)] // an example may talk

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, TraderId};
use pares_member::config::{stream, submissions};
use pares_member::world::address;
use pares_member::{MemberConfig, TraderClient, TraderNews, TraderOptions};
use pares_member::{process, sources::Sources, start};
use pares_node::HostWorld;
use pares_os::CountersReader;
use pares_roles::config::Layout;

/// Bytes of an item that makes the stream long.
const TEXT_BYTES: usize = 8_000;
/// How long the trader is watched before the transfer.
const BEFORE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(60);

struct Running(Arc<AtomicBool>, JoinHandle<()>);

impl Running {
    fn start(server: u16, layout: &Layout) -> Self {
        let _ = std::fs::remove_file(layout.pid(submissions(server)));
        let stop = Arc::new(AtomicBool::new(false));
        let (of, flag) = (layout.clone(), Arc::clone(&stop));
        let run = move || process::run_with(server, &of, Sources::default(), &flag).expect("it runs");
        let thread = std::thread::spawn(run);
        while process::announced(layout, server).is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        Self(stop, thread)
    }

    fn end(self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.join().expect("a server ends");
    }
}

/// Talks at that rate until `done`; the delays of what was told.
fn talk(client: &mut TraderClient, rate: u64, mut done: impl FnMut() -> bool) -> Vec<u64> {
    let (begun, mut said, mut delays) = (Instant::now(), 0, Vec::new());
    while !done() {
        let due = begun.elapsed().as_micros() as u64 * rate / 1_000_000;
        while said < due {
            client.submit(&ItemBody::Message { to: TraderId(0), text: "while it is filled" });
            said += 1;
        }
        client.poll(|news| {
            if let TraderNews::Item(ordered) = news {
                delays.push(pares_os::clock::now_ns().saturating_sub(ordered.item.stamp_ns));
            }
        });
        client.wait(Duration::from_micros(500));
    }
    delays
}

/// How far a server is, as it says once a second.
fn next_of(layout: &Layout, server: u16) -> u64 {
    let counters = CountersReader::open(&layout.counters(&format!("member-{server}")));
    counters.ok().and_then(|counters| counters.get("next")).unwrap_or(0)
}

fn tell(when: &str, delays: &mut [u64]) {
    delays.sort_unstable();
    let at = |share: usize| delays.get(delays.len() * share / 100).copied().unwrap_or(0) / 1_000;
    println!("{when}: {} items, p50 {} us, p90 {} us, p99 {} us", delays.len(), at(50), at(90), at(99));
}

fn main() -> Result<(), Box<dyn Error>> {
    let argument = |index, default| std::env::args().nth(index).map_or(Ok(default), |text| text.parse());
    let (mib, rate) = (argument(1, 64_u64)?, argument(2, 500_u64)?);
    let dir = tempfile::tempdir()?;
    let layout = Layout::new(dir.path());
    std::fs::create_dir_all(layout.run())?;
    let config = MemberConfig { segment_mib: 64, ..MemberConfig::local(2) };
    std::fs::write(process::config_file(&layout), config.text())?;
    start::begin(&HostWorld::new(&layout)?, &config)?;
    let (lost, peer) = (Running::start(0, &layout), Running::start(1, &layout));
    let servers = [address(&layout, 1)?];
    let options = TraderOptions { from: None, books: false };
    let mut client = TraderClient::connect_with(&servers, TraderId(1), options)?;
    let text = "x".repeat(TEXT_BYTES);
    for _ in 0..=(mib << 20) / TEXT_BYTES as u64 {
        client.submit(&ItemBody::Message { to: TraderId(0), text: &text });
        while client.unplaced() > 64 {
            client.poll(|_| {});
            client.wait(Duration::from_millis(1));
        }
    }
    talk(&mut client, 0, || next_of(&layout, 1) * TEXT_BYTES as u64 >= mib << 20);
    std::thread::sleep(Duration::from_secs(1));
    client.poll(|_| {});
    lost.end();
    for log in [stream(0), submissions(0)] {
        std::fs::remove_dir_all(layout.log(log))?;
    }
    let begun = Instant::now();
    tell("before", &mut talk(&mut client, rate, || begun.elapsed() > BEFORE));
    let (begun, until) = (Instant::now(), client.next().0);
    let lost = Running::start(0, &layout);
    let is_filled = || next_of(&layout, 0) >= until || begun.elapsed() > PATIENCE;
    let mut during = talk(&mut client, rate, is_filled);
    println!("{mib} MiB, {until} items, in {:.1} s", begun.elapsed().as_secs_f64());
    tell("during", &mut during);
    lost.end();
    peer.end();
    Ok(())
}
