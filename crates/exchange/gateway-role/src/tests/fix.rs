//! A gateway's port for FIX: what comes there is translated, everything else is as for every client.

use pares_config::{NodeId, SignOnSetting, SystemConfig};
use pares_fix::dictionary::tag;
use pares_fix::framing::{Cut, cut};
use pares_fix::time::stamp;
use pares_fix::writer::{self, FixWriter};
use pares_keys::{Secret, Verifier};
use pares_roles::duty::{Duty, SLEEP_MAX};
use pares_roles::world::World;
use pares_types::{Entry, GatewayId, Key, MemberId, RecorderId, ShardId, Status};
use pares_wire::record::{self, SessionMarkRecord};

use super::rig::{PEER, Rig, SELF, buy, config, result_of, sign_on};
use super::starts::registered;

mod replays;

const SECOND_NS: u64 = 1_000_000_000;

fn with_fix() -> Rig {
    let config = config();
    Rig::with(SystemConfig { fix: config.gateways.clone(), ..config })
}

impl Rig {
    /// As a client writes the time.
    fn now(&self) -> String {
        String::from_utf8(stamp(self.world.now_ns()).to_vec()).unwrap()
    }

    /// What a client sends: the type, its number, and further fields.
    fn say(&mut self, client: usize, kind: &str, number: u64, fields: &str) {
        let message = self.message(kind, number, fields);
        self.net.send(client, &message);
        self.settle();
    }

    fn message(&self, kind: &str, number: u64, fields: &str) -> Vec<u8> {
        let head = (number, "M7-1", self.world.now_ns(), "PARES");
        writer::message("FIX.4.4", kind.as_bytes(), head, fields.as_bytes())
    }

    fn log_on(&mut self, number: u64) -> usize {
        self.log_on_by(number, None)
    }

    fn order(&mut self, client: usize, number: u64, name: u64) {
        let now = self.now();
        self.say(client, "D", number, &format!("11={name}|55=ALFA|54=1|60={now}|38=1|40=2|44=0.0001|"));
    }

    /// What came: type and number of each message, and the messages.
    fn heard(&self, client: usize) -> (Vec<(String, u64)>, String) {
        let bytes = self.net.receive(client);
        let (mut rest, mut heads) = (&bytes[..], Vec::new());
        while let (Cut::Whole(frame), length) = cut(rest) {
            let text = String::from_utf8_lossy(frame.bytes).into_owned();
            let field =
                |tag: &str| text.split('\x01').find_map(|field| field.strip_prefix(tag)).unwrap().to_owned();
            heads.push((field("35="), field("34=").parse().unwrap()));
            rest = &rest[length..];
        }
        assert!(rest.is_empty(), "whole messages");
        (heads, String::from_utf8_lossy(&bytes).replace('\x01', "|"))
    }

    fn marks(&self) -> Vec<SessionMarkRecord> {
        let mut all = self.world.payloads(SELF);
        all.retain(|payload| record::schema(payload) == Some(record::SESSION_MARK));
        all.iter().map(|payload| SessionMarkRecord::read(payload).unwrap()).collect()
    }

    /// A connection that sends a Logon with that number; if there is a secret, proven by it.
    fn log_on_by(&mut self, number: u64, secret: Option<&Secret>) -> usize {
        let logon = self.logon((number, self.world.now_ns()), "57=0|98=0|108=30|", secret);
        self.call(&logon)
    }

    /// A connection that sends a Logon.
    fn call(&mut self, logon: &[u8]) -> usize {
        let client = self.net.connect_fix();
        self.net.send(client, logon);
        self.settle();
        client
    }

    /// A Logon with these fields, sent then by the words of its sender.
    fn logon(&self, head: (u64, u64), fields: &str, secret: Option<&Secret>) -> Vec<u8> {
        self.logon_of("M7-1", head, fields, secret)
    }

    fn logon_of(
        &self,
        sender: &str,
        (number, sent_ns): (u64, u64),
        fields: &str,
        secret: Option<&Secret>,
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", b"A");
        writer.number(tag::MSG_SEQ_NUM, number);
        writer.text(tag::SENDER_COMP_ID, sender.as_bytes());
        writer.time(tag::SENDING_TIME, sent_ns);
        writer.text(tag::TARGET_COMP_ID, b"PARES");
        writer.fields(fields.replace('|', "\x01").as_bytes());
        if let Some(secret) = secret {
            let digits = pares_keys::to_hex(&secret.prove(&writer.proven_form()));
            writer.number(tag::RAW_DATA_LENGTH, digits.len() as u64);
            writer.text(tag::RAW_DATA, digits.as_bytes());
        }
        writer.finish();
        bytes
    }

    /// That Logon is refused for a reason in these words, and leaves no mark.
    fn refuses(&mut self, logon: &[u8], words: &[&str]) {
        let marks = self.marks().len();
        self.ends_with(logon, words);
        assert_eq!(self.marks().len(), marks);
    }

    /// That Logon is refused for a reason in these words.
    fn ends_with(&mut self, logon: &[u8], words: &[&str]) {
        let client = self.call(logon);
        let (heads, told) = self.heard(client);
        assert_eq!((heads, self.net.is_open(client)), (vec![head("5", 1)], false), "{told}");
        words.iter().for_each(|words| assert!(told.contains(words), "{words}: {told}"));
    }

    /// That Logon is accepted.
    fn takes(&mut self, logon: &[u8]) -> usize {
        let client = self.call(logon);
        let (heads, told) = self.heard(client);
        assert_eq!((heads[0].0.as_str(), self.net.is_open(client)), ("A", true), "{told}");
        client
    }
}

/// The same message with other fields in place of these, and a right length and sum.
fn altered(message: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(message.to_vec()).unwrap().replace('\x01', "|");
    let (_, body) = text.split_once("|35=").unwrap();
    let body = format!("35={}", &body[..body.len() - "10=000|".len()]);
    assert!(body.contains(from), "{body}");
    let body = body.replace(from, to).replace('|', "\x01");
    let framed = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
    let sum = framed.bytes().fold(0_u8, u8::wrapping_add);
    format!("{framed}10={sum:03}\x01").into_bytes()
}

/// A gateway that asks for proof, of which session 1 of member 7 has the key of this secret.
fn with_proof(secret: &Secret) -> Rig {
    let Verifier::Ed25519(key) = secret.verifier() else { panic!("a key pair") };
    let config = config();
    let sign_on = SignOnSetting::Required;
    let mut rig = Rig::with(SystemConfig { fix: config.gateways.clone(), sign_on, ..config });
    enter(&mut rig, 0, &[(7, 0, Entry::AddMember), (7, 1, Entry::SetKey(Key::Ed25519(key)))]);
    rig.world.pass(SECOND_NS);
    rig
}

#[test]
fn logon_needs_fresh_proof_that_works_once() {
    let (right, wrong) = (Secret::generate(), Secret::generate());
    let mut rig = with_proof(&right);
    let now_ns = rig.world.now_ns();
    let [first, by_none, by_wrong] = [Some(&right), None, Some(&wrong)]
        .map(|secret| rig.logon((1, now_ns), "57=0|98=0|108=30|141=Y|", secret));
    let client = rig.takes(&first);
    rig.refuses(&by_none, &["|58=wrong_key: ", "TargetSubID (57) must be 0,"]);
    rig.refuses(&by_wrong, &["|58=wrong_key: "]);
    rig.refuses(&first, &["|58=wrong_clock: "]);
    assert!(rig.net.is_open(client), "nobody has taken its session");
    assert_eq!(rig.counter("wrong_keys"), 3);
    rig.world.pass(SECOND_NS);
    let again = rig.log_on_by(2, Some(&right));
    assert!(!rig.net.is_open(client) && rig.net.is_open(again), "the member itself has");
}

/// Who hears a Logon and changes it, or brings it elsewhere, has none.
#[test]
fn logon_proof_covers_all_fields_and_names_gateway() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let now_ns = rig.world.now_ns();
    let logon = rig.logon((1, now_ns), "57=0|98=0|108=30|", Some(&secret));
    for (from, to) in [
        ("108=30|", "108=30|141=Y|"),
        ("108=30|", "108=3600|"),
        ("108=30|", "108=30|553=x|"),
        ("57=0|", "57=0|43=Y|"),
        ("34=1|", "34=2|"),
        ("57=0|98=0|", "98=0|"),
    ] {
        rig.refuses(&altered(&logon, from, to), &["|58=wrong_key: ", "TargetSubID (57) must be 0,"]);
    }
    let elsewhere = rig.logon((1, now_ns), "57=1|98=0|108=30|", Some(&secret));
    rig.refuses(&elsewhere, &["|58=wrong_key: ", "TargetSubID (57) must be 0,"]);
    rig.world.pass(10 * SECOND_NS);
    rig.takes(&altered(&logon, "57=0|", "57=0|"));
}

/// The form of earlier builds: the time, the number and the names.
#[test]
fn old_form_of_logon_proof_is_refused_with_new_one() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let message = format!("{}\x011\x01M7-1\x01PARES\x01", rig.now());
    let digits = pares_keys::to_hex(&secret.prove(message.as_bytes()));
    let fields = format!("98=0|108=30|95=128|96={digits}|");
    let now_ns = rig.world.now_ns();
    let old = rig.logon((1, now_ns), &fields, None);
    rig.refuses(
        &old,
        &["TargetSubID (57) must be 0,", "RawData (96) the proof of all fields but 9, 10, 95 and 96"],
    );
}

#[test]
fn accepted_logon_is_worthless_after_restart_and_elsewhere() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let now_ns = rig.world.now_ns();
    let logon = rig.logon((1, now_ns), "57=0|98=0|108=30|141=Y|", Some(&secret));
    rig.takes(&logon);
    let taken = rig.marks().last().unwrap().clone();
    assert_eq!(taken.logon_ns, now_ns / 1_000_000 * 1_000_000);
    let mut rig = rig.restart(|_| ()).unwrap();
    rig.refuses(&logon, &["|58=wrong_clock: "]);
    // The other gateway has accepted a later one, and this one knows it by its mark alone.
    let later_ns = now_ns + SECOND_NS;
    let later = rig.logon((1, later_ns), "57=0|98=0|108=30|141=Y|", Some(&secret));
    let elsewhere = SessionMarkRecord { reign: 9, gateway: GatewayId(1), logon_ns: later_ns, ..taken };
    rig.world.publish(PEER, &[elsewhere.bytes()]);
    rig.look_around();
    rig.refuses(&later, &["|58=wrong_clock: "]);
    rig.world.pass(2 * SECOND_NS);
    let client = rig.log_on_by(2, Some(&secret));
    assert!(rig.net.is_open(client));
    assert_eq!(rig.marks().last().map(|mark| mark.reign), Some(10));
}

#[test]
fn clock_ahead_locks_out_with_both_times_until_then() {
    let secret = Secret::generate();
    let mut rig = with_proof(&secret);
    let (now_ns, ahead_ns) = (rig.world.now_ns(), 110 * SECOND_NS);
    let at = |ns| String::from_utf8(stamp(ns).to_vec()).unwrap();
    // One that is refused moves nothing.
    let refused = rig.logon((1, now_ns + ahead_ns - SECOND_NS), "57=0|98=0|108=9999|", Some(&secret));
    rig.refuses(&refused, &["|58=HeartBtInt must be"]);
    let right = rig.logon((1, now_ns), "57=0|98=0|108=30|", Some(&secret));
    rig.takes(&right);
    let fast = rig.logon((2, now_ns + ahead_ns), "57=0|98=0|108=30|", Some(&secret));
    rig.takes(&fast);
    rig.world.pass(5 * SECOND_NS);
    let now_ns = now_ns + 5 * SECOND_NS;
    let right = rig.logon((3, now_ns), "57=0|98=0|108=30|", Some(&secret));
    let times =
        [format!("SendingTime (52) is {}", at(now_ns)), format!("this gateway's clock says {}", at(now_ns))];
    rig.refuses(&right, &["|58=wrong_clock: ", &times[0], &times[1]]);
    rig.world.pass(ahead_ns);
    let client = rig.log_on_by(3, Some(&secret));
    assert!(rig.net.is_open(client));
}

fn head(kind: &str, number: u64) -> (String, u64) {
    (kind.into(), number)
}

#[test]
fn fix_session_logs_on_enters_order_gets_report() {
    let mut rig = with_fix();
    let client = rig.log_on(1);
    assert_eq!(rig.heard(client).0, [head("A", 1)]);
    let marks = rig.marks();
    assert_eq!(marks.len(), 1, "one for a logon");
    assert!(marks[0].mark.out_max > 1_000 && marks[0].reign == 1);
    rig.order(client, 2, 5);
    let requests = rig.journalled();
    assert_eq!((requests[0].member.0, requests[0].client_order_id.0), (7, 5));
    rig.commit(&requests);
    let (heads, told) = rig.heard(client);
    assert_eq!(heads[0], head("8", 2));
    assert!(told.contains("|11=5|") && told.contains("|150=0|") && told.contains("|55=ALFA|"), "{told}");
}

#[test]
fn a_session_goes_on_behind_what_its_dead_gateway_may_have_sent() {
    let mut rig = with_fix();
    let client = rig.log_on(1);
    rig.order(client, 2, 5);
    let out_max = rig.marks()[0].mark.out_max;
    let mut rig = rig.restart(|_| ()).unwrap();
    let client = rig.log_on(3);
    let (heads, _) = rig.heard(client);
    assert_eq!(heads, [head("A", out_max + 1), head("2", out_max + 2)], "and asks for what it lacks");
    assert_eq!(rig.marks().last().map(|mark| mark.reign), Some(2));
}

#[test]
fn session_taken_by_other_gateway_ends_silently() {
    let mut rig = with_fix();
    let client = rig.log_on(1);
    rig.heard(client);
    let taken = SessionMarkRecord { reign: 2, gateway: GatewayId(1), ..rig.marks()[0].clone() };
    rig.world.publish(PEER, &[taken.bytes()]);
    rig.look_around();
    assert!(!rig.net.is_open(client) && rig.heard(client).0.is_empty());
    assert_eq!(rig.marks().len(), 1, "it has nothing more to say of that session");
}

#[test]
fn a_session_that_breaks_off_goes_on_with_the_very_next_number() {
    let mut rig = with_fix();
    let client = rig.log_on(1);
    rig.net.close(client);
    rig.settle();
    let client = rig.log_on(2);
    assert_eq!(rig.heard(client).0, [head("A", 2)]);
}

#[test]
fn a_door_is_told_the_time_when_it_wants_to_be() {
    let mut rig = with_fix();
    assert_eq!(rig.gateway.sleep_max(), SLEEP_MAX);
    let client = rig.log_on(1);
    rig.heard(client);
    rig.world.pass(30 * SECOND_NS - SLEEP_MAX.as_nanos() as u64 / 2);
    rig.settle();
    assert!(rig.gateway.sleep_max() < SLEEP_MAX, "a heartbeat is due before");
    rig.world.pass(SECOND_NS);
    rig.settle();
    assert_eq!(rig.heard(client).0, [head("0", 2)]);
}

#[test]
fn what_is_no_fix_ends_its_connection_and_nobody_else_s() {
    let mut rig = with_fix();
    let (member, client) = (rig.log_on(1), rig.net.connect_fix());
    rig.net.send(client, &sign_on(8).repeat(300));
    rig.settle();
    rig.world.pass(11 * SECOND_NS);
    rig.settle();
    assert!(!rig.net.is_open(client), "bytes of the other protocol");
    rig.heard(member);
    let silent = rig.net.connect_fix();
    rig.settle();
    assert!(rig.net.is_open(silent));
    rig.world.pass(11 * SECOND_NS);
    (0..2).for_each(|_| rig.settle());
    assert!(!rig.net.is_open(silent) && rig.net.is_open(member), "a stranger has ten seconds");
}

/// So many changes of the register are recorded, of members 7 and 9.
fn enter(rig: &mut Rig, from: u64, entries: &[(u32, u16, Entry)]) {
    let change = |(position, &(member, session, entry)): (u64, &(u32, u16, Entry))| {
        result_of(&registered(position + 1, (member, session), entry), position, Status::Accepted)
    };
    let results: Vec<Vec<u8>> = (from..).zip(entries).map(change).collect();
    rig.world.publish(NodeId::Recorder(RecorderId(0)), &results);
    rig.look_around();
}

#[test]
fn drop_copy_positions_follow_the_copied_streams() {
    let mut rig = with_fix();
    let key = Entry::SetKey(Key::Shared([1; 32]));
    let copies = Entry::SetCopied(MemberId(9));
    enter(&mut rig, 0, &[(7, 0, Entry::AddMember), (7, 1, key), (9, 0, Entry::AddMember), (7, 1, copies)]);
    let (client, other) = (rig.log_on(1), rig.sign_on(9));
    rig.heard(client);
    rig.ask(other, &buy(5, 2));
    let asked = rig.journalled();
    rig.commit(&asked);
    let (heads, told) = rig.heard(client);
    assert_eq!(heads, [head("8", 2)]);
    assert!(told.contains("|11=5|") && told.contains("|453=1|448=9|447=D|452=1|"), "{told}");
    rig.order(client, 2, 6);
    assert!(rig.heard(client).1.contains("|58=no_right: "), "who looks on asks for nothing");
    assert_eq!(rig.journalled().len(), 1);
    rig.net.close(client);
    rig.settle();
    let last = |rig: &Rig| rig.marks().last().map(|mark| (mark.mark.copied, mark.mark.told.clone())).unwrap();
    let both = |first, second| vec![(ShardId(0), first), (ShardId(1), second)];
    assert_eq!(last(&rig), (Some(MemberId(9)), both(1, 1)), "nothing is known to be read");
    let client = rig.log_on(3);
    enter(&mut rig, 4, &[(7, 1, Entry::SetCopied(MemberId(7)))]);
    assert!(!rig.net.is_open(client), "a connection is told of one member");
    let client = rig.log_on(4);
    assert!(rig.net.is_open(client));
    assert_eq!(last(&rig), (None, both(1, 1)), "from now on, of its own");
}
