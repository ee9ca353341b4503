//! `pares site run` and `pares site up`.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_node::{duty, supervisor};
use pares_site::items::Items;
use pares_site::{Config, Process};
use pares_wice::{Notice, SiteId};

use super::usage;
use crate::error::{CommandError, CommandResult};
use crate::sites::{self, Processes, Speech};

/// Longest wait for something to do, so that a signal is noticed.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// A site that has lived for less than this is not started again at once.
const LIFE_MIN: Duration = Duration::from_secs(1);

/// Arguments of `pares site run`.
#[derive(clap::Args)]
pub struct Args {
    /// Which site: cluster and number there, as in 0.1
    #[arg(long, value_parser = sites::parse)]
    site: SiteId,
    /// The first start after all sites of its cluster lost their disks: it takes part only when it is admitted
    #[arg(long)]
    rejoin: bool,
    /// End when the process that started this one ends
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// Runs a site until it is told to stop.
///
/// # Errors
/// Whatever ends it otherwise.
pub fn one(args: &Args, dir: &Path) -> CommandResult {
    if args.with_parent {
        supervisor::end_with_parent()?;
    }
    let stop = duty::stop_on_signals()?;
    let config = Config::load(dir)?;
    if args.rejoin {
        mark_returning(args.site, dir)?;
    }
    let place = config.place(args.site)?.clone();
    let ended = |error: pares_site::ProcessError| CommandError::Failed(format!("{}: {error}", args.site));
    let mut process = Process::open(&config, args.site, dir, Items).map_err(ended)?;
    println!("{}: clients at {}, other sites at {}", args.site, place.clients, place.peers);
    while !stop.load(Ordering::Relaxed) {
        process.turn(WAIT_MAX).map_err(ended)?;
        for notice in process.notices() {
            println!("{}: {}", args.site, told(&notice));
        }
    }
    println!("{}: stopped", args.site);
    Ok(())
}

/// The mark by which a site knows that its log does not begin where the system did.
fn mark_returning(site: SiteId, dir: &Path) -> CommandResult {
    let own = dir.join(format!("site-{}-{}", site.cluster.0, site.number));
    let mark = own.join("returning");
    let has_log = std::fs::read_dir(own.join("log")).is_ok_and(|mut files| files.next().is_some());
    if has_log && !mark.exists() {
        return Err(usage(format!(
            "{site} has a log in {}: it needs no --rejoin. If the whole cluster is to begin from nothing, move the directories of all its sites away first",
            own.display()
        )));
    }
    let marked = std::fs::create_dir_all(&own).and_then(|()| std::fs::write(&mark, b""));
    marked.map_err(CommandError::io(format!("writing {}", mark.display())))
}

fn told(notice: &Notice) -> String {
    match notice {
        Notice::Era(configuration) => {
            let live: Vec<String> = configuration.live.iter().map(|cluster| cluster.0.to_string()).collect();
            format!(
                "era {} has begun: clusters {} live, {} certifies",
                configuration.era,
                live.join(" and "),
                configuration.certifier
            )
        }
        Notice::Discarded(version) => {
            format!(
                "versions above {version} are discarded: the other clusters went on without them; none was answered"
            )
        }
        Notice::Split(cluster) => format!(
            "{cluster} has answered clients for versions that the others do not have: two histories. Stop one side, and compare"
        ),
        Notice::NeedsCopy(cluster) => format!(
            "{cluster} lacks versions that are not kept any more: it must begin from a copy of a store"
        ),
    }
}

/// Runs all sites until Ctrl-C, and starts again what dies.
///
/// # Errors
/// If a process cannot be started.
pub fn up(config: &Config, dir: &Path) -> CommandResult {
    let stop = duty::stop_on_signals()?;
    let mut processes = Processes::new(dir, Speech::Here)?;
    let mut due: Vec<(SiteId, Instant)> = Vec::new();
    let mut started = Instant::now();
    for site in sites::all(config) {
        processes.start(site, false)?;
    }
    println!("Ctrl-C stops everything. `pares site status --dir {}` shows how they are.", dir.display());
    while !stop.load(Ordering::Relaxed) {
        for (site, how) in processes.ended()? {
            println!("{site} ended ({how}); starting it again");
            // Whoever cannot live is not tried more often than once a second.
            due.push((site, Instant::now() + LIFE_MIN.saturating_sub(started.elapsed())));
        }
        for (site, _) in due.extract_if(.., |(_, at)| *at <= Instant::now()) {
            started = Instant::now();
            processes.start(site, false)?;
        }
        std::thread::sleep(WAIT_MAX);
    }
    processes.stop();
    println!("stopped");
    Ok(())
}
