//! Messages of the stream become packets, each one, always the same.

use pares_types::{
    Answer, CancelCause, ClientOrderId, InstrumentId, OrderChange, Quantity, Reason, Reply, Status,
};

use crate::rig::{Rig, answer, busted, cancel, cancelled, enter, named, news, order, trade};

/// What is appended to a message: its tags and values in hexadecimal digits.
fn appendage(message: &[u8], fields: usize) -> String {
    let (length, mut rest) = message[fields..].split_first_chunk::<2>().expect("an appendage");
    assert_eq!(usize::from(u16::from_be_bytes(*length)), rest.len());
    let mut shown = Vec::new();
    while let [length, tag, ..] = rest {
        let value = &rest[2..=usize::from(*length)];
        let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
        shown.push(format!("{tag}={hex}"));
        rest = &rest[usize::from(*length) + 1..];
    }
    shown.join(" ")
}

fn told(reply: Reply) -> Vec<u8> {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.told(reply);
    let packets = rig.packets();
    let [('S', message)] = &packets[..] else { panic!("{packets:?}") };
    message.clone()
}

const TIME: &str = "\0\0\0\0\0\0\0\0";

#[test]
fn an_accepted_order_byte_by_byte() {
    let message = told(Reply::Answer(answer(5, 1, Status::Resting, 30, 70)));
    let fields = [
        b"A",
        TIME.as_bytes(),
        b"\0\0\0\x05",
        b" ",
        b"\0\0\0\x64",
        b"#17     ",
        TIME.as_bytes(),
        b" ",
        b"Y",
        b"\0\x01\0\0\0\0\0\x05",
        b" ",
        b" ",
        b" ",
        b"L",
        b"              ",
    ]
    .concat();
    assert_eq!(message[..64], [&fields[..], &[0, 59]].concat(), "{}", message.escape_ascii());
    let values = "210=0001000000000005 211=0000000000000065 212=00000011 216=0001000000000005 213=00 \
                  214=000000000000001e 215=0000000000000046";
    assert_eq!(appendage(&message, 62), values);
}

#[test]
fn an_execution_byte_by_byte() {
    let message = told(Reply::Trade(trade(5, 1)));
    let fields = [
        b"E",
        TIME.as_bytes(),
        b"\0\0\0\x05",
        b"\0\0\0\x28",
        b"\0\0\0\0\0\0\x3a\x98",
        b"A",
        b"\0\0\0\0\0\x65\0\x02",
    ]
    .concat();
    assert_eq!(message[..34], fields, "{}", message.escape_ascii());
    let values = "210=0001000000000005 211=0000000000000065 212=00000011 216=0001000000000005 213=01 \
                  214=0000000000000028 215=000000000000003c";
    assert_eq!(appendage(&message, 34), values);
    // The bust names the match.
    let bust = told(Reply::Busted(busted(5, 1)));
    assert_eq!(bust[13..22], *b"\0\0\0\0\0\x65\0\x02S");
}

/// Every message as the standard has it: type, length of its fields, and which order it is about.
#[test]
fn every_message_has_the_layout_of_the_standard() {
    let change = ClientOrderId(0x4001 << 48 | 9);
    let of = |name, status, reason| {
        let answer = answer(8, 1, status, 0, 50);
        Reply::Answer(Answer { client_order_id: name, order: order(5), reason, ..answer })
    };
    let mass = Answer { instrument: InstrumentId(0), ..answer(5, 1, Status::MassCancelled, 2, 0) };
    let refused = Answer { reason: Reason::OffLot, ..answer(5, 1, Status::Refused, 0, 0) };
    let cases = [
        (Reply::Answer(answer(5, 1, Status::Filled, 100, 0)), b'A', 62),
        (of(named(5), Status::Resting, Reason::None), b'U', 66),
        (of(named(5), Status::Cancelled, Reason::Requested), b'U', 66),
        (of(change, Status::Resting, Reason::None), b'M', 18),
        (of(change, Status::Cancelled, Reason::Requested), b'S', 10),
        (of(change, Status::Refused, Reason::UnknownOrder), b'I', 13),
        (Reply::Answer(refused), b'J', 29),
        (Reply::Answer(mass), b'X', 25),
        (Reply::Answer(answer(5, 1, Status::Accepted, 0, 0)), b'S', 10),
        (Reply::Trade(trade(5, 1)), b'E', 34),
        (Reply::Cancelled(cancelled(5, 1, CancelCause::Requested)), b'C', 18),
        (Reply::Cancelled(cancelled(5, 1, CancelCause::SelfTrade)), b'D', 32),
        (Reply::News(news(5, 1, OrderChange::Repriced)), b'T', 30),
        (Reply::News(news(5, 1, OrderChange::Refilled)), b'R', 14),
        (Reply::Busted(busted(5, 1)), b'B', 36),
    ];
    for (reply, kind, fields) in cases {
        let message = told(reply);
        assert_eq!(char::from(message[0]), char::from(kind), "{reply:?}");
        match kind {
            b'S' => assert_eq!(message.len(), fields, "it has no appendage"),
            _ => _ = appendage(&message, fields),
        }
    }
}

#[test]
fn a_reason_is_told_in_both_codes() {
    let refused = Answer { reason: Reason::OffLot, ..answer(5, 1, Status::Refused, 0, 0) };
    let message = told(Reply::Answer(refused));
    assert_eq!(message[13..15], [0, 0x13]);
    assert!(appendage(&message, 29).contains(" 213=03 "));
    let cancelled = told(Reply::Cancelled(cancelled(5, 1, CancelCause::SessionEnded)));
    assert_eq!((cancelled[9..17].to_vec(), cancelled[17]), (vec![0, 0, 0, 5, 0, 0, 0, 60], b'Z'));
}

#[test]
fn an_order_of_another_session_is_told_by_its_name() {
    for name in [2 << 48 | 5, 0x8001 << 48 | 5, 1 << 48 | 1 << 40] {
        let message =
            told(Reply::Trade(pares_types::Trade { client_order_id: ClientOrderId(name), ..trade(5, 1) }));
        assert_eq!(message[9..13], [0; 4]);
        assert!(appendage(&message, 34).starts_with(&format!("210={name:016x}")));
    }
}

#[test]
fn more_shares_than_four_bytes_hold_are_told_whole_beside() {
    let large = pares_types::Trade { quantity: Quantity(1 << 40), ..trade(5, 1) };
    let message = told(Reply::Trade(large));
    assert_eq!(message[13..17], [255; 4]);
    assert!(appendage(&message, 34).contains("214=0000010000000000"));
}

/// Two gateways, of which one has heard all that the member asked for, and the other nothing.
#[test]
fn every_gateway_makes_the_same_packets_of_a_stream() {
    let stream = [
        Reply::Trade(trade(5, 1)),
        Reply::Answer(answer(5, 2, Status::Resting, 40, 60)),
        Reply::News(news(5, 3, OrderChange::Refilled)),
        Reply::Answer(Answer { order: order(5), ..answer(6, 4, Status::Resting, 40, 30) }),
        Reply::Cancelled(cancelled(5, 5, CancelCause::Requested)),
        Reply::Answer(Answer { reason: Reason::OffTick, ..answer(7, 6, Status::Refused, 0, 0) }),
        Reply::Busted(busted(5, 7)),
    ];
    let mut busy = Rig::logged_on("1-0", 1);
    busy.says(&enter(5, "ACME", &[]));
    busy.says(&crate::rig::replace(5, 6, 80, 16_000));
    busy.says(&cancel(6, 0));
    let mut new = Rig::logged_on("1-0", 1);
    new.waits(900_000_000);
    for reply in stream {
        busy.told(reply);
        new.told(reply);
        busy.told(reply);
    }
    let mut again = Rig::logged_on("1-0", 4);
    stream.into_iter().for_each(|reply| again.told(reply));
    let all = new.packets();
    assert_eq!((busy.packets(), all.len()), (all.clone(), 7));
    assert_eq!(again.packets(), all[3..]);
}
