//! Replies held against the log: each has one command there, and there is no command besides.
//!
//! Counts would do if only one thing went wrong. A command that is lost and one that is done twice are none too few and none too many. So they are compared line by line: the low
//! bits of a command's number in the log are its line in the workload, the others are the loader's session.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::COMMANDS_OF_SESSION;

/// Lines of a workload that had their reply.
#[derive(Default)]
pub(super) struct Replies(BTreeSet<u64>);

/// How the log differs from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Differing {
    /// Replies without a command in the log.
    pub(super) lost: u64,
    /// Commands in the log beyond one for each reply.
    pub(super) beyond: u64,
}

impl Replies {
    /// A line had its reply.
    pub(super) fn heard(&mut self, line: u64) {
        self.0.insert(line);
    }

    /// Against the numbers of all users' commands in the log.
    pub(super) fn against(&self, commands: &BTreeMap<String, BTreeSet<u64>>) -> Differing {
        let numbers = || commands.values().flatten();
        let logged: BTreeSet<u64> = numbers().map(|number| number % COMMANDS_OF_SESSION).collect();
        let found = self.0.intersection(&logged).count();
        Differing { lost: (self.0.len() - found) as u64, beyond: (numbers().count() - found) as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_lost_does_not_make_up_for_one_that_is_done_twice() {
        let mut replies = Replies::default();
        (1..=3).for_each(|line| replies.heard(line));
        let session = |number: u64, line: u64| number * COMMANDS_OF_SESSION + line;
        let logged = |last: &[u64]| {
            let jo = BTreeSet::from([session(1, 1), session(3, 2)]);
            BTreeMap::from([("jo".to_owned(), jo), ("ann".to_owned(), last.iter().copied().collect())])
        };
        let differing = |last: &[u64]| replies.against(&logged(last));
        assert_eq!(differing(&[session(1, 3)]), Differing::default());
        assert_eq!(differing(&[session(4, 2)]), Differing { lost: 1, beyond: 1 });
        assert_eq!(differing(&[session(1, 3), session(1, 4)]), Differing { lost: 0, beyond: 1 });
    }
}
