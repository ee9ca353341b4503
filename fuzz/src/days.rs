//! Recorded days: files that come from elsewhere.

use pares_flow::{ItchSelect, ItchSource, LobsterSource, RecordedEvents};
use pares_types::InstrumentId;

/// Reads a LOBSTER day: the message file, a zero byte, the orderbook file.
pub fn lobster(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |&byte| byte == 0);
    let (messages, book) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let lines = 1 + messages.iter().filter(|&&byte| byte == b'\n').count();
    if let Ok(source) = LobsterSource::new(messages, book, InstrumentId(1)) {
        read_through(source, lines);
    }
}

/// Reads an ITCH day, all instruments and one of them.
pub fn itch(bytes: &[u8]) {
    read_through(ItchSource::new(bytes, ItchSelect::All, InstrumentId(1)), bytes.len());
    let one = ItchSelect::Symbol("AAPL".into());
    read_through(ItchSource::new(bytes, one, InstrumentId(1)), bytes.len());
}

/// Reads to the end or the first error, which comes within `events_max` events.
fn read_through(mut source: impl RecordedEvents, events_max: usize) {
    let mut events = 0;
    while let Ok(Some(_event)) = source.next_event() {
        events += 1;
        assert!(events <= events_max, "every event takes the reader forward");
    }
}

/// A few lines of a day, with every kind of event.
#[must_use]
pub fn lobster_seeds() -> Vec<Vec<u8>> {
    let messages = "34200.1,1,11,100,2238100,1\n34200.2,1,12,50,2239500,-1\n34200.3,2,11,40,2238100,1\n\
                    34200.4,4,12,10,2239500,-1\n34200.5,5,0,1,2238200,-1\n34200.6,3,11,60,2238100,1\n\
                    34200.7,7,0,0,-1,-1\n";
    let book = "9999999999,0,2238100,100\n2239500,50,2238100,100\n2239500,50,2238100,60\n\
                2239500,40,2238100,60\n2239500,40,2238100,60\n2239500,40,-9999999999,0\n\
                2239500,40,-9999999999,0\n";
    vec![[messages, "\0", book].concat().into_bytes()]
}

/// A directory entry and one order's life, message by message.
#[must_use]
pub fn itch_seeds() -> Vec<Vec<u8>> {
    let id = 77_u64.to_be_bytes();
    let symbol = *b"AAPL    ";
    let directory = message(b'R', &[&symbol, &[0; 20]]);
    let add = message(b'A', &[&id, b"B", &100_u32.to_be_bytes(), &symbol, &2_238_100_u32.to_be_bytes()]);
    let execute = message(b'E', &[&id, &10_u32.to_be_bytes(), &1_u64.to_be_bytes()]);
    let cancel = message(b'X', &[&id, &10_u32.to_be_bytes()]);
    let (new, quantity, price) = (78_u64.to_be_bytes(), 50_u32.to_be_bytes(), 2_238_200_u32.to_be_bytes());
    let replace = message(b'U', &[&id, &new, &quantity, &price]);
    let delete = message(b'D', &[&new]);
    vec![[directory, add, execute, cancel, replace, delete, vec![0, 0]].concat()]
}

/// A length-prefixed message: type, stock locate, tracking number, time, fields.
fn message(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    let head = [kind, 0, 1, 0, 0, 0, 0x1F, 0x1A, 0xCE, 0xD6, 0];
    let body = fields.concat();
    let length = u16::try_from(head.len() + body.len()).expect("messages are short");
    [length.to_be_bytes().as_slice(), &head, &body].concat()
}
