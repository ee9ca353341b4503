//! The numbers of a front: its sessions, and in its own session those of what has no number of its sender's.

use pares_broker::{
    COMMANDS_OF_SESSION, SESSIONS_OF_FRONT, is_session, number_in_session, session_of, session_of_front,
};

/// The numbers of a front and its sessions. Before the front has its number, and when that is used up, there are none.
#[derive(Debug, Default)]
pub struct FrontNumbers {
    front: Option<u64>,
    /// Sessions begun under this number.
    sessions: u64,
    /// The latest number of the own session; 0 before the first.
    own: u64,
}

impl FrontNumbers {
    /// The front has a number that was never used.
    pub fn begin(&mut self, front: u64) {
        (self.front, self.sessions) = (Some(front), 0);
    }

    pub(crate) fn front(&self) -> Option<u64> {
        self.front
    }

    /// Another session.
    pub(crate) fn open_session(&mut self) -> Option<u64> {
        let session = session_of_front(self.front?, self.sessions);
        self.sessions += 1;
        if self.sessions == SESSIONS_OF_FRONT {
            self.front = None;
        }
        Some(session)
    }

    /// Whether a sender who numbers his commands may go on with this session: it can have been given out, and it is no front's own. Each front's first is its own.
    pub(crate) fn may_go_on(&self, session: u64) -> bool {
        let (front, count) = (session / SESSIONS_OF_FRONT, session % SESSIONS_OF_FRONT);
        let is_given_out = self.front != Some(front) || count < self.sessions;
        is_session(session) && is_given_out && count > 0 && session != session_of(self.own)
    }

    /// The number that is given out next.
    pub fn peek(&mut self) -> Option<u64> {
        let is_spent = self.own == 0 || (self.own + 1).is_multiple_of(COMMANDS_OF_SESSION);
        if is_spent {
            self.own = number_in_session(self.open_session()?, 0);
        }
        Some(self.own + 1)
    }

    /// The next number of the own session; none until another front's number [begins](Self::begin).
    pub fn next_own(&mut self) -> Option<u64> {
        self.own = self.peek()?;
        Some(self.own)
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::session_of;

    use super::*;

    #[test]
    fn a_session_that_is_used_up_is_followed_by_another_and_a_front_by_another_number() {
        let mut numbers = FrontNumbers::default();
        assert_eq!((numbers.open_session(), numbers.next_own()), (None, None));
        numbers.begin(7);
        assert_eq!(numbers.next_own(), Some(number_in_session(session_of_front(7, 0), 1)));
        numbers.own = number_in_session(session_of_front(7, 0), COMMANDS_OF_SESSION - 2);
        assert_eq!(numbers.next_own().map(session_of), Some(session_of_front(7, 0)));
        assert_eq!(numbers.peek().map(session_of), Some(session_of_front(7, 1)));
        assert_eq!(numbers.next_own(), Some(number_in_session(session_of_front(7, 1), 1)));
        assert!(!numbers.may_go_on(session_of_front(7, 1)), "its own");
        for count in 2..SESSIONS_OF_FRONT {
            assert_eq!(numbers.open_session(), Some(session_of_front(7, count)));
        }
        assert_eq!((numbers.open_session(), numbers.front()), (None, None));
        assert!(numbers.may_go_on(session_of_front(7, 2)));
        assert!(numbers.next_own().is_some(), "the own session goes on");
        numbers.begin(9);
        assert_eq!(numbers.open_session(), Some(session_of_front(9, 0)));
        assert!(numbers.may_go_on(session_of_front(8, 5)), "another front's");
        for never in [session_of_front(9, 1), session_of_front(8, 0), 5, 1 << 39, 1 << 40, u64::MAX] {
            assert!(!numbers.may_go_on(never), "{never}");
        }
    }

    #[test]
    fn more_requests_than_a_session_has_room_for_have_each_a_number_of_their_own() {
        let mut numbers = FrontNumbers::default();
        numbers.begin(1);
        let mut last = 0;
        for _ in 0..COMMANDS_OF_SESSION + 10 {
            let next = numbers.next_own().expect("a front has many");
            assert!(next > last, "{next} behind {last}");
            last = next;
        }
        assert_eq!(session_of(last), session_of_front(1, 1));
    }
}
