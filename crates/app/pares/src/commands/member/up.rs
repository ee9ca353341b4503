//! `pares member up`: a member's servers, until Ctrl-C.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use pares_client::KeyFile;
use pares_config::{SignOnSetting, TlsSetting};
use pares_member::MemberConfig;
use pares_member::market::MarketConfig;
use pares_member::process;
use pares_member::reports::ExchangeConfig;
use pares_member::up::MemberSupervisor;
use pares_node::{Layout, NodeError};
use pares_types::GatewayId;

use crate::error::{CommandError, CommandResult};
use crate::text::count;

/// Arguments of `pares member up`. All but the directory apply to a new system only; an existing one follows its `member.toml`.
#[derive(clap::Args)]
#[command(
    after_help = "The first start writes all options but --dir into DIR/member.toml. Later starts follow \
                        that file, and refuse an option that differs from it."
)]
pub struct Args {
    /// The directory of the member's system; created with default settings (`member.toml`) if it does not exist
    #[arg(long, default_value = "member-data")]
    dir: PathBuf,
    /// Number of servers in a new system [default: 2]
    #[arg(long)]
    servers: Option<u16>,
    /// The first server's port in a new system; the others use the next ports. 0 chooses free ports [default: 7200]
    #[arg(long)]
    port: Option<u16>,
    /// Number of servers that must store an item before traders receive it [default: 1]
    #[arg(long)]
    quorum: Option<u16>,
    /// The directory of the exchange on this host that supplies market data and the member's reports
    #[arg(long)]
    exchange: Option<PathBuf>,
    /// The member's number at the exchange
    #[arg(long, default_value_t = 1)]
    member: u32,
    /// One key file for each server, in order, if the exchange requires keys
    #[arg(long, requires = "exchange")]
    key: Vec<PathBuf>,
    /// Multicast lines A and B of shard 0's market data, as A,B; shard S uses the ports S higher. Without
    /// lines, all market data come over TCP
    #[arg(long, value_delimiter = ',', requires = "feed_tcp")]
    feed: Vec<SocketAddr>,
    /// Address of the network interface that receives the lines [default: the system's choice]
    #[arg(long, value_name = "ADDRESS", requires = "feed")]
    feed_interface: Option<Ipv4Addr>,
    /// The market data replayers' UDP addresses, as A,B,...
    #[arg(long, value_delimiter = ',', requires = "feed_tcp")]
    feed_requests: Vec<SocketAddr>,
    /// The market data replayers' TCP addresses, as A,B,...
    #[arg(long, value_delimiter = ',')]
    feed_tcp: Vec<SocketAddr>,
    /// The exchange's CA certificate (ca.pem), if its replayers use TLS
    #[arg(long, value_name = "FILE", requires = "feed_tcp")]
    feed_ca: Option<PathBuf>,
    /// Shards whose market data to receive, as A,B,... [default: the exchange's, or 0]
    #[arg(long, value_delimiter = ',', requires = "feed_tcp")]
    feed_shard: Vec<u16>,
}

impl Args {
    fn config(&self) -> Result<MemberConfig, CommandError> {
        let first = self.port.unwrap_or(7200);
        let port = |server| if first == 0 { 0 } else { first.saturating_add(server) };
        let address = |server| SocketAddr::from(([127, 0, 0, 1], port(server)));
        let servers: Vec<_> = (0..self.servers.unwrap_or(2)).map(address).collect();
        let exchange = self.exchange.as_deref().map(|dir| self.exchange(dir)).transpose()?;
        let market = match self.market(exchange.as_ref())? {
            None => self.exchange.as_deref().map(market_of).transpose()?.flatten(),
            market => market,
        };
        let exchange = if self.can_sign_on()? { exchange } else { None };
        let quorum = self.quorum.unwrap_or(1);
        let config = MemberConfig { servers, quorum, exchange, market, ..MemberConfig::default() };
        config.check()?;
        Ok(config)
    }

    /// Whether every option that is given says what is written in the system's `member.toml`.
    fn check_against(&self, written: &MemberConfig) -> CommandResult {
        let wanted = self.config()?;
        let who = |config: &MemberConfig| {
            let exchange = config.exchange.clone();
            exchange.map(|exchange| (exchange.member, exchange.keys, exchange.authority))
        };
        let has_servers = self.servers.is_none_or(|servers| servers == written.count())
            && self.port.is_none_or(|port| written.servers.first().is_some_and(|first| first.port() == port));
        let has_feed = !self.feed.is_empty() || !self.feed_tcp.is_empty();
        let checks = [
            ("--servers, --port", has_servers),
            ("--quorum", self.quorum.is_none_or(|quorum| quorum == written.quorum)),
            ("--exchange, --member, --key", self.exchange.is_none() || who(&wanted) == who(written)),
            ("--feed...", !has_feed || wanted.market == written.market),
        ];
        match checks.into_iter().find(|(_, agrees)| !agrees) {
            None => Ok(()),
            Some((option, _)) => Err(CommandError::Usage(format!(
                "{} differs from {option}: edit the file, leave the option out, or name another --dir",
                process::config_file(&Layout::new(&self.dir)).display()
            ))),
        }
    }

    fn market(&self, exchange: Option<&ExchangeConfig>) -> Result<Option<MarketConfig>, CommandError> {
        let lines = match self.feed[..] {
            [] if self.feed_tcp.is_empty() => return Ok(None),
            [] => None,
            [a, b] if a.ip().is_multicast() && b.ip().is_multicast() => Some((a, b)),
            [_, _] => {
                return Err(CommandError::Usage(
                    "--feed: unicast lines have only one receiver, and there are several servers: leave \
                     --feed out, and all market data come from --feed-tcp"
                        .into(),
                ));
            }
            _ => return Err(CommandError::Usage("--feed needs two lines, as A,B".into())),
        };
        let shards = exchange.map_or_else(|| vec![0], |exchange| exchange.shards.clone());
        let shards = if self.feed_shard.is_empty() { shards } else { self.feed_shard.clone() };
        let (requests, tcp) = (self.feed_requests.clone(), self.feed_tcp.clone());
        let authority = self.feed_ca.as_deref().map(absolute);
        let interface = self.feed_interface;
        Ok(Some(MarketConfig { shards, lines, interface, requests, tcp, authority }))
    }

    /// Whether the exchange tells its reports to servers that have these keys.
    fn can_sign_on(&self) -> Result<bool, CommandError> {
        let Some(dir) = self.exchange.as_ref().filter(|_| self.key.is_empty()) else { return Ok(true) };
        let system = pares_node::config::load(&Layout::new(dir).config())?;
        let is_open = system.sign_on == SignOnSetting::Open;
        if !is_open {
            pares_text::tell!(
                "market data only, no reports: {} requires sign-on. For reports give --member, and a --key \
                 for each server (`pares admin member key` makes them)",
                dir.display()
            );
        }
        Ok(is_open)
    }

    /// Where the exchange in that directory is, and what it is made of.
    fn exchange(&self, dir: &Path) -> Result<ExchangeConfig, CommandError> {
        let layout = Layout::new(dir);
        let system = pares_node::config::load(&layout.config())?;
        let address = |gateway: GatewayId| {
            let told = std::fs::read_to_string(layout.gateway_address(gateway)).ok();
            let configured = system.gateways[usize::from(gateway.0)];
            told.and_then(|told| told.trim().parse().ok()).unwrap_or(configured)
        };
        let authority = layout.keys().join("ca.pem");
        self.check_keys()?;
        Ok(ExchangeConfig {
            gateways: system.gateway_ids().map(address).collect(),
            shards: system.shards()?.keys().map(|shard| shard.0).collect(),
            member: self.member,
            keys: self.key.iter().map(|key| absolute(key)).collect(),
            authority: (system.tls == TlsSetting::On).then_some(authority),
        })
    }
}

impl Args {
    /// Whether there are keys for all servers, or none, and each can be read.
    fn check_keys(&self) -> CommandResult {
        let servers = usize::from(self.servers.unwrap_or(2));
        if ![0, servers].contains(&self.key.len()) {
            return Err(CommandError::Usage(format!(
                "--key: each of the {servers} servers needs its own session and key; `pares admin member key` makes one"
            )));
        }
        let mut sessions = BTreeSet::new();
        for path in &self.key {
            let shown = path.display();
            let key = KeyFile::read(path).map_err(|error| CommandError::Failed(format!("--key: {error}")))?;
            if key.member != self.member {
                return Err(CommandError::Usage(format!(
                    "--key {shown} belongs to member {}, but --member is {}",
                    key.member, self.member
                )));
            }
            if !sessions.insert(key.session) {
                return Err(CommandError::Usage(format!(
                    "--key {shown} repeats session {}: two servers cannot share a session",
                    key.session
                )));
            }
        }
        Ok(())
    }
}

/// The market data of the exchange in a directory, if it publishes any. Lines that are not multicast have room for one receiver, and there are two
/// servers: they take everything by TCP then.
fn market_of(dir: &Path) -> Result<Option<MarketConfig>, CommandError> {
    let layout = Layout::new(dir);
    let system = pares_node::config::load(&layout.config())?;
    let Some(feed) = &system.feed else { return Ok(None) };
    let replayers = pares_node::config::replayers(&layout, &system);
    let lines =
        Some((feed.line_a, feed.line_b)).filter(|(a, b)| a.ip().is_multicast() && b.ip().is_multicast());
    let shards = system.shards()?.keys().map(|shard| shard.0).collect();
    let authority = pares_node::config::feed_authority(&layout, feed).as_deref().map(absolute);
    let interface = lines.map(|_| feed.interface).filter(|interface| !interface.is_unspecified());
    let requests = replayers.clone();
    Ok(Some(MarketConfig { shards, lines, interface, requests, tcp: replayers, authority }))
}

/// The path, whatever directory a server is started in.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// Starts the servers, restarts what dies, and stops them on Ctrl-C.
pub(super) fn run(args: &Args) -> CommandResult {
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    let file = process::config_file(&Layout::new(&args.dir));
    let config = match file.exists() {
        true => {
            let written = MemberConfig::load(&file)?;
            args.check_against(&written)?;
            written
        }
        false => args.config()?,
    };
    let program = std::env::current_exe().map_err(CommandError::io("finding the path of this program"))?;
    let started = MemberSupervisor::start(&program, Layout::new(&args.dir), &config, &stop);
    let mut supervisor = match started {
        Err(NodeError::BrokenOff) => {
            pares_text::tell!("stopped before the servers were up");
            return Ok(());
        }
        started => started?,
    };
    tell(&supervisor);
    while !stop.load(Ordering::Relaxed) {
        for (_, death) in supervisor.tick() {
            pares_text::tell!("{death}; restarting it");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    supervisor.stop();
    pares_text::tell!("stopped");
    Ok(())
}

fn tell(supervisor: &MemberSupervisor) {
    let (config, layout) = (supervisor.config(), supervisor.layout());
    let (servers, dir) = (count(config.count().into(), "member server"), layout.root().display());
    pares_text::tell!("up: {servers}, epoch {}; {dir}", supervisor.epoch());
    for server in 0..config.count() {
        if !supervisor.is_up(server) {
            pares_text::tell!("server {server} is not up yet; the others are serving");
            continue;
        }
        if let Ok(address) = pares_member::world::address(layout, server) {
            pares_text::tell!("server {server} listens on {address}");
        }
    }
    if let Some(market) = &config.market {
        pares_text::tell!("market data of {}", count(market.shards.len() as u64, "shard"));
    } else {
        pares_text::tell!(
            "no market data: name an exchange with a feed (--exchange or --feed-tcp at the first start, [market] in member.toml)"
        );
    }
    if config.exchange.is_none() {
        pares_text::tell!(
            "no reports from an exchange: at the first start give --member and a --key for each server beside --exchange ([exchange] in member.toml)"
        );
    }
    pares_text::tell!("anyone who can connect to these addresses can act as any trader: do not expose them");
    pares_text::tell!(
        "`pares member say --dir {dir} --as 1 hello` sends a message, `pares member watch --dir {dir}` shows it."
    );
    pares_text::tell!("Ctrl-C stops everything.");
}
