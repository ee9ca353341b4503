//! Submitted and not ordered yet; decided and not taken yet.
//!
//! One queue for each server, as a venue keeps one for each gateway (`pares-venue`, `ordering.rs`): a server's submissions are decided in that
//! server's order, because no server proposes one before all earlier ones of it are proposed or seen decided. So one number for each server says
//! what was ordered. Queues are in order of arrival among each other, and what is decided leaves its queue at the front.

use std::collections::VecDeque;

use pares_types::{GatewayId, Position, RequestId};

/// Items that may wait in all lanes together, before nothing more is read.
pub(crate) const WAITING_MAX: usize = 65_536;
/// Their bytes.
pub(crate) const WAITING_BYTES_MAX: usize = 64 << 20;

/// One waiting item.
#[derive(Clone, Debug)]
struct Waiting {
    arrival: u64,
    request: RequestId,
    bytes: Box<[u8]>,
}

/// One server's submissions.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// Highest sequence ordered; 0 if none.
    through: u64,
    queue: VecDeque<Waiting>,
}

impl Lane {
    fn newest(&self) -> u64 {
        self.queue.back().map_or(self.through, |last| last.request.sequence().max(self.through))
    }

    /// Where the item lies in the queue: in front, unless a server could not read one before it.
    fn place(&self, request: RequestId) -> Option<usize> {
        match self.queue.front() {
            Some(front) if front.request == request => Some(0),
            _ => self.queue.binary_search_by_key(&request, |waiting| waiting.request).ok(),
        }
    }
}

/// All servers' submissions at one server.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    next: Position,
    arrivals: u64,
    lanes: Vec<Lane>,
    decided: VecDeque<RequestId>,
    waiting: usize,
    waiting_bytes: usize,
}

impl Lanes {
    pub(crate) fn new(servers: u16) -> Self {
        let lanes = vec![Lane::default(); servers.into()];
        Self { next: Position(0), arrivals: 0, lanes, decided: VecDeque::new(), waiting: 0, waiting_bytes: 0 }
    }

    /// The next position to take.
    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// How many servers there are.
    pub(crate) fn servers(&self) -> u16 {
        u16::try_from(self.lanes.len()).expect("made of a u16")
    }

    /// Submitted and not ordered.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether nothing more should be taken in.
    pub(crate) fn is_full(&self) -> bool {
        self.waiting >= WAITING_MAX || self.waiting_bytes >= WAITING_BYTES_MAX
    }

    /// The highest sequence of a server that was ordered; 0 if none was.
    pub(crate) fn through(&self, server: GatewayId) -> u64 {
        self.lanes.get(usize::from(server.0)).map_or(0, |lane| lane.through)
    }

    /// Of that server all up to `through` counts as ordered, and nothing of it is taken in any more.
    pub(crate) fn start_after(&mut self, server: GatewayId, through: u64) {
        if let Some(lane) = self.lanes.get_mut(usize::from(server.0)) {
            lane.through = lane.through.max(through);
        }
    }

    /// Takes an item in from its server's log. Says whether it was new: what comes again or is ordered already is dropped, and so is what
    /// no server of this system wrote.
    pub(crate) fn on_submitted(&mut self, request: RequestId, bytes: &[u8]) -> bool {
        let arrival = self.arrivals;
        let Some(lane) = self.lanes.get_mut(usize::from(request.gateway().0)) else { return false };
        if request.sequence() <= lane.newest() {
            return false;
        }
        lane.queue.push_back(Waiting { arrival, request, bytes: bytes.into() });
        self.arrivals += 1;
        self.waiting += 1;
        self.waiting_bytes += bytes.len();
        true
    }

    /// What waits, in order of arrival, at most `max`, into `batch` (emptied first). Nothing while a decided item waits for its bytes.
    pub(crate) fn proposals(&self, max: usize, batch: &mut Vec<RequestId>) {
        batch.clear();
        if !self.decided.is_empty() {
            return;
        }
        let mut heads: Vec<_> = self.lanes.iter().map(|lane| lane.queue.iter().peekable()).collect();
        while batch.len() < max {
            let first = heads.iter_mut().filter_map(|head| Some((head.peek()?.arrival, head)));
            let Some((_, head)) = first.min_by_key(|&(arrival, _)| arrival) else { return };
            batch.extend(head.next().map(|waiting| waiting.request));
        }
    }

    /// The first position not known to be decided: where proposals go.
    pub(crate) fn first_undecided(&self) -> Position {
        Position(self.next.0 + self.decided.len() as u64)
    }

    /// Decided and not taken.
    pub(crate) fn decided(&self) -> usize {
        self.decided.len()
    }

    /// Learns what was decided from [`Lanes::first_undecided`] on.
    pub(crate) fn on_decided(&mut self, decided: &[RequestId]) {
        self.decided.extend(decided);
    }

    /// What stands at the next position, if that is decided: its bytes, if they are here.
    pub(crate) fn front(&self) -> Option<(RequestId, Option<&[u8]>)> {
        let request = *self.decided.front()?;
        let lane = self.lanes.get(usize::from(request.gateway().0));
        let bytes = lane.and_then(|lane| Some(&*lane.queue[lane.place(request)?].bytes));
        Some((request, bytes))
    }

    /// What stands at the next position is taken, from wherever it came.
    ///
    /// # Panics
    /// If the window decided something else there.
    pub(crate) fn take(&mut self, request: RequestId) {
        if let Some(decided) = self.decided.pop_front() {
            assert_eq!(decided, request, "a record and the window disagree about position {}", self.next);
        }
        self.next = self.next.next();
        let Some(lane) = self.lanes.get_mut(usize::from(request.gateway().0)) else { return };
        lane.through = lane.through.max(request.sequence());
        if let Some(waiting) = lane.place(request).and_then(|place| lane.queue.remove(place)) {
            self.waiting -= 1;
            self.waiting_bytes -= waiting.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(server: u16, sequence: u64) -> RequestId {
        RequestId::new(GatewayId(server), sequence)
    }

    fn lanes(arrived: &[(u16, u64)]) -> Lanes {
        let mut lanes = Lanes::new(2);
        for &(server, sequence) in arrived {
            assert!(lanes.on_submitted(id(server, sequence), b"x"));
        }
        lanes
    }

    fn proposals(lanes: &Lanes) -> Vec<RequestId> {
        let mut batch = Vec::new();
        lanes.proposals(10, &mut batch);
        batch
    }

    #[test]
    fn proposes_in_order_of_arrival_over_servers() {
        let lanes = lanes(&[(1, 1), (0, 1), (1, 2)]);
        assert_eq!(proposals(&lanes), [id(1, 1), id(0, 1), id(1, 2)]);
    }

    #[test]
    fn a_lost_position_moves_the_winner_to_the_front() {
        let mut lanes = lanes(&[(1, 1), (1, 2), (0, 1)]);
        lanes.on_decided(&[id(0, 1)]);
        assert_eq!(lanes.front(), Some((id(0, 1), Some(&b"x"[..]))));
        assert!(proposals(&lanes).is_empty(), "its place is taken first");
        lanes.take(id(0, 1));
        assert_eq!(proposals(&lanes), [id(1, 1), id(1, 2)]);
        assert_eq!((lanes.next(), lanes.waiting()), (Position(1), 2));
    }

    #[test]
    fn decided_item_waits_for_bytes_later_is_dropped() {
        let mut lanes = lanes(&[(1, 5)]);
        lanes.on_decided(&[id(0, 3)]);
        assert_eq!(lanes.front(), Some((id(0, 3), None)));
        lanes.take(id(0, 3));
        assert!(!lanes.on_submitted(id(0, 2), b"late") && !lanes.on_submitted(id(0, 3), b"late"));
        assert!(lanes.on_submitted(id(0, 4), b"new"));
        assert!(!lanes.on_submitted(id(7, 1), b"of a server that is none"));
    }

    #[test]
    fn a_record_overtakes_what_waits() {
        let mut lanes = lanes(&[(1, 1), (1, 2)]);
        lanes.take(id(1, 1));
        assert_eq!(proposals(&lanes), [id(1, 2)]);
        assert_eq!(lanes.first_undecided(), Position(1));
    }

    #[test]
    #[should_panic(expected = "disagree about position 0")]
    fn a_record_that_contradicts_the_window_stops_the_server() {
        let mut lanes = lanes(&[(1, 1)]);
        lanes.on_decided(&[id(1, 1)]);
        lanes.take(id(0, 1));
    }
}
