//! Replies held against the log: each has one command there, and there is no command besides.
//!
//! Counts would do if only one thing went wrong. A command that is lost and one that is done twice are none too few and none too many. So they are compared line by line: the low
//! bits of a command's number in the log are its line in the workload, the others are the loader's session.

use std::collections::BTreeSet;

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

    /// Against the numbers of all commands in the log.
    pub(super) fn against(&self, commands: &BTreeSet<u64>) -> Differing {
        let logged: BTreeSet<u64> = commands.iter().map(|number| number % COMMANDS_OF_SESSION).collect();
        let found = self.0.intersection(&logged).count();
        Differing { lost: (self.0.len() - found) as u64, beyond: (commands.len() - found) as u64 }
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
        let whole = BTreeSet::from([session(1, 1), session(3, 2), session(1, 3)]);
        assert_eq!(replies.against(&whole), Differing::default());
        let wrong = BTreeSet::from([session(1, 1), session(3, 1), session(1, 3)]);
        assert_eq!(replies.against(&wrong), Differing { lost: 1, beyond: 1 });
        let untold = whole.into_iter().chain([session(1, 4)]).collect();
        assert_eq!(replies.against(&untold), Differing { lost: 0, beyond: 1 });
    }
}
