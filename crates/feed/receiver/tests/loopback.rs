//! A receiver with real sockets, and publishers that are as small as they can be around the rules.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may panic and say why; clippy lets tests, but not what they share

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use pares_feed::books::ReceivedBooks;
use pares_receiver::{FeedLines, FeedReceiver, Received, ReceiverConfig, SubscriptionState};
use pares_types::{ShardId, Side};

use pares_testbed::own_network;
use pares_testbed::publisher::{Outlet, SHARD, messages};

const STEP: Duration = Duration::from_millis(1);
/// Steps after which what should have happened never will.
const STEPS_MAX: usize = 60_000;

fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Two ports that the system gives to nobody by itself, other ones each time.
fn free_lines() -> [SocketAddr; 2] {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    [(); 2].map(|()| {
        let tried = std::iter::repeat_with(|| {
            let step = NEXT.fetch_add(1, Ordering::Relaxed);
            loopback(20_000 + (std::process::id() as u16).wrapping_mul(37).wrapping_add(step) % 12_000)
        });
        tried.take(12_000).find(|&line| UdpSocket::bind(line).is_ok()).expect("a port is free")
    })
}

fn config(lines: Option<[SocketAddr; 2]>, outlets: &[Outlet]) -> ReceiverConfig {
    ReceiverConfig {
        shards: vec![SHARD],
        lines: lines.map_or(FeedLines::None, |[a, b]| FeedLines::Each(vec![(a, b)])),
        requests: outlets.iter().map(Outlet::requests).collect(),
        tcp: outlets.iter().map(Outlet::tcp).collect(),
        ..ReceiverConfig::default()
    }
}

/// What a receiver has told.
#[derive(Default)]
struct Told {
    states: Vec<SubscriptionState>,
    numbers: Vec<u64>,
}

/// Gives all a turn, until the receiver has all and is in that state.
fn run_until(
    state: SubscriptionState,
    sent: &[Vec<u8>],
    outlets: &mut [Outlet],
    receiver: &mut FeedReceiver,
    told: &mut Told,
) {
    let mut right = ReceivedBooks::with_seed(0);
    sent.iter().for_each(|message| right.on_message(message));
    for _ in 0..STEPS_MAX {
        outlets.iter_mut().for_each(Outlet::turn);
        let each = |from: pares_receiver::ReceivedFrom<'_>| match from.received {
            Received::State(state) => told.states.push(state),
            Received::Event(pares_receiver::FeedEvent::Message { number, .. }) => told.numbers.push(number),
            Received::Event(_) => {}
        };
        receiver.poll(STEP, each).unwrap();
        let orders = |books: &ReceivedBooks| {
            let book = books.book(1)?;
            let both = [Side::Buy, Side::Sell].map(|side| book.orders(side).collect::<Vec<_>>());
            Some((both, book.state))
        };
        let is_all = receiver.books(SHARD).and_then(orders) == orders(&right);
        if is_all && receiver.state(SHARD) == Some(state) {
            return;
        }
    }
    panic!("{:?}, not {state:?}; {:?}", receiver.state(SHARD), receiver.counters(SHARD));
}

#[test]
fn one_who_comes_late_takes_a_snapshot_and_follows_both_lines() {
    let lines = free_lines();
    let mut outlets = [Outlet::open(&lines[..1], 0), Outlet::open(&lines[1..], 0)];
    let all = messages(3_000);
    outlets.iter_mut().for_each(|outlet| outlet.publish(&all[..2_000]));
    let mut receiver = FeedReceiver::open(&config(Some(lines), &outlets)).unwrap();
    let mut told = Told::default();
    run_until(SubscriptionState::Current, &all[..2_000], &mut outlets, &mut receiver, &mut told);
    for (from, to) in [(2_000, 2_001), (2_001, 2_500), (2_500, 3_000)] {
        outlets.iter_mut().for_each(|outlet| outlet.publish(&all[from..to]));
        run_until(SubscriptionState::Current, &all[..to], &mut outlets, &mut receiver, &mut told);
    }
    assert_eq!(told.numbers, (2_001..=3_000).collect::<Vec<_>>());
    assert_eq!(receiver.counters(SHARD).unwrap().snapshots, 1);
    outlets.iter_mut().for_each(Outlet::end);
    run_until(SubscriptionState::Over, &all, &mut outlets, &mut receiver, &mut told);
}

#[test]
fn what_both_lines_lose_is_asked_for_again() {
    let lines = free_lines();
    let mut outlets = [Outlet::open(&lines[..1], 3), Outlet::open(&lines[1..], 2)];
    let all = messages(4_000);
    let mut receiver = FeedReceiver::open(&config(Some(lines), &outlets)).unwrap();
    let mut told = Told::default();
    for piece in 0..40 {
        let to = piece * 100 + 100;
        outlets.iter_mut().for_each(|outlet| outlet.publish(&all[to - 100..to]));
        run_until(SubscriptionState::Current, &all[..to], &mut outlets, &mut receiver, &mut told);
    }
    assert!(told.numbers.is_sorted_by(|one, next| one + 1 == *next), "each once, in order");
    assert!(told.states.iter().any(|state| matches!(state, SubscriptionState::Gap { .. })));
    assert!(outlets.iter().any(|outlet| outlet.answered() > 0));
}

#[test]
fn without_lines_all_comes_by_tcp_and_another_publisher_goes_on() {
    let mut outlets = vec![Outlet::open(&[], 0), Outlet::open(&[], 0)];
    let all = messages(30_000);
    outlets.iter_mut().for_each(|outlet| outlet.publish(&all[..1_000]));
    let mut receiver = FeedReceiver::open(&config(None, &outlets)).unwrap();
    let mut told = Told::default();
    run_until(SubscriptionState::Current, &all[..1_000], &mut outlets, &mut receiver, &mut told);
    outlets.iter_mut().for_each(|outlet| outlet.publish(&all[1_000..20_000]));
    run_until(SubscriptionState::Current, &all[..20_000], &mut outlets, &mut receiver, &mut told);
    // The one that serves dies.
    outlets.retain(|outlet| outlet.clients() == 0);
    assert_eq!(outlets.len(), 1, "one connection at a time");
    outlets[0].publish(&all[20_000..]);
    run_until(SubscriptionState::Current, &all, &mut outlets, &mut receiver, &mut told);
    assert!(told.numbers.is_sorted_by(|one, next| one + 1 == *next), "each once, in order");
    assert_eq!(told.numbers.last(), Some(&30_000));
    outlets[0].end();
    run_until(SubscriptionState::Over, &all, &mut outlets, &mut receiver, &mut told);
}

#[test]
fn a_receiver_of_nothing_is_refused() {
    let config = ReceiverConfig { shards: vec![ShardId(1)], ..ReceiverConfig::default() };
    assert!(FeedReceiver::open(&config).is_err());
}

#[test]
fn groups_are_joined_and_heard_by_two_receivers_of_one_host() {
    if !own_network::is_inside("groups_are_joined_and_heard_by_two_receivers_of_one_host") {
        return;
    }
    let lines = [7_101, 7_201].map(|port| SocketAddr::from((Ipv4Addr::new(239, 7, 7, 7), port)));
    let mut outlets = [Outlet::open(&lines[..1], 0), Outlet::open(&lines[1..], 0)];
    let all = messages(500);
    let mut config = config(Some(lines), &outlets);
    config.interface = Ipv4Addr::LOCALHOST;
    let mut receivers = [(); 2].map(|()| FeedReceiver::open(&config).unwrap());
    outlets.iter_mut().for_each(|outlet| outlet.publish(&all));
    for receiver in &mut receivers {
        let mut told = Told::default();
        run_until(SubscriptionState::Current, &all, &mut outlets, receiver, &mut told);
        assert_eq!(told.numbers, (1..=500).collect::<Vec<_>>());
    }
}
