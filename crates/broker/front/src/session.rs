//! One user's part of a front: his commands in their order, some of them under way.

use std::collections::VecDeque;

use pares_broker::{
    BrokerReply, BrokerRequest, QuoteBrought, Refusal, StockSymbol, TradeWay, UserCommand, UserName,
};

/// Most commands of a user that are under way. A site remembers what became of the last 64; each of these may be sent once more under another name.
const DEPTH: usize = 32;

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
    Hit(QuoteBrought),
}

/// What a request that is under way is for.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    Command(Waiting),
    Moment(Moment),
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
    /// In the order in which they were made.
    pub(crate) under_way: VecDeque<UnderWay>,
    /// The number of the latest command.
    pub(crate) latest: u64,
    /// How many commands may be under way: one, once the accounts have shown that they do not take them in order.
    pub(crate) depth: usize,
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
            under_way: VecDeque::new(),
            latest: 0,
            depth: DEPTH,
            waits_for: None,
        }
    }

    /// Whether another request may be handed on. A moment is alone: its number is its place in the log.
    pub(crate) fn has_room(&self) -> bool {
        let is_moment = |under_way: &UnderWay| matches!(under_way.cause, Cause::Moment(_));
        match self.moments.is_empty() {
            true => self.under_way.len() < self.depth && !self.under_way.iter().any(is_moment),
            false => self.under_way.is_empty(),
        }
    }

    /// A reply has come, to the request that was handed on under this number.
    pub(crate) fn replied(&mut self, sequence: u64, reply: BrokerReply) {
        let mut under_way = self.under_way.iter_mut();
        if let Some(found) = under_way.find(|found| found.sequence == sequence && found.reply.is_none()) {
            if reply == BrokerReply::Early {
                self.depth = 1;
            }
            found.reply = Some(reply);
        }
    }

    /// The oldest request and its reply, if it has one that settles it.
    pub(crate) fn settled(&mut self) -> Option<(Cause, BrokerReply)> {
        let oldest = self.under_way.front()?;
        if matches!(oldest.reply, None | Some(BrokerReply::Early)) {
            return None;
        }
        let UnderWay { cause, reply, .. } = self.under_way.pop_front()?;
        Some((cause, reply?))
    }

    /// The oldest request under another number, if it came too early: what was before it is settled now.
    pub(crate) fn again(&mut self) -> Option<(u64, BrokerRequest)> {
        let oldest = self.under_way.front_mut().filter(|oldest| oldest.reply == Some(BrokerReply::Early))?;
        self.sequence += 1;
        (oldest.sequence, oldest.reply) = (self.sequence, None);
        Some((self.sequence, oldest.request.clone()))
    }

    /// Something is to be done, unless it is noted already.
    pub(crate) fn note(&mut self, moment: Moment) {
        if !self.moments.contains(&moment) {
            self.moments.push_back(moment);
        }
    }
}
