//! Processes with few descriptors, or none left for a while.

use std::process::{Child, Command};

use pares_node::SystemConfig;
use pares_types::Side;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::common::exchange::{Exchange, PROGRAM, gateway, small, venue};
use crate::common::process::pid_of;
use crate::common::{eventually, limit, record};

/// The process may have descriptors below `most` only. Those that it has stay.
fn allow(process: Pid, most: Option<u64>) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    prlimit(Some(process), Resource::Nofile, Rlimit { current: most.or(maximum), maximum }).unwrap();
}

#[test]
fn a_venue_whose_descriptors_were_out_reads_on_when_there_are_some() {
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

/// A process that ends with the test.
struct ByHand(Child);

impl Drop for ByHand {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_venue_of_ten_shards_needs_few_descriptors() {
    let instruments = SystemConfig::default().instruments;
    let mut exchange = Exchange::start(&SystemConfig { venues: 1, instruments, ..small(1) });
    exchange.look_away(true);
    exchange.supervisor().hold(venue(0), true);
    exchange.kill(venue(0));
    eventually("it is dead", || {
        exchange.supervisor().tick();
        !exchange.supervisor().is_up(venue(0))
    });
    let line = r#"ulimit -n 24; exec "$0" node venue-0 --dir "$1" --detached"#;
    let mut by_hand = Command::new("sh");
    by_hand.args(["-c", line, PROGRAM]).arg(exchange.layout().root());
    let _by_hand = ByHand(by_hand.spawn().unwrap());
    let mut client = exchange.client(0, 7);
    for name in 1..=20 {
        client.submit_and_wait(&limit(name, 1 + (name % 10) as u32, Side::Buy, 5, 20_000)).unwrap();
    }
}
