//! Market data by TLS: the day, snapshots and what comes are had over connections that are proved, and by nobody who does not ask for proof.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use pares_config::TlsSetting;
use pares_feed::soup;
use pares_member::market::{self, MarketConfig};
use pares_member::sources::{MarketNews, MarketState};
use pares_node::{NodeId, SystemConfig, config};
use pares_tls::{Authority, Lifetime, TlsFiles};
use pares_types::{Quantity, ReplayerId, ShardId, Side};

use crate::PROGRAM;
use crate::common::exchange::{Exchange, small, with_feed};
use crate::common::process::Running;
use crate::common::{PATIENCE, eventually, limit};
use crate::publishers::Listener;

pub(crate) const SHARD: ShardId = ShardId(0);

/// A system whose replayers serve TCP by TLS, and whose gateways do not.
fn with_tls() -> SystemConfig {
    let mut config = with_feed(small(1));
    config.feed.as_mut().unwrap().tls = TlsSetting::On;
    config
}

pub(crate) fn replayers(exchange: &Exchange) -> Vec<SocketAddr> {
    let all = config::replayers(exchange.layout(), exchange.config());
    assert_eq!(all.len(), 2);
    all
}

/// `pares feed watch`, in lines.
pub(crate) struct Watch {
    _process: Running,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Watch {
    pub(crate) fn start(args: &[&str]) -> Self {
        let seconds = PATIENCE.as_secs().to_string();
        let mut command = Command::new(PROGRAM);
        command.args(["feed", "watch", "--plain", "--seconds", &seconds]).args(args);
        let mut process = Running::start(&mut command);
        let lines = Box::new(process.lines());
        Self { _process: process, lines }
    }

    /// The first line that holds all of those words, and those before it.
    pub(crate) fn until(&mut self, words: &[&str]) -> Vec<String> {
        let mut said = Vec::new();
        for line in &mut self.lines {
            said.push(line);
            if words.iter().all(|word| said[said.len() - 1].contains(word)) {
                return said;
            }
        }
        panic!("it never said {words:?}: {said:#?}");
    }
}

#[test]
fn tls_receiver_gets_snapshot_and_day_despite_dead_replayer() {
    let mut exchange = Exchange::start(&with_tls());
    let mut buyer = exchange.client(0, 7);
    let mut buy = |name| buyer.submit_and_wait(&limit(name, 1, Side::Buy, 10, 2_230_000)).unwrap();
    buy(1);
    // Everything by TLS.
    let mut listener = Listener::new(&exchange, false);
    listener.await_bid(&mut exchange, 2_230_000, 10);
    buy(2);
    listener.await_bid(&mut exchange, 2_230_000, 20);
    for replayer in 0..2 {
        exchange.kill(NodeId::Replayer(ReplayerId(replayer)));
        buy(3 + u64::from(replayer));
        listener.await_bid(&mut exchange, 2_230_000, 30 + 10 * u64::from(replayer));
    }
}

#[test]
fn who_watches_believes_the_systems_authority_and_no_other() {
    let exchange = Exchange::start(&with_tls());
    let mut buyer = exchange.client(0, 7);
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    let dir = exchange.layout().root().to_str().unwrap();
    let bid = "bid 10 at 223.00";
    Watch::start(&["ALFA", "--tcp", "--dir", dir]).until(&["ALFA", "current", bid]);

    let addresses: Vec<String> = replayers(&exchange).iter().map(ToString::to_string).collect();
    let by = |authority: &Path| {
        let (ca, one, other) = (authority.to_str().unwrap(), &addresses[0], &addresses[1]);
        let by_tcp = ["ALFA", "--replayer", one, "--replayer", other, "--shards", "2", "--feed-ca", ca];
        Watch::start(&by_tcp)
    };
    by(&exchange.layout().keys().join("ca.pem")).until(&["ALFA", "current", bid]);

    // The server says what a receiver without TLS lacks.
    let by_tcp = ["ALFA", "--replayer", &addresses[0], "--shards", "2"];
    Watch::start(&by_tcp).until(&["broke", "--feed-ca"]);

    // Another authority's certificate of the same name is not a replayer's.
    let elsewhere = tempfile::tempdir().unwrap();
    let files = TlsFiles::named(elsewhere.path(), "replayer-0");
    let authority = Authority::in_dir(elsewhere.path(), "pares").unwrap();
    authority.issue(&files, &["replayers.pares".into()], Lifetime::Endless).unwrap();
    let said = by(&files.ca).until(&["broke", "invalid peer certificate"]);
    assert!(!said.iter().any(|line| line.contains("current")), "{said:#?}");
}

#[test]
fn a_members_server_takes_the_market_by_tls() {
    let exchange = Exchange::start(&with_tls());
    let mut buyer = exchange.client(0, 7);
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    let authority = Some(exchange.layout().keys().join("ca.pem"));
    let tcp = replayers(&exchange);
    let config = MarketConfig { shards: vec![SHARD.0], tcp, authority, ..MarketConfig::default() };
    let mut market = market::receive(&config, || {}, |why| panic!("{why}")).unwrap();
    let (mut bid, mut state) = (None, MarketState::Stale);
    eventually("the market by TLS", || {
        while let Ok(Some(news)) = market.try_next() {
            match news {
                MarketNews::Book { locate: 1, view, .. } => {
                    bid = view.bids.first().map(|level| level.quantity)
                }
                MarketNews::State { state: now, .. } => state = now,
                MarketNews::Book { .. } => {}
            }
        }
        (bid, state) == (Some(Quantity(10)), MarketState::Current)
    });
}

#[test]
fn a_members_server_that_cannot_take_the_market_says_why() {
    let exchange = Exchange::start(&with_tls());
    exchange.client(0, 7).submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    let tcp = vec![replayers(&exchange)[0]];
    let config = MarketConfig { shards: vec![SHARD.0], tcp, ..MarketConfig::default() };
    let (complain, said) = std::sync::mpsc::channel();
    let _market = market::receive(&config, || {}, move |why| drop(complain.send(why))).unwrap();
    let why = said.recv_timeout(PATIENCE).unwrap();
    assert!(why.contains("shard 0") && why.contains("--feed-ca"), "{why}");
    assert!(said.recv_timeout(Duration::from_secs(1)).is_err(), "it is printed once");
}

#[test]
fn plaintext_client_is_told_not_authorized_and_gets_nothing() {
    let exchange = Exchange::start(&with_tls());
    let mut stream = TcpStream::connect(replayers(&exchange)[0]).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&soup::login(*b"REPLAY", soup::current_session(SHARD), 1)).unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).unwrap();
    assert_eq!(told, *b"\0\x02JA");
    let replayer = NodeId::Replayer(ReplayerId(0));
    eventually("it is counted", || exchange.counter(replayer, "failed_handshakes") == 1);
}
