//! Subscriptions: packets are lost, publishers die, and what is shown as current is; in the end all is there.

use pares_feed::books::ReceivedBooks;
use pares_feed::publication::Session;
use pares_feed::receiver::{EARLY_MAX, FeedState, Receiver};
use pares_feed::soup;
use pares_feed::subscription::{FeedEffect, FeedEvent, Subscribed, Subscription, SubscriptionState};
use pares_random::Random;

use crate::publishers::request;
use crate::world::{MS, World};
use crate::{Published, SHARD, tape};

const SESSION: Session = Session(*b"0003000002");
/// Of a later day than all that are published.
const LATER: Session = Session(*b"0003ffffff");

/// The sessions of a seed whose days rise.
fn days(seed: u64) -> Vec<Published> {
    let mut days: Vec<Published> = tape(seed).0;
    days.dedup_by(|later, earlier| later.session <= earlier.session);
    days
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
            world.inject(client, &request(session, u64::from(many) * 1_000, 0));
            world.inject(client, &[far; 30]);
        }
        _ => {}
    }
    if lot > 252 {
        // No live client is behind the record for long.
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
        world.settle(&format!("seed {seed}"));
        for (state, times) in &world.states {
            *states.entry(*state).or_insert(0) += times;
        }
        resets += world.clients.iter().map(|client| client.program.resets).sum::<u64>();
        unfilled += world.clients.iter().map(|client| client.program.unfilled).sum::<u64>();
    }
    assert_eq!(states.len(), 5, "all states occur: {states:?}");
    assert!(resets > 50 && unfilled > 20, "{resets} snapshots, {unfilled} gaps that nothing filled");
}

/// A world that has one client, who is current, on lines that do not lose; and its session.
fn quiet(seed: u64) -> (World, Session) {
    let mut world = World::new(&days(seed)[..1], seed, 0);
    let client = world.join(true);
    (0..2).for_each(|at| world.read(at, 40));
    assert_eq!(world.state_after(1_000, client), SubscriptionState::Current);
    let (&session, _) = world.published.first_key_value().unwrap();
    (world, session)
}

#[test]
fn a_forged_number_is_asked_about_and_dropped() {
    let beyond = days(2)[0].messages.len() as u64 + 2;
    for (sequence, count) in [(1 << 60, 0), (u64::MAX - 2, 1), (1 << 20, u16::MAX), (beyond, 0)] {
        let (mut world, session) = quiet(2);
        let mut forged = request(session, sequence, count);
        forged.extend_from_slice(if count == 1 { &[0, 1, b'x'] } else { &[] });
        world.inject(0, &forged);
        assert_ne!(world.state_after(1, 0), SubscriptionState::Current);
        assert_eq!(world.state_after(6_000, 0), SubscriptionState::Current, "{sequence} {count}");
        let client = &world.clients[0];
        assert_eq!((client.subscription.counters().refuted, client.program.resets), (1, 0));
        world.finish("after a forged number");
    }
}

#[test]
fn forged_later_session_does_not_block_late_joiner() {
    let mut world = World::new(&days(2)[..1], 2, 0);
    (0..2).for_each(|at| world.read(at, 40));
    let (&session, day) = world.published.first_key_value().unwrap();
    let beyond = day.messages.len() as u64 + 2;
    let late = world.join(true);
    world.inject(late, &request(session, beyond, 0));
    world.inject(late, &request(LATER, 1, 0));
    assert_eq!(world.state_after(8_000, late), SubscriptionState::Current);
}

#[test]
fn a_forged_session_of_a_later_day_is_not_followed() {
    let (mut world, _) = quiet(2);
    world.inject(0, &request(LATER, 1, 0));
    assert_eq!(world.state_after(1, 0), SubscriptionState::Recovering);
    assert_eq!(world.state_after(500, 0), SubscriptionState::Current);
    world.finish("after a forged session");
}

#[test]
fn a_forged_end_is_none_once_something_else_follows() {
    let (mut world, session) = quiet(2);
    world.inject(0, &request(session, 40, u16::MAX));
    assert_eq!(world.state_after(1, 0), SubscriptionState::Over);
    assert_eq!(world.state_after(5_000, 0), SubscriptionState::Current);
    world.inject(0, &request(session, 40, u16::MAX));
    world.pass(MS);
    world.inject(0, &request(LATER, 1, 0));
    assert_eq!(world.state_after(1, 0), SubscriptionState::Recovering);
    world.finish("after a forged end");
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
        let (lines, replayers) = (round % 3 > 0, 1 + round % 2);
        let of = Subscribed { shard: SHARD, lines, replayers, replayed_max, seed: round };
        let (mut subscription, mut now_ns) = (Subscription::new(of), 0);
        let each = &mut |_: &ReceivedBooks, _: FeedEvent<'_>| ();
        for _ in 0..60 {
            let [lot, high, low] = random.bytes(3)[..] else { unreachable!("three bytes") };
            let number = [1, u64::from(low), 1 << 60, u64::MAX - 2, u64::MAX][usize::from(high % 5)];
            match lot % 4 {
                0 => subscription.on_packet(&request(SESSION, number, 0), now_ns, each),
                1 => {
                    let packet = [request(SESSION, number, 1), vec![0, 1, low]].concat();
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

/// A subscription without a network, and what it handed out, in short.
struct Alone {
    subscription: Subscription,
    told: Vec<(u8, u64)>,
}

impl Alone {
    fn new(lines: bool, replayers: u64, replayed_max: u64) -> Self {
        let of = Subscribed { shard: SHARD, lines, replayers, replayed_max, seed: 4_242 };
        Self { subscription: Subscription::new(of), told: Vec::new() }
    }

    /// A packet of so many messages of a byte, at most one.
    fn hear(&mut self, sequence: u64, count: u16) {
        let message: &[u8] = if count == 1 { &[0, 1, b'x'] } else { &[] };
        let packet = [&request(SESSION, sequence, count)[..], message].concat();
        self.subscription.on_packet(&packet, 0, &mut note(&mut self.told));
    }

    /// A publisher says these, each by a packet of its own.
    fn say(&mut self, said: &[(u8, Vec<u8>)]) {
        for (kind, payload) in said {
            let mut bytes = Vec::new();
            soup::write(&mut bytes, *kind, payload);
            self.subscription.on_connection(&bytes, 0, &mut note(&mut self.told));
        }
    }

    /// By which name it called a replayer last.
    fn called(&mut self) -> String {
        let effects = std::iter::from_fn(|| self.subscription.effect());
        let login = |effect| if let FeedEffect::Connect { login, .. } = effect { Some(login) } else { None };
        String::from_utf8_lossy(&effects.filter_map(login).last().unwrap()[3..9]).into_owned()
    }
}

fn note(told: &mut Vec<(u8, u64)>) -> impl FnMut(&ReceivedBooks, FeedEvent<'_>) {
    move |_, event| {
        told.push(match event {
            FeedEvent::Session(_) => (b'S', 0),
            FeedEvent::Message { number, .. } => (b'M', number),
            FeedEvent::Unfilled { from } => (b'U', from),
            FeedEvent::Reset { next } => (b'R', next),
        });
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
    let mut alone = Alone::new(true, 1, 0);
    // What it receives, the books, and those of the next snapshot.
    let seeds = |alone: &Alone| format!("{:?}", alone.subscription).matches("seed: 4242").count();
    assert_eq!(seeds(&alone), 3);
    alone.hear(5, 0);
    assert_eq!(seeds(&alone), 3);
    alone.subscription.on_time(0);
    alone.say(&[accepted(SESSION, 9)]);
    alone.say(&[accepted(SESSION, 1), end_of_snapshot(9)]);
    assert_eq!((alone.subscription.counters().snapshots, seeds(&alone)), (1, 3));
}

#[test]
fn oversized_gap_is_reported_and_ends_in_snapshot() {
    let mut alone = Alone::new(true, 2, 0);
    alone.hear(1, 1);
    alone.subscription.on_time(0);
    alone.say(&[accepted(SESSION, 2)]);
    assert_eq!(alone.subscription.state(0), SubscriptionState::Current);
    alone.hear(100_000, 0);
    assert_eq!(alone.subscription.state(0), SubscriptionState::Gap { from: 2, to: 100_000 });
    alone.subscription.on_time(0);
    assert_eq!(alone.subscription.state(0), SubscriptionState::Recovering);
    alone.say(&[accepted(SESSION, 100_000), accepted(SESSION, 1), end_of_snapshot(100_001)]);
    assert_eq!(alone.subscription.state(0), SubscriptionState::Current);
    assert_eq!(alone.told, [(b'S', 0), (b'M', 1), (b'U', 2), (b'R', 100_001)]);
}

#[test]
fn claims_during_requests_survive_their_answers() {
    let mut receiver = Receiver::new(SESSION, 1);
    receiver.on_packet(&request(SESSION, 1 << 60, 0), 0, |_, _| ()).unwrap();
    receiver.mark();
    receiver.on_packet(&request(SESSION, 50, 0), 0, |_, _| ()).unwrap();
    assert!(receiver.refute(10));
    assert_eq!(receiver.state(0), FeedState::Gap { from: 1, to: 50 });
    receiver.mark();
    assert!(receiver.refute(10) && !receiver.refute(10));
    assert_eq!(receiver.state(0), FeedState::Gap { from: 1, to: 10 });
}

#[test]
fn snapshot_waiter_keeps_bounded_latest_messages() {
    let mut alone = Alone::new(true, 1, 0);
    let many = EARLY_MAX as u64 + 1_000;
    (2..2 + many).for_each(|number| alone.hear(number, 1));
    assert_eq!(alone.subscription.counters().dropped.too_early, 1_000);
    alone.subscription.on_time(0);
    alone.say(&[accepted(SESSION, 2 + many), accepted(SESSION, 1), end_of_snapshot(2_000)]);
    let effects: Vec<_> = std::iter::from_fn(|| alone.subscription.effect()).collect();
    let connects = effects.iter().filter(|effect| matches!(effect, FeedEffect::Connect { .. })).count();
    assert_eq!((connects, alone.subscription.state(0)), (2, SubscriptionState::Current));
    let numbers = (2_000..2 + many).map(|number| (b'M', number));
    assert!(alone.told.into_iter().filter(|(kind, _)| *kind == b'M').eq(numbers));
}

#[test]
fn refused_beginning_is_skipped_and_next_day_requested() {
    let mut alone = Alone::new(false, 2, 9);
    let tomorrow = Session(*b"0003000003");
    let mut names = Vec::new();
    for (turn, refusals) in (1..).zip([1, 1, 0]) {
        alone.subscription.on_time(turn * 60_000 * MS);
        alone.say(&[accepted(SESSION, 9)]);
        names.push(alone.called());
        (0..refusals).for_each(|_| alone.say(&[(b'J', b"S".to_vec())]));
    }
    assert_eq!(names, ["REPLAY", "REPLAY", "SNAP  "], "the other replayer may have what one has not");
    alone.say(&[accepted(SESSION, 1), end_of_snapshot(9)]);
    alone.subscription.on_time(300_000 * MS);
    alone.say(&[accepted(SESSION, 9), accepted(SESSION, 9), (b'Z', Vec::new())]);
    alone.subscription.on_time(400_000 * MS);
    alone.say(&[accepted(tomorrow, 5)]);
    assert_eq!(alone.called(), "REPLAY");
}

#[test]
fn short_session_from_first_message_or_snapshot() {
    let begun = |replayed_max, head| {
        let mut alone = Alone::new(false, 1, replayed_max);
        alone.subscription.on_time(0);
        alone.say(&[accepted(SESSION, head)]);
        alone
    };
    assert_eq!(begun(8, 9).called(), "SNAP  ", "it is longer than that");
    let mut alone = begun(9, 9);
    assert_eq!(alone.called(), "REPLAY");
    alone.say(&[accepted(SESSION, 1), (b'S', b"x".to_vec())]);
    assert_eq!(alone.told, [(b'S', 0), (b'M', 1)]);

    let mut refused = begun(9, 9);
    refused.say(&[(b'J', b"S".to_vec())]);
    refused.subscription.on_time(60_000 * MS);
    refused.say(&[accepted(SESSION, 9)]);
    assert_eq!(refused.called(), "SNAP  ");
}
