//! Requests not answered yet, so that a lost connection loses none of them.

use std::collections::{HashMap, VecDeque};

use pares_types::{ClientOrderId, ClientRequest};

use crate::{Client, ClientError, Update};

/// The unanswered requests of one member, in the order they were submitted.
///
/// Submit through it, show it every update, and after a connection is lost [`OpenRequests::repeat_all`]
/// on a new one, to whichever gateway. A repeat is never executed twice.
#[derive(Debug, Default)]
pub struct OpenRequests {
    /// `None` once answered; the front is never `None`.
    requests: VecDeque<Option<ClientRequest>>,
    /// The number of the front one, counting from the first ever submitted.
    front: u64,
    numbers: HashMap<ClientOrderId, u64>,
    retries: u64,
}

impl OpenRequests {
    /// None open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Buffers `request` on `client` and keeps it until it is answered.
    ///
    /// # Errors
    /// As [`Client::send`]; the request is then not kept.
    pub fn submit(&mut self, client: &mut Client, request: &ClientRequest) -> Result<(), ClientError> {
        client.send(request)?;
        self.keep(request);
        Ok(())
    }

    /// Keeps a request sent by other means. One already open under that name stays as it is.
    pub fn keep(&mut self, request: &ClientRequest) {
        let number = self.front + self.requests.len() as u64;
        if let std::collections::hash_map::Entry::Vacant(free) = self.numbers.entry(request.client_order_id())
        {
            free.insert(number);
            self.requests.push_back(Some(*request));
        }
    }

    /// Takes note of an update: an answer (but not that of one shard's part) or a rejection closes its request. Returns the request closed.
    pub fn on_update(&mut self, update: &Update) -> Option<ClientRequest> {
        let name = match update {
            Update::Answer(answer) if answer.is_part() => return None,
            Update::Answer(answer) => answer.client_order_id,
            Update::Rejected { client_order_id, .. } => *client_order_id,
            _ => return None,
        };
        let number = self.numbers.remove(&name)?;
        let at = usize::try_from(number - self.front).expect("open requests fit memory");
        let request = self.requests[at].take();
        while self.requests.pop_front_if(|front| front.is_none()).is_some() {
            self.front += 1;
        }
        request
    }

    /// Sends every open request again, in order, on a new connection, waiting while it is backlogged. Returns
    /// how many.
    ///
    /// # Errors
    /// If the new connection is lost too; everything stays open.
    pub fn repeat_all(&mut self, client: &mut Client) -> Result<usize, ClientError> {
        let mut count = 0;
        for request in self.requests.iter().flatten() {
            while let Err(ClientError::Backlogged) = client.send(request) {
                client.flush_or_wait()?;
            }
            count += 1;
            self.retries += 1;
        }
        client.flush()?;
        Ok(count)
    }

    /// The open requests, in the order they were submitted.
    pub fn iter(&self) -> impl Iterator<Item = &ClientRequest> {
        self.requests.iter().flatten()
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Requests repeated so far.
    #[must_use]
    pub fn retries(&self) -> u64 {
        self.retries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{InstrumentId, Reason};

    fn request(name: u64) -> ClientRequest {
        let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(0));
        ClientRequest::MassCancel { client_order_id, instrument, side: None }
    }

    fn rejected(name: u64) -> Update {
        Update::Rejected { client_order_id: ClientOrderId(name), reason: Reason::Overloaded }
    }

    #[test]
    fn what_is_open_stays_in_order_while_answers_come_in_any() {
        let mut open = OpenRequests::new();
        (1..=5).for_each(|name| open.keep(&request(name)));
        for name in [2, 1, 4] {
            assert_eq!(open.on_update(&rejected(name)), Some(request(name)));
        }
        open.keep(&request(6));
        assert_eq!(open.iter().copied().collect::<Vec<_>>(), [request(3), request(5), request(6)]);
        assert_eq!(open.on_update(&rejected(6)), Some(request(6)));
        assert_eq!(open.len(), 2);
    }

    #[test]
    fn an_answer_nobody_waits_for_closes_nothing() {
        let mut open = OpenRequests::new();
        open.keep(&request(1));
        assert_eq!(open.on_update(&rejected(9)), None);
        assert_eq!(open.len(), 1);
    }

    #[test]
    fn a_name_kept_twice_is_open_once() {
        let mut open = OpenRequests::new();
        open.keep(&request(1));
        open.keep(&request(1));
        assert_eq!((open.len(), open.iter().count()), (1, 1));
    }
}
