//! A member's servers as processes, killed while traders talk and the exchange trades.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, ItemName, TraderId};
use pares_member::reports::{CopiedTo, ExchangeConfig};
use pares_member::up::MemberSupervisor;
use pares_member::{MemberConfig, TraderClient, TraderNews};
use pares_node::Layout;
use pares_types::{Quantity, Reply, ShardId, Side};
use rustix::process::Signal;

use crate::PROGRAM;
use crate::common::exchange::{Exchange, small};
use crate::common::process::pares;
use crate::common::{PATIENCE, eventually, limit};

struct Member {
    supervisor: MemberSupervisor,
    _dir: tempfile::TempDir,
}

impl Member {
    fn start(config: &MemberConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let stop = AtomicBool::new(false);
        let supervisor = MemberSupervisor::start(Path::new(PROGRAM), layout, config, &stop).unwrap();
        Self { supervisor, _dir: dir }
    }

    fn kill(&mut self, server: u16) {
        self.supervisor.signal(server, Signal::KILL).unwrap();
    }

    fn trader(&self, trader: u32) -> Trader {
        let first = trader as u16 % 2;
        self.trader_at(trader, &[first, 1 - first])
    }

    fn trader_at(&self, trader: u32, servers: &[u16]) -> Trader {
        let layout = self.supervisor.layout();
        let address = |server: &u16| pares_member::world::address(layout, *server).unwrap();
        let servers: Vec<_> = servers.iter().map(address).collect();
        let mut client = None;
        // A server that died again behind its announcement resets the connection.
        eventually("a trader connects", || {
            client = TraderClient::connect(&servers, TraderId(trader)).ok();
            client.is_some()
        });
        Trader { client: client.unwrap(), told: Vec::new(), reports: Vec::new() }
    }
}

#[test]
fn servers_that_are_stopped_in_order_leave_nothing_in_doubt() {
    let mut member = Member::start(&MemberConfig::local(2));
    let boot = member.supervisor.layout().root().join("boot");
    assert!(boot.exists(), "while servers run");
    member.supervisor.stop();
    assert!(!boot.exists(), "all is on disks");
}

struct Trader {
    client: TraderClient,
    told: Vec<(ItemName, bool)>,
    reports: Vec<Reply>,
}

impl Trader {
    fn poll(&mut self) {
        let Self { client, told, reports } = self;
        client.poll(|news| {
            if let TraderNews::Item(ordered) = news {
                assert_eq!(ordered.position.0, told.len() as u64);
                told.push((ordered.item.name, ordered.repeats.is_some()));
                if ordered.repeats.is_none() {
                    reports.extend(ordered.item.says().unwrap().reply());
                }
            }
        });
    }

    fn until(&mut self, member: &mut Member, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < PATIENCE, "told {}", self.told.len());
            member.supervisor.tick();
            self.client.wait(Duration::from_millis(5));
            self.poll();
        }
    }
}

/// Waits until each has what any of them received, and compares it.
fn all_are_told_the_same(traders: &mut [Trader], member: &mut Member) {
    let count = traders.iter().map(|trader| trader.told.len()).max().unwrap();
    traders.iter_mut().for_each(|trader| trader.until(member, |trader| trader.told.len() >= count));
    for trader in &*traders {
        assert_eq!(trader.told[..count], traders[0].told[..count], "one order for all");
    }
}

#[test]
fn member_server_killed_during_talk_loses_nothing() {
    const EACH: u64 = 60;
    let mut member = Member::start(&MemberConfig::local(2));
    let mut traders: Vec<_> = (1..=20).map(|trader| member.trader(trader)).collect();
    for round in 0..EACH {
        if round == 20 || round == 40 {
            member.kill(u16::from(round == 40));
        }
        for trader in &mut traders {
            trader.client.submit(&ItemBody::Message { to: TraderId(0), text: "still there" }).unwrap();
            trader.poll();
        }
        member.supervisor.tick();
    }
    traders.iter_mut().for_each(|trader| trader.until(&mut member, |trader| trader.client.unplaced() == 0));
    all_are_told_the_same(&mut traders, &mut member);
    let mut counts = BTreeMap::new();
    for (name, _) in traders[0].told.iter().filter(|(_, repeat)| !repeat) {
        let numbers: &mut Vec<u64> = counts.entry(name.trader).or_default();
        numbers.push(name.number);
    }
    assert!(counts.values().all(|numbers| *numbers == (1..=EACH).collect::<Vec<_>>()));
    assert_eq!(counts.len(), 20);
}

/// What a server had decided before its disk was lost lies in its peer's stream alone, and no quorum had it: each waited for the other.
#[test]
fn disk_lost_in_burst_with_quorum_two_stops_nobody() {
    let mut member = Member::start(&MemberConfig { quorum: 2, ..MemberConfig::local(2) });
    let mut traders: Vec<_> = (1..=8).map(|trader| member.trader(trader)).collect();
    for lost in [0, 1, 0, 1] {
        for trader in &mut traders {
            (0..200).for_each(|_| {
                trader.client.submit(&ItemBody::Message { to: TraderId(0), text: "in a burst" }).unwrap();
            });
            trader.poll();
        }
        member.kill(lost);
        for log in [pares_member::config::stream(lost), pares_member::config::submissions(lost)] {
            std::fs::remove_dir_all(member.supervisor.layout().log(log)).unwrap();
        }
        for trader in &mut traders {
            trader.until(&mut member, |trader| trader.client.unplaced() == 0);
        }
        // The other disk is lost only when this server has everything again: two copies bear one loss at a time.
        let count = traders.iter().map(|trader| trader.told.len()).max().unwrap();
        eventually("the server that lost its disk listens", || {
            member.supervisor.tick();
            member.supervisor.is_up(lost)
        });
        member.trader_at(9, &[lost]).until(&mut member, |trader| trader.told.len() >= count);
    }
    all_are_told_the_same(&mut traders, &mut member);
    assert_eq!(traders[0].told.iter().filter(|(_, repeat)| !repeat).count(), 8 * 800);
}

#[test]
fn a_server_that_cannot_start_keeps_no_other_from_serving() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = MemberConfig::local(2);
    config.servers[1] = taken.local_addr().unwrap();
    let mut member = Member::start(&config);
    assert!(member.supervisor.is_up(0) && !member.supervisor.is_up(1));
    let address = pares_member::world::address(member.supervisor.layout(), 0).unwrap();
    let mut client = TraderClient::connect(&[address], TraderId(1)).unwrap();
    client.submit(&ItemBody::Message { to: TraderId(0), text: "alone" }).unwrap();
    let begun = Instant::now();
    while client.unplaced() > 0 {
        assert!(begun.elapsed() < PATIENCE, "what is said is not placed");
        member.supervisor.tick();
        client.wait(Duration::from_millis(5));
        client.poll(|_| {});
    }
    drop(taken);
    while !member.supervisor.is_up(1) {
        assert!(begun.elapsed() < PATIENCE, "it does not come up when its port is free");
        member.supervisor.tick();
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_member_system_that_cannot_start_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let up = pares(dir.path(), &format!("member up --servers 1 --port {port}"));
    let said = up.complaint;
    assert_eq!(up.status, Some(1), "{said}");
    assert!(said.contains("cannot listen at") && said.contains("`servers` in member.toml"), "{said}");
    assert!(!dir.path().join("member.toml").exists(), "what does not work is not kept");
    std::fs::write(dir.path().join("member.toml"), MemberConfig::local(2).text()).unwrap();
    let said = pares(dir.path(), "member up --port 7200").complaint;
    assert!(said.contains("member.toml differs from --servers, --port"), "{said}");
    let feed = "member up --feed 127.0.0.1:1,127.0.0.1:2 --feed-tcp 127.0.0.1:3";
    let said = pares(&dir.path().join("other"), feed).complaint;
    assert!(said.contains("unicast lines"), "{said}");
    assert!(!dir.path().join("other/member.toml").exists(), "what is wrong is not written down");
}

#[test]
fn recreated_exchange_is_told_from_the_known_one() {
    let exchange = Exchange::start(&small(2));
    let mut buyer = exchange.client(0, 7);
    for name in 1..=3 {
        buyer.submit_and_wait(&limit(name, 1, Side::Buy, 10, 2_230_000)).unwrap();
    }
    let shards = vec![0];
    let config =
        ExchangeConfig { gateways: exchange.addresses(), shards, member: 7, ..ExchangeConfig::default() };
    let copying = |next, last| {
        let (complain, said) = std::sync::mpsc::channel();
        let to = BTreeMap::from([(ShardId(0), CopiedTo { next, last })]);
        let complain = move |why| drop(complain.send(why));
        (pares_member::reports::copy(&config, 0, to, || {}, complain).unwrap(), said)
    };
    let (mut all, _) = copying(1, None);
    let mut known = Vec::new();
    eventually("three reports", || {
        known.extend(std::iter::from_fn(|| all.try_next().ok().flatten()));
        known.len() == 3
    });
    let (mut same, said) = copying(3, Some(known[1].frame.clone()));
    eventually("the one after those that are known", || {
        same.try_next().ok().flatten().is_some_and(|report| report.number == 3)
    });
    assert!(said.try_recv().is_err());
    let (mut other, said) = copying(3, Some(known[0].frame.clone()));
    let why = said.recv_timeout(PATIENCE).unwrap();
    assert!(
        why.contains("report 2 differs from this system's copy") && why.contains("another directory"),
        "{why}"
    );
    assert!(other.try_next().unwrap().is_none(), "nothing more is copied");
    let (_fewer, said) = copying(1_000, Some(known[0].frame.clone()));
    let why = said.recv_timeout(PATIENCE).unwrap();
    assert!(why.contains("does not resend report 999"), "{why}");
}

#[test]
fn exchange_reports_enter_member_stream_exactly_once() {
    let exchange = Exchange::start(&small(2));
    let shards: Vec<_> = exchange.config().shards().unwrap().keys().map(|shard| shard.0).collect();
    let copied =
        ExchangeConfig { gateways: exchange.addresses(), shards, member: 7, ..ExchangeConfig::default() };
    let mut member = Member::start(&MemberConfig { exchange: Some(copied), ..MemberConfig::local(2) });
    let mut trader = member.trader(1);
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(1, 8));
    for round in 1..=20 {
        seller.submit_and_wait(&limit(round, 1, Side::Sell, 10, 2_238_200)).unwrap();
        buyer.submit_and_wait(&limit(round, 1, Side::Buy, 10, 2_238_200)).unwrap();
        if round == 10 {
            member.kill(0);
        }
        member.supervisor.tick();
    }
    let fills = |trader: &Trader| {
        trader
            .reports
            .iter()
            .filter(|reply| matches!(reply, Reply::Trade(trade) if trade.quantity == Quantity(10)))
            .count()
    };
    trader.until(&mut member, |trader| fills(trader) == 20 && trader.reports.len() == 40);
    let numbers: Vec<_> = trader
        .told
        .iter()
        .filter(|(name, repeat)| !repeat && !name.trader.is_trader())
        .map(|(name, _)| name.number)
        .collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>(), "each answer and each fill, in the exchange's order");
}
