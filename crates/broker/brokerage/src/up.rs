//! `pares broker up`: a whole broker on this machine: sites, desks, fronts, and a stand-in for the quote server if there is none.

mod agreeing;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_operator::init::promise;
use pares_operator::sites::{self, ChildOutput};
use pares_os::process::{Lock, stop_on_signals};
use pares_routing::SignOn;
use pares_site::config::Promise;
use pares_site::{Access, SiteReport};
use pares_wice::SiteId;

use crate::children::{BrokerPlan, Children, ToldBesides};
use crate::entrance::Entrance;
use crate::error::{BrokerageError, BrokerageResult, usage};
use crate::front;
use crate::quote_server::{Behaviour, QuoteServer, unreached};

/// Between two looks at the children, so that a signal is noticed.
const PAUSE: Duration = Duration::from_millis(50);

/// Between two looks at what sites say of themselves.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Where pages are if nothing else is said.
const HTTP: u16 = 8_080;

/// Arguments of `pares broker up`.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// The broker's directory; created if missing, with the numbers of processes below
    #[arg(long, default_value = "broker-data")]
    dir: PathBuf,
    #[command(flatten)]
    how_many: HowMany,
    /// The pages' address at the first front [default: 127.0.0.1:8080, later as in the last run]; other fronts use the next ports
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    #[command(flatten)]
    entrance: Entrance,
    /// Gateways of an exchange for customers' orders; starts two routers
    #[arg(long = "exchange", value_name = "ADDRESS")]
    exchange: Vec<SocketAddr>,
    #[command(flatten)]
    sign_on: SignOn,
    /// Keep each site's items in its own PostgreSQL database: a URL with {cluster} and {number}
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// What a reply survives: `os` the death of processes, `disk` a power loss [default: disk]
    #[arg(long, value_parser = promise)]
    durability: Option<Promise>,
    /// The quote server [default: a simulated one in this process, with the next three options]
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["seed", "instant", "bad_per_mille"])]
    quote_server: Option<SocketAddr>,
    #[command(flatten)]
    behaviour: Behaviour,
    /// Let fronts trust their clocks even if they differ from the quote server's time stamps by more than 30 s
    #[arg(long)]
    trust_clock: bool,
}

impl Args {
    /// What its processes receive besides.
    fn told(&self) -> ToldBesides {
        let gateways = self.exchange.iter().flat_map(|at| ["--gateway".into(), at.to_string().into()]);
        let routers = match self.exchange.as_slice() {
            [] => Vec::new(),
            _ => gateways.chain(self.sign_on.arguments()).collect(),
        };
        let mut fronts = self.entrance.arguments();
        fronts.extend(self.trust_clock.then(|| "--trust-clock".into()));
        ToldBesides { logs: None, fronts, routers }
    }

    /// Whether the exchange's key and authority can be used.
    fn check_sign_on(&self) -> BrokerageResult {
        match self.exchange.is_empty() {
            true if self.sign_on.names_files() => Err(usage(
                "--key and --authority need --exchange: name its gateway, or leave them out",
            )),
            true => Ok(()),
            false => self.sign_on.check().map_err(|why| {
                usage(format!(
                    "{why}. --key must name the key of this broker's session at the exchange, --authority its ca.pem: ask the exchange's operator for both"
                ))
            }),
        }
    }
}

/// How many processes.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct HowMany {
    /// Sites: 1 to 9, or up to 64 clusters and the 1 to 9 sites of each, as in 2x3
    #[arg(long, value_parser = clusters)]
    pub sites: Option<(u8, u8)>,
    /// Fronts, 1 to 64
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub fronts: Option<u16>,
    /// Quote desks, 1 to 64
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub desks: Option<u16>,
}

impl HowMany {
    /// Whether anything was said of it.
    pub fn is_told(&self) -> bool {
        self.sites.is_some() || self.fronts.is_some() || self.desks.is_some()
    }

    /// So many, where nothing was said: one site, two fronts, two desks.
    pub fn plan(
        &self,
        durability: Promise,
        store: Option<String>,
        quote_server: SocketAddr,
        http: Option<SocketAddr>,
    ) -> BrokerPlan {
        BrokerPlan {
            sites: self.sites.unwrap_or((1, 1)),
            fronts: self.fronts.unwrap_or(2),
            desks: self.desks.unwrap_or(2),
            durability,
            store,
            quote_server,
            http,
        }
    }
}

/// Reads `3` or `2x3`.
fn clusters(text: &str) -> Result<(u8, u8), String> {
    let (clusters, sites) = text.split_once('x').unwrap_or(("1", text));
    let number = |text: &str, max: u8| text.parse().ok().filter(|number| (1..=max).contains(number));
    let both = number(clusters, 64).zip(number(sites, 9));
    both.ok_or_else(|| "1 to 9 sites, or clusters x sites as in 2x3".into())
}

/// Runs everything until Ctrl-C.
///
/// # Errors
/// If another process does it, or one cannot be started.
pub fn run(args: &Args) -> BrokerageResult {
    let http = args.http.unwrap_or(SocketAddr::from(([127, 0, 0, 1], HTTP)));
    args.entrance.check(http)?;
    args.check_sign_on()?;
    let stop = stop_on_signals().map_err(BrokerageError::io("installing a signal handler"))?;
    let dir = &args.dir;
    std::fs::create_dir_all(dir).map_err(BrokerageError::io(format!("making {}", dir.display())))?;
    let lock = Lock::take(&dir.join("lock")).map_err(BrokerageError::io("locking the directory"))?;
    let _lock = lock.ok_or_else(|| {
        usage(format!(
            "another `pares broker up` is running in {}: stop it, or use another --dir",
            dir.display()
        ))
    })?;
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let durability = args.durability.unwrap_or_default();
    let plan = args.how_many.plan(durability, args.store.clone(), any, Some(http));
    plan.can_begin(dir)?;
    let (config, mut places) = plan.settle(dir)?;
    args.agrees(&config, &places)?;
    args.http.map_or(Ok(()), |http| places.move_pages(http, dir))?;
    for pages in &places.pages {
        args.entrance.check(*pages)?;
    }
    places.are_free()?;
    let stand_in = stand_in(args)?;
    places.quote_server = stand_in.as_ref().map(QuoteServer::address).or(args.quote_server).unwrap_or(any);
    let mut children = Children::start(dir, ChildOutput::File, &config, places, args.told())?;
    tell(&children, args);
    if let Some(why) = args.quote_server.and_then(unreached) {
        pares_text::tell!("{why}: refusing commands that need a quote until it can");
    }
    let ended = watch(&mut children, &mut SiteOutage::of(front::access(dir)?), &stop);
    children.stop();
    ended?;
    pares_text::tell!("stopped");
    Ok(())
}

fn watch(children: &mut Children, standstill: &mut SiteOutage, stop: &AtomicBool) -> BrokerageResult {
    while !stop.load(Ordering::Relaxed) {
        for dead in children.revive()? {
            pares_text::tell!("{dead}");
        }
        standstill.look();
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Says when no site participates, though each of them runs or is started again, and when one does again.
struct SiteOutage {
    access: Access,
    looked: Instant,
    /// In how many looks there was none.
    looks: u32,
    said: Option<String>,
}

impl SiteOutage {
    fn of(access: Access) -> Self {
        Self { access, looked: Instant::now(), looks: 0, said: None }
    }

    fn look(&mut self) {
        if self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        let why = no_part(&sites::reports(&self.access));
        self.looked = Instant::now();
        self.looks = if why.is_some() { self.looks + 1 } else { 0 };
        // A site that begins takes no part for a moment.
        if self.said != why && self.looks != 1 {
            let told =
                why.as_ref().map(|why| format!("no site participates, so no command is executed: {why}"));
            pares_text::tell!("{}", told.unwrap_or_else(|| "sites participate again".into()));
            self.said = why;
        }
    }
}

/// Why no site participates, if none does.
fn no_part(reports: &[(SiteId, SiteReport)]) -> Option<String> {
    if reports.iter().any(|(_, report)| report.apart.is_none()) {
        return None;
    }
    let told = |(site, report): &(SiteId, SiteReport)| {
        format!("site {} {}", sites::name(*site), report.apart.as_deref().unwrap_or_default())
    };
    let all: Vec<String> = reports.iter().map(told).collect();
    Some(if all.is_empty() { "no site reports its state".into() } else { all.join("; ") })
}

fn stand_in(args: &Args) -> BrokerageResult<Option<QuoteServer>> {
    if args.quote_server.is_some() {
        return Ok(None);
    }
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = QuoteServer::start(any, args.behaviour.settings());
    server.map(Some).map_err(BrokerageError::io("starting the simulated quote server"))
}

/// A command line that has a front execute one command, and shows the answer.
fn in_python(front: SocketAddr) -> String {
    format!(
        "python3 -c 'import socket; s = socket.create_connection((\"{}\", {})); s.sendall(b\"[1] ADD,jo,10.00\\n\"); f = s.makefile(); print(f.readline() + f.readline())'",
        front.ip(),
        front.port()
    )
}

/// Says where everything is.
fn tell(children: &Children, args: &Args) {
    let places = children.places();
    let dir = args.dir.display();
    if !args.exchange.is_empty() {
        let gateways: Vec<String> = args.exchange.iter().map(SocketAddr::to_string).collect();
        pares_text::tell!("customers' orders go to the exchange at {}", gateways.join(", "));
    }
    for pages in &places.pages {
        pares_text::tell!("pages at {}://{pages}", args.entrance.scheme());
    }
    for front in &places.fronts {
        pares_text::tell!(
            "commands, as lines of text, at {front}  (try: nc {} {})",
            front.ip(),
            front.port()
        );
    }
    if let Some(front) = places.fronts.first() {
        pares_text::tell!("without nc: {}", in_python(*front));
    }
    let desks: Vec<String> = places.desks.iter().map(SocketAddr::to_string).collect();
    pares_text::tell!(
        "quote desks at {}, with the quote server at {}",
        desks.join(", "),
        places.quote_server
    );
    pares_text::tell!(
        "`pares site status --dir {dir}` shows the sites; the output of all processes is in {dir}/*.log"
    );
    pares_text::tell!("Ctrl-C stops everything.");
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[derive(clap::Parser)]
    struct FrontLine {
        #[command(flatten)]
        _args: front::Args,
    }

    #[test]
    fn fronts_are_told_that_the_clock_is_trusted_and_understand_it() {
        for (line, is_told) in [("up", false), ("up --trust-clock", true)] {
            let told = Line::parse_from(line.split(' ')).args.told().fronts;
            assert_eq!(told.contains(&"--trust-clock".into()), is_told);
            let front = ["front", "--desk", "127.0.0.1:1"].map(std::ffi::OsString::from);
            FrontLine::try_parse_from(front.into_iter().chain(told)).unwrap();
        }
    }

    #[test]
    fn a_directory_that_is_there_is_no_other_than_it_says() {
        let dir = tempfile::tempdir().unwrap();
        let args = |more: &str| {
            let line = format!("up --dir {} {more}", dir.path().display());
            Line::parse_from(line.split_whitespace()).args
        };
        let settle = |args: &Args| {
            let durability = args.durability.unwrap_or_default();
            let http = SocketAddr::from(([127, 0, 0, 1], HTTP));
            let plan = args.how_many.plan(durability, args.store.clone(), http, Some(http));
            let (config, places) = plan.settle(dir.path()).unwrap();
            args.agrees(&config, &places)
        };
        for same in
            ["--sites 2x3 --fronts 3 --durability os", "", "--sites 2x3", "--desks 2", "--http 127.0.0.1:1"]
        {
            settle(&args(same)).unwrap();
        }
        for other in ["--sites 6", "--sites 3x2", "--fronts 2", "--desks 3", "--durability disk", "--store x"]
        {
            let why = settle(&args(other)).unwrap_err().to_string();
            let left_out = format!("leave {} out, or name another --dir", other.split(' ').next().unwrap());
            assert!(why.ends_with(&left_out), "{why}");
        }
        for (other, has) in
            [("--sites 6", "--sites 2x3"), ("--fronts 2", "--fronts 3"), ("--store x", "no --store")]
        {
            let why = settle(&args(other)).unwrap_err().to_string();
            assert!(why.contains(&format!("with {has},")), "{why}");
        }
    }

    #[test]
    fn nobody_says_how_another_quote_server_behaves() {
        for misplaced in ["--instant", "--seed 2", "--bad-per-mille 9"] {
            let line = format!("up --quote-server 127.0.0.1:1 {misplaced}");
            assert!(Line::try_parse_from(line.split_whitespace()).is_err(), "{line}");
        }
    }

    #[test]
    fn missing_or_unneeded_key_is_refused_before_start() {
        let refused = |more: &str| {
            let args = Line::parse_from(format!("up {more}").split_whitespace()).args;
            args.check_sign_on().map_err(|why| why.to_string())
        };
        let missing = refused("--exchange 127.0.0.1:1 --key nowhere.key").unwrap_err();
        assert!(missing.starts_with("nowhere.key: "), "{missing}");
        let ignored = refused("--key nowhere.key").unwrap_err();
        assert!(ignored.contains("--exchange"), "{ignored}");
        assert_eq!(refused("--exchange 127.0.0.1:1"), Ok(()));
    }
}
