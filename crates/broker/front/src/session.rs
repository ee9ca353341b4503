//! One user's part of a front: his commands in their order, one of them under way.

use std::collections::VecDeque;

use pares_broker::{Refusal, StockSymbol, TradeWay, UserCommand, UserName};

/// A command that has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Its place among all that arrived at this front.
    pub(crate) arrival: u64,
    pub(crate) command: UserCommand,
    pub(crate) fault: Option<Refusal>,
}

/// What is to be done though nobody commanded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A quote has come that is good enough for an armed trigger.
    Fire(TradeWay, StockSymbol),
    /// Something pending has come to its end.
    Expire(TradeWay),
    /// A hit that no command used.
    Hit(pares_broker::StockQuote),
}

/// What was handed to the accounts and has no reply.
#[derive(Clone, Debug)]
pub(crate) enum UnderWay {
    Command(Waiting),
    Moment(Moment),
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Session {
    /// None: commands of nobody, a dump of everything.
    pub(crate) user: Option<UserName>,
    /// How many requests it has made.
    pub(crate) sequence: u64,
    pub(crate) commands: VecDeque<Waiting>,
    /// They come before the next command.
    pub(crate) moments: VecDeque<Moment>,
    pub(crate) under_way: Option<UnderWay>,
    /// The stock whose quote the next command waits for.
    pub(crate) waits_for: Option<StockSymbol>,
}

impl Session {
    pub(crate) fn of(user: Option<UserName>) -> Self {
        Self {
            user,
            sequence: 0,
            commands: VecDeque::new(),
            moments: VecDeque::new(),
            under_way: None,
            waits_for: None,
        }
    }

    /// Something is to be done, unless it is noted already.
    pub(crate) fn note(&mut self, moment: Moment) {
        if !self.moments.contains(&moment) {
            self.moments.push_back(moment);
        }
    }
}
