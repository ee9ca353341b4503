//! Commands that were read and are not at a front yet: each user has his share of the room there.
//!
//! A bound on all commands without a reply, and none on one user's, does the opposite of what it is for: it fills with the commands of users who wait for a slow quote, and those who wait for nothing
//! are not read any more. So what is beyond a user's share waits here, behind his others, and the reader continues with other users' lines. A share is half of the room over the number of users who have
//! anything: it grows when others are through; the other half is for users who have few, who would else find the room full of what others took when they were alone.
//!
//! ```text
//!   read --> [ held, each user's in order ] --while he has less than his share--> front .. done
//! ```
//! A command of nobody is behind all that came before it, as at the front.

use std::collections::{BTreeMap, VecDeque};

use pares_broker::UserName;

/// Who has fewer at the front is let into the half of the room that is kept for him.
const FEW: usize = 32;

/// See the module. `T` is a command, with whatever its sender needs to know of it.
#[derive(Debug)]
pub struct FairFeed<T> {
    room: usize,
    users: BTreeMap<UserName, UserShare<T>>,
    /// Users who may be next, in turn.
    turns: VecDeque<UserName>,
    /// Commands without a user.
    ownerless: VecDeque<(u64, T)>,
    ownerless_open: usize,
    /// Users' commands that are held and came before the first ownerless one.
    before_ownerless: usize,
    pushed: u64,
    held: usize,
    open: usize,
}

/// What a user has; it is there while he has anything.
#[derive(Debug)]
struct UserShare<T> {
    /// Handed on, and not done.
    open: usize,
    held: VecDeque<(u64, T)>,
    has_turn: bool,
}

impl<T> Default for UserShare<T> {
    fn default() -> Self {
        Self { open: 0, held: VecDeque::new(), has_turn: false }
    }
}

impl<T> FairFeed<T> {
    /// Nothing yet; `room` is for so many commands that are handed on and not done, at least 1.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            users: BTreeMap::new(),
            turns: VecDeque::new(),
            ownerless: VecDeque::new(),
            ownerless_open: 0,
            before_ownerless: 0,
            pushed: 0,
            held: 0,
            open: 0,
        }
    }

    /// There is room for so many from now on, at least 1.
    pub fn set_room(&mut self, room: usize) {
        self.room = room.max(1);
    }

    /// Commands that are not handed on.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held
    }

    /// Commands that are handed on, and not done.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Whether a user of whom so many are handed on may have another.
    fn may_go(&self, open: usize) -> bool {
        assert!(self.room > 0, "there is room for one command at least");
        let half = self.room.div_ceil(2);
        let share = (half / self.users.len().max(1)).max(1);
        open < share && (self.open < half || open < FEW)
    }

    /// A command was read, behind all others of its user.
    pub fn push(&mut self, user: Option<&UserName>, command: T) {
        let place = self.pushed;
        self.pushed += 1;
        self.held += 1;
        let Some(user) = user else {
            if self.ownerless.is_empty() {
                self.before_ownerless = self.held - 1;
            }
            return self.ownerless.push_back((place, command));
        };
        if !self.users.contains_key(user) {
            self.users.insert(user.clone(), UserShare::default());
        }
        if let Some(own) = self.users.get_mut(user) {
            own.held.push_back((place, command));
        }
        self.give_turn(user);
    }

    /// Who has something and less than his share is in turn.
    fn give_turn(&mut self, user: &UserName) {
        let Some(own) = self.users.get(user) else { return };
        assert!(self.turns.len() <= self.users.len(), "a user has one turn at a time");
        let is_next = !own.has_turn && !own.held.is_empty() && self.may_go(own.open);
        if let Some(own) = self.users.get_mut(user).filter(|_| is_next) {
            own.has_turn = true;
            self.turns.push_back(user.clone());
        }
    }

    /// The next command that may be handed on; none if there is no room, or nobody who has one has less than his share. It counts until it is [done](Self::done).
    pub fn take(&mut self) -> Option<T> {
        assert!(self.ownerless.len() <= self.held, "an ownerless command that waits is held");
        if self.open >= self.room {
            return None;
        }
        if self.before_ownerless == 0
            && let Some((_, command)) = self.ownerless.pop_front()
        {
            self.handed_on();
            self.ownerless_open += 1;
            let next = self.ownerless.front().map(|(place, _)| *place);
            self.before_ownerless = next.map_or(0, |next| self.held_before(next));
            return Some(command);
        }
        while let Some(user) = self.turns.pop_front() {
            if let Some(command) = self.take_of(&user) {
                self.give_turn(&user);
                return Some(command);
            }
        }
        None
    }

    /// The next one of a user in whose turn it is, unless his share has become less meanwhile.
    fn take_of(&mut self, user: &UserName) -> Option<T> {
        let may_go = self.may_go(self.users.get(user)?.open);
        assert!(self.before_ownerless <= self.held, "what came before an ownerless command is held");
        let own = self.users.get_mut(user)?;
        own.has_turn = false;
        let (place, command) = if may_go { own.held.pop_front()? } else { return None };
        own.open += 1;
        self.handed_on();
        if self.ownerless.front().is_some_and(|(other, _)| place < *other) {
            assert!(self.before_ownerless > 0, "what came before an ownerless command is counted");
            self.before_ownerless -= 1;
        }
        Some(command)
    }

    fn handed_on(&mut self) {
        assert!(self.held > 0, "what is handed on was held");
        self.held -= 1;
        self.open += 1;
    }

    fn held_before(&self, place: u64) -> usize {
        let of_user = |own: &UserShare<T>| own.held.partition_point(|(other, _)| *other < place);
        self.users.values().map(of_user).sum()
    }

    /// A command that was handed on has its reply, or was not taken: there is room for another. What was never handed on is not counted.
    pub fn done(&mut self, user: Option<&UserName>) {
        let Some(user) = user else {
            let was_open = usize::from(self.ownerless_open > 0);
            assert!(self.ownerless_open <= self.open, "ownerless open commands are open");
            self.ownerless_open -= was_open;
            self.open -= was_open;
            return;
        };
        let Some(own) = self.users.get_mut(user).filter(|own| own.open > 0) else { return };
        assert!(own.open <= self.open, "what a user has open is open");
        own.open -= 1;
        self.open -= 1;
        if own.open == 0 && own.held.is_empty() {
            let gone = self.users.remove(user);
            assert!(gone.is_none_or(|own| !own.has_turn), "who has nothing is not in turn");
        } else {
            self.give_turn(user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> UserName {
        UserName::new(name).unwrap()
    }

    fn taken(feed: &mut FairFeed<u32>) -> Vec<u32> {
        std::iter::from_fn(|| feed.take()).collect()
    }

    #[test]
    fn user_gets_share_and_half_the_room_when_alone() {
        let (mut feed, [jo, al]) = (FairFeed::new(8), ["jo", "al"].map(user));
        (0..6).for_each(|command| feed.push(Some(&jo), command));
        assert_eq!(taken(&mut feed), [0, 1, 2, 3], "alone he has half of it");
        (10..13).for_each(|command| feed.push(Some(&al), command));
        assert_eq!(taken(&mut feed), [10, 11], "the other half is for those who have few");
        assert_eq!((feed.held(), feed.open()), (3, 6));
        (0..2).for_each(|_| feed.done(Some(&jo)));
        assert_eq!(taken(&mut feed), [], "jo has his share still");
        feed.done(Some(&jo));
        assert_eq!(taken(&mut feed), [4]);
        (0..2).for_each(|_| feed.done(Some(&al)));
        assert_eq!(taken(&mut feed), [12]);
        feed.done(Some(&al));
        feed.done(Some(&jo));
        assert_eq!((taken(&mut feed), feed.open()), (vec![5], 2));
    }

    #[test]
    fn heavy_users_leave_room_for_light_ones() {
        let mut feed = FairFeed::new(10_000);
        for at in 0..100 {
            let user = user(&format!("u{at}"));
            (0..6_000).for_each(|command| feed.push(Some(&user), command));
            assert!(!taken(&mut feed).is_empty(), "{at}, with {} at the front", feed.open());
        }
        assert_eq!(feed.open(), 5_000 + 99 * FEW);
    }

    #[test]
    fn users_are_served_in_turn_and_each_ones_commands_in_order() {
        let (mut feed, names) = (FairFeed::new(100), ["a", "b", "c"].map(user));
        for command in 0..9 {
            feed.push(Some(&names[command as usize / 3]), command);
        }
        assert_eq!(taken(&mut feed), [0, 3, 6, 1, 4, 7, 2, 5, 8]);
        assert_eq!(feed.held(), 0);
    }

    #[test]
    fn anonymous_command_follows_reads_and_blocks_nothing() {
        let (mut feed, [jo, al]) = (FairFeed::new(2), ["jo", "al"].map(user));
        feed.push(Some(&jo), 0);
        feed.push(Some(&jo), 1);
        feed.push(Some(&al), 2);
        feed.push(None, 3);
        feed.push(None, 4);
        feed.push(Some(&al), 5);
        assert_eq!(taken(&mut feed), [0, 2]);
        feed.done(Some(&al));
        assert_eq!(taken(&mut feed), [5], "jo has his share; his second, and so the dump, waits");
        feed.done(Some(&jo));
        assert_eq!(taken(&mut feed), [1]);
        feed.done(Some(&al));
        assert_eq!(taken(&mut feed), [3]);
        feed.done(None);
        assert_eq!(taken(&mut feed), [4]);
        feed.done(None);
        feed.done(Some(&jo));
        feed.done(Some(&jo));
        assert_eq!((feed.held(), feed.open()), (0, 0), "what was never handed on is not counted");
    }
}
