//! How much memory a site takes whose items are overwritten again and again: `memory [VERSIONS] [VALUE_BYTES]`.
//!
//! One site alone, on loopback and a directory of its own that is removed at the end; 2 MiB of live items. What it prints is for people.
#![allow(clippy::print_stdout)] // it is for people

use std::error::Error;
use std::time::{Duration, Instant};

use pares_site::config::{Place, Promise};
use pares_site::items::Items;
use pares_site::{Process, SitesConfig};
use pares_wice::{SiteId, TransactionId};

/// All values together.
const LIVE_BYTES: usize = 2 << 20;
/// Requests under way, one of each client.
const CLIENTS: u64 = 64;
/// Lines printed.
const LINES: u64 = 15;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let versions = arguments.next().transpose()?.unwrap_or(300_000) as u64;
    let value_bytes = arguments.next().transpose()?.unwrap_or(8 << 10).clamp(1, 500 << 10);
    let dir = std::env::temp_dir().join(format!("pares-memory-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let outcome = overwrite(&dir, versions, value_bytes);
    std::fs::remove_dir_all(&dir)?;
    outcome
}

fn overwrite(dir: &std::path::Path, versions: u64, value_bytes: usize) -> Result<(), Box<dyn Error>> {
    let any = "127.0.0.1:0".parse()?;
    let place = Place::new(0, 0, any, any);
    let config = SitesConfig {
        identity: SitesConfig::draw_identity(),
        system: "memory".into(),
        durability: Promise::Os,
        sites: vec![place],
        ..SitesConfig::default()
    };
    config.make_directories(dir)?;
    let mut site = Process::open(&config, SiteId::new(0, 0), dir, Items)?;
    while site.apart().is_some() {
        site.turn(Duration::from_millis(10))?; // it is new, and founds its database
    }
    let (items, began) = ((LIVE_BYTES / value_bytes).max(1) as u64, Instant::now());
    let value = "x".repeat(value_bytes);
    let mut next = 0;
    let mut ask = |site: &mut Process<Items>, client: u64| {
        let id = TransactionId { client, sequence: next };
        site.submit(id, format!("put item/{} {value}", next % items).into_bytes());
        next += 1;
    };
    (1..=CLIENTS).for_each(|client| ask(&mut site, client));
    println!(
        "{items} items of {value_bytes} bytes; resident MiB: in all, its own, of files that are mapped\n"
    );
    println!(" versions  seconds       all       own     files   largest");
    let mut answered = 0;
    while answered < versions {
        site.turn(Duration::from_millis(10))?;
        for told in site.answered().collect::<Vec<_>>() {
            ask(&mut site, told.id.client);
            answered += 1;
            if answered.is_multiple_of(versions.div_ceil(LINES)) || answered == versions {
                let seconds = began.elapsed().as_secs_f64();
                print!("{answered:>9}  {seconds:>7.1}");
                for what in ["VmRSS:", "RssAnon:", "RssFile:", "VmHWM:"] {
                    print!("  {:>8}", mib(what)?);
                }
                println!();
            }
        }
    }
    println!("\nkept, bytes: {:?}", site.report().held);
    Ok(())
}

/// What the kernel says of this process.
fn mib(what: &str) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(what)).ok_or("no such line")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
    Ok(kib >> 10)
}
