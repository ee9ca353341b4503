//! Logons that are sent within a session, which someone has heard and sends on a connection of his own.

use super::*;

/// Which message of the session, how far ahead of the gateway's clock, and its fields.
type Row = (u64, u64, &'static str);
const RESET: Row = (1, 0, "57=0|98=0|108=30|141=Y|");
/// Whatever the session layer makes of them, and what it says.
const ROWS: [(Row, &str); 8] = [
    (RESET, "35=A|"),
    ((2, 0, FIELDS), "58=Already logged on|"),
    ((5, 0, FIELDS), "35=2|"),
    ((1, 0, FIELDS), "58=MsgSeqNum too low"),
    ((1, 0, "57=0|98=0|108=9999|141=Y|"), "58=HeartBtInt must be"),
    ((2, 122 * SECOND_NS, FIELDS), "373=10|"),
    ((1, 122 * SECOND_NS, "57=0|98=0|108=30|141=Y|"), ""),
    ((1, 0, "57=0|43=Y|122=20200101-00:00:00|98=0|108=30|"), ""),
];

/// A gateway where the session is logged on, its connection, and what it sends within the session.
fn within(secret: &Secret, (number, ahead_ns, fields): Row) -> (Rig, usize, Vec<u8>) {
    let mut rig = with_proof(secret);
    let client = rig.log_on_by(1, Some(secret));
    rig.heard(client);
    rig.world.pass(SECOND_NS);
    let logon = rig.logon((number, rig.world.now_ns() + ahead_ns), fields, Some(secret));
    (rig, client, logon)
}

impl Rig {
    /// What came to a client that sends these bytes.
    fn hears_of(&mut self, client: usize, bytes: &[u8]) -> String {
        self.net.send(client, bytes);
        self.settle();
        self.heard(client).1
    }

    /// Who sends that Logon on a connection of his own is refused for its time, which is used up.
    fn is_worthless(&mut self, logon: &[u8]) {
        let spent = self.spent().len();
        self.refuses(logon, REFUSED);
        assert_eq!(self.spent().len(), spent);
    }
}

#[test]
fn logon_within_session_is_worthless_on_another_connection() {
    for (row, words) in ROWS {
        let secret = Secret::generate();
        let (mut rig, client, logon) = within(&secret, row);
        let told = rig.hears_of(client, &logon);
        assert!(told.contains(words), "{words}: {told}");
        assert_eq!(rig.spent().len(), 2, "{words}");
        rig.is_worthless(&logon);
        // Its member's next one is taken, also where the copy is sent once its time has come.
        rig.net.close(client);
        rig.settle();
        rig.world.pass(row.1 + SECOND_NS);
        rig.is_worthless(&logon);
        let next = rig.logon((1, rig.world.now_ns()), RESET.2, Some(&secret));
        rig.takes(&next);
    }
}

#[test]
fn logon_within_session_is_worthless_after_logout_and_restart() {
    let secret = Secret::generate();
    let (mut rig, client, logon) = within(&secret, RESET);
    assert!(rig.hears_of(client, &logon).contains("|35=A|34=1|"));
    rig.say(client, "5", 2, "");
    assert!(!rig.net.is_open(client));
    rig.is_worthless(&logon);
    let mut rig = rig.restart(|_| ()).unwrap();
    rig.is_worthless(&logon);
}

/// Each answer is sent in a turn when the log has the Logon already.
#[test]
fn logons_in_one_write_are_used_up_before_each_is_answered() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let now_ns = rig.world.now_ns();
    let logons = [0, 1, 2].map(|at| rig.logon((1, now_ns + at * SECOND_NS), RESET.2, Some(&secret)));
    let client = rig.net.connect_fix();
    rig.net.send(client, &logons.concat());
    let mut answered = 0;
    while rig.gateway.work().unwrap() > 0 {
        answered += rig.heard(client).0.iter().filter(|head| **head == self::head("A", 1)).count();
        assert!(rig.spent().len() >= answered);
    }
    assert_eq!((answered, rig.net.is_open(client)), (3, true));
    logons.iter().for_each(|logon| rig.is_worthless(logon));
}

#[test]
fn logon_behind_own_logout_is_used_up_if_it_is_read() {
    let secret = Secret::generate();
    let (mut rig, client, in_turn) = within(&secret, (2, 0, FIELDS));
    assert!(rig.hears_of(client, &in_turn).contains("58=Already logged on|"));
    let later = rig.logon((3, rig.world.now_ns() + SECOND_NS), FIELDS, Some(&secret));
    assert!(rig.hears_of(client, &later).is_empty() && rig.net.is_open(client), "it waits for the Logout");
    rig.is_worthless(&later);
}

/// By its names it is no message of the session; by itself it is a Logon of the other one.
#[test]
fn logon_of_other_session_is_used_up_too() {
    let (secret, other) = (Secret::generate(), Secret::generate());
    let (mut rig, client, _) = within(&secret, RESET);
    let Verifier::Ed25519(key) = other.verifier() else { panic!("a key pair") };
    enter(&mut rig, 2, &[(7, 2, Entry::SetKey(Key::Ed25519(key)))]);
    let now_ns = rig.world.now_ns();
    let of_other = rig.logon_of("M7-2", (2, now_ns), FIELDS, Some(&other));
    assert!(rig.hears_of(client, &of_other).contains("373=9|"));
    rig.is_worthless(&of_other);
    // Who has only the key of his own session uses up nothing of another one.
    let client = rig.log_on_by(3, Some(&secret));
    let forged = rig.logon_of("M7-2", (4, now_ns + SECOND_NS), FIELDS, Some(&secret));
    assert!(rig.hears_of(client, &forged).contains("58=wrong_key: "));
    let right = rig.logon_of("M7-2", (1, now_ns + SECOND_NS), FIELDS, Some(&other));
    rig.takes(&right);
}

#[test]
fn logon_within_session_that_proves_nothing_ends_it() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    for (fields, secret, again, words) in [
        (RESET.2, Some(&wrong), false, "58=wrong_key: "),
        (RESET.2, None, false, "58=wrong_key: "),
        ("57=1|98=0|108=30|141=Y|", Some(&right), false, "TargetSubID (57) must be 0,"),
        (RESET.2, Some(&right), true, "58=wrong_clock: "),
    ] {
        let (mut rig, client, _) = within(&right, RESET);
        let logon = rig.logon((1, rig.world.now_ns()), fields, secret);
        if again {
            assert!(rig.hears_of(client, &logon).contains("|35=A|34=1|"));
        }
        let (spent, marks) = (rig.spent().len(), rig.marks().len());
        let told = rig.hears_of(client, &logon);
        assert!(told.contains("|35=5|") && told.contains(words), "{words}: {told}");
        assert!(!rig.net.is_open(client) && !told.contains("|35=A|"));
        assert_eq!((rig.spent().len(), rig.counter("wrong_keys")), (spent, 1));
        assert_eq!(rig.marks().len(), marks + 1, "its numbers are kept");
        rig.world.pass(SECOND_NS);
        let next = rig.log_on_by(2, Some(&right));
        assert_eq!(rig.heard(next).0, [head("A", 3)]);
    }
}

#[test]
fn what_precedes_refused_logon_is_asked_for_nothing_behind_it() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    let (mut rig, client, _) = within(&right, RESET);
    let order = |rig: &Rig, number, name| {
        let now = rig.now();
        rig.message("D", number, &format!("11={name}|55=ALFA|54=1|60={now}|38=1|40=2|44=0.0001|"))
    };
    let forged = rig.logon((1, rig.world.now_ns()), RESET.2, Some(&wrong));
    let all = [order(&rig, 2, 5), forged, order(&rig, 3, 6), order(&rig, 2, 7)].concat();
    assert!(rig.hears_of(client, &all).contains("58=wrong_key: "));
    let names: Vec<u64> = rig.journalled().iter().map(|request| request.client_order_id.0).collect();
    assert_eq!(names, [5]);
}

#[test]
fn wrong_logons_within_sessions_are_attempts_of_their_address() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    let mut rig = with_proof(&right);
    for number in 0..10 {
        rig.world.pass(SECOND_NS / 1_000);
        let logon = rig.logon((1, rig.world.now_ns()), RESET.2, Some(&right));
        let client = rig.takes(&logon);
        let forged = rig.logon((2, rig.world.now_ns()), FIELDS, Some(&wrong));
        assert!(rig.hears_of(client, &forged).contains("58=wrong_key: "), "{number}");
    }
    let logon = rig.logon((1, rig.world.now_ns() + SECOND_NS), RESET.2, Some(&right));
    rig.refuses(&logon, &["|58=too_many_attempts: "]);
}

/// A copy is refused there too, within the session that someone else has.
#[test]
fn logon_within_session_refused_for_its_address_is_worthless() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    let (mut rig, client, logon) = within(&right, RESET);
    let forged = rig.logon((1, rig.world.now_ns()), FIELDS, Some(&wrong));
    (0..10).for_each(|_| rig.refuses(&forged, &["|58=wrong_key: "]));
    rig.world.pass(1);
    let told = rig.hears_of(client, &logon);
    assert!(told.contains("|35=5|") && told.contains("58=too_many_attempts: "), "{told}");
    rig.world.pass(60 * SECOND_NS);
    rig.is_worthless(&logon);
}

#[test]
fn open_sign_on_leaves_logons_within_session_to_it() {
    for (secret, ahead_ns, words) in [
        (None, 0, "|35=A|34=1|"),
        (Some(Secret::generate()), 0, "|35=A|34=1|"),
        (Some(Secret::generate()), AHEAD_NS, ""),
    ] {
        let mut rig = with_fix();
        let client = rig.log_on(1);
        rig.heard(client);
        let logon = rig.logon((1, rig.world.now_ns() + ahead_ns), RESET.2, secret.as_ref());
        let told = rig.hears_of(client, &logon);
        assert!(told.contains(words), "{told}");
        assert_eq!((rig.net.is_open(client), rig.spent().len()), (ahead_ns == 0, 0));
    }
}
