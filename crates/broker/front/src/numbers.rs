//! The numbers of a front: its sessions, and in its own sessions those of what has no number of its sender's.
//!
//! A sender continues his session at any front. If a front's own were numbered like those that it gives out, others could not tell them apart once its first is used up, and a sender who continued one
//! would give numbers that the front gives too. So even ones are a front's own, and odd ones are given out.

use pares_broker::{
    COMMANDS_OF_SESSION, SESSIONS_OF_FRONT, is_session, number_in_session, session_of, session_of_front,
};

/// The numbers of a front and its sessions. Before the front has its number, and when that is used up, there are none.
#[derive(Debug, Default)]
pub struct FrontNumbers {
    front: Option<u64>,
    /// Sessions given out under this number.
    given: u64,
    /// The front's own sessions under this number.
    own_sessions: u64,
    /// The latest number of the own session; 0 before the first.
    own: u64,
    /// The same of the session beside it.
    beside: u64,
}

impl FrontNumbers {
    /// The front has a number that was never used.
    pub fn begin(&mut self, front: u64) {
        assert!(self.front.is_none(), "a front takes a number when it has none, or has used it up");
        (self.front, self.given, self.own_sessions) = (Some(front), 0, 0);
    }

    pub(crate) fn front(&self) -> Option<u64> {
        self.front
    }

    /// Another session to give out.
    pub(crate) fn open_session(&mut self) -> Option<u64> {
        let session = session_of_front(self.front?, 2 * self.given + 1);
        self.given += 1;
        self.end_if_spent(self.given);
        assert!(self.may_go_on(session), "a session is handed only to its user");
        Some(session)
    }

    fn end_if_spent(&mut self, sessions: u64) {
        assert!(sessions <= SESSIONS_OF_FRONT / 2, "a front gives out no more sessions than it has");
        if sessions == SESSIONS_OF_FRONT / 2 {
            self.front = None;
        }
    }

    /// Whether a sender who numbers his commands may continue this session: it can have been given out, by any front.
    pub(crate) fn may_go_on(&self, session: u64) -> bool {
        let (front, count) = (session / SESSIONS_OF_FRONT, session % SESSIONS_OF_FRONT);
        let is_given_out = self.front != Some(front) || count / 2 < self.given;
        is_session(session) && count % 2 == 1 && is_given_out
    }

    /// The number that is given out next.
    pub fn peek(&mut self) -> Option<u64> {
        let next = self.behind(self.own)?;
        assert!(next > 0, "commands are numbered from 1 on");
        self.own = next - 1;
        Some(next)
    }

    /// The number behind this one of an own session, or the first of another if that is used up.
    fn behind(&mut self, latest: u64) -> Option<u64> {
        if latest != 0 && !(latest + 1).is_multiple_of(COMMANDS_OF_SESSION) {
            return Some(latest + 1);
        }
        let session = session_of_front(self.front?, 2 * self.own_sessions);
        self.own_sessions += 1;
        self.end_if_spent(self.own_sessions);
        Some(number_in_session(session, 1))
    }

    /// The next number of the own session; none until another front's number [begins](Self::begin).
    pub fn next_own(&mut self) -> Option<u64> {
        self.own = self.peek()?;
        Some(self.own)
    }

    /// The next number of an own session beside that: for what comes after none of those.
    pub(crate) fn next_beside(&mut self) -> Option<u64> {
        self.beside = self.behind(self.beside)?;
        let is_apart = self.own == 0 || session_of(self.own) != session_of(self.beside);
        assert!(is_apart, "a front numbers what comes beside in another session than its own");
        Some(self.beside)
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::session_of;

    use super::*;

    #[test]
    fn used_up_session_and_front_numbers_get_successors() {
        let mut numbers = FrontNumbers::default();
        assert_eq!((numbers.open_session(), numbers.next_own()), (None, None));
        numbers.begin(7);
        assert_eq!(numbers.next_own(), Some(number_in_session(session_of_front(7, 0), 1)));
        numbers.own = number_in_session(session_of_front(7, 0), COMMANDS_OF_SESSION - 2);
        assert_eq!(numbers.next_own().map(session_of), Some(session_of_front(7, 0)));
        assert_eq!(numbers.peek().map(session_of), Some(session_of_front(7, 2)));
        assert_eq!(numbers.next_own(), Some(number_in_session(session_of_front(7, 2), 1)));
        for count in 0..SESSIONS_OF_FRONT / 2 {
            assert_eq!(numbers.open_session(), Some(session_of_front(7, 2 * count + 1)));
        }
        assert_eq!((numbers.open_session(), numbers.front()), (None, None));
        assert!(numbers.may_go_on(session_of_front(7, 3)));
        assert!(numbers.next_own().is_some(), "the own session goes on");
        numbers.begin(9);
        assert_eq!(numbers.open_session(), Some(session_of_front(9, 1)));
    }

    #[test]
    fn front_session_is_known_at_every_front() {
        let (mut one, mut other) = (FrontNumbers::default(), FrontNumbers::default());
        one.begin(7);
        other.begin(9);
        let mut own = Vec::new();
        for _ in 0..3 {
            own.extend(one.next_own().map(session_of));
            one.own = number_in_session(session_of(one.own), COMMANDS_OF_SESSION - 1);
        }
        assert_eq!(own, [0, 2, 4].map(|count| session_of_front(7, count)));
        let given: Vec<_> = (0..3).filter_map(|_| one.open_session()).collect();
        for numbers in [&one, &other] {
            assert!(own.iter().all(|session| !numbers.may_go_on(*session)), "{own:?}");
            assert!(given.iter().all(|session| numbers.may_go_on(*session)), "{given:?}");
        }
        assert!(!one.may_go_on(session_of_front(7, 7)), "not given out yet");
        for never in [session_of_front(9, 1), session_of_front(8, 0), 5, 1 << 39, 1 << 40, u64::MAX] {
            assert!(!other.may_go_on(never), "{never}");
        }
    }

    #[test]
    fn side_requests_have_their_own_session() {
        let mut numbers = FrontNumbers::default();
        assert_eq!(numbers.next_beside(), None);
        numbers.begin(7);
        let of = |session, count| Some(number_in_session(session_of_front(7, session), count));
        assert_eq!((numbers.next_own(), numbers.next_beside()), (of(0, 1), of(2, 1)));
        assert_eq!((numbers.next_beside(), numbers.next_own()), (of(2, 2), of(0, 2)));
        numbers.beside += COMMANDS_OF_SESSION - 3;
        assert_eq!((numbers.next_beside(), numbers.next_own()), (of(4, 1), of(0, 3)));
        assert!(!numbers.may_go_on(session_of_front(7, 2)), "no loader goes on with it");
    }

    #[test]
    fn requests_beyond_session_room_get_own_numbers() {
        let mut numbers = FrontNumbers::default();
        numbers.begin(1);
        let mut last = 0;
        for _ in 0..COMMANDS_OF_SESSION + 10 {
            let next = numbers.next_own().expect("a front has many");
            assert!(next > last, "{next} behind {last}");
            last = next;
        }
        assert_eq!(session_of(last), session_of_front(1, 2));
    }
}
