//! `pares up`: a system that runs until Ctrl-C.

mod beside;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_config::{FeedConfig, SignOnSetting, TlsSetting};
use pares_node::lost::OnLoss;
use pares_node::{Layout, NodeError, Supervisor, SystemConfig, hosts};
use pares_port::DoorPort;

use crate::error::{CommandError, CommandResult};
use crate::text::count;
use beside::BesideUp;

/// An address for the server of HTTP is waited for so long.
const FREE_MAX: Duration = Duration::from_secs(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `pares up`.
#[derive(clap::Args)]
pub struct Args {
    /// The system's directory; created with a default configuration (`pares.toml`) if missing
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// Which of the `hosts` in pares.toml this is; remembered by the directory
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// With durability `disk`: start even if recorded positions are in no recorder's log, and give them up permanently
    #[arg(long)]
    give_up_lost: bool,
    /// Publish market data: adds `[feed]` to pares.toml if missing
    #[arg(long)]
    feed: bool,
    /// Listen for FIX at a free loopback port for each gateway: adds `fix` to pares.toml if missing
    #[arg(long)]
    fix: bool,
    /// Listen for OUCH in the same way: adds `ouch`. OUCH passwords are unencrypted unless `tls` is on
    #[arg(long)]
    ouch: bool,
    /// Also serve HTTP, WebSocket and pages at this local address [default: 127.0.0.1:8420], in a process like `pares web`
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = super::web::LISTEN)]
    web: Option<SocketAddr>,
    /// Record the bytes of all gateway connections for `pares tap`: sets `tap = true` in pares.toml
    #[arg(long)]
    tap: bool,
}

/// Starts the system, restarts what dies, and stops everything on Ctrl-C.
///
/// # Errors
/// If the system does not come up.
pub fn run(args: &Args) -> CommandResult {
    args.web.map_or(Ok(()), |listen| check_web(listen, args))?;
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    match start(args, &stop) {
        Ok(mut supervisor) => {
            // A node that listens at any port may have this one, and continues with it.
            if let Err(taken) = args.web.map_or(Ok(()), check_free) {
                if let Err(error) = supervisor.stop() {
                    pares_text::aside!("pares: stopping: {error}");
                }
                return Err(taken);
            }
            // A leftover of the last run must look neither like one that listens nor like one that is down.
            beside::forget(supervisor.layout());
            let web = args.web.map(|listen| BesideUp::web(listen, supervisor.layout()));
            let mirror = supervisor.config().mirror;
            let mirror = mirror.map(|listen| BesideUp::mirror(listen, supervisor.layout()));
            let mut beside: Vec<BesideUp> = web.into_iter().chain(mirror).collect();
            tell(&supervisor);
            look_after(&mut supervisor, &mut beside, &stop);
            beside.iter_mut().try_for_each(|beside| beside.watched.stop())?;
            supervisor.stop()?;
            pares_text::tell!("stopped");
            Ok(())
        }
        // The operator has what he asked for.
        Err(CommandError::Node(NodeError::BrokenOff)) => {
            pares_text::tell!("stopped before the system was up");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The server of HTTP of a run before may be about to end.
fn check_free(listen: SocketAddr) -> CommandResult {
    let begun = Instant::now();
    loop {
        match TcpListener::bind(listen) {
            Err(error) if begun.elapsed() > FREE_MAX => {
                return Err(cannot_serve(listen, &error.to_string()));
            }
            Err(_) => std::thread::sleep(PAUSE),
            Ok(_) => return Ok(()),
        }
    }
}

/// Whether a server of HTTP may listen there. A node that is to listen there and comes up late would find its port taken.
fn check_web(listen: SocketAddr, args: &Args) -> CommandResult {
    if !listen.ip().is_loopback() {
        let why = format!(
            "--web serves this machine only, and {listen} is reachable from others: use `pares web --exchange DIR` with a certificate or behind a proxy"
        );
        return Err(CommandError::Usage(why));
    }
    check_free(listen)?;
    let config = match Layout::new(&args.dir).config() {
        path if path.exists() => pares_node::config::load(&path)?,
        _ => SystemConfig::fresh(),
    };
    let feed = config.feed.clone().or_else(|| args.feed.then(FeedConfig::default));
    let replayers = feed.iter().flat_map(|feed| &feed.replayers);
    match config.ports().chain(replayers).any(|port| takes(*port, listen)) {
        true => Err(cannot_serve(listen, "a node of this system is configured to listen there")),
        false => Ok(()),
    }
}

/// Whether who listens at a port of all addresses, or at that one, leaves no room there.
fn takes(port: SocketAddr, there: SocketAddr) -> bool {
    let [port, there] = [port, there].map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
    let is_all = port.ip().is_unspecified() && (port.is_ipv6() || there.is_ipv4());
    there.port() != 0 && port.port() == there.port() && (port.ip() == there.ip() || is_all)
}

fn cannot_serve(listen: SocketAddr, why: &str) -> CommandError {
    CommandError::Usage(format!("--web {listen}: {why}; choose another address, as in `--web 127.0.0.1:0`"))
}

fn start(args: &Args, stop: &AtomicBool) -> Result<Supervisor, CommandError> {
    let program = std::env::current_exe().map_err(CommandError::io("finding the path of this program"))?;
    let on_loss = if args.give_up_lost { OnLoss::GiveUp } else { OnLoss::Refuse };
    let layout = Layout::new(&args.dir);
    if let Some(name) = &args.host {
        hosts::claim(&layout, name)?;
    }
    let feed = args.feed.then(FeedConfig::default);
    if let Some(feed) = &feed {
        pares_node::config::add_feed(&layout, feed)?;
    }
    let mut fresh = SystemConfig { feed, ..SystemConfig::fresh() };
    if args.fix {
        pares_node::config::add_ports(&layout, DoorPort::Fix)?;
        fresh.fix = pares_node::config::free_ports(&fresh);
    }
    if args.ouch {
        pares_node::config::add_ports(&layout, DoorPort::Ouch)?;
        fresh.ouch = pares_node::config::free_ports(&fresh);
    }
    if args.tap {
        pares_node::config::set_tap(&layout)?;
        fresh.tap = true;
    }
    Ok(Supervisor::start(&program, layout, &fresh, on_loss, stop)?)
}

/// Says how the system has come up.
fn tell(supervisor: &Supervisor) {
    let (config, layout) = (supervisor.config(), supervisor.layout());
    pares_text::tell!(
        "up: {}, {}, {}, {}; epoch {}; {}",
        count(config.gateways.len() as u64, "gateway"),
        count(config.venues.into(), "venue"),
        count(config.recorders.into(), "recorder"),
        count(config.instruments.len() as u64, "instrument"),
        supervisor.epoch(),
        layout.root().display(),
    );
    tell_gateways(config, layout);
    tell_feed(config, layout);
    tell_tls(config, layout);
    if config.tap {
        let dir = layout.root().display();
        pares_text::tell!("the tap records all connections; `pares tap list --dir {dir}` lists them");
    }
    for node in supervisor.missing() {
        pares_text::tell!("{node} is not up yet; the others are trading");
    }
    for node in supervisor.nodes().into_iter().filter(|&node| supervisor.is_shut_out(node)) {
        pares_text::tell!("{node} is shut out and stays down until `pares admin readmit {node}`");
    }
    tell_sign_on(config, layout);
    pares_text::tell!(
        "Ctrl-C stops everything. `pares stat --dir {}` shows the state.",
        layout.root().display()
    );
}

/// Says where gateways listen.
fn tell_gateways(config: &SystemConfig, layout: &Layout) {
    for gateway in config.gateway_ids() {
        // One that is missing below does not say where.
        if let Ok(address) = std::fs::read_to_string(layout.gateway_address(gateway)) {
            pares_text::tell!("gateway-{gateway} listens on {}", address.trim());
        }
        let fix = ("FIX", layout.fix_address(gateway), &config.fix);
        let ouch = ("OUCH", layout.ouch_address(gateway), &config.ouch);
        for (protocol, path, ports) in [fix, ouch] {
            if let Some(address) = std::fs::read_to_string(path).ok().filter(|_| !ports.is_empty()) {
                pares_text::tell!("gateway-{gateway} listens for {protocol} on {}", address.trim());
            }
        }
    }
}

/// Says who needs which certificates.
fn tell_tls(config: &SystemConfig, layout: &Layout) {
    let by_feed = config.feed.as_ref().is_some_and(|feed| feed.tls == TlsSetting::On);
    let keys = layout.keys();
    let who = match (config.tls == TlsSetting::On, by_feed) {
        (false, false) => return,
        (true, true) => "members and receivers of market data need",
        (true, false) => "members need",
        (false, true) => "receivers of market data need",
    };
    pares_text::tell!("TLS: certificates and keys are in {}; {who} its ca.pem", keys.display());
    let key = keys.join("ca.key.pem");
    if key.exists() {
        pares_text::tell!(
            "anyone who can read {} can impersonate any gateway, replayer or member: protect it",
            key.display()
        );
    }
}

/// Says who may sign on.
fn tell_sign_on(config: &SystemConfig, layout: &Layout) {
    match config.sign_on {
        SignOnSetting::Open => {
            pares_text::tell!("sign-on is open: any client can sign on as any member")
        }
        SignOnSetting::Required if layout.operator_key().exists() => pares_text::tell!(
            "sign-on needs a key; the operator's key is {}. `pares admin --dir {} member add 1` adds a member",
            layout.operator_key().display(),
            layout.root().display()
        ),
        SignOnSetting::Required => pares_text::tell!(
            "sign-on needs a key, and the operator's key is missing from {}: restore it, or name it with `pares admin --key FILE`",
            layout.operator_key().display()
        ),
    }
}

/// Prints where the market data are available.
fn tell_feed(config: &SystemConfig, layout: &Layout) {
    let Some(feed) = &config.feed else { return };
    pares_text::tell!(
        "{} on lines {} and {} (shard S uses the port S higher); `pares feed watch --dir {} SYMBOL` shows a book",
        count(feed.publishers.into(), "publisher"),
        feed.line_a,
        feed.line_b,
        layout.root().display()
    );
    for address in pares_node::config::replayers(layout, config) {
        pares_text::tell!("a replayer listens at {address}, UDP and TCP");
    }
}

/// Restarts what dies, until a signal stops it.
fn look_after(supervisor: &mut Supervisor, all_beside: &mut [BesideUp], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for beside in &mut *all_beside {
            if let Some(how) = beside.tick() {
                pares_text::tell!("{} ended ({how}); restarting it", beside.name);
            }
            match (beside.heard(), beside.name) {
                (Some(at), "web") => pares_text::tell!(
                    "the exchange is at http://{at}/v1 over HTTP, its pages at http://{at}/ and http://{at}/operator"
                ),
                (Some(at), _) => {
                    pares_text::tell!("{at} sends the logs to other hosts: `pares mirror receive`")
                }
                (None, _) => {}
            }
        }
        for death in supervisor.tick() {
            let complaint = death.complaint.map(|line| format!(": {line}")).unwrap_or_default();
            let (node, how) = (death.node, death.how);
            match supervisor.is_shut_out(node) {
                true => pares_text::tell!(
                    "{node} ended ({how}){complaint}; it stays down until `pares admin readmit {node}`"
                ),
                false => pares_text::tell!("{node} ended ({how}){complaint}; restarting it"),
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_takes_its_own_address_and_all_of_a_kind() {
        let is_taken = |port: &str, there: &str| takes(port.parse().unwrap(), there.parse().unwrap());
        for port in ["127.0.0.1:7100", "0.0.0.0:7100", "[::]:7100", "[::ffff:127.0.0.1]:7100"] {
            assert!(is_taken(port, "127.0.0.1:7100"), "{port}");
            assert!(!is_taken(port, "127.0.0.1:7101"), "{port}");
        }
        assert!(!is_taken("0.0.0.0:7100", "[::1]:7100"), "of the other kind");
        assert!(!is_taken("127.0.0.2:7100", "127.0.0.1:7100"), "of another address");
        assert!(!is_taken("127.0.0.1:0", "127.0.0.1:0"), "any port");
    }
}
