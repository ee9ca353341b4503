//! What goes out between the parts, kept until it is its turn.

use pares_cluster::Sink;
use pares_wice::LogEntry;
use pares_wice::codec::{Coded, FORMAT};

/// A payload of the log ends with the entry that fills it so far: with the largest transaction it is a record at most.
const PAYLOAD_BYTES: usize = 128 << 10;

/// What the cluster's log says, in its order.
pub(super) enum LogNews {
    Committed(u64, Vec<u8>),
    Role(pares_cluster::MemberRole),
}

#[derive(Default)]
pub(super) struct LogEvents {
    pub(super) messages: Vec<(u8, Vec<u8>)>,
    pub(super) news: Vec<LogNews>,
    /// This member lacks what the others have let go of, up to this place.
    pub(super) lacks: Option<u64>,
}

impl Sink for LogEvents {
    fn send(&mut self, to: u8, message: Vec<u8>) {
        self.messages.push((to, message));
    }
    fn committed(&mut self, index: u64, _term: u64, payload: &[u8]) {
        let is_late = matches!(self.news.last(), Some(LogNews::Committed(last, _)) if *last >= index);
        assert!(!is_late, "entries are handed out in the order of the log");
        self.news.push(LogNews::Committed(index, payload.to_vec()));
    }
    fn role(&mut self, role: pares_cluster::MemberRole) {
        self.news.push(LogNews::Role(role));
    }
    fn lacks(&mut self, at_least: u64) {
        self.lacks = Some(at_least);
    }
}

/// Entries for the log, a list of them in each payload.
pub(super) fn payloads(proposals: Vec<LogEntry>) -> Vec<(Vec<u8>, Vec<LogEntry>)> {
    let mut payloads = Vec::new();
    let (mut entries, mut bytes) = (Vec::new(), Vec::new());
    let mut rest = proposals.into_iter().peekable();
    while let Some(entry) = rest.next() {
        entry.encode(&mut bytes);
        entries.push(entry);
        if bytes.len() >= PAYLOAD_BYTES || rest.peek().is_none() {
            let count = u32::try_from(entries.len()).expect("fewer than bytes");
            let mut payload = Vec::with_capacity(bytes.len() + 5);
            (FORMAT, count).encode(&mut payload);
            payload.append(&mut bytes);
            assert!(bytes.is_empty(), "what was encoded is in a payload");
            payloads.push((payload, std::mem::take(&mut entries)));
        }
    }
    assert!(entries.is_empty(), "each entry is in a payload");
    payloads
}
