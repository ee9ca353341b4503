//! The messages of one session, as they were sent: what is sent again, and what a snapshot goes on from.

use crate::publication::Session;

/// The messages of a session so far, by number from 1.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) session: Session,
    /// Whether it is over.
    pub(crate) over: bool,
    bytes: Vec<u8>,
    /// Where each message ends in `bytes`.
    ends: Vec<usize>,
}

impl Kept {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, over: false, bytes: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn push(&mut self, message: &[u8]) {
        self.bytes.extend_from_slice(message);
        self.ends.push(self.bytes.len());
    }

    /// The number of the next message.
    pub(crate) fn next(&self) -> u64 {
        self.ends.len() as u64 + 1
    }

    /// The message of that number, if it was sent.
    pub(crate) fn message(&self, number: u64) -> Option<&[u8]> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.bytes[start..end])
    }
}
