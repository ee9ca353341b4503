//! The bytes of messages and entries: frozen, whole, and harmless whatever they are.

use std::fmt::Debug;
use std::sync::Arc;

use expect_test::expect;
use pares_wice::codec::{Coded, DecodeError, FORMAT};
use pares_wice::{
    AbortReason, Body, CertifierTerm, ClusterId, ClusterSet, Configuration, Entry, Era, Key, KeyRange,
    LogEntry, Message, Past, SiteId, Status, Term, Transaction, TransactionId, Value, Version, Write,
};
use proptest::prelude::*;

const ERA: Era = Era { takeovers: 1, number: 3, by: ClusterId(1) };
const REIGN: CertifierTerm = CertifierTerm { era: ERA, term: Term(9) };
const ID: TransactionId = TransactionId { client: 7, sequence: 8 };
const CONFIGURATION: Configuration = Configuration { era: ERA, certifier: ClusterId(1), live: ClusterSet(2) };

fn update() -> Arc<Entry> {
    let writes = vec![
        Write::put(Key::from("a"), Value::from("x")),
        Write::delete(Key::from("b")),
        Write::add(Key::from("c"), -2),
    ];
    Arc::new(Entry { version: Version(5), era: ERA, body: Body::Update { id: ID, attempt: 2, writes } })
}

fn past() -> Past {
    Past { delivered: Version(9), eras: vec![(Version(5), CONFIGURATION)] }
}

fn messages() -> Vec<Message> {
    let transaction = Transaction {
        id: ID,
        attempt: 1,
        snapshot: Version(4),
        reads: vec![Key::from("r")],
        ranges: vec![KeyRange::prefix(b"p"), KeyRange { from: Key::from("q"), to: None }],
        writes: vec![Write::put("w", Value::counter(1))],
    };
    let status = Status {
        site: SiteId::new(1, 2),
        term: Term(9),
        serial: 4,
        eras: vec![(Era::default(), Version(0)), (ERA, Version(5))],
        promised: ERA,
        delivered: Version(6),
        received: Version(7),
        certifying: true,
        is_whole: true,
    };
    vec![
        Message::Certify { reign: REIGN, transaction },
        Message::Abort { reign: REIGN, id: ID, attempt: 1, reason: AbortReason::Conflict(Version(3)) },
        Message::Status(status),
        Message::Stream { era: ERA, entries: vec![update()] },
        Message::Rewind { era: ERA, keep: Version(4) },
        Message::Promise { configuration: CONFIGURATION, delivered: Version(4) },
        Message::Promised { era: ERA, delivered: Version(5), entries: vec![update()] },
        Message::Adopt { era: ERA, past: past() },
    ]
}

fn entries() -> Vec<LogEntry> {
    vec![
        LogEntry::Stream { era: ERA, entry: update() },
        LogEntry::Fence(CONFIGURATION),
        LogEntry::Discard { era: ERA, keep: Version(4) },
        LogEntry::Adopt { era: ERA, past: past() },
        LogEntry::WitnessedFence(CONFIGURATION),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_layout_changes_only_with_the_format() {
    let lines: Vec<String> = messages().iter().map(|message| hex(&message.to_bytes())).collect();
    expect![[r#"
        030101000000030000000109000000000000000700000000000000080000000000000001000000040000000000000001000000010000007202000000010000007001010000007101000000710001000000010000007701110000000101000000000000000000000000000000
        030201000000030000000109000000000000000700000000000000080000000000000001000000010300000000000000
        03030102090000000000000004000000000000000200000000000000000000000000000000000000000100000003000000010500000000000000010000000300000001060000000000000007000000000000000101
        030401000000030000000101000000050000000000000001000000030000000101070000000000000008000000000000000200000003000000010000006101020000000078010000006202010000006303feffffffffffffff
        03050100000003000000010400000000000000
        03060100000003000000010102000000000000000400000000000000
        0307010000000300000001050000000000000001000000050000000000000001000000030000000101070000000000000008000000000000000200000003000000010000006101020000000078010000006202010000006303feffffffffffffff
        03080100000003000000010900000000000000010000000500000000000000010000000300000001010200000000000000
    "#]].assert_eq(&(lines.join("\n") + "\n"));
    let lines: Vec<String> = entries().iter().map(|entry| hex(&entry.to_bytes())).collect();
    expect![[r#"
        0301010000000300000001050000000000000001000000030000000101070000000000000008000000000000000200000003000000010000006101020000000078010000006202010000006303feffffffffffffff
        0302010000000300000001010200000000000000
        03030100000003000000010400000000000000
        03040100000003000000010900000000000000010000000500000000000000010000000300000001010200000000000000
        0305010000000300000001010200000000000000
    "#]].assert_eq(&(lines.join("\n") + "\n"));
}

fn is_whole<T: Coded + PartialEq + Debug>(one: &T) {
    let bytes = one.to_bytes();
    assert_eq!(T::from_bytes(&bytes).as_ref(), Ok(one));
    for length in 0..bytes.len() {
        assert!(T::from_bytes(&bytes[..length]).is_err(), "{length} bytes of {one:?}");
    }
    assert!(T::from_bytes(&[&bytes[..], b"x"].concat()).is_err(), "{one:?} and one more");
}

#[test]
fn what_is_written_is_read_again_and_no_part_of_it_is() {
    messages().iter().for_each(is_whole);
    entries().iter().for_each(is_whole);
}

#[test]
fn another_format_is_named() {
    let mut bytes = entries()[0].to_bytes();
    bytes[0] = FORMAT + 1;
    assert_eq!(LogEntry::from_bytes(&bytes), Err(DecodeError::Format(FORMAT + 1)));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let framed = [&[FORMAT], &bytes[..]].concat();
        if let Ok(message) = Message::from_bytes(&framed) {
            prop_assert_eq!(message.to_bytes(), framed.clone());
        }
        let _ = LogEntry::from_bytes(&framed);
    }

    #[test]
    fn a_flipped_byte_does_no_harm(which in 0usize..8, at in 0usize..400, flip in 1u8..) {
        let mut bytes = messages()[which].to_bytes();
        let at = at % bytes.len();
        bytes[at] ^= flip;
        let _ = Message::from_bytes(&bytes);
    }
}
