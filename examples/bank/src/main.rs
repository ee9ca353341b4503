//! A bank on two clusters of sites. Run it, watch it, break it:
//!
//! ```text
//! cargo run --release -p bank
//! ```
//! | module | what | |
//! |---|---|---|
//! | [`bank`] | the application: accounts, transfers, refusals | begin here |
//! | [`site`] | a site as a process | |
//! | [`teller`] | clients that make transfers and keep the slips | |
//! | [`auditor`] | clients that look at the total, at every site, all the time | |
//! | [`closing`], [`books`] | slips against books, in the end | |
//! | [`clusters`] | processes and the link between them, to be broken | only for the show |
//! | [`desk`], [`order`], [`demo`] | who breaks what | only for the show |
//! | [`board`], [`screen`] | what one sees | only for the show |
#![allow(clippy::print_stdout, clippy::print_stderr)] // a program talks
#![allow(unreachable_pub)] // and has no outside: `pub` here means "for the other modules"

mod auditor;
mod bank;
mod board;
mod books;
mod closing;
mod clusters;
mod demo;
mod desk;
mod order;
mod screen;
mod site;
mod teller;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use clap::{Parser, Subcommand};
use pares_site::{CallError, Client};
use pares_wice::SiteId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::bank::VAULT;
use crate::board::Shared;
use crate::clusters::{CLUSTERS, Clusters, Who};
use crate::desk::{Desk, Leave, PATIENCE};
use crate::order::ORDERS;
use crate::screen::{Screen, grouped};
use crate::teller::{Fate, Slip, Teller};

/// All the money there is.
const CAPITAL: i64 = 1_000_000;
/// What every customer begins with.
const DEPOSIT: i64 = 500;

/// A bank on two clusters of sites, each with a full copy of the accounts. Tellers of both make transfers all the time, auditors look at the
/// total at every site; you kill whatever you like.
///
/// In a terminal, type orders while it runs. Otherwise, or with --demo, a script breaks one thing after the other. In the end every
/// transfer that was acknowledged is looked for in the books of every site; the exit code is 0 if each is there, once, and no look
/// ever saw another total.
#[derive(Parser)]
#[command(name = "bank", version, max_term_width = 100, after_help = format!("Orders:\n{ORDERS}"))]
struct Args {
    #[command(subcommand)]
    part: Option<Part>,
    /// Round trip of the link between the clusters, milliseconds
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(0..=10_000))]
    rtt_ms: u64,
    /// Sites in each cluster; with fewer than three a cluster does not survive the death of one
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=9))]
    sites: u8,
    /// Tellers of each cluster
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=50))]
    tellers: u8,
    /// Customers of each cluster; the fewer, the more transfers meet
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u8).range(1..=99))]
    customers: u8,
    /// Keep each site's items in a PostgreSQL database, empty or missing before: a URL with {cluster} and {number}
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Let the script break things, even in a terminal
    #[arg(long, visible_alias = "script")]
    demo: bool,
    /// How long the script takes, about
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
}

#[derive(Subcommand)]
enum Part {
    /// One site (started by the bank itself)
    #[command(hide = true)]
    Site {
        #[arg(long)]
        site: String,
        #[arg(long)]
        parent: u32,
        #[arg(long)]
        dir: PathBuf,
    },
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.part {
        Some(Part::Site { site, parent, dir }) => run_site(site, *parent, dir),
        None => run_bank(&args),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("bank: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run_site(site: &str, parent: u32, dir: &std::path::Path) -> Result<bool, String> {
    let parts = site.split_once('.').and_then(|(a, b)| Some(SiteId::new(a.parse().ok()?, b.parse().ok()?)));
    let site = parts.ok_or_else(|| format!("{site} is not a site"))?;
    site::run(dir, site, parent).map_err(|error| error.to_string())?;
    Ok(true)
}

fn run_bank(args: &Args) -> Result<bool, String> {
    let said = |error: &dyn std::fmt::Display| error.to_string();
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&signalled)).map_err(|error| said(&error))?;
    }
    let clusters = Clusters::start(args.sites, Duration::from_millis(args.rtt_ms), args.store.clone())
        .map_err(|error| said(&error))?;
    let screen = Screen::open().map_err(|error| said(&error))?;
    let mut desk = Desk::new(clusters, Shared::default(), screen, signalled, CAPITAL);
    match business(&mut desk, args) {
        Ok(right) => Ok(right),
        Err(Leave::Quit) => Ok(false),
        Err(Leave::Failed(why)) => Err(why),
    }
}

/// From the founding to the audit. Whether all was right.
fn business(desk: &mut Desk, args: &Args) -> Result<bool, Leave> {
    let end = Arc::new(AtomicBool::new(false));
    let auditors = auditors(desk, &end);
    let accounts = accounts(args.customers);
    desk.say(&format!(
        "{CLUSTERS} clusters of {} sites, {} ms apart; the bank is founded with {}",
        args.sites,
        args.rtt_ms,
        grouped(CAPITAL.unsigned_abs())
    ));
    let mut slips = found(desk, &accounts)?;
    let (close, give_up) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let tellers = tellers(desk, args, &accounts).into_iter();
    let tellers: Vec<_> = tellers.map(|teller| teller.start(&desk.board, &close, &give_up)).collect();
    let scripted = args.demo || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal();
    let left = match scripted {
        true => demo::run(desk, Duration::from_secs(args.seconds)),
        false => desk.listen(),
    };
    let mut right = true;
    if let Err(Leave::Failed(why)) = left {
        desk.say(&why);
        right = false;
    }
    closing::repair(desk)?;
    close.store(true, Ordering::Relaxed);
    right &= closing::gather(desk, tellers, &give_up, &mut slips)?;
    let audited = closing::audit(desk, &accounts, &slips)?;
    end.store(true, Ordering::Relaxed);
    for auditor in auditors {
        let _ = auditor.join();
    }
    Ok(right & audited)
}

/// One for each site.
fn auditors(desk: &Desk, end: &Arc<AtomicBool>) -> Vec<JoinHandle<()>> {
    let door = |site| desk.clusters.door(Who::Auditor, site);
    let sites = desk.clusters.sites().into_iter();
    sites.map(|site| auditor::start(site, door(site), CAPITAL, &desk.board, end)).collect()
}

/// The customers of cluster 0, then those of cluster 1.
fn accounts(customers: u8) -> Vec<String> {
    (0..CLUSTERS).flat_map(|cluster| (1..=customers).map(move |n| format!("c{cluster}-{n:02}"))).collect()
}

/// Founds the bank, opens the accounts and fills them.
fn found(desk: &mut Desk, accounts: &[String]) -> Result<Vec<Slip>, Leave> {
    let sites: Vec<_> =
        desk.clusters.sites().into_iter().map(|site| desk.clusters.door(Who::Teller, site)).collect();
    let mut client = Client::new(1, 0, sites);
    let slip = |name: String, from: &str, to: &str, sum| Slip {
        name,
        from: from.to_owned(),
        to: to.to_owned(),
        sum,
        fate: Fate::Done,
    };
    call(desk, &mut client, &format!("found {CAPITAL}"))?;
    let mut slips = vec![slip("founding".into(), "", VAULT, CAPITAL)];
    for account in accounts {
        call(desk, &mut client, &format!("open {account}"))?;
        let name = format!("first-{account}");
        call(desk, &mut client, &format!("deposit {account} {DEPOSIT} {name}"))?;
        slips.push(slip(name, VAULT, account, DEPOSIT));
    }
    Ok(slips)
}

/// Has a request executed, once; repeats it under its number until there is an answer.
fn call(desk: &mut Desk, client: &mut Client, request: &str) -> Result<(), Leave> {
    let (began, moment) = (Instant::now(), Duration::from_secs(1));
    let mut answer = client.execute(request.as_bytes(), moment);
    while matches!(answer, Err(CallError::Silence(_))) && began.elapsed() < PATIENCE {
        desk.watch(Duration::from_millis(1))?;
        answer = client.execute_again(request.as_bytes(), moment);
    }
    answer?;
    desk.watch(Duration::ZERO)
}

fn tellers(desk: &Desk, args: &Args, accounts: &[String]) -> Vec<Teller> {
    let customers = usize::from(args.customers);
    let mut tellers = Vec::new();
    for home in 0..CLUSTERS {
        for number in 0..args.tellers {
            let mut own: Vec<_> = desk.clusters.sites_of(home);
            // Each begins at another of its sites.
            own.rotate_left(usize::from(number % args.sites));
            let others = desk.clusters.sites().into_iter().filter(|site| site.cluster.0 != home);
            let sites =
                own.iter().copied().chain(others).map(|site| desk.clusters.door(Who::Teller, site)).collect();
            let mut accounts = accounts.to_vec();
            accounts.rotate_left(customers * usize::from(home));
            let number = 10 + u64::from(home) * 100 + u64::from(number);
            tellers.push(Teller { number, home, sites, own: own.len(), accounts });
        }
    }
    tellers
}
