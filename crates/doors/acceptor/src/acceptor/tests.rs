//! The acceptor beyond the acceptance files.

use pares_fix::writer::FixWriter;

use super::*;

const NOW_NS: u64 = 1_790_000_000_000_000_000;
const ORDER: &str = "55=X|54=1|60=20260921-12:00:00|40=1|38=1|";

/// One connection of TW44, and the messages that it got: the type, number and name of each.
struct Rig {
    acceptor: EchoAcceptor,
    outlet: Outlet,
}

/// Takes so many messages more, and has no room then.
struct Outlet {
    room: usize,
    got: Vec<String>,
}

impl ConnectionSink for Outlet {
    fn put(&mut self, _connection: u64, output: ConnectionOutput<'_>) {
        self.room = self.room.saturating_sub(1);
        self.got.push(match output {
            ConnectionOutput::Bytes(bytes) => short(bytes),
            ConnectionOutput::Close => "close".into(),
        });
    }

    fn has_room(&self, _connection: u64) -> bool {
        self.room > 0
    }
}

fn short(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes).replace('\x01', "|");
    let of_interest =
        |field: &&str| ["35=", "34=", "11=", "36=", "628"].contains(&&field[..3.min(field.len())]);
    text.split('|').filter(of_interest).collect::<Vec<_>>().join(" ")
}

fn message(number: u64, msg_type: &str, sender: &str, fields: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, "FIX.4.4", msg_type.as_bytes());
    writer.number(34, number);
    writer.text(49, sender.as_bytes());
    writer.time(52, NOW_NS);
    writer.text(56, b"ISLD");
    writer.fields(fields.replace('|', "\x01").as_bytes());
    writer.finish();
    bytes
}

impl Rig {
    fn logged_on() -> Self {
        let mut acceptor = EchoAcceptor::default();
        acceptor.connect(1, NOW_NS);
        let mut rig = Self { acceptor, outlet: Outlet { room: usize::MAX, got: Vec::new() } };
        rig.says(1, "A", "98=0|108=30|");
        assert_eq!(rig.got(), ["35=A 34=1"]);
        rig
    }

    fn says(&mut self, number: u64, msg_type: &str, fields: &str) {
        self.gives(&message(number, msg_type, "TW44", fields));
    }

    fn gives(&mut self, bytes: &[u8]) {
        self.acceptor.receive(1, NOW_NS, bytes, &mut self.outlet);
    }

    fn orders(&mut self, name: &str, number: u64) {
        self.says(number, "D", &format!("11={name}|{ORDER}"));
    }

    fn got(&mut self) -> Vec<String> {
        std::mem::take(&mut self.outlet.got)
    }
}

#[test]
fn a_resend_and_the_input_behind_it_go_on_as_there_is_room() {
    let mut rig = Rig::logged_on();
    (2..7).for_each(|number| rig.orders("a", number));
    rig.got();
    rig.outlet.room = 2;
    let again = [message(7, "2", "TW44", "7=2|16=0|"), message(8, "1", "TW44", "112=x|")].concat();
    rig.gives(&again);
    assert_eq!(rig.got(), ["35=D 34=2 11=a", "35=D 34=3 11=a"]);
    assert!(rig.acceptor.is_behind(1));
    rig.gives(&[]);
    assert!(rig.got().is_empty());
    rig.outlet.room = 2;
    rig.gives(&[]);
    assert_eq!(rig.got(), ["35=0 34=7", "35=D 34=4 11=a"]);
    rig.outlet.room = 9;
    rig.gives(&[]);
    assert_eq!(rig.got(), ["35=D 34=5 11=a", "35=D 34=6 11=a"]);
    assert!(!rig.acceptor.is_behind(1));
}

#[test]
fn no_answer_follows_our_logout() {
    let mut rig = Rig::logged_on();
    rig.orders("b", 3);
    rig.gives(&message(4, "0", "OTHER", ""));
    rig.got();
    rig.orders("a", 2);
    let got = rig.got();
    assert_eq!(got.last().map(|last| &last[..4]), Some("35=5"), "{got:?}");
}

#[test]
fn the_oldest_name_is_forgotten_first() {
    let mut rig = Rig::logged_on();
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
    let mut rig = Rig::logged_on();
    rig.says(2, "D", &format!("627=1|628=HUB|629=20260921-12:00:00|630=1|11=a|{ORDER}"));
    assert_eq!(rig.got(), ["35=D 34=2 11=a"]);
}

#[test]
fn where_numbers_go_on_messages_of_an_earlier_connection_come_again() {
    let settings = FixSettings { application_types: Echo::TYPES, ..FixSettings::new(&FIX44, "ISLD", "TW44") };
    let mut rig = Rig { acceptor: EchoAcceptor::new([settings]), ..Rig::logged_on() };
    rig.acceptor.connect(1, NOW_NS);
    rig.says(1, "A", "98=0|108=30|");
    rig.orders("a", 2);
    rig.acceptor.disconnect(1);
    rig.acceptor.connect(1, NOW_NS);
    rig.says(3, "A", "98=0|108=30|");
    rig.got();
    rig.says(4, "2", "7=2|16=2|");
    assert_eq!(rig.got(), ["35=D 34=2 11=a"]);
}
