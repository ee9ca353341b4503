//! An entry of the replicated log: a batch of requests, as they lie in their gateways' logs.
//!
//! ```text
//!   | 1 | length u8 | body | length u8 | body | ...
//! ```
//! Any member may propose, so an entry is what another build or a damaged host may have written. What is wrong with it is wrong for all
//! members alike: they pass over the same bodies, and over the same rest of an entry that does not add up.

use pares_types::Request;
use pares_wire::record::{REQUEST_BYTES_MAX, RequestRecord};

/// The version, an entry's first byte.
const FORMAT: u8 = 1;
/// An entry takes no more requests once it is about so long.
pub const ENTRY_BYTES_MAX: usize = 64 << 10;

/// The body of a request: its record.
#[derive(Clone, Copy, Debug)]
pub struct Body {
    len: u8,
    bytes: [u8; REQUEST_BYTES_MAX],
}

impl Body {
    /// The same bytes, if they are not longer than any request.
    #[must_use]
    pub fn new(record: &[u8]) -> Option<Self> {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        bytes.get_mut(..record.len())?.copy_from_slice(record);
        Some(Self { len: u8::try_from(record.len()).ok()?, bytes })
    }

    /// The record.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// An entry being written.
#[derive(Debug, Default)]
pub(crate) struct EntryDraft(Vec<u8>);

impl EntryDraft {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
        self.0.push(FORMAT);
    }

    pub(crate) fn has_room(&self) -> bool {
        self.0.len() + REQUEST_BYTES_MAX < ENTRY_BYTES_MAX
    }

    pub(crate) fn push(&mut self, body: &Body) {
        self.0.push(body.len);
        self.0.extend_from_slice(body.bytes());
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The requests of an entry with their bodies. `None` in place of one that is no request that this build reads, and of what follows bytes
/// that do not add up.
pub(crate) fn requests(entry: &[u8]) -> impl Iterator<Item = Option<(Request, &[u8])>> {
    let (is_known, mut rest) = match entry.split_first() {
        Some((&FORMAT, rest)) => (true, rest),
        _ => (false, entry),
    };
    std::iter::from_fn(move || {
        let (&length, behind) = rest.split_first()?;
        let Some((body, behind)) = behind.split_at_checked(length.into()).filter(|_| is_known) else {
            rest = &[];
            return Some(None);
        };
        rest = behind;
        Some(RequestRecord::read(body).ok().map(|request| (request, body)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storm::request_body;
    use proptest::prelude::*;

    fn entry(bodies: &[&[u8]]) -> Vec<u8> {
        let mut draft = EntryDraft::default();
        draft.clear();
        bodies.iter().for_each(|body| draft.push(&Body::new(body).unwrap()));
        draft.bytes().to_vec()
    }

    fn read(entry: &[u8]) -> Vec<Option<u64>> {
        requests(entry).map(|found| found.map(|(request, _)| request.id.sequence())).collect()
    }

    #[test]
    fn requests_are_read_as_they_were_written() {
        let bodies = [request_body(1, 7, 0), request_body(2, 9, 3)];
        let entry = entry(&[&bodies[0], &bodies[1]]);
        assert_eq!(entry.len(), 1 + 2 * 65);
        assert_eq!(read(&entry), [Some(7), Some(9)]);
        assert_eq!(requests(&entry).nth(1).unwrap().unwrap().1, bodies[1]);
    }

    #[test]
    fn what_is_no_request_is_passed_over() {
        let good = request_body(1, 7, 0);
        assert_eq!(read(&entry(&[&good, b"", b"no request", &good])), [Some(7), None, None, Some(7)]);
        let whole = entry(&[&good, &good]);
        assert_eq!(read(&whole[..whole.len() - 1]), [Some(7), None]);
        assert_eq!(read(&[]), []);
        assert_eq!(read(&[&[9], &whole[1..]].concat()), [None]);
        assert!(Body::new(&[0; REQUEST_BYTES_MAX + 1]).is_none());
    }

    proptest! {
        #[test]
        fn no_bytes_are_worse_than_skipped(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let count = requests(&bytes).count();
            prop_assert!(count <= bytes.len());
        }
    }
}
