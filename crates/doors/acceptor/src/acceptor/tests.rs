//! The acceptor beyond the acceptance files.

use pares_fix::writer;

use super::*;

const NOW_NS: u64 = 1_790_000_000_000_000_000;
const ORDER: &str = "55=X|54=1|60=20260921-12:00:00|40=1|38=1|";

/// One connection of TW44, and the messages that it got: the type, number and name of each.
struct Rig<'a> {
    connection: EchoConnection<'a>,
    got: Vec<String>,
}

fn short(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\x01', "|");
    let of_interest =
        |field: &&str| ["35=", "34=", "11=", "36=", "628"].contains(&&field[..3.min(field.len())]);
    text.split('|').filter(of_interest).collect::<Vec<_>>().join(" ")
}

fn message(number: u64, msg_type: &str, sender: &str, fields: &str) -> Vec<u8> {
    writer::message("FIX.4.4", msg_type.as_bytes(), (number, sender, NOW_NS, "ISLD"), fields.as_bytes())
}

impl<'a> Rig<'a> {
    fn of(acceptor: &'a EchoAcceptor) -> Self {
        Self { connection: acceptor.connect(NOW_NS), got: Vec::new() }
    }

    fn logged_on(acceptor: &'a EchoAcceptor) -> Self {
        let mut rig = Self::of(acceptor);
        rig.says(1, "A", "98=0|108=30|");
        assert_eq!(rig.got(), ["35=A 34=1"]);
        rig
    }

    fn says(&mut self, number: u64, msg_type: &str, fields: &str) {
        self.gives(&message(number, msg_type, "TW44", fields));
    }

    fn gives(&mut self, bytes: &[u8]) {
        self.connection.receive(NOW_NS, bytes, &mut |bytes| self.got.push(short(bytes)));
    }

    fn orders(&mut self, name: &str, number: u64) {
        self.says(number, "D", &format!("11={name}|{ORDER}"));
    }

    fn got(&mut self) -> Vec<String> {
        std::mem::take(&mut self.got)
    }
}

#[test]
fn no_answer_follows_our_logout() {
    let acceptor = EchoAcceptor::default();
    let mut rig = Rig::logged_on(&acceptor);
    rig.orders("b", 3);
    rig.gives(&message(4, "0", "OTHER", ""));
    rig.got();
    rig.orders("a", 2);
    let got = rig.got();
    assert_eq!(got.last().map(|last| &last[..4]), Some("35=5"), "{got:?}");
}

#[test]
fn the_oldest_name_is_forgotten_first() {
    let acceptor = EchoAcceptor::default();
    let mut rig = Rig::logged_on(&acceptor);
    rig.orders("z", 2);
    (0..9_999).for_each(|number| rig.orders(&format!("b{number}"), number + 3));
    rig.orders("a", 10_002);
    rig.got();
    rig.says(10_003, "D", &format!("97=Y|11=a|{ORDER}"));
    assert!(rig.got().is_empty(), "the newest is known");
    rig.says(10_004, "D", &format!("97=Y|11=z|{ORDER}"));
    assert_eq!(rig.got().len(), 1, "the oldest is not");
}

#[test]
fn a_group_of_the_header_does_not_come_back() {
    let acceptor = EchoAcceptor::default();
    let mut rig = Rig::logged_on(&acceptor);
    rig.says(2, "D", &format!("627=1|628=HUB|629=20260921-12:00:00|630=1|11=a|{ORDER}"));
    assert_eq!(rig.got(), ["35=D 34=2 11=a"]);
}

#[test]
fn repeated_numbers_resend_earlier_messages() {
    let settings = FixSettings { application_types: Echo::TYPES, ..FixSettings::new(&FIX44, "ISLD", "TW44") };
    let acceptor = EchoAcceptor::new([settings]);
    let mut rig = Rig::logged_on(&acceptor);
    rig.orders("a", 2);
    drop(rig);
    let mut rig = Rig::of(&acceptor);
    rig.says(3, "A", "98=0|108=30|");
    rig.got();
    rig.says(4, "2", "7=2|16=2|");
    assert_eq!(rig.got(), ["35=D 34=2 11=a"]);
}

#[test]
fn a_session_has_one_connection() {
    let acceptor = EchoAcceptor::default();
    let first = Rig::logged_on(&acceptor);
    let mut second = Rig::of(&acceptor);
    second.says(1, "A", "98=0|108=30|");
    assert!(second.connection.is_closed() && second.got().is_empty() && !first.connection.is_closed());
}
