//! Logons that someone has heard and sends again: whatever became of the first, the second is nothing.

use pares_types::{Reason, Timestamp};
use pares_wire::record::SpentLogonRecord;
use zerocopy::IntoBytes;

use super::*;
use crate::types::session;

mod within;

const FIELDS: &str = "57=0|98=0|108=30|";
const REFUSED: &[&str] = &["|58=wrong_clock: "];
/// Farther ahead than a Logon may be.
const AHEAD_NS: u64 = 180 * SECOND_NS;

/// A gateway that has refused a right Logon since its clock is ahead; the Logon.
fn refused_ahead(secret: &Secret) -> (Rig, Vec<u8>) {
    let mut rig = with_proof(secret);
    let logon = rig.logon((1, rig.world.now_ns() + AHEAD_NS), FIELDS, Some(secret));
    rig.refuses(&logon, REFUSED);
    (rig, logon)
}

impl Rig {
    fn spent(&self) -> Vec<SpentLogonRecord> {
        let mut all = self.world.payloads(SELF);
        all.retain(|payload| record::schema(payload) == Some(record::SPENT_LOGON));
        all.iter().map(|payload| SpentLogonRecord::read(payload).unwrap()).collect()
    }

    /// The gateway's log could be released so far, if it were not for Logons that are used up.
    fn keep_spent_behind(&mut self, answered: u64) -> u64 {
        self.gateway.spent_logons.keep_behind(answered, &mut self.gateway.edge)
    }
}

#[test]
fn logon_refused_ahead_is_worthless_when_its_time_comes() {
    let secret = Secret::generate();
    let (mut rig, logon) = refused_ahead(&secret);
    let right = rig.log_on_by(1, Some(&secret));
    assert!(rig.net.is_open(right), "a clock that is ahead locks nobody out");
    for _ in 0..5 {
        rig.world.pass(AHEAD_NS / 3);
        rig.ends_with(&logon, REFUSED);
    }
    assert_eq!(rig.counter("wrong_keys"), 6);
    let client = rig.log_on_by(2, Some(&secret));
    assert!(rig.net.is_open(client), "its member's next Logon is taken");
}

#[test]
fn restarted_gateway_remembers_refused_logon() {
    let secret = Secret::generate();
    let (rig, logon) = refused_ahead(&secret);
    let mut rig = rig.restart(|_| ()).unwrap();
    rig.world.pass(AHEAD_NS);
    rig.refuses(&logon, REFUSED);
    // So does one whose log was damaged, and rebuilt.
    rig.world.pass(SECOND_NS);
    let client = rig.log_on_by(1, Some(&secret));
    rig.order(client, 2, 5);
    let of_request = *rig.world.places(SELF).last().unwrap();
    let mut rig = rig.restart(|world| world.flip(SELF, of_request)).unwrap();
    assert!(rig.world.complaints().contains("rebuilt its log"));
    rig.refuses(&logon, REFUSED);
    assert_eq!(rig.spent().len(), 2, "each is written once");
}

#[test]
fn logon_refused_for_any_reason_is_worthless_again() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let now_ns = rig.world.now_ns();
    let right = rig.logon((1, now_ns), FIELDS, Some(&secret));
    rig.takes(&right);
    // The session has sent too little for the number that this one expects.
    let early = rig.logon((2, now_ns + 2 * SECOND_NS), "57=0|98=0|108=30|789=2000|", Some(&secret));
    rig.ends_with(&early, &["|58=NextExpectedMsgSeqNum too high"]);
    rig.ends_with(&early, REFUSED);
    let next = rig.logon((2, now_ns + SECOND_NS), FIELDS, Some(&secret));
    rig.takes(&next);
}

/// The gateway's clock was ahead, and refused what was right.
#[test]
fn logon_refused_behind_is_worthless_once_clock_is_set_back() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let logon = rig.logon((1, rig.world.now_ns()), FIELDS, Some(&secret));
    rig.world.pass(AHEAD_NS);
    rig.refuses(&logon, REFUSED);
    rig.world.set_back(AHEAD_NS);
    rig.refuses(&logon, REFUSED);
}

#[test]
fn wrong_proof_ahead_is_attempt_and_uses_nothing_up() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    let mut rig = with_proof(&right);
    let then_ns = rig.world.now_ns() + AHEAD_NS;
    let by_wrong = rig.logon((1, then_ns), FIELDS, Some(&wrong));
    for _ in 0..10 {
        rig.refuses(&by_wrong, &["|58=wrong_key: "]);
    }
    rig.refuses(&by_wrong, &["|58=too_many_attempts: "]);
    assert_eq!((rig.counter("wrong_keys"), rig.spent().len()), (11, 0));
    rig.world.pass(AHEAD_NS);
    let logon = rig.logon((1, then_ns), FIELDS, Some(&right));
    rig.takes(&logon);
}

/// Who shares the address of a member can have its Logon refused, to send it later from elsewhere.
#[test]
fn logon_refused_for_its_address_is_worthless_again() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    let mut rig = with_proof(&right);
    let logon = rig.logon((1, rig.world.now_ns()), FIELDS, Some(&right));
    let by_wrong = rig.logon((1, rig.world.now_ns()), FIELDS, Some(&wrong));
    (0..10).for_each(|_| rig.refuses(&by_wrong, &["|58=wrong_key: "]));
    rig.world.pass(1);
    rig.refuses(&logon, &["|58=too_many_attempts: "]);
    rig.world.pass(60 * SECOND_NS);
    rig.refuses(&logon, REFUSED);
    let next = rig.log_on_by(1, Some(&right));
    assert!(rig.net.is_open(next));
    // One a turn is looked at, or many would cost as much as wrong ones. The copy was one, too.
    (0..9).for_each(|_| rig.refuses(&by_wrong, &["|58=wrong_key: "]));
    let logon = rig.logon((2, rig.world.now_ns() + SECOND_NS), FIELDS, Some(&right));
    rig.refuses(&by_wrong, &["|58=too_many_attempts: "]);
    rig.refuses(&logon, &["|58=too_many_attempts: "]);
    assert_eq!(rig.spent().len(), 2);
}

#[test]
fn of_one_logon_sent_twice_at_once_one_is_accepted() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let now_ns = rig.world.now_ns();
    let logon = rig.logon((1, now_ns), "57=0|98=0|108=30|141=Y|", Some(&secret));
    let both = [rig.net.connect_fix(), rig.net.connect_fix()];
    both.iter().for_each(|client| rig.net.send(*client, &logon));
    rig.settle();
    let logged_on = both.iter().filter(|client| rig.heard(**client).0.contains(&head("A", 1))).count();
    assert_eq!((logged_on, rig.marks().len()), (1, 1));
    assert_eq!(both.map(|client| rig.net.is_open(client)), [true, false]);
}

#[test]
fn proven_logon_has_right_clock_with_open_sign_on_too() {
    let secret = Secret::generate();
    let mut rig = with_fix();
    let then_ns = rig.world.now_ns() + AHEAD_NS;
    let logon = rig.logon((1, then_ns), FIELDS, Some(&secret));
    rig.refuses(&logon, &["|58=wrong_clock: ", &format!("is {}", String::from_utf8_lossy(&stamp(then_ns)))]);
    rig.world.pass(AHEAD_NS);
    rig.takes(&logon);
}

#[test]
fn log_is_released_behind_logons_that_count() {
    let secret = Secret::generate();
    let (mut rig, logon) = refused_ahead(&secret);
    let far = u64::MAX >> 1;
    let first = rig.keep_spent_behind(1 << 20);
    assert!(first < 1 << 20, "where it lies");
    let second = rig.keep_spent_behind(far);
    assert!(first < second && second < far, "it was written again");
    assert_eq!((rig.keep_spent_behind(second), rig.spent().len()), (second, 2));
    let mut rig = rig.restart(|_| ()).unwrap();
    rig.world.pass(AHEAD_NS);
    assert!(rig.keep_spent_behind(far) < far, "its time has come");
    rig.refuses(&logon, REFUSED);
    rig.world.pass(AHEAD_NS);
    assert_eq!(rig.keep_spent_behind(far), far, "nothing counts any more");
}

#[test]
fn spent_logons_are_written_again_session_by_session() {
    let (mut rig, _) = refused_ahead(&Secret::generate());
    let (now, far) = (Timestamp(rig.world.now_ns()), u64::MAX >> 1);
    (1..=2).for_each(|at| assert_eq!(rig.gateway.spend(now, (MemberId(8), 1), at), Ok(true)));
    let released = [0; 3].map(|_| rig.keep_spent_behind(far));
    assert_eq!(rig.spent().len(), 3 + 1 + 2 + 1, "each turn those of one");
    assert!(released.is_sorted() && released[2] < far, "{released:?}");
    let mut rig = rig.restart(|_| ()).unwrap();
    assert_eq!(rig.gateway.spend(now, (MemberId(8), 1), 2), Ok(false));
}

#[test]
fn full_log_makes_no_wrong_key() {
    let mut rig = with_proof(&Secret::generate());
    rig.net.connect_fix();
    rig.settle();
    rig.gateway.admit_if(session(0, 1), Err(Reason::StorageUnavailable));
    assert_eq!(rig.counter("wrong_keys"), 0);
}

#[test]
fn other_gateway_s_spent_logons_are_no_damage() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let now_ns = rig.world.now_ns();
    let spent = SpentLogonRecord::new((MemberId(7), 1), (now_ns, now_ns + SECOND_NS), u64::MAX);
    rig.world.publish(PEER, &[spent.as_bytes().to_vec()]);
    rig.look_around();
    assert_eq!(rig.counter("damaged"), 0);
    let logon = rig.logon((1, now_ns), FIELDS, Some(&secret));
    rig.takes(&logon);
}
