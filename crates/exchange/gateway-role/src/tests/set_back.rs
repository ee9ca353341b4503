//! The clock is set back a day. What waits, waits as long as it was to: it goes by a clock that is never set. What is stamped continues to rise.

use pares_config::SystemConfig;
use pares_roles::duty::Duty;
use pares_wire::frame::{self, CancelAfter, GatewayFrame, SignOn};

use super::rig::{Rig, buy, config, rejected, write_ping};

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;

/// It is two days since 1970, and member 7 is signed on with a heartbeat of a second.
fn started(config: SystemConfig) -> (Rig, usize) {
    let mut rig = Rig::with(config);
    rig.world.pass(2 * DAY_NS);
    let client = rig.net.connect();
    let sign_on =
        SignOn { member: 7.into(), session: 1.into(), heartbeat_ms: 1_000.into(), ..SignOn::default() };
    assert!(matches!(rig.send(client, |out| frame::write(out, &sign_on))[..], [GatewayFrame::SignedOn(_)]));
    (rig, client)
}

#[test]
fn requests_are_taken_in_and_their_stamps_go_on_rising() {
    let (mut rig, client) = started(config());
    for name in 1..=6 {
        assert!(rig.ask(client, &buy(name, 1)).is_empty());
        if name == 3 {
            rig.world.set_back(DAY_NS);
        }
    }
    let stamps: Vec<_> = rig.journalled().iter().map(|request| request.stamp).collect();
    assert!(stamps.is_sorted_by(|one, next| one < next), "{stamps:?}");
    assert_eq!(stamps.last().map(|last| last.0 / DAY_NS), Some(2), "no earlier than what was stamped before");
}

#[test]
fn heartbeats_go_on_and_who_is_silent_is_missed_as_soon_as_ever() {
    let (mut rig, client) = started(config());
    rig.world.set_back(DAY_NS);
    for _ in 0..5 {
        rig.world.pass(SECOND_NS);
        assert!(matches!(rig.send(client, write_ping)[..], [GatewayFrame::Pong(_)]));
    }
    rig.world.pass(4 * SECOND_NS);
    rig.settle();
    rig.settle();
    assert!(!rig.net.is_open(client), "three heartbeats are missed");
}

#[test]
fn a_dead_man_s_timer_runs_out_when_it_was_to() {
    let (mut rig, client) = started(config());
    let guarded = 1 << 63 | 1 << 48 | 1;
    assert!(rig.ask(client, &buy(guarded, 1)).is_empty());
    rig.commit_all();
    let after = CancelAfter { after_ms: 2_000.into(), reserved: 0.into() };
    rig.send(client, |out| frame::write(out, &after));
    rig.world.set_back(DAY_NS);
    for (seconds, asked) in [(1, 1), (2, 3)] {
        rig.world.pass(seconds * SECOND_NS);
        rig.send(client, write_ping);
        rig.gateway.work().unwrap();
        assert_eq!(
            rig.journalled().len(),
            asked,
            "after {seconds} s more: each of two shards is asked to cancel"
        );
    }
}

#[test]
fn a_session_s_pace_lets_it_go_on() {
    let (mut rig, client) = started(SystemConfig { session_rate_max: 1, session_burst_max: 1, ..config() });
    assert!(rig.ask(client, &buy(1, 1)).is_empty());
    assert!(rejected(&rig.ask(client, &buy(2, 1))).is_some(), "throttled");
    rig.world.set_back(DAY_NS);
    rig.world.pass(SECOND_NS);
    assert!(rig.ask(client, &buy(2, 1)).is_empty());
    assert!(rejected(&rig.ask(client, &buy(3, 1))).is_some(), "and no faster than before");
}
