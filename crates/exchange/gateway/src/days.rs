//! Business days by a timetable: when a gateway asks all shards to begin or end one.
//!
//! Every gateway with the timetable asks by its own clock, and several must come to one request. So its name is made of the day: the
//! second gateway finds it in flight or answered, as it would a member's repeat, and a shard that meets it twice refuses the second.
//! A gateway learns how far each shard's day has come from the committed stream, so it does not matter which gateway asked, or whether
//! an operator did by hand.

use pares_types::{
    BusinessDay, ClientOrderId, Command, DAY_NS, DayStage, InstrumentId, MemberId, Outcome, Reason, Request,
    Status, Timestamp,
};

/// When each business day begins and ends, nanoseconds since midnight UTC of its date, below those of a day. A day that ends no later than it begins
/// ends on the date after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayTimes {
    /// When it begins.
    pub begin_ns: u64,
    /// When it ends.
    pub end_ns: u64,
    /// Whether Saturdays and Sundays are business days too.
    pub weekends: bool,
}

/// Until what was asked for is asked for again, if it had no effect.
const PATIENCE_NS: u64 = 1_000_000_000;

/// The first of all names that the timetable makes. Those of gateways' clocks have the gateway's id where this has ones.
const FIRST_NAME: u64 = 0xFFFF << 48;

/// How many days ahead of its date a day may be begun by hand: over the longest holidays.
const AHEAD_MAX: u32 = 31;

/// Refuses a day that lies far ahead: none before it could ever begin again.
pub(crate) fn check_ahead(command: Command, now: Timestamp) -> Result<(), Reason> {
    let last = BusinessDay::of(now).0.saturating_add(AHEAD_MAX);
    if matches!(command, Command::BeginDay { day } if day.0 > last) { Err(Reason::WrongDay) } else { Ok(()) }
}

/// The name of a request to begin or end a day.
pub(crate) fn name_of(command: Command) -> ClientOrderId {
    match command {
        Command::BeginDay { day } => ClientOrderId(FIRST_NAME | u64::from(day.0) << 1),
        Command::EndDay { day } => ClientOrderId(FIRST_NAME | u64::from(day.0) << 1 | 1),
        _ => unreachable!("{command:?} is not of a day"),
    }
}

/// The day of each shard, and when which is due.
pub(crate) struct Days {
    times: Option<DayTimes>,
    shards: Box<[(BusinessDay, DayStage)]>,
    /// Not looked at before.
    look_at: Timestamp,
}

impl Days {
    pub(crate) fn new(shards: usize) -> Self {
        Self { times: None, shards: vec![<_>::default(); shards].into(), look_at: Timestamp(0) }
    }

    pub(crate) fn start(&mut self, times: DayTimes) {
        assert!(times.begin_ns < DAY_NS && times.end_ns < DAY_NS, "{times:?}");
        self.times = Some(times);
    }

    /// A shard's day as a checkpoint has it.
    pub(crate) fn restore(&mut self, shard: usize, day: BusinessDay, stage: DayStage) {
        self.shards[shard] = (day, stage);
        self.look_at = Timestamp(0);
    }

    /// A committed record of the shard.
    #[inline]
    pub(crate) fn follow(&mut self, shard: usize, request: &Request, outcome: &Outcome) {
        if request.instrument == InstrumentId(0) && request.member == MemberId(0) {
            self.follow_exchange(shard, request, outcome);
        }
    }

    fn follow_exchange(&mut self, shard: usize, request: &Request, outcome: &Outcome) {
        if outcome.status != Status::Accepted {
            return;
        }
        let (day, stage) = &mut self.shards[shard];
        match request.command {
            Command::BeginDay { day: begun } => (*day, *stage) = (begun, DayStage::Beginning),
            Command::EndDay { .. } => *stage = DayStage::Ending,
            Command::Time { .. } => {}
            _ => return,
        }
        let done = outcome.reason != Reason::Unfinished;
        *stage = match *stage {
            DayStage::Ending if done => DayStage::Over,
            DayStage::Beginning if done => DayStage::On,
            as_it_was => as_it_was,
        };
        if !matches!(request.command, Command::Time { .. }) {
            self.look_at = Timestamp(0);
        }
    }

    /// What is to be asked of all shards now. Not asked again before [`PATIENCE_NS`] have passed, or a day has changed.
    ///
    /// A shard that is on its way from one day to the next would refuse, and what it refused under a name it never does under that name. So all
    /// are waited for; and no day begins before the one before has ended everywhere.
    pub(crate) fn due_now(&mut self, now: Timestamp) -> Option<Command> {
        let times = self.times.filter(|_| self.look_at <= now)?;
        let soon = now.plus_ns(PATIENCE_NS);
        let is_passing = |stage| matches!(stage, DayStage::Ending | DayStage::Beginning);
        if self.shards.iter().any(|&(_, stage)| is_passing(stage)) {
            self.look_at = soon;
            return None;
        }
        let next = self.shards.iter().filter_map(|&(day, stage)| times.next(day, stage, now));
        let is_begin = |command: Command| matches!(command, Command::BeginDay { .. });
        let first = next.min_by_key(|&(at, command)| (at > now, is_begin(command), at));
        let (at, command) = first.unwrap_or((soon, Command::TIME));
        let is_due = first.is_some() && at <= now;
        self.look_at = if is_due { soon } else { at };
        is_due.then_some(command)
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.times.map(|_| self.look_at)
    }
}

impl DayTimes {
    fn begin_of(self, day: BusinessDay) -> Timestamp {
        day.midnight().plus_ns(self.begin_ns)
    }

    fn end_of(self, day: BusinessDay) -> Timestamp {
        let overnight = if self.end_ns <= self.begin_ns { DAY_NS } else { 0 };
        day.midnight().plus_ns(self.end_ns + overnight)
    }

    fn is_business_day(self, day: BusinessDay) -> bool {
        // The first day of all was a Thursday.
        self.weekends || !matches!(day.0 % 7, 2 | 3)
    }

    /// What a shard is to be asked next, and when; `None` if it is on its way, or no day comes soon.
    fn next(self, day: BusinessDay, stage: DayStage, now: Timestamp) -> Option<(Timestamp, Command)> {
        match stage {
            DayStage::Ending | DayStage::Beginning => None,
            DayStage::On if day != BusinessDay::NONE => Some((self.end_of(day), Command::EndDay { day })),
            DayStage::On | DayStage::Over => {
                // Days that are over by now are left out.
                let first = BusinessDay::of(now).0.saturating_sub(1).max(day.0 + 1);
                let coming = (first..first + 9).map(BusinessDay);
                let day =
                    coming.filter(|&day| self.is_business_day(day)).find(|&day| self.end_of(day) > now)?;
                Some((self.begin_of(day), Command::BeginDay { day }))
            }
        }
    }
}
