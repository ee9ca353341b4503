//! FIX: frames in a stream, messages, sessions.

use pares_acceptor::acceptor::EchoAcceptor;
use pares_fix::dictionary::{FIX42, FIX44, FixDictionary};
use pares_fix::framing::{Cut, cut};
use pares_fix::message::BodyField;
use pares_fix::parser::FixParser;
use pares_fix::writer::{self, FixWriter, soh};

pub(crate) const NOW_NS: u64 = 1_790_000_000_000_000_000;
pub(crate) const LOGON: &str = "A 1 98=0|108=30|";
const PARTIES: [&str; 2] = ["TW44", "ISLD"];
const ORDER: &str =
    "11=a|55=X|54=1|60=20260921-12:00:00|40=2|44=1.5|21=1|38=100|453=1|448=p|802=1|523=s|803=1|386=1|336=x|";

/// Cuts a stream into messages, all at once and bit by bit.
pub fn frames(bytes: &[u8]) {
    let whole = wholes(bytes, bytes.len().max(1));
    for frame in &whole {
        assert!(
            matches!(cut(frame), (Cut::Whole(again), _) if again.bytes == frame),
            "a message is one again"
        );
    }
    assert_eq!(wholes(bytes, 7), whole, "a message is one however it comes");
}

fn wholes(bytes: &[u8], at_once: usize) -> Vec<Vec<u8>> {
    let (mut input, mut found) = (Vec::new(), Vec::new());
    for part in bytes.chunks(at_once) {
        input.extend_from_slice(part);
        loop {
            let (cut, used) = cut(&input);
            match cut {
                Cut::Incomplete => break,
                Cut::TooLong => return found,
                Cut::Garbled => assert!(used > 0 && used <= input.len()),
                Cut::Whole(frame) => found.push(frame.bytes.to_vec()),
            }
            input.drain(..used);
        }
    }
    found
}

/// A stream of messages with something between them.
#[must_use]
pub fn frame_seeds() -> Vec<Vec<u8>> {
    let stream: Vec<u8> = message_seeds().iter().flat_map(|fields| framed(&FIX44, fields)).collect();
    let wrong = b"8=FIX.4.4\x019=3\x0135=0\x0134=1\x0110=000\x01noise".to_vec();
    let no_trailer = b"8=FIX.4.4\x019=5\x0135=0\x0110=123456789\x01".to_vec();
    let heartbeats = framed(&FIX44, b"0 ").repeat(2_000);
    vec![stream.clone(), [wrong.clone(), stream].concat(), wrong, [no_trailer, heartbeats].concat()]
}

/// Reads the fields of a message; what is right about it stays so when its body is written again.
pub fn messages(bytes: &[u8]) {
    for dictionary in [&FIX42, &FIX44] {
        let bytes = framed(dictionary, bytes);
        let (Cut::Whole(frame), _) = cut(&bytes) else { return };
        let (mut parser, mut other) = (FixParser::default(), FixParser::default());
        let Ok(message) = parser.parse(dictionary, &frame) else { continue };
        let _ = (message.msg_type(), message.number(34), message.time_ns(52), message.flag(43));
        if message.fault().is_some() {
            continue;
        }
        let fields: Vec<BodyField<'_>> = message.body().collect();
        let again = written(dictionary, message.msg_type(), &fields);
        let (Cut::Whole(frame), _) = cut(&again) else { panic!("what was written is whole") };
        let read = other.parse(dictionary, &frame).expect("what was written has fields");
        assert_eq!(read.fault(), None);
        assert!(read.body().eq(fields), "as read");
    }
}

fn written(dictionary: &FixDictionary, msg_type: &[u8], fields: &[BodyField<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = FixWriter::begin(&mut bytes, dictionary.begin_string, msg_type);
    writer.number(34, 7);
    writer.text(49, PARTIES[0].as_bytes());
    writer.time(52, NOW_NS);
    writer.text(56, PARTIES[1].as_bytes());
    for field in fields {
        writer.text(u16::try_from(field.tag).expect("a field without fault"), field.value);
    }
    writer.finish();
    bytes
}

/// A message of these bytes: its type up to the first space, and fields with `|` behind them.
fn framed(dictionary: &FixDictionary, bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    let (msg_type, fields) = bytes.split_at(end);
    let fields = [&soh(fields.get(1..).unwrap_or_default())[..], &[1]].concat();
    let fields = fields.strip_suffix(&[1, 1]).map_or(&fields[..], |_| &fields[..fields.len() - 1]);
    let mut framed = Vec::new();
    let mut writer = FixWriter::begin(&mut framed, dictionary.begin_string, msg_type);
    writer.fields(fields);
    writer.finish();
    framed
}

/// Messages of many kinds, as `framed` takes them.
#[must_use]
pub fn message_seeds() -> Vec<Vec<u8>> {
    let header = "34=2|49=TW44|52=20260921-12:00:00|56=ISLD|";
    let bodies = [
        ("D", ORDER),
        ("0", "112=x|"),
        ("2", "7=1|16=0|"),
        ("A", "98=0|108=30|95=3|96=a|b|"),
        ("3", "45=1|"),
        ("B", "148=x|358=3|359=a|b|no field|"),
    ];
    bodies.map(|(msg_type, body)| format!("{msg_type} {header}{body}").into_bytes()).into()
}

/// Speaks to a session: each line is a message's type, its number and its fields. What the session sends is right by its own dictionary.
pub fn sessions(bytes: &[u8]) {
    let acceptor = EchoAcceptor::default();
    let mut connection = acceptor.connect(NOW_NS);
    let mut sent = Vec::new();
    let mut now_ns = NOW_NS;
    for line in std::iter::once(LOGON.as_bytes()).chain(bytes.split(|byte| *byte == b'\n')) {
        let mut out = |bytes: &[u8]| sent.extend_from_slice(bytes);
        connection.receive(now_ns, &spoken(line, PARTIES), &mut out);
        if line.is_empty() {
            now_ns = connection.next_deadline().unwrap_or(now_ns).max(now_ns);
            connection.tick(now_ns, &mut out);
        }
    }
    check(&sent);
}

/// What is sent is whole messages, right by their dictionary.
pub(crate) fn check(mut rest: &[u8]) {
    let mut parser = FixParser::default();
    while !rest.is_empty() {
        let (Cut::Whole(frame), used) = cut(rest) else { panic!("whole messages are sent") };
        let message = parser.parse(&FIX44, &frame).expect("with fields");
        assert_eq!(message.fault(), None, "{}", frame.bytes.escape_ascii());
        rest = &rest[used..];
    }
}

/// The message of a line: its type, its number and its fields, from the first to the second.
pub(crate) fn spoken(line: &[u8], [sender, target]: [&str; 2]) -> Vec<u8> {
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let msg_type = words.next().unwrap_or_default();
    let number = words.next().and_then(|word| std::str::from_utf8(word).ok()?.parse().ok());
    let head = (number.unwrap_or_default(), sender, NOW_NS, target);
    writer::message(FIX44.begin_string, msg_type, head, words.next().unwrap_or_default())
}

/// Conversations: orders, gaps, resends, resets, silence.
#[must_use]
pub fn session_seeds() -> Vec<Vec<u8>> {
    let gap = format!("D 4 {ORDER}\nD 2 {ORDER}\n4 3 36=9|123=Y|\n2 9 7=1|16=0|\n1 10 112=x|\n\n\n");
    let resets = "4 0 36=50|\n4 50 36=1|\nA 1 98=0|108=5|141=Y|\n0 2 55=x|\n3 3 45=1|\n8 4 \n* 5 \n5 6 ";
    [gap, resets.to_owned(), format!("D 2 43=Y|97=Y|115=a|122=20200101-00:00:00|{ORDER}\n5 3 ")]
        .map(String::into_bytes)
        .into()
}
