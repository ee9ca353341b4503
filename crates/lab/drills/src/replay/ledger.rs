//! What the client received for each command: its half of the proof that nothing is lost or done twice.

use pares_types::{ClientOrderId, Position, ShardId};

/// A place in a shard's total order.
pub type Place = (ShardId, Position);

/// What became of a command, as far as the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Nothing yet. At the end of the day: lost.
    Unanswered,
    /// The gateway did not take it in; no recorder may have it.
    Rejected,
    /// Answered, with the place where it must be recorded.
    Answered(Place),
}

/// Every command sent, in order. Names are 1, 2, 3, ...
#[derive(Debug, Default)]
pub struct AnswerLedger {
    fates: Vec<Fate>,
    answered: u64,
    rejected: u64,
}

impl AnswerLedger {
    /// The name of the first command.
    pub const FIRST: ClientOrderId = ClientOrderId(1);

    /// A command is sent.
    ///
    /// # Panics
    /// If its name does not follow the last one.
    pub fn on_sent(&mut self, name: ClientOrderId) {
        assert_eq!(name.0, self.fates.len() as u64 + 1, "a replay names its commands one after the other");
        self.fates.push(Fate::Unanswered);
    }

    /// Its answer came, or its rejection. Only the first counts; the checker of the flow counts repeats.
    pub fn on_fate(&mut self, name: ClientOrderId, fate: Fate) {
        let index = name.0.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let Some(known @ Fate::Unanswered) = index.and_then(|index| self.fates.get_mut(index)) else {
            return;
        };
        *known = fate;
        match fate {
            Fate::Answered(_) => self.answered += 1,
            Fate::Rejected => self.rejected += 1,
            Fate::Unanswered => {}
        }
    }

    /// What became of each command, by name.
    pub fn iter(&self) -> impl Iterator<Item = (ClientOrderId, Fate)> + '_ {
        (Self::FIRST.0..).map(ClientOrderId).zip(self.fates.iter().copied())
    }

    /// Whether a command of that name was sent.
    #[must_use]
    pub fn has(&self, name: ClientOrderId) -> bool {
        (Self::FIRST.0..=self.fates.len() as u64).contains(&name.0)
    }

    /// Commands sent.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.fates.len() as u64
    }

    /// Commands answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered
    }

    /// Commands the gateway did not take in.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_fate_counts() {
        let mut ledger = AnswerLedger::default();
        ledger.on_sent(ClientOrderId(1));
        let place = (ShardId(0), Position(7));
        ledger.on_fate(ClientOrderId(1), Fate::Answered(place));
        ledger.on_fate(ClientOrderId(1), Fate::Rejected);
        assert_eq!(ledger.iter().collect::<Vec<_>>(), [(ClientOrderId(1), Fate::Answered(place))]);
        assert_eq!((ledger.answered(), ledger.rejected()), (1, 0));
    }

    #[test]
    fn answers_to_nothing_sent_are_no_fates() {
        let mut ledger = AnswerLedger::default();
        ledger.on_sent(ClientOrderId(1));
        for name in [0, 2, u64::MAX] {
            ledger.on_fate(ClientOrderId(name), Fate::Rejected);
            assert!(!ledger.has(ClientOrderId(name)));
        }
        assert_eq!(ledger.rejected(), 0);
    }
}
