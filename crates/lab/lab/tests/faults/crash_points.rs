//! A node that dies between two given steps, at every step there is (`pares_faults::crash`), while members trade.
//!
//! The matrix: each point of each role, on either node of the role, at several passages. The doomed node must die there
//! and nowhere else: a point that is not reached fails by name. Afterwards the promise is checked: every request answered
//! once, the recorders alike, the matching that of the naive book; and where the members do not talk to the dead
//! node themselves, that they noticed nothing.
//!
//! `PARES_CRASH_COUNTS=50` tries fifty passages of each point instead of the first, `PARES_CRASH_POINT=venue-decided` one point.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pares_client::Client;
use pares_config::DurabilitySetting;
use pares_faults::crash::{CrashTrigger, LAST_WORDS, Point, VARIABLE};
use pares_flow::Random;
use pares_node::{NodeId, SystemConfig};
use pares_types::{MemberId, Side};

use crate::common::exchange::{Exchange, PROGRAM, gateway, recorder, small, venue};
use crate::common::trader::Trader;
use crate::common::{PATIENCE, eventually, limit, load, random, record};

/// Requests after which trading slows down: a point that is hard to reach may need time more than requests.
const REQUESTS_FAST: u64 = 2_000;

/// Passages tried of each point.
fn counts() -> u64 {
    std::env::var("PARES_CRASH_COUNTS")
        .map_or(1, |text| text.parse().expect("PARES_CRASH_COUNTS is a number"))
}

fn is_wanted(point: Point) -> bool {
    std::env::var("PARES_CRASH_POINT").map_or(true, |name| name == point.name())
}

/// The highest passage of a point that every life of a node can be expected to reach.
fn passages_max(point: Point) -> u64 {
    match point {
        Point::VenueRestored | Point::RecorderRecovered | Point::GatewayRecovered => 1,
        // Traders that move to the doomed gateway.
        Point::GatewaySigningOn => 4,
        Point::VenueCheckpoint | Point::RecorderStoring | Point::RecorderStored | Point::RecorderNamed => 6,
        // A venue that keeps up has little to observe.
        Point::VenueObserving => 20,
        Point::VenueReplaying | Point::VenueHalfDecided | Point::GatewayRecovering => 60,
        _ => 120,
    }
}

/// The first passage, and then any.
fn passages(point: Point, random: &mut Random) -> Vec<u64> {
    let max = passages_max(point);
    (0..counts()).map(|case| if case == 0 { 1 } else { 1 + random.below(max) }).collect()
}

/// A system in which the point is passed.
fn config(point: Point) -> SystemConfig {
    let config = SystemConfig { names_max: 1 << 20, ..small(2) };
    match point {
        Point::RecorderUnsynced | Point::RecorderSynced => {
            SystemConfig { durability: DurabilitySetting::Disk, ..config }
        }
        Point::VenueRestored
        | Point::VenueCheckpoint
        | Point::RecorderStoring
        | Point::RecorderStored
        | Point::RecorderNamed => SystemConfig { checkpoint_every: 64, ..config },
        // Without checkpoints everything is replayed.
        Point::VenueReplaying => SystemConfig { checkpoint_every: 1 << 20, ..config },
        _ => config,
    }
}

/// How often a node has died at that point.
fn deaths(exchange: &Exchange, role: NodeId, point: Point) -> usize {
    let last = format!("{LAST_WORDS} {}", point.name());
    complaints(exchange, role).lines().filter(|line| *line == last).count()
}

/// How often a node has died at any point.
fn all_deaths(exchange: &Exchange, role: NodeId) -> usize {
    complaints(exchange, role).lines().filter(|line| line.starts_with(LAST_WORDS)).count()
}

fn complaints(exchange: &Exchange, role: NodeId) -> String {
    std::fs::read_to_string(exchange.layout().complaints(role)).unwrap_or_default()
}

/// Replaces a node by one that is doomed, after a while in which it is missed.
fn doom(exchange: &mut Exchange, traders: &mut [Trader], role: NodeId, doom: CrashTrigger) {
    if doom.point == Point::RecorderTookFromPeer {
        // The log that is lost below is not to be the only one: the other may still be taking what it missed itself.
        record::agreed(exchange);
    }
    exchange.supervisor().arm(role, vec![(VARIABLE, doom.to_string())]);
    exchange.supervisor().hold(role, true);
    exchange.kill(role);
    eventually("the node to be doomed is dead", || {
        exchange.tick();
        !exchange.supervisor().is_up(role)
    });
    load::trade(exchange, traders, 60);
    if doom.point == Point::RecorderTookFromPeer {
        std::fs::remove_dir_all(exchange.layout().log(role)).unwrap();
    }
    exchange.supervisor().hold(role, false);
}

/// Restarts with empty venue logs: the beginning of the record is in the recorders' logs only.
fn forget_at_venues(exchange: &mut Exchange, traders: &mut [Trader]) {
    load::finish(exchange, traders);
    record::agreed(exchange);
    exchange.stop();
    for id in exchange.config().venue_ids() {
        std::fs::remove_dir_all(exchange.layout().venue_log(id)).unwrap();
    }
    exchange.start_again();
    traders.iter_mut().for_each(|trader| trader.moved(&exchange.addresses()));
}

/// Members who used the other gateway come to the doomed one, unless that dies before it listens.
fn move_members_to(exchange: &mut Exchange, role: NodeId, doomed: CrashTrigger, before: usize) {
    eventually("the doomed gateway listens, or is dead", || {
        exchange.tick();
        exchange.supervisor().is_up(role) || deaths(exchange, role, doomed.point) > before
    });
    if deaths(exchange, role, doomed.point) == before {
        exchange.kill(if role == gateway(0) { gateway(1) } else { gateway(0) });
    }
}

/// A member asks a gateway what it has asked just before, so that the gateway remembers where the answer lies; what it has forgotten it
/// would search for. If that gateway dies of it, the member gets no answer.
fn ask_again(exchange: &Exchange, role: NodeId) {
    let NodeId::Gateway(id) = role else { return };
    let address = exchange.addresses()[usize::from(id.0)];
    let Ok(mut client) = Client::connect(address, MemberId(99)) else { return };
    static NAME: AtomicU64 = AtomicU64::new(1);
    let name = NAME.fetch_add(1, Ordering::Relaxed);
    for _ in 0..20 {
        if client.submit_and_wait(&limit(name, 1, Side::Buy, 1, 1_000_000)).is_err() {
            return;
        }
    }
}

/// Trades until the node has died where it should.
fn trade_until_dead(
    exchange: &mut Exchange,
    traders: &mut [Trader],
    role: NodeId,
    doomed: CrashTrigger,
    before: usize,
) {
    let (begun, fast) = (Instant::now(), load::answered(traders) + REQUESTS_FAST);
    while deaths(exchange, role, doomed.point) == before {
        assert!(begun.elapsed() < PATIENCE, "{role} does not reach {doomed}\n{}", exchange.complaints());
        load::trade(exchange, traders, 20);
        if doomed.point == Point::GatewayRepeating {
            ask_again(exchange, role);
        }
        if load::answered(traders) > fast {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// One point at several passages, on either node of the role.
fn die_at(point: Point, passages: &[u64], node: fn(u16) -> NodeId) {
    let mut exchange = Exchange::start(&config(point));
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 500);
    if point == Point::RecorderTookFromPeer {
        forget_at_venues(&mut exchange, &mut traders);
    }
    for (case, &passage) in (0..).zip(passages) {
        let which = case % 2;
        let (role, doomed) = (node(which), CrashTrigger { point, passage });
        let before = deaths(&exchange, role, point);
        doom(&mut exchange, &mut traders, role, doomed);
        if matches!(role, NodeId::Gateway(_)) {
            move_members_to(&mut exchange, role, doomed, before);
        }
        trade_until_dead(&mut exchange, &mut traders, role, doomed, before);
        load::trade(&mut exchange, &mut traders, 60);
        exchange.wait_until_up();
        assert_eq!(deaths(&exchange, role, point), before + 1, "{doomed} is for one life of {role}");
    }
    let records = load::finish_and_check(&mut exchange, &mut traders);
    // Members whose gateway died, or everything, may have missed trades.
    if !matches!(node(0), NodeId::Gateway(_)) && point != Point::RecorderTookFromPeer {
        for trader in &mut traders {
            assert_eq!(trader.reconnects, 0, "{}: the members notice nothing", point.name());
            record::check_trades(&records, trader);
        }
    }
}

fn die_at_each_point(node: fn(u16) -> NodeId) {
    let mut random = random(pares_config::bells::of(node(0)) as u64 + 5_000);
    for &point in Point::ALL.iter().filter(|point| point.is_of(node(0)) && is_wanted(**point)) {
        let passages = passages(point, &mut random);
        // Whatever fails below, this says where.
        eprintln!("{} at passages {passages:?}", point.name());
        die_at(point, &passages, node);
    }
}

#[test]
fn a_venue_dies_at_each_of_its_crash_points() {
    die_at_each_point(venue);
}

#[test]
fn a_recorder_dies_at_each_of_its_crash_points() {
    die_at_each_point(recorder);
}

#[test]
fn a_gateway_dies_at_each_of_its_crash_points() {
    die_at_each_point(gateway);
}

/// Nobody is left who executes: what was decided lies in the window, what was asked in the gateways' logs.
#[test]
#[ignore = "all: searches pairs of crash points"]
fn both_venues_die_at_each_of_their_crash_points() {
    let mut random = random(5_500);
    for &point in Point::ALL.iter().filter(|point| point.is_of(venue(0)) && is_wanted(**point)) {
        let mut exchange = Exchange::start(&config(point));
        let mut traders = load::traders(&exchange, 4);
        load::trade(&mut exchange, &mut traders, 500);
        let dooms = [venue(0), venue(1)].map(|role| {
            (role, CrashTrigger { point, passage: 1 + random.below(passages_max(point).min(20)) })
        });
        for (role, doom) in dooms {
            eprintln!("{role} at {doom}");
            exchange.supervisor().arm(role, vec![(VARIABLE, doom.to_string())]);
            exchange.kill(role);
        }
        for (role, doom) in dooms {
            trade_until_dead(&mut exchange, &mut traders, role, doom, 0);
        }
        load::trade(&mut exchange, &mut traders, 60);
        let records = load::finish_and_check(&mut exchange, &mut traders);
        for trader in &mut traders {
            assert_eq!(trader.reconnects, 0, "{}: the members wait, no more", point.name());
            record::check_trades(&records, trader);
        }
    }
}

/// Two nodes at a time, any of them at any of their points; some are not reached before the next are doomed.
fn any_two_die(config: SystemConfig) {
    let mut exchange = Exchange::start(&SystemConfig { names_max: 1 << 20, checkpoint_every: 64, ..config });
    let mut traders = load::traders(&exchange, 4);
    let mut random = random(6_000);
    let roles = exchange.roles();
    for _ in 0..4 * counts() {
        load::trade(&mut exchange, &mut traders, 50 + random.below(300));
        for _ in 0..2 {
            let role = *pick(&mut random, &roles);
            let points: Vec<Point> = Point::ALL.iter().copied().filter(|point| point.is_of(role)).collect();
            let point = *pick(&mut random, &points);
            let doom = CrashTrigger { point, passage: 1 + random.below(passages_max(point)) };
            eprintln!("{role} at {doom}");
            exchange.supervisor().arm(role, vec![(VARIABLE, doom.to_string())]);
            exchange.kill(role);
        }
        load::trade_for(&mut exchange, &mut traders, Duration::from_millis(100));
    }
    load::finish_and_check(&mut exchange, &mut traders);
    let dead = roles.iter().map(|&role| all_deaths(&exchange, role)).sum::<usize>();
    assert!(dead > 0, "some died where they were to");
}

fn pick<'a, T>(random: &mut Random, among: &'a [T]) -> &'a T {
    &among[random.below(among.len() as u64) as usize]
}

#[test]
#[ignore = "all: searches pairs of crash points"]
fn any_two_nodes_die_at_any_of_their_crash_points() {
    any_two_die(small(2));
}

#[test]
#[ignore = "all: searches pairs of crash points"]
fn two_nodes_die_at_crash_points_quorum_two_of_three() {
    any_two_die(SystemConfig { recorders: 3, quorum: 2, durability: DurabilitySetting::Disk, ..small(2) });
}

#[test]
#[ignore = "all: searches pairs of crash points"]
fn two_nodes_die_at_crash_points_single_recorder_gateway() {
    any_two_die(SystemConfig { recorders: 1, ..small(1) });
}

#[test]
fn a_node_that_is_told_to_die_where_it_never_is_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    for wrong in ["gateway-received:1", "venue-received", "venue-sleeping:1", "venue-received:0", ""] {
        let mut node = Command::new(PROGRAM);
        node.args(["node", "venue-0", "--dir"]).arg(dir.path()).env(VARIABLE, wrong);
        let node = node.output().unwrap();
        assert!(!node.status.success());
        let said = String::from_utf8(node.stderr).unwrap();
        assert!(said.contains("is not a crash point"), "{wrong}: {said}");
    }
}
