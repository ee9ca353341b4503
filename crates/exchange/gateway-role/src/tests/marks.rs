//! Marks of FIX sessions' numbers: who has a session, what a gateway knows after its death, and how long a log keeps them.

use pares_gateway::SessionId;
use pares_types::{GatewayId, MemberId, ShardId};
use pares_wire::record::{SessionMark, SessionMarkRecord};

use super::rig::{PEER, Rig, SELF, buy};
use crate::types::{Who, session};

const WHO: Who = (MemberId(7), 1);

fn mark(out_max: u64) -> SessionMark {
    let (member, session) = WHO;
    let told = vec![(ShardId(0), out_max * 3)];
    SessionMark { member, session, next_in: out_max / 2, out_max, copied: None, told }
}

fn of_peer(reign: u32, out_max: u64) -> Vec<u8> {
    SessionMarkRecord { reign, gateway: GatewayId(1), logon_ns: 0, mark: mark(out_max) }.bytes()
}

impl Rig {
    fn keep(&mut self, session: SessionId, out_max: u64) {
        self.gateway.marks.keep((session, mark(out_max)), &mut self.gateway.edge);
        self.gateway.edge.writer.publish();
        self.settle();
    }

    /// The last number that may have been used, as the next claimant learns.
    fn out_max(&mut self) -> Option<u64> {
        self.gateway.marks.claim(SessionId(99), WHO).map(|mark| mark.out_max)
    }

    fn read_peer(&mut self, payloads: &[Vec<u8>]) {
        self.world.publish(PEER, payloads);
        self.look_around();
    }

    /// Another gateway took the session in the first reign.
    fn on_peer(&mut self, gateway: u16, mark: SessionMark) {
        let record = SessionMarkRecord { reign: 1, gateway: GatewayId(gateway), logon_ns: 0, mark };
        self.gateway.marks.on_peer(record, &mut self.gateway.edge.connections);
    }
}

/// A gateway with a client, whose session has kept a mark.
fn keeping(out_max: u64) -> (Rig, usize) {
    let mut rig = Rig::new();
    let client = rig.sign_on(7);
    assert_eq!(rig.gateway.marks.claim(session(0, 1), WHO), None);
    rig.keep(session(0, 1), out_max);
    (rig, client)
}

#[test]
fn newest_mark_moves_session_and_ends_connection() {
    let (mut rig, client) = keeping(1_024);
    rig.read_peer(&[of_peer(0, 9_999)]);
    assert!(rig.net.is_open(client), "of an earlier reign");
    assert_eq!(rig.out_max(), Some(1_024));
    rig.gateway.marks.on_disconnect(SessionId(99));
    rig.read_peer(&[of_peer(2, 2_048), of_peer(2, 1_030)]);
    assert!(!rig.net.is_open(client), "it goes on at the other");
    assert_eq!((rig.out_max(), rig.counter("damaged")), (Some(1_030), 0), "the last of that reign");
}

#[test]
fn taken_session_is_not_regained_by_late_marks() {
    let mut rig = Rig::new();
    rig.read_peer(&[of_peer(1, 9_000)]);
    let client = rig.sign_on(7);
    assert_eq!(rig.gateway.marks.claim(session(0, 1), WHO).map(|mark| mark.out_max), Some(9_000));
    rig.keep(session(0, 1), 9_500);
    rig.read_peer(&[of_peer(1, 10_024), of_peer(1, 9_001)]);
    assert_eq!((rig.out_max(), rig.net.is_open(client)), (Some(9_500), true));
}

#[test]
fn session_taken_by_two_gateways_goes_to_next() {
    let (mut rig, client) = keeping(1_024);
    rig.read_peer(&[of_peer(1, 800)]);
    assert!(!rig.net.is_open(client), "nobody knows who was first");
    assert_eq!(rig.out_max(), Some(1_024));
    rig.read_peer(&[of_peer(1, 2_048)]);
    let mark = rig.gateway.marks.claim(SessionId(99), WHO);
    let both = SessionMark { next_in: 512, told: vec![(ShardId(0), 3_072)], ..self::mark(2_048) };
    assert_eq!(mark, Some(both));
    rig.gateway.marks.on_disconnect(SessionId(99));
    rig.read_peer(&[of_peer(2, 3_000), of_peer(2, 2_100)]);
    assert_eq!(rig.out_max(), Some(2_100), "another reign is its own");
}

#[test]
fn what_rivals_gave_outlives_a_restart() {
    let (mut rig, _) = keeping(3_000);
    rig.read_peer(&[of_peer(1, 1_024)]);
    assert!(rig.gateway.marks.keep_behind(u64::MAX >> 1, &mut rig.gateway.edge) > 0);
    rig.settle();
    let mut rig = rig.restart(|_| ()).unwrap();
    rig.settle();
    assert_eq!(rig.out_max(), Some(3_000), "its own, written again, and its peer's");
    let told = rig.gateway.marks.claim(SessionId(98), WHO).unwrap().told;
    assert_eq!(told, [(ShardId(0), 3_072)]);
}

#[test]
fn who_lost_a_session_says_nothing_more_in_the_same_turn() {
    let (mut rig, _) = keeping(1_024);
    rig.on_peer(1, mark(5_000));
    rig.keep(session(0, 1), 2_048);
    assert_eq!(rig.out_max(), Some(5_000));
}

#[test]
fn of_rivals_each_shard_goes_on_where_the_first_of_them_was() {
    let mut rig = Rig::new();
    let mut of = |gateway, told: &[(u16, u64)]| {
        let told = told.iter().map(|&(shard, next)| (ShardId(shard), next)).collect();
        rig.on_peer(gateway, SessionMark { told, ..mark(100) });
    };
    of(1, &[(0, 30), (1, 0), (2, 0)]);
    of(2, &[(0, 20), (1, 7), (3, 5)]);
    of(3, &[(0, 25), (2, 0)]);
    let told = rig.gateway.marks.claim(SessionId(99), WHO).unwrap().told;
    let expected = [(0, 20), (1, 7), (2, 0), (3, 5)].map(|(shard, next)| (ShardId(shard), next));
    assert_eq!(told, expected);
}

#[test]
fn where_rivals_were_told_of_two_members_no_place_is_known() {
    let mut rig = Rig::new();
    for (gateway, copied) in [(1, None), (2, Some(MemberId(9))), (3, None)] {
        rig.on_peer(gateway, SessionMark { copied, ..mark(100) });
    }
    let mark = rig.gateway.marks.claim(SessionId(99), WHO).unwrap();
    assert_eq!((mark.out_max, mark.told), (100, vec![]));
}

#[test]
fn newest_of_two_connections_owns_session() {
    let (mut rig, old) = keeping(1_024);
    let new = rig.sign_on(7);
    rig.gateway.marks.claim(session(1, 2), WHO);
    rig.keep(session(1, 2), 2_048);
    assert!(!rig.net.is_open(old) && rig.net.is_open(new));
    rig.keep(session(0, 1), 4_096);
    assert_eq!(rig.out_max(), Some(2_048), "what the old one would still say");
}

#[test]
fn no_number_without_a_mark() {
    let mut rig = Rig::new();
    let client = rig.sign_on(7);
    rig.keep(session(0, 1), 1_024);
    assert!(!rig.net.is_open(client), "it has claimed nothing");
    assert_eq!(rig.out_max(), None);
}

#[test]
fn marks_outlive_their_gateway_and_damage_to_its_log() {
    let (mut rig, client) = keeping(1_024);
    assert!(rig.ask(client, &buy(1, 1)).is_empty());
    let mut rig = rig.restart(|_| ()).unwrap();
    rig.settle();
    assert_eq!((rig.out_max(), rig.counter("names")), (Some(1_024), 1));
    let of_request = rig.world.places(SELF)[1];
    let mut rig = rig.restart(|world| world.flip(SELF, of_request)).unwrap();
    assert!(rig.world.complaints().contains("rebuilt its log"));
    assert_eq!(rig.out_max(), Some(1_024));
}

#[test]
fn log_released_to_oldest_mark_which_is_rewritten() {
    let (mut rig, _) = keeping(1_024);
    let mut keep_behind = |answered| rig.gateway.marks.keep_behind(answered, &mut rig.gateway.edge);
    let first = keep_behind(u64::MAX >> 1);
    assert!(first > 0 && first < 1 << 20, "where it lies now");
    assert_eq!(keep_behind(first + (1 << 20)), first, "not far behind: it stays, and what is behind it too");
    let second = keep_behind(first + (1 << 20) + 1);
    assert!(second > first, "it was written again");
    assert_eq!(keep_behind(first), first, "never beyond what is answered");
    let mut rig = rig.restart(|_| ()).unwrap();
    assert_eq!(rig.out_max(), Some(1_024));
}

/// What it used meanwhile would be used twice.
#[test]
fn who_claimed_a_session_that_went_on_meanwhile_does_not_get_it() {
    let (mut rig, old) = keeping(1_024);
    let new = rig.sign_on(7);
    rig.gateway.marks.claim(session(1, 2), WHO);
    rig.keep(session(0, 1), 2_048);
    rig.keep(session(1, 2), 2_049);
    assert!(rig.net.is_open(old) && !rig.net.is_open(new), "it comes again");
    assert_eq!(rig.out_max(), Some(2_048));
}

/// All came before one was accepted: none of the same time or an earlier one is, once that has its mark.
#[test]
fn connections_with_one_proven_logon_keep_one_mark() {
    let mut rig = Rig::new();
    let clients = [rig.sign_on(7), rig.sign_on(7), rig.sign_on(7)];
    let sessions = [session(0, 1), session(1, 2), session(2, 3)];
    let mut note = |(session, sent_ns)| rig.gateway.marks.note_logon(session, WHO, sent_ns);
    assert_eq!([(sessions[0], 5), (sessions[1], 5), (sessions[2], 4)].map(&mut note), [true; 3]);
    for (session, out_max) in sessions.into_iter().zip([1_024, 2_048, 4_096]) {
        rig.gateway.marks.claim(session, WHO);
        rig.keep(session, out_max);
    }
    assert_eq!(clients.map(|client| rig.net.is_open(client)), [true, false, false]);
    assert_eq!(rig.out_max(), Some(1_024));
    let noted = [5, 6].map(|sent_ns| rig.gateway.marks.note_logon(SessionId(98), WHO, sent_ns));
    assert_eq!(noted, [false, true]);
}
