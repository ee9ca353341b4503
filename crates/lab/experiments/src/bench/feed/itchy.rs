//! The crate `itchy` over the same messages: it reads them, and keeps no books.

use std::hint::black_box;

use itchy::MessageStream;

/// Its published rate, on a laptop.
pub(super) const PUBLISHED_PER_S: u64 = 20_000_000;

pub(super) fn decode(blocks: &[u8], messages: u64) {
    let read = MessageStream::from_reader(blocks).map(|message| {
        black_box(message.expect("it reads every message of ours"));
    });
    assert_eq!(read.count() as u64, messages, "it reads all of them");
}
