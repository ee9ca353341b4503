//! Conforming to the total order: what is pending, what is decided, what comes next.
//!
//! A venue keeps the requests it has received in its own order of arrival and proposes them. When it loses
//! a position the winner goes first and everything else moves back: the paper's shuffle. Kept as one list
//! that shuffle costs a search; but a gateway's requests are decided in the gateway's own order (below),
//! so one queue per gateway with arrival numbers gives both at once: propose by arrival, remove at a front.
//!
//! **Why a gateway's requests are decided in its order.** Every venue reads a gateway's log from front to
//! back and proposes a request only after proposing, or seeing decided, all earlier ones of that gateway
//! and shard. So a venue that wins a position with sequence `s` knew all below `s` to be ordered. Hence one
//! number per gateway, the highest sequence ordered, answers "has it been ordered?" (paper 1 section 3).
//!
//! **Unless a log rots.** A venue passes over a request that it cannot read, and another venue may have read it before the
//! bit flipped. Then sequence `s` wins while that one still has an earlier request. It stays pending there, is proposed like any
//! other, and may be ordered behind `s`, or never; a venue that has not got it waits for the record. Nothing is executed
//! twice: a decided request leaves the queue wherever it lies, and what comes again from a log is dropped.

use std::collections::VecDeque;

use pares_types::{GatewayId, Position, Request, RequestId};

/// One gateway's part of a shard's pending requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Lane {
    /// Highest sequence ordered; 0 if none.
    through: u64,
    /// Received and not ordered, by sequence, each with its number of arrival.
    queue: VecDeque<(u64, Request)>,
}

impl Lane {
    /// Where the request lies in the queue: in front, unless a log rotted.
    fn place(&self, id: RequestId) -> Option<usize> {
        match self.queue.front() {
            Some((_, front)) if front.id == id => Some(0),
            _ => self.queue.binary_search_by_key(&id, |(_, request)| request.id).ok(),
        }
    }

    /// The request is ordered. Gives its body if that is here.
    fn order(&mut self, id: RequestId) -> Option<Request> {
        self.through = self.through.max(id.sequence());
        self.place(id).and_then(|place| self.queue.remove(place)).map(|(_, request)| request)
    }
}

/// The ordering state of one shard at one venue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ordering {
    next: Position,
    arrivals: u64,
    lanes: Vec<Lane>,
    decided: VecDeque<RequestId>,
}

impl Ordering {
    /// At the start of a shard's life.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self::resume(Position(0), &[])
    }

    /// After `next` positions, with the highest sequence ordered per gateway.
    #[must_use]
    pub(crate) fn resume(next: Position, through: &[(GatewayId, u64)]) -> Self {
        let mut ordering = Self { next, arrivals: 0, lanes: Vec::new(), decided: VecDeque::new() };
        for &(gateway, sequence) in through {
            ordering.lane(gateway).through = sequence;
        }
        ordering
    }

    #[must_use]
    pub(crate) fn next(&self) -> Position {
        self.next
    }

    /// How many received requests are not ordered yet.
    #[must_use]
    pub(crate) fn pending_len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.queue.len()).sum()
    }

    /// The highest sequence ordered, per gateway that has any.
    pub(crate) fn through(&self) -> impl Iterator<Item = (GatewayId, u64)> + '_ {
        self.lanes.iter().enumerate().filter(|(_, lane)| lane.through > 0).map(|(gateway, lane)| {
            (GatewayId(u16::try_from(gateway).expect("lanes are indexed by gateway id")), lane.through)
        })
    }

    /// Takes a request in from its gateway's log. Says whether it was new: repeats and requests
    /// already ordered are dropped.
    pub(crate) fn on_request(&mut self, request: &Request) -> bool {
        let arrival = self.arrivals;
        let lane = self.lane(request.id.gateway());
        let newest =
            lane.queue.back().map_or(lane.through, |(_, queued)| queued.id.sequence().max(lane.through));
        if request.id.sequence() <= newest {
            return false;
        }
        lane.queue.push_back((arrival, *request));
        self.arrivals += 1;
        true
    }

    /// The pending requests in order of arrival, at most `max`, into `batch` (emptied first).
    /// Nothing while a decided request waits for its body: its position comes first.
    pub(crate) fn proposals(&self, max: usize, batch: &mut Vec<RequestId>) {
        batch.clear();
        if !self.decided.is_empty() {
            return;
        }
        if let [lane] = self.lanes.as_slice() {
            batch.extend(lane.queue.iter().take(max).map(|(_, request)| request.id));
            return;
        }
        self.merge(max, batch);
    }

    fn merge(&self, max: usize, batch: &mut Vec<RequestId>) {
        // A handful of gateways: the head with the lowest arrival number is found by looking at each.
        const LANES_MAX: usize = 64;
        let mut taken = [0_usize; LANES_MAX];
        assert!(self.lanes.len() <= LANES_MAX, "at most {LANES_MAX} gateways");
        while batch.len() < max {
            let head = self
                .lanes
                .iter()
                .zip(&taken)
                .enumerate()
                .filter_map(|(index, (lane, &skip))| {
                    lane.queue.get(skip).map(|(arrival, r)| (*arrival, index, r.id))
                })
                .min();
            let Some((_, index, id)) = head else { return };
            taken[index] += 1;
            batch.push(id);
        }
    }

    /// The first position not known to be decided: where proposals go.
    #[must_use]
    pub(crate) fn first_undecided(&self) -> Position {
        Position(self.next.0 + self.decided.len() as u64)
    }

    /// Learns what was decided at [`Ordering::first_undecided`] and the positions after it.
    pub(crate) fn on_decided(&mut self, decided: &[RequestId]) {
        self.decided.extend(decided);
    }

    /// The request to execute at [`Ordering::next`], if it is decided and its body is here; moves to
    /// the next position. A joining venue does not read a gateway's log from its beginning, so the body of
    /// an old decision may never come this way; such a position is recorded, and the committed stream brings it.
    pub(crate) fn take_next(&mut self) -> Option<Request> {
        let id = *self.decided.front()?;
        let lane = self.lane(id.gateway());
        assert!(id.sequence() != lane.through, "{id} was ordered twice");
        lane.place(id)?;
        let request = lane.order(id);
        self.decided.pop_front();
        self.next = self.next.next();
        request
    }

    /// Whether the request of [`Ordering::next`] is decided and its body here.
    #[must_use]
    pub(crate) fn is_next_here(&self) -> bool {
        let Some(&id) = self.decided.front() else { return false };
        let lane = self.lanes.get(usize::from(id.gateway().0));
        lane.is_some_and(|lane| lane.place(id).is_some())
    }

    /// The request decided at [`Ordering::next`] whose body has not come yet.
    #[must_use]
    pub(crate) fn awaited(&self) -> Option<RequestId> {
        self.decided.front().copied()
    }

    /// Takes the record of [`Ordering::next`] from the committed stream; moves to the next position.
    ///
    /// # Panics
    /// If the window decided another request at that position (invariant I1 is broken), or the
    /// request is already ordered (I3).
    pub(crate) fn on_committed(&mut self, id: RequestId) {
        if let Some(decided) = self.decided.pop_front() {
            assert_eq!(decided, id, "the record and the window disagree about position {}", self.next);
        }
        let lane = self.lane(id.gateway());
        assert!(id.sequence() != lane.through, "{id} is recorded at two positions");
        lane.order(id);
        self.next = self.next.next();
    }

    fn lane(&mut self, gateway: GatewayId) -> &mut Lane {
        let index = usize::from(gateway.0);
        if index >= self.lanes.len() {
            self.lanes.resize_with(index + 1, Lane::default);
        }
        &mut self.lanes[index]
    }
}

impl Default for Ordering {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{ClientOrderId, Command, InstrumentId, MemberId, ShardId, Timestamp};

    fn request(gateway: u16, sequence: u64) -> Request {
        Request {
            id: RequestId::new(GatewayId(gateway), sequence),
            stamp: Timestamp(0),
            member: MemberId(1),
            client_order_id: ClientOrderId(sequence),
            instrument: InstrumentId(1),
            shard: ShardId(0),
            command: Command::TIME,
        }
    }

    fn proposals(ordering: &Ordering) -> Vec<String> {
        let mut batch = Vec::new();
        ordering.proposals(10, &mut batch);
        batch.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn proposes_in_order_of_arrival_over_gateways() {
        let mut ordering = Ordering::new();
        for r in [request(2, 1), request(1, 1), request(2, 2)] {
            assert!(ordering.on_request(&r));
        }
        assert_eq!(proposals(&ordering), ["2:1", "1:1", "2:2"]);
    }

    #[test]
    fn paper1_s3_a_lost_position_shuffles_the_winner_to_the_front() {
        let mut ordering = Ordering::new();
        for r in [request(2, 1), request(2, 2), request(1, 1)] {
            ordering.on_request(&r);
        }
        ordering.on_decided(&[request(1, 1).id]);
        assert_eq!(ordering.take_next(), Some(request(1, 1)));
        assert_eq!(proposals(&ordering), ["2:1", "2:2"]);
        assert_eq!(ordering.next(), Position(1));
    }

    #[test]
    fn a_decided_request_waits_for_its_body() {
        let mut ordering = Ordering::new();
        ordering.on_request(&request(2, 1));
        ordering.on_decided(&[request(1, 1).id]);
        assert_eq!(ordering.take_next(), None);
        assert!(proposals(&ordering).is_empty());
        ordering.on_request(&request(1, 1));
        assert_eq!(ordering.take_next(), Some(request(1, 1)));
    }

    #[test]
    fn a_request_that_arrives_after_it_was_ordered_is_dropped() {
        let mut ordering = Ordering::new();
        ordering.on_committed(request(1, 3).id);
        assert!(!ordering.on_request(&request(1, 2)));
        assert!(!ordering.on_request(&request(1, 3)));
        assert!(ordering.on_request(&request(1, 4)));
    }

    #[test]
    fn a_repeated_delivery_is_dropped() {
        let mut ordering = Ordering::new();
        assert!(ordering.on_request(&request(1, 1)));
        assert!(!ordering.on_request(&request(1, 1)));
        assert_eq!(ordering.pending_len(), 1);
    }

    #[test]
    fn the_committed_stream_overtakes_pending_requests() {
        let mut ordering = Ordering::new();
        ordering.on_request(&request(1, 1));
        ordering.on_request(&request(1, 2));
        ordering.on_committed(request(1, 1).id);
        assert_eq!(proposals(&ordering), ["1:2"]);
    }

    #[test]
    fn joining_venue_gets_old_body_from_record() {
        let mut ordering = Ordering::new();
        ordering.on_request(&request(1, 7));
        ordering.on_decided(&[request(1, 3).id]);
        assert_eq!((ordering.take_next(), ordering.awaited()), (None, Some(request(1, 3).id)));
        ordering.on_committed(request(1, 3).id);
        assert_eq!(proposals(&ordering), ["1:7"]);
    }

    /// A venue that has read requests 1 to 3 of a gateway, and learns that 2 was ordered first: another could not read 1.
    fn with_one_passed_over() -> Ordering {
        let mut ordering = Ordering::new();
        (1..=3).for_each(|sequence| _ = ordering.on_request(&request(1, sequence)));
        ordering.on_decided(&[request(1, 2).id]);
        assert_eq!(ordering.take_next(), Some(request(1, 2)));
        ordering
    }

    #[test]
    fn unread_request_stays_pending_and_may_order_later() {
        let mut ordering = with_one_passed_over();
        assert_eq!(proposals(&ordering), ["1:1", "1:3"]);
        ordering.on_decided(&[request(1, 3).id, request(1, 1).id]);
        assert_eq!([ordering.take_next(), ordering.take_next()], [Some(request(1, 3)), Some(request(1, 1))]);
        assert_eq!(
            (ordering.through().collect::<Vec<_>>(), ordering.pending_len()),
            (vec![(GatewayId(1), 3)], 0)
        );
    }

    #[test]
    fn a_request_ordered_late_is_never_proposed_again() {
        for is_recorded in [false, true] {
            let mut ordering = with_one_passed_over();
            let late = request(1, 1);
            if is_recorded {
                ordering.on_committed(late.id);
            } else {
                ordering.on_decided(&[late.id]);
                assert_eq!(ordering.take_next(), Some(late));
            }
            assert!(!ordering.on_request(&late));
            assert_eq!(proposals(&ordering), ["1:3"]);
        }
    }

    #[test]
    fn late_ordered_request_unread_here_comes_from_record() {
        let mut ordering = Ordering::new();
        ordering.on_request(&request(1, 2));
        ordering.on_decided(&[request(1, 2).id, request(1, 1).id]);
        assert_eq!((ordering.take_next(), ordering.take_next()), (Some(request(1, 2)), None));
        assert!(!ordering.is_next_here());
        ordering.on_committed(request(1, 1).id);
        assert_eq!((ordering.next(), ordering.awaited()), (Position(2), None));
    }

    #[test]
    #[should_panic(expected = "disagree about position 0")]
    fn a_record_that_contradicts_the_window_stops_the_venue() {
        let mut ordering = Ordering::new();
        ordering.on_decided(&[request(1, 1).id]);
        ordering.on_committed(request(2, 1).id);
    }
}
