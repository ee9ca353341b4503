//! Requests that no user's order binds: what people sign in with, and the like.
//!
//! A site remembers 64 answers for each client. So each of these requests is made by a client that has no other under way, and clients are used again.

use std::collections::HashMap;

use pares_wice::TransactionId;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct DirectClients {
    /// The next client that was never used.
    next: u64,
    /// With nothing under way, each with the last sequence that it used.
    idle: Vec<TransactionId>,
    /// Under way: which number it was given here.
    open: HashMap<TransactionId, u64>,
    count: u64,
}

impl DirectClients {
    /// Clients from `first` on, which nobody else uses.
    pub(crate) fn new(first: u64) -> Self {
        Self { next: first, idle: Vec::new(), open: HashMap::new(), count: 0 }
    }

    /// The name of another request, and its number here.
    pub(crate) fn begin(&mut self) -> (TransactionId, u64) {
        let idle = self.idle.pop().unwrap_or_else(|| {
            self.next += 1;
            TransactionId { client: self.next, sequence: 0 }
        });
        let id = TransactionId { sequence: idle.sequence + 1, ..idle };
        self.count += 1;
        self.open.insert(id, self.count);
        (id, self.count)
    }

    /// A request has its answer: its number, if it was one of these.
    pub(crate) fn end(&mut self, id: TransactionId) -> Option<u64> {
        let number = self.open.remove(&id)?;
        self.idle.push(id);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_has_one_request_open_and_unique_names() {
        let mut clients = DirectClients::new(100);
        let ((first, one), (second, two)) = (clients.begin(), clients.begin());
        assert!(first.client != second.client && one != two);
        assert_eq!(clients.end(first), Some(one));
        assert_eq!(clients.end(first), None);
        let (third, _) = clients.begin();
        assert_eq!((third.client, third.sequence), (first.client, first.sequence + 1));
    }
}
