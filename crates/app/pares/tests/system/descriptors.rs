//! Processes with few descriptors, or none left for a while.

use std::net::TcpStream;
use std::process::Command;

use pares_node::{NodeId, SystemConfig};
use pares_types::{ReplayerId, Side};

use crate::common::exchange::{Exchange, PROGRAM, gateway, small, venue, with_feed};
use crate::common::process::{Running, allow, pid_of};
use crate::common::{eventually, limit, record};

#[test]
fn venue_out_of_descriptors_resumes_reading_later() {
    let mut exchange = Exchange::start(&SystemConfig { venues: 1, ..small(1) });
    let process = pid_of(exchange.layout(), venue(0));
    allow(process, Some(3));
    let mut client = exchange.client(0, 7);
    client.send(&limit(1, 1, Side::Buy, 5, 20_000)).unwrap();
    client.flush().unwrap();
    eventually("it meets the limit", || exchange.complaints().contains("cannot be read for now"));
    assert_eq!(exchange.counter(gateway(0), "answers"), 0);
    allow(process, None);
    eventually("the order is answered", || exchange.counter(gateway(0), "answers") == 1);
    record::agreed(&mut exchange);
}

/// The node is dead, and starts by hand, in a shell that does `first`.
fn by_hand(exchange: &mut Exchange, node: NodeId, first: &str) -> Running {
    exchange.look_away(true);
    exchange.supervisor().hold(node, true);
    exchange.kill(node);
    eventually("it is dead", || {
        exchange.supervisor().tick();
        !exchange.supervisor().is_up(node)
    });
    let line = format!(r#"{first}; exec "$0" node {node} --dir "$1" --detached"#);
    let mut by_hand = Command::new("sh");
    by_hand.args(["-c", &line, PROGRAM]).arg(exchange.layout().root());
    Running(by_hand.spawn().unwrap())
}

#[test]
fn a_venue_of_ten_shards_needs_few_descriptors() {
    let instruments = SystemConfig::default().instruments;
    let mut exchange = Exchange::start(&SystemConfig { venues: 1, instruments, ..small(1) });
    let _by_hand = by_hand(&mut exchange, venue(0), "ulimit -n 24");
    let mut client = exchange.client(0, 7);
    for name in 1..=20 {
        client.submit_and_wait(&limit(name, 1 + (name % 10) as u32, Side::Buy, 5, 20_000)).unwrap();
    }
}

#[test]
fn replayer_limits_connections_to_its_descriptors() {
    let mut exchange = Exchange::start(&with_feed(small(1)));
    let replayer = NodeId::Replayer(ReplayerId(0));
    let _by_hand = by_hand(&mut exchange, replayer, "ulimit -Sn 64; ulimit -Hn 140");
    let address = exchange.layout().replayer_address(ReplayerId(0));
    let address = std::fs::read_to_string(address).unwrap();
    let connect = || TcpStream::connect(address.trim());
    let mut connections = Vec::new();
    eventually("it listens", || connect().map(|connection| connections.push(connection)).is_ok());
    connections.extend((0..20).map(|_| connect().unwrap()));
    eventually("it closes all but twelve", || exchange.counter(replayer, "turned_away") == 9);
}
