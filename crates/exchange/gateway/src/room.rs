//! How many orders may wait so that none waits long.
//!
//! A bound on their number alone is wrong: what a quick exchange is through with in a blink, a busy one takes a quarter of a second for,
//! and every order waits behind all of it. So the bound follows the time that requests wait, from intake to commit. A queue is no harm while it
//! comes and goes; it is if it *stands*: if of a shard even the shortest wait in a whole stretch of time is beyond the target (CoDel,
//! Nichols and Jacobson 2012). Then as many may wait as were answered in the target's time, since wait is number by rate (Little
//! 1961). With each stretch in which nothing stands it is an eighth more, up to no bound but the number.
//!
//! ```text
//!   answers:   |..||.|..||.|.|..|.||..|                    |.||.|...|..||
//!              |-- stretch --|-- stretch --|    a pause    |-- stretch --
//!   shortest wait beyond the target: room = answers * target / stretch;  else: an eighth more
//! ```
//! A pause is not a queue. A stretch begins with an answer and ends with one, so what waited through a pause stands only if also what came last
//! before the end of it waited too long. And while no answer comes, the number alone is the bound: nobody knows
//! what could be taken in, and orders at a modest rate had better wait than be refused. Answers that come in bursts, further apart than a
//! stretch is long (a device takes so long for a sync), make longer stretches.
//!
//! The room is never less than a sixteenth of the number: a device may take longer for one sync than the target is.

/// The least room, as a part of what may be in flight.
const LEAST_PART: usize = 16;
/// A session may have so many times in flight what is left for all: a lone one has four fifths of the room, two four ninths
/// each, and there is always some for the others.
pub(crate) const SHARE: usize = 4;
/// A stretch is so many times the target.
const STRETCH: u64 = 2;
/// Without an answer for so many times the target the number alone is the bound.
const PAUSE: u64 = 10;

/// See the module. Times in nanoseconds of a clock that only goes forward.
pub(crate) struct Room {
    /// 0: none.
    target_ns: u64,
    /// What may be in flight.
    most: usize,
    /// Orders that may wait; from `most` on the number alone is the bound.
    size: usize,
    since_ns: u64,
    answered_ns: u64,
    answers: u64,
    /// Of the stretch, by shard; none if it answered nothing.
    shortest_ns: Box<[Option<u64>]>,
    /// What is in flight at shards that answered nothing in the last stretch: a halted one takes no room from the others.
    still: usize,
}

impl Room {
    pub(crate) fn new(shards: usize, most: usize, target_ns: u64) -> Self {
        let shortest_ns = vec![None; shards].into();
        let (since_ns, answered_ns) = (0, 0);
        Self { target_ns, most, size: most, since_ns, answered_ns, answers: 0, shortest_ns, still: 0 }
    }

    /// How many more orders may wait, if so many requests are in flight.
    pub(crate) fn left(&self, in_flight: usize, now_ns: u64) -> usize {
        let pauses = now_ns.saturating_sub(self.answered_ns) > PAUSE * self.target_ns;
        if self.size >= self.most || pauses {
            return usize::MAX;
        }
        self.size.saturating_sub(in_flight.saturating_sub(self.still))
    }

    /// A request of the shard was answered that waited for so long. `in_flight` says how many of a shard are.
    pub(crate) fn on_answer(
        &mut self,
        shard: usize,
        waited_ns: u64,
        now_ns: u64,
        in_flight: impl Fn(usize) -> usize,
    ) {
        if self.target_ns == 0 {
            return;
        }
        let stretch_ns = STRETCH * self.target_ns;
        if now_ns.saturating_sub(self.since_ns) >= stretch_ns {
            self.judge(now_ns - self.since_ns);
            let still = self.shortest_ns.iter().enumerate().filter(|(_, shortest_ns)| shortest_ns.is_none());
            self.still = still.map(|(shard, _)| in_flight(shard)).sum();
            (self.since_ns, self.answers) = (now_ns, 0);
            self.shortest_ns.fill(None);
        }
        (self.answered_ns, self.answers) = (now_ns, self.answers + 1);
        let shortest_ns = &mut self.shortest_ns[shard];
        *shortest_ns = Some(shortest_ns.map_or(waited_ns, |before| before.min(waited_ns)));
    }

    /// A stretch is over.
    fn judge(&mut self, stretch_ns: u64) {
        let stands = self.shortest_ns.iter().flatten().any(|&shortest_ns| shortest_ns > self.target_ns);
        self.size = if stands {
            let answered = u128::from(self.answers) * u128::from(self.target_ns) / u128::from(stretch_ns);
            (answered as usize).clamp((self.most / LEAST_PART).max(1), self.most)
        } else {
            (self.size + self.size / 8 + 1).min(self.most)
        };
    }

    /// How many orders may wait.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const MS: u64 = 1_000_000;
    const TARGET: u64 = 10 * MS;
    const MOST: usize = 32_768;

    /// An exchange that takes so many orders a millisecond from what waits, of one shard, and what became of each millisecond.
    struct Exchange {
        room: Room,
        waiting: VecDeque<u64>,
        now_ns: u64,
        waits_ns: Vec<u64>,
        refused: u64,
    }

    impl Exchange {
        fn new() -> Self {
            let room = Room::new(2, MOST, TARGET);
            Self { room, waiting: VecDeque::new(), now_ns: 1_000 * MS, waits_ns: Vec::new(), refused: 0 }
        }

        /// For so many milliseconds it is offered so many orders in each, and answers so many.
        fn run(&mut self, ms: u64, offered: u64, answered: usize) -> &mut Self {
            for _ in 0..ms {
                self.now_ns += MS;
                for _ in 0..answered.min(self.waiting.len()) {
                    let wait_ns = self.now_ns - self.waiting.pop_front().unwrap();
                    self.waits_ns.push(wait_ns);
                    self.room.on_answer(0, wait_ns, self.now_ns, |shard| [self.waiting.len(), 0][shard]);
                }
                for _ in 0..offered {
                    let waits = self.waiting.len();
                    let takes = waits < MOST && self.room.left(waits, self.now_ns) > 0;
                    if takes { self.waiting.push_back(self.now_ns) } else { self.refused += 1 }
                }
            }
            self
        }

        fn forget(&mut self) -> &mut Self {
            (self.waits_ns, self.refused) = (Vec::new(), 0);
            self
        }
    }

    #[test]
    fn twice_what_an_exchange_takes_waits_about_the_target() {
        for pace in [300, 1_000, 3_000] {
            let mut exchange = Exchange::new();
            exchange.run(200, 2 * pace as u64, pace).forget().run(2_000, 2 * pace as u64, pace);
            assert_eq!(exchange.waits_ns.len(), 2_000 * pace, "it is never without work");
            let longest_ns = exchange.waits_ns.iter().max().unwrap();
            assert!((TARGET..2 * TARGET).contains(longest_ns), "{pace}: {longest_ns}");
        }
    }

    #[test]
    fn sustainable_rate_is_never_refused_despite_pauses() {
        let mut exchange = Exchange::new();
        for pause_ms in [5, 30, 90, 400, 1_500] {
            exchange.run(300, 5, 400).run(pause_ms, 5, 0);
            exchange.run(300, 100, 400).run(pause_ms.min(40), 100, 0);
        }
        assert_eq!(exchange.refused, 0);
    }

    #[test]
    fn modest_rate_after_overload_is_not_refused() {
        let mut exchange = Exchange::new();
        exchange.run(500, 800, 400).run(40, 0, 400).forget();
        exchange.run(400, 5, 400).run(390, 5, 0).run(100, 5, 400);
        assert_eq!(exchange.refused, 0, "in the least room");
        // Each answer takes thirty milliseconds, and then for a second there is none.
        for _ in 0..50 {
            exchange.run(29, 5, 0).run(1, 5, 150);
        }
        exchange.run(1_000, 5, 0);
        assert_eq!(exchange.refused, 0);
    }

    #[test]
    fn bursty_answers_leave_no_more_waiting_than_steady() {
        for apart_ms in [19, 20, 21, 30, 45] {
            let mut exchange = Exchange::new();
            let bursts = |exchange: &mut Exchange, times: u64| {
                (0..times).for_each(|_| {
                    _ = exchange.run(apart_ms - 1, 400, 0).run(1, 400, 200 * apart_ms as usize)
                });
            };
            bursts(&mut exchange, 20);
            bursts(exchange.forget(), 50);
            let longest_ns = *exchange.waits_ns.iter().max().unwrap();
            assert!(longest_ns < 3 * apart_ms * MS, "{apart_ms} ms apart: {longest_ns}");
        }
    }

    #[test]
    fn a_halted_shard_takes_no_room_from_the_others() {
        let mut room = Room::new(2, MOST, TARGET);
        let halted = 16_000;
        for now_ms in 1_000..1_100 {
            for _ in 0..400 {
                room.on_answer(0, 2 * TARGET, now_ms * MS, |shard| [8_000, halted][shard]);
            }
        }
        assert_eq!(room.size(), 400 * 20 * 10 / 20);
        assert_eq!(room.left(halted + 3_000, 1_100 * MS), 1_000);
    }

    #[test]
    fn without_a_target_the_number_alone_is_the_bound() {
        let mut room = Room::new(1, MOST, 0);
        (1..1_000).for_each(|ms| room.on_answer(0, 1_000 * MS, ms * MS, |_| MOST));
        assert_eq!(room.left(MOST, 1_000 * MS), usize::MAX);
    }
}
