//! A gateway's port for FIX: what comes there is translated, everything else is as for everybody.

use pares_fix::framing::{Cut, cut};
use pares_fix::time::stamp;
use pares_types::GatewayId;
use pares_wire::record::{self, SessionMarkRecord};

use super::rig::{PEER, Rig, SELF, config, publish, sign_on};
use crate::SystemConfig;
use crate::duty::{Duty, SLEEP_MAX};
use crate::world::World;

const SECOND_NS: u64 = 1_000_000_000;

fn with_fix() -> Rig {
    let config = config();
    Rig::with(SystemConfig { fix: config.gateways.clone(), ..config })
}

impl Rig {
    /// What a client sends: the type, its number, and further fields.
    fn say(&mut self, client: usize, kind: &str, number: u64, fields: &str) {
        let now = stamp(self.world.now_ns());
        let now = std::str::from_utf8(&now).unwrap();
        let body = format!("35={kind}|34={number}|49=M7-1|52={now}|56=PARES|{fields}").replace('|', "\x01");
        let framed = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
        let sum = framed.bytes().fold(0_u8, u8::wrapping_add);
        self.net.send(client, format!("{framed}10={sum:03}\x01").as_bytes());
        self.settle();
    }

    fn log_on(&mut self, number: u64) -> usize {
        let client = self.net.connect_fix();
        self.say(client, "A", number, "98=0|108=30|");
        client
    }

    fn order(&mut self, client: usize, number: u64, name: u64) {
        let now = stamp(self.world.now_ns());
        let now = std::str::from_utf8(&now).unwrap();
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
        let mut reader = self.world.read_log_from_start(SELF).unwrap();
        let mut marks = Vec::new();
        while let Some(entry) = pares_log::LogReader::next(&mut reader).unwrap() {
            if record::schema(entry.payload) == Some(record::SESSION_MARK) {
                marks.push(SessionMarkRecord::read(entry.payload).unwrap());
            }
        }
        marks
    }
}

fn head(kind: &str, number: u64) -> (String, u64) {
    (kind.into(), number)
}

#[test]
fn a_session_logs_on_by_fix_enters_an_order_and_is_told_what_became_of_it() {
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
fn a_session_that_another_gateway_takes_ends_here_without_a_word() {
    let mut rig = with_fix();
    let client = rig.log_on(1);
    rig.heard(client);
    let taken = SessionMarkRecord { reign: 2, gateway: GatewayId(1), mark: rig.marks()[0].mark.clone() };
    publish(&rig.world, PEER, &[taken.bytes()]);
    (0..70).for_each(|_| _ = rig.gateway.work().unwrap());
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
