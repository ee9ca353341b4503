//! Those who follow the member's streams: sockets, and questions that read them.
//!
//! A gateway sends a session each shard from one place at a time, up to the present, and reads its record for that. Two ways are easy and wrong. All followers receive all that arrives: then
//! one's past floods another one. A follower without room is dropped, and asks again once he has read: then the gateway reads to the end of the record each time, though no follower wants it.
//!
//! Here each follower takes what comes next for him, and nothing else. Of each shard one of these holds:
//!
//! - he is *current*: the gateway sends what comes next for him, or he has asked for it;
//! - he *lacks* something, for want of room, and asks for it once he has read half of what waits for him.
//!
//! A replay continues while a current follower takes what comes next of it. Otherwise the session has the gateway end it, and asks from where the other current followers stand.
//! So the gateway reads about what it sends, once; and what waits for each follower is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pares_resources::{Cursor, FollowerStanding};
use pares_types::{Reason, Reply, ShardId};
use tokio::sync::mpsc;

/// So many messages wait at most for one who reads on and on.
pub(crate) const ROOM: usize = 65_536;
/// For one who wants a page, and may have it any time: until he has said so, the gateway reads about so much further.
pub(crate) const ROOM_OF_A_PAGE: usize = 8_192;
/// A follower receives so many things at most for one that happened.
const TOLD_MAX: usize = 2;

/// What followers of a stream receive: each message once, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// A message.
    Message(ShardId, u64, Reply),
    /// Told up to the present; that number comes next.
    Live(ShardId, u64),
    /// He asked for a number that is not used yet: that one comes next.
    Ahead(ShardId, u64),
    /// Not told, for that reason; the lowest that is kept.
    NotTold(ShardId, u64, Reason),
}

impl Followed {
    pub(crate) fn shard(&self) -> ShardId {
        let (Self::Message(shard, ..)
        | Self::Live(shard, _)
        | Self::Ahead(shard, _)
        | Self::NotTold(shard, ..)) = *self;
        shard
    }

    /// What follows from it for one who stands there.
    fn to(self, cursor: &mut Cursor) -> [Option<Self>; TOLD_MAX] {
        match self {
            Self::Message(shard, number, _) => {
                let next = cursor.next().filter(|_| cursor.catches_up(number));
                let standing = match next {
                    Some(next) => Some(Self::Live(shard, next)),
                    None => cursor.is_ahead().then(|| Self::Ahead(shard, number.saturating_add(1))),
                };
                [standing, cursor.takes(number).then_some(self)]
            }
            Self::Live(shard, next) => match cursor.on_live(next) {
                FollowerStanding::Live => [Some(self), None],
                FollowerStanding::Ahead => [Some(Self::Ahead(shard, next)), None],
                FollowerStanding::AsBefore => [None; TOLD_MAX],
            },
            Self::Ahead(..) => [None; TOLD_MAX],
            Self::NotTold(_, oldest, _) => [cursor.lacks(oldest).then_some(self), None],
        }
    }
}

/// One who follows.
struct Follower {
    id: u64,
    to: mpsc::Sender<Followed>,
    /// Where he stands in each stream that he follows.
    cursors: BTreeMap<ShardId, Cursor>,
    /// Of these he was not told something, for want of room.
    lacking: BTreeSet<ShardId>,
}

impl Follower {
    fn hear(&mut self, happened: Followed) {
        let shard = happened.shard();
        let Some(cursor) = self.cursors.get_mut(&shard) else { return };
        let mut moved = *cursor;
        let told = happened.to(&mut moved);
        if told.iter().any(Option::is_some) && self.to.capacity() < TOLD_MAX {
            self.lacking.insert(shard);
            return;
        }
        *cursor = moved;
        if matches!(told[0], Some(Followed::NotTold(..))) {
            self.cursors.remove(&shard);
        }
        for one in told.into_iter().flatten() {
            // Who follows may be gone.
            let _ = self.to.try_send(one);
        }
    }
}

/// All who follow.
#[derive(Default)]
pub(crate) struct Followers {
    all: Mutex<(u64, Vec<Follower>)>,
}

impl Followers {
    fn all(&self) -> MutexGuard<'_, (u64, Vec<Follower>)> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.1.retain(|follower| !follower.to.is_closed());
        all
    }

    /// One more, of these streams from these numbers on (0: from now on), with room for so many messages; and what names him.
    pub(crate) fn add(&self, from: &[(ShardId, u64)], room: usize) -> (u64, mpsc::Receiver<Followed>) {
        let (to, told) = mpsc::channel(room);
        let cursors = from.iter().map(|(shard, number)| (*shard, Cursor::from(*number))).collect();
        let (names, all) = &mut *self.all();
        *names += 1;
        all.push(Follower { id: *names, to, cursors, lacking: BTreeSet::new() });
        (*names, told)
    }

    /// He has room: from where he is to receive what he lacks. From now on he is current.
    pub(crate) fn lacks(&self, id: u64) -> Vec<(ShardId, u64)> {
        let (_, all) = &mut *self.all();
        let Some(Follower { cursors, lacking, .. }) = all.iter_mut().find(|one| one.id == id) else {
            return Vec::new();
        };
        let next = |shard| Some((shard, next_of(cursors.get(&shard)?)));
        std::mem::take(lacking).into_iter().filter_map(next).collect()
    }

    /// Where the current followers stand in a shard; nothing if that number comes next for one of them.
    pub(crate) fn stand(&self, shard: ShardId, number: u64) -> Option<Vec<u64>> {
        let (_, all) = &*self.all();
        let told_on = all.iter().filter(|one| !one.lacking.contains(&shard));
        let stand: Vec<u64> = told_on.filter_map(|one| one.cursors.get(&shard)).map(next_of).collect();
        (!stand.contains(&number)).then_some(stand)
    }

    /// Tells all for whom that comes next.
    pub(crate) fn tell(&self, happened: Followed) {
        self.all().1.iter_mut().for_each(|follower| follower.hear(happened));
    }

    /// No follower is left: all receivers end.
    pub(crate) fn clear(&self) {
        self.all().1.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all().1.is_empty()
    }
}

/// The number that comes next for one who stands there; 0 if he receives what comes from now on.
fn next_of(cursor: &Cursor) -> u64 {
    cursor.next().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use pares_types::ClientOrderId;

    use super::*;

    const OURS: ShardId = ShardId(7);

    fn message(number: u64) -> Followed {
        // What it says does not matter.
        let reply = Reply::Rejected { client_order_id: ClientOrderId(number), reason: Reason::None };
        Followed::Message(OURS, number, reply)
    }

    fn read(told: &mut mpsc::Receiver<Followed>) -> Vec<Followed> {
        std::iter::from_fn(|| told.try_recv().ok()).collect()
    }

    #[test]
    fn what_is_told_again_for_one_costs_another_no_room() {
        let followers = Followers::default();
        let (live, mut told) = followers.add(&[(OURS, 0)], ROOM);
        followers.tell(Followed::Live(OURS, 100_000));
        (1..100_002).for_each(|number| followers.tell(message(number)));
        followers.tell(Followed::Live(OURS, 100_002));
        assert_eq!(read(&mut told), [Followed::Live(OURS, 100_000), message(100_000), message(100_001)]);
        assert_eq!(followers.lacks(live), []);
    }

    #[test]
    fn one_who_has_no_room_is_told_the_rest_once_he_has_read() {
        let followers = Followers::default();
        let (slow, mut told) = followers.add(&[(OURS, 1)], ROOM);
        let mut heard = Vec::new();
        let mut from = 1;
        while from < 150_000 {
            (from..150_000).for_each(|number| followers.tell(message(number)));
            followers.tell(Followed::Live(OURS, 150_000));
            heard.append(&mut read(&mut told));
            from = followers.lacks(slow).first().map_or(150_000, |(_, next)| *next);
        }
        assert_eq!(heard.pop(), Some(Followed::Live(OURS, 150_000)));
        assert!(heard == (1..150_000).map(message).collect::<Vec<_>>(), "each once, in order");
    }

    #[test]
    fn one_who_is_told_nothing_more_stands_nowhere() {
        let followers = Followers::default();
        let (_, mut told) = followers.add(&[(OURS, 3)], ROOM);
        assert_eq!([1, 3].map(|number| followers.stand(OURS, number)), [Some(vec![3]), None]);
        let not_kept = Followed::NotTold(OURS, 10, Reason::NotKept);
        followers.tell(not_kept);
        assert_eq!(read(&mut told), [not_kept]);
        assert_eq!(followers.stand(OURS, 3), Some(vec![]));
    }

    #[test]
    fn shards_that_nobody_follows_are_told_to_nobody() {
        let followers = Followers::default();
        let (_, mut told) = followers.add(&[(ShardId(1), 1)], ROOM);
        followers.tell(message(1));
        followers.tell(Followed::NotTold(OURS, 0, Reason::NotKept));
        assert_eq!(read(&mut told), []);
    }
}
