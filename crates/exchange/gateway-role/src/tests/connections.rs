//! Who may connect, and how long.

use std::collections::BTreeSet;

use pares_config::{SignOnSetting, SystemConfig};
use pares_roles::duty::Duty;
use pares_types::Reason;
use pares_wire::frame::{self, GatewayFrame, Proof};

use crate::connections::OPERATORS_MAX;

use super::rig::{Rig, answered, buy, config, rejected, sign_on, write_ping};
use super::sockets::OWN_ADDRESS;

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn a_second_sign_on_ends_the_connection_and_not_the_gateway() {
    for member in [7, 8] {
        let mut rig = Rig::new();
        let (client, other) = (rig.sign_on(7), rig.sign_on(7));
        assert!(rig.ask(client, &buy(1, 1)).is_empty());
        let told = rig.send(client, |out| out.extend(sign_on(member).repeat(3)));
        assert_eq!(rejected(&told), Some(Reason::MalformedRequest));
        assert!(!rig.net.is_open(client));
        rig.commit_all();
        assert_eq!(answered(&rig.told(other)), [1]);
    }
}

#[test]
fn a_member_s_sessions_beyond_its_most_are_told_so_and_closed() {
    let mut rig = Rig::with(SystemConfig { member_sessions_max: 2, ..config() });
    let first = rig.sign_on(7);
    rig.sign_on(7);
    let third = rig.net.connect();
    let told = rig.send(third, |out| out.extend(sign_on(7)));
    assert_eq!((rejected(&told), rig.net.is_open(third)), (Some(Reason::TooManySessions), false));
    rig.sign_on(8);
    rig.net.close(first);
    rig.settle();
    rig.sign_on(7);
}

#[test]
fn connection_waits_for_free_descriptors() {
    let mut rig = Rig::new();
    let first = rig.sign_on(7);
    rig.net.limit_descriptors(Some(1));
    let second = rig.net.connect();
    rig.net.send(second, &sign_on(8));
    rig.settle();
    assert!(!rig.net.is_open(second));
    let told = rig.send(first, write_ping);
    assert!(matches!(told[..], [GatewayFrame::Pong(_)]), "who is there is served");
    rig.net.close(first);
    rig.settle();
    assert!(matches!(rig.told(second)[..], [GatewayFrame::SignedOn(_)]));
}

#[test]
fn a_poll_that_fails_ends_the_gateway_and_says_what_failed() {
    let mut rig = Rig::new();
    rig.net.break_poll();
    let ended = rig.gateway.work().unwrap_err().to_string();
    assert_eq!(ended, "polling the sockets: bad file descriptor");
}

#[test]
fn strangers_leave_room_for_members_and_the_oldest_goes() {
    let mut rig = Rig::with(SystemConfig { sessions_max: 100, ..config() });
    let strangers: Vec<usize> = (0..25).map(|_| rig.net.connect()).collect();
    rig.settle();
    let early = rig.net.connect();
    rig.settle();
    assert_eq!(
        (rejected(&rig.told(early)), rig.net.is_open(early)),
        (Some(Reason::TooManyConnections), false)
    );
    rig.world.pass(2 * SECOND_NS);
    rig.sign_on(7);
    assert_eq!(rejected(&rig.told(strangers[0])), Some(Reason::TooManyConnections));
    let open = strangers.iter().filter(|&&stranger| rig.net.is_open(stranger)).count();
    assert_eq!(open, 24);
    (0..60).for_each(|_| _ = rig.sign_on(8));
}

/// The places of those who have not signed on, all taken by one address.
fn knocked() -> (Rig, Vec<usize>) {
    let mut rig = Rig::with(SystemConfig { sessions_max: 100, ..config() });
    let strangers = (0..25).map(|_| rig.net.connect_from([192, 0, 2, 1])).collect();
    rig.settle();
    (rig, strangers)
}

#[test]
fn address_that_takes_all_places_makes_room_at_once() {
    let (mut rig, strangers) = knocked();
    let one_more = rig.net.connect_from([192, 0, 2, 1]);
    rig.settle();
    assert!(!rig.net.is_open(one_more) && strangers.iter().all(|&stranger| rig.net.is_open(stranger)));
    for (at, address) in [[192, 0, 2, 2], [127, 0, 0, 1]].into_iter().enumerate() {
        let other = rig.net.connect_from(address);
        rig.net.send(other, &sign_on(7));
        rig.settle();
        assert!(matches!(rig.told(other)[..], [GatewayFrame::SignedOn(_)]), "{address:?}");
        assert_eq!(rejected(&rig.told(strangers[at])), Some(Reason::TooManyConnections));
        // One that comes later takes the place that is free now.
        rig.world.pass(1);
        rig.net.connect_from([192, 0, 2, 1]);
        rig.settle();
    }
}

/// Neither strangers of the gateway's machine nor members take an operator's place.
#[test]
fn operators_have_places_of_their_own_at_their_socket() {
    let mut rig = Rig::with(SystemConfig { sessions_max: 100, ..config() });
    (0..100).for_each(|client| _ = rig.sign_on(8 + client % 2));
    (0..30).for_each(|_| _ = rig.net.connect_from([127, 0, 0, 1]));
    rig.settle();
    let sign_on_at_socket = |rig: &mut Rig| {
        let operator = rig.net.connect_operator();
        rig.net.send(operator, &sign_on(0));
        rig.settle();
        let told = rig.told(operator);
        (operator, matches!(told[..], [GatewayFrame::SignedOn(_)]), rejected(&told))
    };
    let operators = [(); OPERATORS_MAX].map(|()| sign_on_at_socket(&mut rig));
    assert!(operators.iter().all(|(_, is_signed_on, _)| *is_signed_on), "{operators:?}");
    assert_eq!(sign_on_at_socket(&mut rig).2, Some(Reason::TooManyConnections));
    rig.net.close(operators[0].0);
    rig.settle();
    assert!(sign_on_at_socket(&mut rig).1, "its place is free again");
    let member = rig.net.connect();
    assert_eq!(rejected(&rig.send(member, |out| out.extend(sign_on(8)))), Some(Reason::TooManyConnections));
}

/// However often one address proves the wrong thing, it alone is refused unread, and no one on the gateway's machine is.
#[test]
fn wrong_proofs_cost_the_address_that_sends_them() {
    let mut rig = Rig::with(SystemConfig { sign_on: SignOnSetting::Required, ..config() });
    let wrong = |rig: &mut Rig, address| {
        let client = rig.net.connect_from(address);
        let told = rig.send(client, |out| out.extend(sign_on(0)));
        assert!(matches!(told[..], [GatewayFrame::Challenge(_)]), "{told:?}");
        rejected(&rig.send(client, |out| frame::write(out, &Proof { first: [7; 32], second: [7; 32] })))
    };
    (0..10).for_each(|_| assert_eq!(wrong(&mut rig, [192, 0, 2, 1]), Some(Reason::WrongKey)));
    assert_eq!(wrong(&mut rig, [192, 0, 2, 1]), Some(Reason::TooManyAttempts));
    assert_eq!(wrong(&mut rig, [192, 0, 2, 2]), Some(Reason::WrongKey), "it is looked at");
    for own in [[127, 0, 0, 1], OWN_ADDRESS] {
        (0..20).for_each(|_| assert_eq!(wrong(&mut rig, own), Some(Reason::WrongKey)));
    }
}

#[test]
fn late_sign_on_or_half_frame_times_out_after_ten_s() {
    let mut rig = Rig::new();
    let (stranger, idle, half) = (rig.net.connect(), rig.sign_on(7), rig.sign_on(7));
    rig.net.send(half, &sign_on(7)[..9]);
    rig.settle();
    for (seconds, open) in [(9, true), (2, false)] {
        rig.world.pass(seconds * SECOND_NS);
        rig.settle();
        rig.settle();
        assert_eq!([stranger, half, idle].map(|client| rig.net.is_open(client)), [open, open, true]);
    }
    assert_eq!(rig.counter("silent_connections"), 2);
}

/// Calls of the kernel that a turn may make on behalf of clients that come, sign on, hang up or fall silent all at once.
const CALLS_MAX: usize = 600;
const CROWD: u32 = 1_000;

/// Takes turns until so many connections are there and `client`, if any, received something. A member asks in each of them, and is
/// answered after so many turns at most.
fn turns_until(rig: &mut Rig, member: usize, (sessions, client): (u32, Option<usize>), turns_max: u32) {
    let mut unanswered = 0;
    for _ in 0..1_000 {
        rig.net.write(member, write_ping);
        rig.gateway.work().unwrap();
        unanswered = if rig.told(member).is_empty() { unanswered + 1 } else { 0 };
        assert!(unanswered < turns_max, "a member waits for {unanswered} turns");
        let calls = rig.net.take_calls();
        assert!(calls <= CALLS_MAX, "{calls} calls in a turn");
        let is_told = client.is_none_or(|client| !rig.told(client).is_empty());
        if is_told && rig.counter("sessions") == u64::from(sessions) {
            return;
        }
    }
    panic!("{} connections, not {sessions}", rig.counter("sessions"));
}

fn crowd(rig: &mut Rig, member: usize) -> Vec<usize> {
    let crowd: Vec<usize> = (0..CROWD).map(|_| rig.net.connect()).collect();
    turns_until(rig, member, (CROWD + 1, None), 1);
    crowd
}

#[test]
fn mass_sign_on_is_paced_members_first() {
    let mut rig = Rig::with(SystemConfig { sessions_max: 8_000, ..config() });
    let member = rig.sign_on(7);
    let crowd = crowd(&mut rig, member);
    crowd.iter().zip(100..).for_each(|(&client, id)| rig.net.send(client, &sign_on(id)));
    turns_until(&mut rig, member, (CROWD + 1, crowd.last().copied()), 1);
    crowd.iter().for_each(|&client| rig.net.close(client));
    // Who hangs up is signed on too, and may be read before the member.
    turns_until(&mut rig, member, (1, None), CROWD / 256 + 2);
}

#[test]
fn however_many_fall_silent_at_once_a_turn_ends_a_few() {
    let mut rig = Rig::with(SystemConfig { sessions_max: 8_000, ..config() });
    let member = rig.sign_on(7);
    crowd(&mut rig, member);
    rig.world.pass(11 * SECOND_NS);
    turns_until(&mut rig, member, (1, None), 1);
}

/// Sockets are reported as ready in the same order each time, and who is read first finds the most room.
#[test]
fn of_those_that_always_ask_each_is_read_first_in_its_turn() {
    let mut rig = Rig::new();
    let clients = [7, 8, 9].map(|member| rig.sign_on(member));
    let mut first = BTreeSet::new();
    for name in 1..=6 {
        for client in clients {
            rig.net.write(client, |out| frame::write_request(out, &buy(name, 1)));
        }
        let before = rig.journalled().len();
        rig.gateway.work().unwrap();
        first.insert(rig.journalled()[before].member);
    }
    assert_eq!(first.len(), clients.len(), "{first:?}");
}

#[test]
fn stalled_shard_is_counted_until_it_is_recorded() {
    let mut rig = Rig::with(SystemConfig { quorum_patience_ms: 500, ..config() });
    let client = rig.sign_on(7);
    rig.enter(client, [1]);
    for _ in 0..8 {
        rig.world.pass(SECOND_NS / 10);
        rig.settle();
    }
    assert_eq!(rig.counter("shards_not_recorded"), 1);
    assert_eq!(rejected(&rig.ask(client, &buy(2, 1))), Some(Reason::NotRecorded));
    rig.commit_all();
    assert_eq!(rig.counter("shards_not_recorded"), 0);
}
