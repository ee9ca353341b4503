//! The member's streams at a gateway: which are followed, and from which number something was asked for.
//!
//! ```text
//!   idle --follow(n)--> telling(n) --Resumed--> live --follow(n)--> telling(n) ...
//!                        |     ^
//!          nobody takes  |     |  Resumed: requested
//!     what comes next    +-> ending
//! ```
//! A gateway ignores requests while it is telling, and waits, telling nothing at all, if the number asked for is not used yet. So one thing is asked for
//! at a time, the lowest number first; and a number that is not known to be used is not asked for before the gateway has said which one comes next.
//! Wishes that were there when it was asked are served with the lowest; one that comes later may find its number passed, and is asked for again. A gateway
//! that hangs answers none of them, and any client can wish for another number: so each number is kept once, and few numbers apart ([`Wishes`]).
//!
//! A gateway reads its record for what it tells. So a telling that no follower takes is ended, and what the current followers want is asked for instead.

use std::collections::BTreeMap;

use pares_types::{Reason, ShardId};
use pares_wire::frame::{self, RESUME_NOTHING};

/// So many wishes of a shard are kept apart.
const WISHES_MAX: usize = 64;

/// Numbers that are wanted; 0: what comes from now on. Where there are too many the two highest become one, which has the lower number and reaches up to the higher:
/// who receives from the lower on receives from the higher on too.
#[derive(Clone, Debug, Default)]
struct Wishes(BTreeMap<u64, u64>);

impl Wishes {
    fn add(&mut self, lowest: u64, highest: u64) {
        let reach = self.0.entry(lowest).or_default();
        *reach = highest.max(*reach);
        if self.0.len() > WISHES_MAX
            && let Some((_, highest)) = self.0.pop_last()
            && let Some(mut last) = self.0.last_entry()
        {
            *last.get_mut() = highest.max(*last.get());
        }
    }

    fn add_all(&mut self, others: Self) {
        others.0.into_iter().for_each(|(lowest, highest)| self.add(lowest, highest));
    }
}

/// What was asked for, and is not told up to the present yet.
#[derive(Clone, Debug)]
struct Telling {
    /// From which number on; 0: from now on.
    from: u64,
    /// The number that comes next of it.
    next: u64,
    /// The wishes that it serves too.
    wishes: Wishes,
}

/// One shard's.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// The number that comes next, once it is known.
    next: Option<u64>,
    telling: Option<Telling>,
    /// The gateway was asked to tell no more of it, and has not said yet that it does not.
    is_ending: bool,
    /// To be asked for.
    wanted: Wishes,
}

/// All of a session's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(BTreeMap<ShardId, Stream>);

impl Streams {
    /// A follower wants the stream of a shard from a number on; from now on if that is 0.
    pub(crate) fn follow(&mut self, shard: ShardId, from: u64, out: &mut Vec<u8>) {
        let stream = self.0.entry(shard).or_default();
        stream.wanted.add(from, from);
        stream.send(shard, out);
    }

    /// A message with that number arrived.
    pub(crate) fn on_number(&mut self, shard: ShardId, number: u64) {
        let Some(stream) = self.0.get_mut(&shard) else { return };
        stream.next = stream.next.map(|next| next.max(number.saturating_add(1)));
        // What happens while it is asked for has other numbers.
        if let Some(telling) = stream.telling.as_mut().filter(|telling| telling.next == number) {
            telling.next = number.saturating_add(1);
        }
    }

    /// Ends tellings that have begun and that no follower takes. `stand`: where the current followers stand; nothing if that number comes next for one.
    pub(crate) fn end_in_vain(
        &mut self,
        stand: impl Fn(ShardId, u64) -> Option<Vec<u64>>,
        out: &mut Vec<u8>,
    ) {
        for (shard, stream) in &mut self.0 {
            let Some(number) = stream.told_again() else { continue };
            let Some(mut stand) = stand(*shard, number) else { continue };
            if stand.is_empty() {
                stand.push(0);
            }
            stream.wanted = Wishes::default();
            stand.into_iter().for_each(|number| stream.wanted.add(number, number));
            stream.is_ending = true;
            frame::write_resume(out, Some(*shard), RESUME_NOTHING);
        }
    }

    /// The gateway tells no more, as it was asked.
    pub(crate) fn on_ended(&mut self, shard: ShardId, out: &mut Vec<u8>) {
        if let Some(stream) = self.0.get_mut(&shard).filter(|stream| stream.is_ending) {
            (stream.telling, stream.is_ending) = (None, false);
            stream.send(shard, out);
        }
    }

    /// All that was asked for has arrived; live from `next` on.
    pub(crate) fn on_live(&mut self, shard: ShardId, next: u64, out: &mut Vec<u8>) {
        let stream = self.0.entry(shard).or_default();
        stream.telling = None;
        // Also if it is below what another gateway told: this one tells it again, and who asks for more than that would have it withheld from those who lack it.
        stream.next = Some(next);
        // Who wanted a number that comes now, or later, receives it live.
        stream.wanted.0.retain(|want, _| (1..next).contains(want));
        stream.send(shard, out);
    }

    /// What was asked for is not told. Only what lies above it, and is kept, is asked for: so that comes to an end.
    pub(crate) fn on_not_told(&mut self, shard: ShardId, oldest: u64, reason: Reason, out: &mut Vec<u8>) {
        if reason == Reason::UnknownShard {
            self.0.remove(&shard);
            return;
        }
        let Some(stream) = self.0.get_mut(&shard) else { return };
        let Some(Telling { from, mut wishes, .. }) = stream.telling.take() else { return };
        // Those who were live continue.
        stream.next = stream.next.filter(|next| *next > from && *next >= oldest);
        stream.next.into_iter().for_each(|next| wishes.add(next, next));
        wishes.add_all(std::mem::take(&mut stream.wanted));
        for (lowest, highest) in wishes.0 {
            let kept = if lowest == 0 { 0 } else { lowest.max(oldest) };
            if kept == 0 || kept > from && kept <= highest {
                stream.wanted.add(kept, highest);
            }
        }
        stream.send(shard, out);
    }

    /// The connection is another one: what was live, or being told, is asked for from where it stands.
    pub(crate) fn begin_anew(&mut self, out: &mut Vec<u8>) {
        for (shard, stream) in &mut self.0 {
            let is_ending = std::mem::take(&mut stream.is_ending);
            // Who wants more of what was ended has said so.
            if let Some(Telling { next, wishes, .. }) = stream.telling.take().filter(|_| !is_ending) {
                stream.wanted.add(next, next);
                stream.wanted.add_all(wishes);
            }
            stream.next.into_iter().for_each(|next| stream.wanted.add(next, next));
            stream.send(*shard, out);
        }
    }
}

impl Stream {
    /// The number that comes next of what had passed, if it comes again, and only some of it has come.
    fn told_again(&self) -> Option<u64> {
        let Telling { from, next, .. } = self.telling.as_ref().filter(|_| !self.is_ending)?;
        (next > from && self.next.is_some_and(|live| *next < live)).then_some(*next)
    }

    fn send(&mut self, shard: ShardId, out: &mut Vec<u8>) {
        let is_free = self.telling.is_none() && !self.is_ending;
        let Some(lowest) = self.wanted.0.keys().next().copied().filter(|_| is_free) else { return };
        // The next number may be asked for: at another gateway it is waited for.
        let is_known = self.next.is_some_and(|next| (1..=next).contains(&lowest));
        let (from, wishes) =
            if is_known { (lowest, std::mem::take(&mut self.wanted)) } else { (0, Wishes::default()) };
        self.telling = Some(Telling { from, next: from, wishes });
        frame::write_resume(out, Some(shard), from);
    }
}

/// Where one who follows a stream stands. Others may have it told again from an earlier number: each takes what comes next for him.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    next: Option<u64>,
    standing: Standing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// What he asked for is not told to the end yet.
    Asked,
    /// His number comes later than the one that comes next.
    Ahead,
    Live,
}

/// How a follower stands when all that was asked for has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowerStanding {
    /// He has all that there is, and did not know.
    Live,
    /// He knew that, or still has something to receive.
    AsBefore,
    /// He asked for a number that this gateway has not used yet. One that took over may be a few numbers behind: they are on their way, and
    /// [`Cursor::catches_up`] says when.
    Ahead,
}

impl Cursor {
    /// From that number on; from now on if it is 0.
    #[must_use]
    pub fn from(number: u64) -> Self {
        Self { next: Some(number).filter(|number| *number > 0), standing: Standing::Asked }
    }

    /// The number that comes next for him, once it is known.
    #[must_use]
    pub fn next(&self) -> Option<u64> {
        self.next
    }

    /// Whether a message of that number is the next one for him; it then counts as told.
    pub fn takes(&mut self, number: u64) -> bool {
        let is_next = self.next == Some(number);
        if is_next {
            self.next = Some(number.saturating_add(1));
        }
        is_next
    }

    /// A message of that number arrives: whether he was ahead, and now his number comes next. To be asked before [`Cursor::takes`].
    pub fn catches_up(&mut self, number: u64) -> bool {
        let comes_next = self.next.is_some_and(|next| next <= number.saturating_add(1));
        let catches_up = self.standing == Standing::Ahead && comes_next;
        if catches_up {
            self.standing = Standing::Live;
        }
        catches_up
    }

    /// Whether his number comes later than the one that comes next.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.standing == Standing::Ahead
    }

    /// Whether what the gateway does not tell concerns him: `oldest` is the lowest number that is kept, 0 if none is. What another one asked for
    /// may lie below that, and he stands above. Where nobody knows the oldest, all are concerned: who is live may have a gap.
    #[must_use]
    pub fn lacks(&self, oldest: u64) -> bool {
        oldest == 0 || self.next.is_some_and(|next| next < oldest)
    }

    /// All that was asked for has arrived, and `next` comes next.
    pub fn on_live(&mut self, next: u64) -> FollowerStanding {
        let own = *self.next.get_or_insert(next);
        match own.cmp(&next) {
            _ if self.standing == Standing::Live => FollowerStanding::AsBefore,
            core::cmp::Ordering::Equal => {
                self.standing = Standing::Live;
                FollowerStanding::Live
            }
            core::cmp::Ordering::Greater => {
                self.standing = Standing::Ahead;
                FollowerStanding::Ahead
            }
            core::cmp::Ordering::Less => FollowerStanding::AsBefore,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From which number the stream of the shard is being told.
    fn told_from(streams: &Streams) -> Option<u64> {
        streams.0[&ShardId(0)].telling.as_ref().map(|telling| telling.from)
    }

    #[test]
    fn few_subscriptions_wait_and_all_kept_are_served() {
        let (mut streams, shard, mut out) = (Streams::default(), ShardId(0), Vec::new());
        for want in [(1..=1_000).collect(), vec![0; 1_000]].concat() {
            streams.follow(shard, want * 10, &mut out);
            assert!(streams.0[&shard].wanted.0.len() <= WISHES_MAX);
        }
        streams.on_live(shard, 20_000, &mut out);
        assert_eq!(told_from(&streams), Some(10));
        for (oldest, told) in [(15, 20), (9_995, 9_995), (10_001, 20_000)] {
            streams.on_not_told(shard, oldest, Reason::NotKept, &mut out);
            assert_eq!(told_from(&streams), Some(told), "of what is kept from {oldest} on");
        }
        streams.begin_anew(&mut out);
        assert_eq!(told_from(&streams), Some(20_000));
    }

    #[test]
    fn each_reader_takes_each_number_once_despite_replays() {
        let mut cursor = Cursor::from(3);
        let told = [1, 2, 3, 4, 2, 3, 4, 5, 7, 6];
        let taken: Vec<u64> = told.into_iter().filter(|number| cursor.takes(*number)).collect();
        assert_eq!(taken, [3, 4, 5, 6]);
        assert_eq!(cursor.on_live(9), FollowerStanding::AsBefore, "7 and 8 are told yet");
        assert_eq!(cursor.on_live(7), FollowerStanding::Live);
        assert_eq!(cursor.on_live(7), FollowerStanding::AsBefore);
    }

    #[test]
    fn what_is_not_kept_concerns_those_who_lack_it() {
        let mut live = Cursor::from(50);
        live.on_live(50);
        assert_eq!([live.lacks(10), live.lacks(0), live.lacks(51)], [false, true, true]);
        assert_eq!([3, 10, 0].map(|from| Cursor::from(from).lacks(10)), [true, false, false]);
        assert!(Cursor::from(10).lacks(0));
    }

    #[test]
    fn from_now_on_is_from_the_number_that_comes() {
        let mut cursor = Cursor::from(0);
        assert!(!cursor.takes(5));
        assert_eq!(cursor.on_live(6), FollowerStanding::Live);
        assert!(cursor.takes(6));
    }

    #[test]
    fn who_is_ahead_waits_until_his_number_comes_next() {
        let mut cursor = Cursor::from(9);
        assert_eq!([cursor.on_live(6), cursor.on_live(7)], [FollowerStanding::Ahead; 2]);
        let told = [6, 7, 8, 9];
        assert_eq!(told.map(|number| cursor.catches_up(number)), [false, false, true, false]);
        assert_eq!(told.map(|number| cursor.takes(number)), [false, false, false, true]);
        assert_eq!(cursor.on_live(10), FollowerStanding::AsBefore);
        let mut cursor = Cursor::from(9);
        cursor.on_live(6);
        assert_eq!(
            cursor.on_live(9),
            FollowerStanding::Live,
            "or another gateway is asked, which is not behind"
        );
    }

    #[test]
    fn who_does_not_know_how_far_it_is_is_not_ahead() {
        let mut cursor = Cursor::from(9);
        assert!(!cursor.catches_up(8), "that was told for another one");
        assert_eq!(cursor.on_live(9), FollowerStanding::Live);
    }
}
