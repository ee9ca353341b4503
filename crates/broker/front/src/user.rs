//! One user's part of a front: his commands in their order, some of them under way.

use std::collections::VecDeque;

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, CommandName, QuoteBrought, StockSymbol, TradeWay, UserName, session_of,
};

use crate::turns::SiteTurns;

/// Most requests of a user that are under way.
pub(crate) const DEPTH: usize = 32;
/// A site remembers what became of the last 64 names of a client: none is given out so far ahead of one without an answer.
const NAMES_AHEAD_MAX: u64 = 60;
/// A command that is early comes again after 1 ms, then 2, 4 .. up to this, ms.
const PAUSE_MAX_MS: u64 = 1_000;
/// When the one before has not come within this, ms, a command is given up.
pub const GIVEN_UP_AFTER_MS: u64 = 10_000;

/// Where a command stands among its user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandOrder {
    /// In a session whose numbers its sender gives.
    Session {
        /// Its number.
        number: u64,
        /// The number that it comes after: see [`BrokerRequest::after`].
        after: u64,
    },
    /// Behind what arrived of this user before at this front.
    Arrival {
        /// Its sender's name for it.
        name: Option<CommandName>,
    },
}

/// A command that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Its place among all that arrived at this front.
    pub(crate) arrival: u64,
    pub(crate) sender: u64,
    /// It is one of those that wait for one before them which is not here.
    pub(crate) is_early: bool,
    pub(crate) order: CommandOrder,
    pub(crate) asked: Asked,
}

/// What is to be done though nobody commanded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A quote has come that is good enough for an armed trigger.
    Fire(TradeWay, StockSymbol),
    /// Something pending has come to its end.
    Lapse(TradeWay),
    /// A hit that no command used.
    Hit(QuoteBrought),
}

/// What a request that is under way is for.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Command(Waiting),
    Moment(Moment),
}

/// When a command that was early comes again.
#[derive(Clone, Copy, Debug)]
struct Pause {
    next_ms: u64,
    pause_ms: u64,
    until_ms: u64,
}

/// A request that was handed to the accounts.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay {
    /// Under which it was handed on last.
    pub(crate) sequence: u64,
    pub(crate) request: BrokerRequest,
    pub(crate) cause: Cause,
    /// [`BrokerReply::Early`] if it is to be sent again.
    pub(crate) reply: Option<BrokerReply>,
    pause: Option<Pause>,
    /// The one before it was here when it was handed on, or was early.
    has_before: bool,
}

impl UnderWay {
    pub(crate) fn of(sequence: u64, request: BrokerRequest, cause: Cause, has_before: bool) -> Self {
        Self { sequence, request, cause, reply: None, pause: None, has_before }
    }

    fn is_early(&self) -> bool {
        self.reply == Some(BrokerReply::Early)
    }

    /// Whether it was handed on once.
    pub(crate) fn is_first(&self) -> bool {
        self.pause.is_none()
    }

    fn is_moment(&self) -> bool {
        matches!(self.cause, Cause::Moment(_))
    }

    /// Whether it may wait for the one before it: if that was never here, not too many do.
    fn admitted(&mut self, turns: &mut SiteTurns) -> bool {
        let Cause::Command(waiting) = &mut self.cause else { return true };
        if self.has_before || self.pause.is_some() {
            return true;
        }
        assert!(!waiting.is_early, "a command that is early is counted once");
        waiting.is_early = turns.admits_early(waiting.sender);
        waiting.is_early
    }

    /// Whether this command is reported after that one: by their numbers, since a sender that returns gives what was early here once more behind it.
    fn follows(&self, other: &Self) -> bool {
        !self.is_moment()
            && !other.is_moment()
            && session_of(self.request.number) == session_of(other.request.number)
            && self.request.number > other.request.number
    }
}

/// What becomes of commands that were early.
#[derive(Debug)]
pub(crate) enum Again {
    /// It is handed on once more.
    Now(u64, Box<BrokerRequest>),
    /// Not before this, ms.
    At(u64),
    /// The one before did not come: that of this name.
    GivenUp(u64),
    /// Too many wait for one before them: that of this name.
    TooMany(u64),
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct UserPart {
    /// None: commands of nobody, a dump of everything.
    pub(crate) user: Option<UserName>,
    /// How many names it has given out, those for other users among them.
    pub(crate) sequence: u64,
    pub(crate) commands: VecDeque<Waiting>,
    /// They come before the next command, if there is room at the sites.
    pub(crate) moments: VecDeque<Moment>,
    /// In the order in which they were made.
    pub(crate) under_way: VecDeque<UnderWay>,
    /// The accounts have shown that they do not take commands in order: one at a time.
    pub(crate) is_slow: bool,
    /// It is among those that wait for their turn at the sites, with a command.
    pub(crate) has_turn: bool,
    /// The same, with a moment.
    pub(crate) has_turn_of_moment: bool,
    /// The number of the latest command that was answered; 0 before the first.
    pub(crate) answered: u64,
    /// The stock whose quote the next command waits for.
    pub(crate) waits_for: Option<StockSymbol>,
}

impl UserPart {
    pub(crate) fn is_idle(&self) -> bool {
        let is_empty = self.commands.is_empty() && self.moments.is_empty() && self.under_way.is_empty();
        is_empty && !self.has_turn && !self.has_turn_of_moment
    }

    /// Commands without a reply.
    pub(crate) fn open(&self) -> usize {
        self.commands.len() + self.under_way.iter().filter(|one| !one.is_moment()).count()
    }

    /// Whether no hit waits or is under way.
    pub(crate) fn has_noted(&self) -> bool {
        let has_hit =
            |one: &UnderWay| one.request.quote.as_ref().is_some_and(|brought| brought.hit.is_some());
        !self.moments.iter().any(|moment| matches!(moment, Moment::Hit(_)))
            && !self.under_way.iter().any(has_hit)
    }

    /// Whether nothing is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Whether another request may be handed on.
    pub(crate) fn has_room(&self) -> bool {
        self.under_way.len() < DEPTH && self.has_names()
    }

    /// Whether another command may.
    pub(crate) fn has_room_for_command(&self) -> bool {
        self.has_room() && !(self.is_slow && self.is_next_behind())
    }

    /// Whether the next command may come behind one that is under way. Those that are early may wait for this very one.
    fn is_next_behind(&self) -> bool {
        let comes_after = |number: u64| match self.commands.front().map(|next| &next.order) {
            Some(CommandOrder::Session { after, .. }) => *after == number,
            _ => true,
        };
        let is_before = |one: &UnderWay| !one.is_early() || comes_after(one.request.number);
        self.under_way.iter().any(|one| !one.is_moment() && is_before(one))
    }

    fn has_names(&self) -> bool {
        let unanswered = self.under_way.iter().filter(|one| one.reply.is_none());
        let oldest = unanswered.map(|one| one.sequence).min();
        assert!(oldest <= Some(self.sequence), "a name that waits for its answer was given out");
        oldest.is_none_or(|oldest| self.sequence - oldest < NAMES_AHEAD_MAX)
    }

    /// The number of the latest command under way whose order is that of arrival.
    pub(crate) fn latest_arrived(&self) -> Option<u64> {
        let own = self.under_way.iter().rev().find(|one| match &one.cause {
            Cause::Command(waiting) => matches!(waiting.order, CommandOrder::Arrival { .. }),
            Cause::Moment(_) => false,
        });
        own.map(|one| one.request.number)
    }

    pub(crate) fn unanswered(&self, sequence: u64) -> Option<usize> {
        self.under_way.iter().position(|one| one.sequence == sequence && one.reply.is_none())
    }

    /// A reply has come, to the request that was handed on under this name; whether it was awaited.
    pub(crate) fn replied(&mut self, sequence: u64, reply: BrokerReply, now_ms: u64) -> bool {
        let Some(at) = self.unanswered(sequence) else { return false };
        let is_early = reply == BrokerReply::Early;
        let before = self.under_way[at].request.after;
        self.is_slow |= is_early && self.is_under_way(before);
        let has_before = self.has_had(before);
        let one = &mut self.under_way[at];
        one.has_before |= has_before;
        one.reply = Some(reply);
        if let Some(pause) = one.pause.as_mut().filter(|_| is_early) {
            pause.next_ms = now_ms + pause.pause_ms;
            pause.pause_ms = (2 * pause.pause_ms).min(PAUSE_MAX_MS);
        }
        true
    }

    /// The request of this name will never be taken: a moment is forgotten, a command is given up as soon as those before it are through. Whether it was awaited.
    pub(crate) fn refuse(&mut self, sequence: u64, now_ms: u64) -> bool {
        let Some(at) = self.unanswered(sequence) else { return false };
        if self.under_way[at].is_moment() {
            self.under_way.remove(at);
            return true;
        }
        self.under_way[at].reply = Some(BrokerReply::Early);
        let mut given_up = vec![self.under_way[at].request.number];
        for one in self.under_way.range_mut(at..).filter(|one| !one.is_moment()) {
            let BrokerRequest { number, after, .. } = one.request;
            if given_up.contains(&number) || given_up.contains(&after) {
                // Those that wait for it will be early, and their time is over.
                one.pause = Some(Pause { next_ms: now_ms, pause_ms: 1, until_ms: now_ms });
                given_up.push(number);
            }
        }
        true
    }

    /// Whether a command is not executed yet, as far as is known here. One that has its reply may still wait to be told, behind the very one that comes after it: it was repeated.
    fn is_under_way(&self, number: u64) -> bool {
        let is_it = |one: &UnderWay| one.request.number == number && !one.is_moment();
        let is_open = |one: &UnderWay| one.reply.is_none() || one.is_early();
        number > 0 && self.under_way.iter().any(|one| is_it(one) && is_open(one))
    }

    /// Whether this command is here, and was handed on, or was answered last.
    pub(crate) fn has_had(&self, number: u64) -> bool {
        let is_it = |one: &UnderWay| one.request.number == number && !one.is_moment();
        number > 0 && (self.answered == number || self.under_way.iter().any(is_it))
    }

    /// Whether this command is here, and is not executed yet: handed on or not.
    fn is_to_come(&self, number: u64) -> bool {
        let is_it = |waiting: &Waiting| matches!(waiting.order, CommandOrder::Session { number: other, .. } if other == number);
        self.is_under_way(number) || self.commands.iter().any(is_it)
    }

    /// A request that has its reply; of a session's, none before an earlier one.
    pub(crate) fn settled(&mut self) -> Option<UnderWay> {
        let at = (0..self.under_way.len()).find(|at| {
            let one = &self.under_way[*at];
            let has_reply = one.reply.is_some() && !one.is_early();
            has_reply && !self.under_way.iter().any(|other| one.follows(other))
        })?;
        let one = self.under_way.remove(at)?;
        if !one.is_moment() {
            self.answered = one.request.number;
        }
        Some(one)
    }

    /// What becomes of those that were early and whose one before is not under way here.
    pub(crate) fn again(&mut self, now_ms: u64, turns: &mut SiteTurns) -> Vec<Again> {
        let mut all = Vec::new();
        for at in 0..self.under_way.len() {
            let one = &self.under_way[at];
            if !one.is_early() || self.is_under_way(one.request.after) {
                continue;
            }
            let has_names = self.has_names();
            let one = &mut self.under_way[at];
            if !one.admitted(turns) {
                all.push(Again::TooMany(one.sequence));
                continue;
            }
            let begun = Pause { next_ms: now_ms, pause_ms: 1, until_ms: now_ms + GIVEN_UP_AFTER_MS };
            let pause = *one.pause.get_or_insert(begun);
            all.push(if now_ms >= pause.until_ms {
                Again::GivenUp(one.sequence)
            } else if now_ms < pause.next_ms || !has_names {
                Again::At(pause.next_ms.max(now_ms + 1))
            } else {
                self.sequence += 1;
                (one.sequence, one.reply) = (self.sequence, None);
                turns.handed_on();
                Again::Now(self.sequence, Box::new(one.request.clone()))
            });
        }
        all
    }

    /// Takes the command of this name, which was given up, and all that come after it: they would be early for ever, unless it is here once more. With those that were handed on, their requests.
    pub(crate) fn give_up(&mut self, sequence: u64) -> Vec<(Waiting, Option<BrokerRequest>)> {
        let Some((waiting, request)) = self.take_early(|one| one.sequence == sequence) else {
            return Vec::new();
        };
        let mut numbers = VecDeque::from([request.number]);
        let mut given_up = vec![(waiting, Some(request))];
        while let Some(before) = numbers.pop_front() {
            if self.is_to_come(before) {
                continue;
            }
            while let Some((waiting, request)) = self.take_early(|one| one.request.after == before) {
                numbers.push_back(request.number);
                given_up.push((waiting, Some(request)));
            }
            let after = |waiting: &Waiting| match waiting.order {
                CommandOrder::Session { number, after } => (after == before).then_some(number),
                CommandOrder::Arrival { .. } => None,
            };
            numbers.extend(self.commands.iter().filter_map(after));
            let (left, gone) = self.commands.drain(..).partition(|waiting| after(waiting).is_none());
            self.commands = left;
            given_up.extend(VecDeque::into_iter(gone).map(|waiting| (waiting, None)));
        }
        given_up
    }

    /// Takes a command that is early, and is such.
    fn take_early(&mut self, is_such: impl Fn(&UnderWay) -> bool) -> Option<(Waiting, BrokerRequest)> {
        let at = self.under_way.iter().position(|one| one.is_early() && is_such(one))?;
        match self.under_way.remove(at)? {
            UnderWay { cause: Cause::Command(waiting), request, .. } => Some((waiting, request)),
            UnderWay { cause: Cause::Moment(_), .. } => None,
        }
    }

    /// Whether this is noted, or under way.
    pub(crate) fn is_asking(&self, moment: &Moment) -> bool {
        let is_it = |one: &UnderWay| matches!(&one.cause, Cause::Moment(other) if other == moment);
        self.moments.contains(moment) || self.under_way.iter().any(is_it)
    }

    /// Takes those of these commands that were not handed on; arrivals ascend.
    pub(crate) fn drop_waiting(&mut self, arrivals: &[u64]) -> VecDeque<Waiting> {
        let is_gone = |waiting: &Waiting| arrivals.binary_search(&waiting.arrival).is_ok();
        if self.commands.front().is_some_and(is_gone) {
            self.waits_for = None;
        }
        let (gone, left) = self.commands.drain(..).partition(is_gone);
        self.commands = left;
        gone
    }

    /// Takes those of these commands that are early; arrivals ascend. What comes after them may be another client's, who may have the same once more: it waits on.
    pub(crate) fn drop_early(&mut self, arrivals: &[u64]) -> Vec<(Waiting, BrokerRequest)> {
        let is_gone = |one: &UnderWay| matches!(&one.cause, Cause::Command(waiting) if arrivals.binary_search(&waiting.arrival).is_ok());
        let gone: Vec<_> = core::iter::from_fn(|| self.take_early(is_gone)).collect();
        for number in gone.iter().map(|(_, request)| request.number) {
            let has_before = self.has_had(number);
            let after = self.under_way.iter_mut().filter(|one| one.request.after == number);
            after.for_each(|one| one.has_before &= has_before);
        }
        gone
    }

    /// Something is to be done, unless it is noted already.
    pub(crate) fn note(&mut self, moment: Moment) {
        if !self.moments.contains(&moment) {
            self.moments.push_back(moment);
        }
    }
}
