//! Subscriptions: packets are lost, publishers die, and what is shown as current is; in the end all is there.

use pares_feed::books::ReceivedBooks;
use pares_feed::mold::Header;
use pares_feed::publication::Session;
use pares_feed::receiver::{EARLY_MAX, FeedState, Receiver};
use pares_feed::soup;
use pares_feed::subscription::{FeedEffect, FeedEvent, Subscribed, Subscription, SubscriptionState};
use pares_random::Random;
use zerocopy::IntoBytes;

use crate::client::Client;
use crate::world::{MS, World};
use crate::{Published, SHARD, tape};

/// The sessions of a seed whose days rise.
fn days(seed: u64) -> Vec<Published> {
    let mut days: Vec<Published> = tape(seed).0;
    days.dedup_by(|later, earlier| later.session <= earlier.session);
    days
}

fn header(session: Session, sequence: u64, count: u16) -> Vec<u8> {
    Header { session: session.0, sequence: sequence.into(), count: count.into() }.as_bytes().to_vec()
}

/// Time passes until all clients have all of the last session.
fn settle(world: &mut World, what: &str) {
    let (&session, last) = world.published.last_key_value().unwrap();
    let next = Some((session, last.messages.len() as u64 + 1));
    let end = if last.over { SubscriptionState::Over } else { SubscriptionState::Current };
    for _ in 0..400_000 {
        let now_ns = world.network.now_ns;
        let is_there =
            |client: &Client| client.subscription.next() == next && client.subscription.state(now_ns) == end;
        if world.clients.iter().all(is_there) {
            return (0..world.clients.len()).for_each(|at| world.compare(at));
        }
        world.pass(2 * MS);
    }
    let are = world.clients.iter().map(|client| {
        let subscription = &client.subscription;
        (subscription.next(), subscription.state(world.network.now_ns), subscription.counters())
    });
    panic!("{what}: not all came to {next:?} {end:?}: {:#?}", are.collect::<Vec<_>>());
}

/// A day's chances: publishers read, die, come back; clients are cut off; strange packets come.
fn chance(world: &mut World, strange: &[Session]) {
    let [which, many, lot, to, far] = world.network.random.bytes(5)[..] else { unreachable!("five bytes") };
    let at = usize::from(which % 2);
    world.read(at, usize::from(many % 6));
    match lot {
        0..4 => world.kill(at),
        4..12 if world.servers[at].is_dead => world.restart(at),
        12..14 => {
            let client = usize::from(to) % world.clients.len();
            world.cut(client, far < 128);
        }
        14..40 => {
            let (client, session) =
                (usize::from(to) % world.clients.len(), strange[usize::from(far) % strange.len()]);
            world.inject(client, &header(session, u64::from(many) * 1_000, 0));
            world.inject(client, &[far; 30]);
        }
        _ => {}
    }
    if lot > 252 {
        // Nobody who lives is behind the record for long.
        (0..2).for_each(|at| world.catch_up(at));
    }
    world.pass(if lot > 252 { 900 * MS } else { u64::from(many) * 10_000 });
}

#[test]
fn books_are_right_or_marked_despite_all_faults() {
    let (mut states, mut resets, mut unfilled) = (std::collections::BTreeMap::new(), 0, 0);
    for seed in 0..600 {
        let days = days(seed);
        // Of another shard, and of a day before all.
        let strange = [Session(*b"0004000001"), Session(*b"0003      "), Session(*b"2003ffffff")];
        let mut world = World::new(&days, seed, [0, 1, 5, 20][seed as usize % 4]);
        world.join(true);
        world.join(false);
        let deaf = world.join(true);
        world.clients[deaf].no_asking = true;
        while !world.is_all_read() {
            chance(&mut world, &strange);
            if world.read_most() > 60 && world.clients.len() == 3 {
                world.join(true);
                world.join(false);
            }
            if world.servers.iter().all(|server| server.is_dead) {
                (0..2).for_each(|at| world.restart(at));
            }
        }
        (0..2).for_each(|at| world.catch_up(at));
        (0..world.clients.len()).for_each(|at| world.cut(at, false));
        settle(&mut world, &format!("seed {seed}"));
        for (state, times) in &world.states {
            *states.entry(*state).or_insert(0) += times;
        }
        resets += world.clients.iter().map(|client| client.resets).sum::<u64>();
        unfilled += world.clients.iter().map(|client| client.unfilled).sum::<u64>();
    }
    assert_eq!(states.len(), 5, "all states occur: {states:?}");
    assert!(resets > 50 && unfilled > 20, "{resets} snapshots, {unfilled} gaps that nothing filled");
}

/// One client who is current, on lines that do not lose.
fn quiet(seed: u64) -> World {
    let mut world = World::new(&days(seed)[..1], seed, 0);
    world.join(true);
    (0..2).for_each(|at| world.read(at, 40));
    (0..1_000).for_each(|_| world.pass(MS));
    assert_eq!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Current);
    world
}

#[test]
fn a_forged_number_is_asked_about_and_dropped() {
    let beyond = days(2)[0].messages.len() as u64 + 2;
    for (sequence, count) in [(1 << 60, 0), (u64::MAX - 2, 1), (1 << 20, u16::MAX), (beyond, 0)] {
        let mut world = quiet(2);
        let (&session, _) = world.published.first_key_value().unwrap();
        let mut forged = header(session, sequence, count);
        forged.extend_from_slice(if count == 1 { &[0, 1, b'x'] } else { &[] });
        world.inject(0, &forged);
        world.pass(MS);
        assert_ne!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Current);
        (0..6_000).for_each(|_| world.pass(MS));
        let client = &world.clients[0].subscription;
        assert_eq!(client.state(world.network.now_ns), SubscriptionState::Current, "{sequence} {count}");
        assert_eq!((client.counters().refuted, world.clients[0].resets), (1, 0));
        (0..2).for_each(|at| world.read(at, usize::MAX));
        settle(&mut world, "after a forged number");
    }
}

#[test]
fn forged_later_session_does_not_block_late_joiner() {
    let mut world = World::new(&days(2)[..1], 2, 0);
    (0..2).for_each(|at| world.read(at, 40));
    let (&session, day) = world.published.first_key_value().unwrap();
    let beyond = day.messages.len() as u64 + 2;
    let late = world.join(true);
    world.inject(late, &header(session, beyond, 0));
    world.inject(late, &header(Session(*b"0003ffffff"), 1, 0));
    (0..8_000).for_each(|_| world.pass(MS));
    let client = &world.clients[late].subscription;
    assert_eq!(client.state(world.network.now_ns), SubscriptionState::Current);
}

#[test]
fn a_forged_session_of_a_later_day_is_not_followed() {
    let mut world = quiet(2);
    world.inject(0, &header(Session(*b"0003ffffff"), 1, 0));
    world.pass(MS);
    assert_eq!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Recovering);
    (0..500).for_each(|_| world.pass(MS));
    assert_eq!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Current);
    (0..2).for_each(|at| world.read(at, usize::MAX));
    settle(&mut world, "after a forged session");
}

#[test]
fn a_forged_end_is_none_once_something_else_follows() {
    let mut world = quiet(2);
    let (&session, _) = world.published.first_key_value().unwrap();
    world.inject(0, &header(session, 40, u16::MAX));
    world.pass(MS);
    assert_eq!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Over);
    (0..5_000).for_each(|_| world.pass(MS));
    assert_eq!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Current);
    world.inject(0, &header(session, 40, u16::MAX));
    world.pass(MS);
    world.inject(0, &header(Session(*b"0003ffffff"), 1, 0));
    world.pass(MS);
    assert_eq!(world.clients[0].subscription.state(world.network.now_ns), SubscriptionState::Recovering);
    (0..2).for_each(|at| world.read(at, usize::MAX));
    settle(&mut world, "after a forged end");
}

/// What a publisher might say, with a number that no session reaches or a byte that is another one.
fn said(random: &mut Random) -> Vec<u8> {
    let [kind, high, low, at, with] = random.bytes(5)[..] else { unreachable!("five bytes") };
    let number = [0, 1, 2, u64::from(low), 1 << 60, u64::MAX - 1, u64::MAX][usize::from(high % 7)];
    let mut said = Vec::new();
    match kind % 8 {
        0..3 => soup::write(&mut said, b'A', &[&b"0003000002"[..], &soup::digits(number)].concat()),
        3 => soup::write(&mut said, b'S', &[&b"G"[..], &soup::digits(number)].concat()),
        4 | 5 => soup::write(&mut said, b'S', &random.bytes(usize::from(low % 50))),
        6 => soup::write(&mut said, b"HZJ"[usize::from(low % 3)], b"S"),
        _ => said.extend(random.bytes(9)),
    }
    if at < 20 {
        let place = usize::from(at) % said.len();
        said[place] = with;
    }
    said
}

#[test]
fn whatever_publishers_and_lines_say_a_subscription_goes_on() {
    let mut random = Random::new(9);
    let mut snapshots = 0;
    for round in 0..3_000_u64 {
        let replayed_max = if round % 6 < 3 { u64::MAX } else { 0 };
        let of = Subscribed {
            shard: SHARD,
            lines: round % 3 > 0,
            replayers: 1 + round % 2,
            replayed_max,
            seed: round,
        };
        let (mut subscription, mut now_ns) = (Subscription::new(of), 0);
        let each = &mut |_: &ReceivedBooks, _: FeedEvent<'_>| ();
        for _ in 0..60 {
            let [lot, high, low] = random.bytes(3)[..] else { unreachable!("three bytes") };
            let number = [1, u64::from(low), 1 << 60, u64::MAX - 2, u64::MAX][usize::from(high % 5)];
            match lot % 4 {
                0 => subscription.on_packet(&header(Session(*b"0003000002"), number, 0), now_ns, each),
                1 => {
                    let packet = [header(Session(*b"0003000002"), number, 1), vec![0, 1, low]].concat();
                    subscription.on_packet(&packet, now_ns, each);
                }
                _ => subscription.on_connection(&said(&mut random), now_ns, each),
            }
            now_ns += u64::from(lot) * 20 * MS;
            (0..2).for_each(|_| subscription.on_time(now_ns));
            assert!(std::iter::from_fn(|| subscription.effect()).count() < 10, "it does little at once");
            assert!(subscription.deadline_ns(now_ns) > now_ns, "what is due is done");
        }
        snapshots += subscription.counters().snapshots;
    }
    assert!(snapshots > 100, "{snapshots} snapshots");
}

/// A publisher says these, each by a packet of its own.
fn say(
    subscription: &mut Subscription,
    said: &[(u8, Vec<u8>)],
    each: &mut impl FnMut(&ReceivedBooks, FeedEvent<'_>),
) {
    for (kind, payload) in said {
        let mut bytes = Vec::new();
        soup::write(&mut bytes, *kind, payload);
        subscription.on_connection(&bytes, 0, each);
    }
}

fn accepted(session: Session, next: u64) -> (u8, Vec<u8>) {
    (b'A', [&session.0[..], &soup::digits(next)].concat())
}

fn end_of_snapshot(next: u64) -> (u8, Vec<u8>) {
    (b'S', [&b"G"[..], &soup::digits(next)].concat())
}

#[test]
fn books_keep_subscription_seed_across_sessions() {
    let of = Subscribed { shard: SHARD, lines: true, replayers: 1, replayed_max: 0, seed: 4_242 };
    let (mut subscription, session) = (Subscription::new(of), Session(*b"0003000002"));
    let mut each = |_: &ReceivedBooks, _: FeedEvent<'_>| ();
    // What it is told, the books, and those of the next snapshot.
    let seeds = |subscription: &Subscription| format!("{subscription:?}").matches("seed: 4242").count();
    assert_eq!(seeds(&subscription), 3);
    subscription.on_packet(&header(session, 5, 0), 0, &mut each);
    assert_eq!(seeds(&subscription), 3);
    subscription.on_time(0);
    say(&mut subscription, &[accepted(session, 9)], &mut each);
    say(&mut subscription, &[accepted(session, 1), end_of_snapshot(9)], &mut each);
    assert_eq!((subscription.counters().snapshots, seeds(&subscription)), (1, 3));
}

#[test]
fn oversized_gap_is_reported_and_ends_in_snapshot() {
    let of = Subscribed { shard: SHARD, lines: true, replayers: 2, replayed_max: 0, seed: 0 };
    let (mut subscription, session) = (Subscription::new(of), Session(*b"0003000002"));
    let mut told = Vec::new();
    let mut each = |_: &ReceivedBooks, event: FeedEvent<'_>| {
        told.push(match event {
            FeedEvent::Session(_) => (b'S', 0),
            FeedEvent::Message { number, .. } => (b'M', number),
            FeedEvent::Unfilled { from } => (b'U', from),
            FeedEvent::Reset { next } => (b'R', next),
        });
    };
    subscription.on_packet(&[header(session, 1, 1), vec![0, 1, b'x']].concat(), 0, &mut each);
    subscription.on_time(0);
    say(&mut subscription, &[accepted(session, 2)], &mut each);
    assert_eq!(subscription.state(0), SubscriptionState::Current);
    subscription.on_packet(&header(session, 100_000, 0), 0, &mut each);
    assert_eq!(subscription.state(0), SubscriptionState::Gap { from: 2, to: 100_000 });
    subscription.on_time(0);
    assert_eq!(subscription.state(0), SubscriptionState::Recovering);
    say(
        &mut subscription,
        &[accepted(session, 100_000), accepted(session, 1), end_of_snapshot(100_001)],
        &mut each,
    );
    assert_eq!(subscription.state(0), SubscriptionState::Current);
    assert_eq!(told, [(b'S', 0), (b'M', 1), (b'U', 2), (b'R', 100_001)]);
}

#[test]
fn claims_during_requests_survive_their_answers() {
    let session = Session(*b"0003000002");
    let mut receiver = Receiver::new(session, 1);
    receiver.on_packet(&header(session, 1 << 60, 0), 0, |_, _| ()).unwrap();
    receiver.mark();
    receiver.on_packet(&header(session, 50, 0), 0, |_, _| ()).unwrap();
    assert!(receiver.refute(10));
    assert_eq!(receiver.state(0), FeedState::Gap { from: 1, to: 50 });
    receiver.mark();
    assert!(receiver.refute(10) && !receiver.refute(10));
    assert_eq!(receiver.state(0), FeedState::Gap { from: 1, to: 10 });
}

#[test]
fn snapshot_waiter_keeps_bounded_latest_messages() {
    let of = Subscribed { shard: SHARD, lines: true, replayers: 1, replayed_max: 0, seed: 0 };
    let mut subscription = Subscription::new(of);
    let session = Session(*b"0003000002");
    let mut numbers = Vec::new();
    let mut each = |_: &ReceivedBooks, event: FeedEvent<'_>| {
        numbers.extend(if let FeedEvent::Message { number, .. } = event { Some(number) } else { None });
    };
    let many = EARLY_MAX as u64 + 1_000;
    for number in 2..2 + many {
        let packet = [header(session, number, 1), vec![0, 1, b'x']].concat();
        subscription.on_packet(&packet, 0, &mut each);
    }
    assert_eq!(subscription.counters().dropped.too_early, 1_000);
    subscription.on_time(0);
    say(
        &mut subscription,
        &[accepted(session, 2 + many), accepted(session, 1), end_of_snapshot(2_000)],
        &mut each,
    );
    let effects: Vec<_> = std::iter::from_fn(|| subscription.effect()).collect();
    let connects = effects.iter().filter(|effect| matches!(effect, FeedEffect::Connect { .. })).count();
    assert_eq!((connects, subscription.state(0)), (2, SubscriptionState::Current));
    assert_eq!(numbers, (2_000..2 + many).collect::<Vec<_>>());
}

/// By which name it called a replayer last.
fn called(subscription: &mut Subscription) -> String {
    let login = |effect| if let FeedEffect::Connect { login, .. } = effect { Some(login) } else { None };
    let logins: Vec<_> = std::iter::from_fn(|| subscription.effect()).filter_map(login).collect();
    String::from_utf8_lossy(&logins.last().unwrap()[3..9]).into_owned()
}

#[test]
fn refused_beginning_is_skipped_and_next_day_requested() {
    let of = Subscribed { shard: SHARD, lines: false, replayers: 2, replayed_max: 9, seed: 0 };
    let (mut subscription, mut each) = (Subscription::new(of), |_: &ReceivedBooks, _: FeedEvent<'_>| ());
    let (session, tomorrow) = (Session(*b"0003000002"), Session(*b"0003000003"));
    let refused = (b'J', b"S".to_vec());
    let mut names = Vec::new();
    for (turn, refusals) in (1..).zip([1, 1, 0]) {
        subscription.on_time(turn * 60_000 * MS);
        say(&mut subscription, &[accepted(session, 9)], &mut each);
        names.push(called(&mut subscription));
        (0..refusals).for_each(|_| say(&mut subscription, std::slice::from_ref(&refused), &mut each));
    }
    assert_eq!(names, ["REPLAY", "REPLAY", "SNAP  "], "the other replayer may have what one has not");
    say(&mut subscription, &[accepted(session, 1), end_of_snapshot(9)], &mut each);
    subscription.on_time(300_000 * MS);
    say(&mut subscription, &[accepted(session, 9), accepted(session, 9), (b'Z', Vec::new())], &mut each);
    subscription.on_time(400_000 * MS);
    say(&mut subscription, &[accepted(tomorrow, 5)], &mut each);
    assert_eq!(called(&mut subscription), "REPLAY");
}

#[test]
fn short_session_from_first_message_or_snapshot() {
    let session = Session(*b"0003000002");
    let begun = |replayed_max, head| {
        let of = Subscribed { shard: SHARD, lines: false, replayers: 1, replayed_max, seed: 0 };
        let mut subscription = Subscription::new(of);
        subscription.on_time(0);
        say(&mut subscription, &[accepted(session, head)], &mut |_: &ReceivedBooks, _: FeedEvent<'_>| ());
        subscription
    };
    assert_eq!(called(&mut begun(8, 9)), "SNAP  ", "it is longer than that");
    let mut subscription = begun(9, 9);
    assert_eq!(called(&mut subscription), "REPLAY");
    let mut numbers = Vec::new();
    let mut each = |_: &ReceivedBooks, event: FeedEvent<'_>| {
        numbers.extend(if let FeedEvent::Message { number, .. } = event { Some(number) } else { None });
    };
    say(&mut subscription, &[accepted(session, 1), (b'S', b"x".to_vec())], &mut each);
    assert_eq!(numbers, [1]);

    let (mut refused, mut each) = (begun(9, 9), |_: &ReceivedBooks, _: FeedEvent<'_>| ());
    say(&mut refused, &[(b'J', b"S".to_vec())], &mut each);
    refused.on_time(60_000 * MS);
    say(&mut refused, &[accepted(session, 9)], &mut each);
    assert_eq!(called(&mut refused), "SNAP  ");
}
