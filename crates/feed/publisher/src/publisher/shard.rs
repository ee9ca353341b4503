//! One shard at a publisher: its record becomes messages, which wait here to be put into the log and sent.

use std::collections::VecDeque;

use pares_feed::publication::{FeedSink, Publication, Session};
use pares_feed::publisher::{Line, Publisher};
use pares_feed::store::SessionStanding;
use pares_types::{Command, Event, Outcome, Position, Request, Status};

use crate::logged::{Reached, blocks, push_block};

/// Messages that go into one record of the log.
#[derive(Debug)]
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) count: u16,
    pub(super) reached: Reached,
    pub(super) position: Position,
    pub(super) blocks: Vec<u8>,
}

/// One shard.
pub(super) struct ShardFeed {
    pub(super) publication: Publication,
    pub(super) making: Making,
    pub(super) sender: Publisher,
    /// The next position to read.
    pub(super) next: Position,
    /// Bytes in the log since the last state, and bytes of that.
    pub(super) since_state: usize,
    pub(super) state_bytes: usize,
}

/// Messages as they are made.
#[derive(Debug)]
pub(super) struct Making {
    /// How far they have come; `None` before the first session.
    pub(super) made: Option<Reached>,
    /// How far they had come in an earlier life, step by step, as long as that is not reached.
    pub(super) before: VecDeque<Reached>,
    /// Whether what the log holds was made otherwise.
    pub(super) differs: bool,
    /// What waits for the log, in order.
    pub(super) waiting: Vec<Stretch>,
    position: Position,
    bytes_max: usize,
}

impl Making {
    /// From `made` on; the log holds them up to the last step of `before`. A stretch has at most `bytes_max` bytes.
    pub(super) fn new(made: Option<Reached>, before: Vec<Reached>, bytes_max: usize) -> Self {
        let before = before.into_iter().filter(|before| made != Some(*before)).collect();
        let (position, waiting) = (Position(0), Vec::new());
        Self { made, before, differs: false, waiting, position, bytes_max }
    }

    /// Whether a message is one that the log holds.
    fn catches_up(&mut self, made: Reached) -> bool {
        let Some(step) = self.before.front() else { return false };
        if (made.session, made.next) == (step.session, step.next) {
            self.differs |= made.chain != step.chain;
            self.before.pop_front();
        }
        true
    }

    fn wait(&mut self, made: Reached, message: &[u8]) {
        let room = |stretch: &Stretch| {
            let fits = stretch.blocks.len() + 2 + message.len() <= self.bytes_max;
            fits && stretch.count < u16::MAX && stretch.reached.session == made.session
        };
        if !self.waiting.last().is_some_and(room) {
            let (first, position) = (made.next - 1, self.position);
            self.waiting.push(Stretch { first, count: 0, reached: made, position, blocks: Vec::new() });
        }
        let stretch = self.waiting.last_mut().expect("just pushed");
        push_block(&mut stretch.blocks, message);
        (stretch.count, stretch.reached, stretch.position) = (stretch.count + 1, made, self.position);
    }
}

impl FeedSink for Making {
    fn begin(&mut self, session: Session) {
        // What the log holds of the session before was never made again.
        let left = self.before.front().zip(self.made);
        self.differs |= left.is_some_and(|(step, made)| step.session == made.session);
        self.made = Some(Reached::beginning(session));
    }

    fn message(&mut self, bytes: &[u8]) {
        let made = self.made.as_mut().expect("a session has begun");
        made.count(bytes);
        let made = *made;
        if !self.catches_up(made) {
            self.wait(made, bytes);
        }
    }

    fn end(&mut self) {
        let made = self.made.as_mut().expect("a session has begun");
        made.over = true;
        // Its last message waits, or is in the log with the same word.
        if let Some(stretch) =
            self.waiting.last_mut().filter(|stretch| stretch.reached.session == made.session)
        {
            stretch.reached.over = true;
        }
    }
}

impl ShardFeed {
    /// A shard whose next record is that of `next`.
    pub(super) fn new(publication: Publication, making: Making, next: Position) -> Self {
        let (sender, since_state, state_bytes) = (Publisher::default(), 0, 0);
        Self { publication, making, sender, next, since_state, state_bytes }
    }

    /// It sends what is made from now on.
    pub(super) fn go_live(&mut self) {
        assert!(
            self.making.waiting.is_empty() && self.making.before.is_empty(),
            "what was made before is in the log"
        );
        let standing = |Reached { session, next, over, .. }| SessionStanding { session, next, over };
        self.sender.go_live(self.making.made.map(standing));
    }

    /// Sends what is in the log by now.
    pub(super) fn tell(&mut self, stretch: &Stretch, now_ns: u64, line: &mut impl Line) {
        if !self.sender.is_live() {
            return;
        }
        let session = stretch.reached.session;
        if stretch.first == 1 {
            self.sender.begin(session, now_ns, line);
        }
        for (number, message) in (stretch.first..).zip(blocks(&stretch.blocks)) {
            self.sender.message(session, number, message, now_ns, line);
        }
        if stretch.reached.over {
            self.sender.end(now_ns, line);
        }
    }

    /// The next record of the shard.
    pub(super) fn on_record(
        &mut self,
        position: Position,
        (request, outcome): (&Request, &Outcome),
        events: &[Event],
    ) {
        assert!(position == self.next, "the committed stream has each position once, in order");
        self.making.position = position;
        self.publication.on_record(position, request, outcome, events, &mut self.making);
        self.next = position.next();
    }
}

/// Whether a business day begins with a request: the state before it is kept.
pub(super) fn begins_day(request: &Request, outcome: &Outcome) -> bool {
    matches!(request.command, Command::BeginDay { .. }) && outcome.status != Status::Refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_feed::mold::Packet;
    use pares_types::ShardId;

    /// What was sent.
    #[derive(Default)]
    struct Sent(Vec<Vec<u8>>);

    impl Line for Sent {
        fn send(&mut self, packet: &[u8]) {
            self.0.push(packet.to_vec());
        }
    }

    const DAYS: [Session; 2] = [Session(*b"0001000001"), Session(*b"0001000002")];

    fn make(making: &mut Making, messages: &[&[u8]]) {
        messages.iter().for_each(|message| making.message(message));
    }

    fn reached(messages: &[&[u8]]) -> Reached {
        let mut making = Making::new(None, Vec::new(), 100);
        making.begin(DAYS[0]);
        make(&mut making, messages);
        making.made.unwrap()
    }

    #[test]
    fn messages_wait_in_stretches_that_fit_a_record_and_one_session() {
        let mut making = Making::new(None, Vec::new(), 10);
        making.begin(DAYS[0]);
        make(&mut making, &[b"abc", b"def", b"g"]);
        making.end();
        making.begin(DAYS[1]);
        make(&mut making, &[b"h"]);
        let shape = |stretch: &Stretch| (stretch.first, stretch.count, stretch.reached.over);
        let shapes: Vec<_> = making.waiting.iter().map(shape).collect();
        assert_eq!(shapes, [(1, 2, false), (3, 1, true), (1, 1, false)]);
        assert_eq!(making.waiting[0].blocks, b"\0\x03abc\0\x03def");
    }

    #[test]
    fn what_the_log_holds_is_made_again_and_does_not_wait() {
        let mut making = Making::new(None, vec![reached(&[b"a", b"b"])], 100);
        making.begin(DAYS[0]);
        make(&mut making, &[b"a", b"b"]);
        assert!(making.waiting.is_empty() && making.before.is_empty() && !making.differs);
        make(&mut making, &[b"c"]);
        assert_eq!((making.waiting[0].first, making.waiting.len()), (3, 1));
    }

    #[test]
    fn late_matching_record_continues_after_it() {
        let making = Making::new(None, vec![reached(&[b"a"]), reached(&[b"a", b"b"])], 100);
        let mut feed = ShardFeed::new(Publication::new(ShardId(1), &[]), making, Position(0));
        feed.making.begin(DAYS[0]);
        make(&mut feed.making, &[b"a", b"b"]);
        feed.go_live();
        make(&mut feed.making, &[b"c"]);
        let (waiting, mut line) = (std::mem::take(&mut feed.making.waiting), Sent::default());
        waiting.iter().for_each(|stretch| feed.tell(stretch, 0, &mut line));
        feed.sender.flush(0, &mut line);
        let packet = Packet::read(&line.0[0]).unwrap();
        assert_eq!((line.0.len(), packet.sequence, packet.next()), (1, 3, 4));
    }

    #[test]
    fn what_differs_is_found_at_the_first_step() {
        let mut making = Making::new(None, vec![reached(&[b"a"]), reached(&[b"a", b"b", b"c"])], 100);
        making.begin(DAYS[0]);
        make(&mut making, &[b"x"]);
        assert!(making.differs);
    }

    #[test]
    fn a_log_that_holds_something_else_is_found() {
        let mut making = Making::new(None, vec![reached(&[b"a", b"b"])], 100);
        making.begin(DAYS[0]);
        make(&mut making, &[b"a", b"x"]);
        assert!(making.differs);
        let mut making = Making::new(None, vec![reached(&[b"a", b"b"])], 100);
        making.begin(DAYS[0]);
        make(&mut making, &[b"a"]);
        making.begin(DAYS[1]);
        assert!(making.differs, "it holds more of a session than there is");
    }
}
