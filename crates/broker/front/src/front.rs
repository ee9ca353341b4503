//! Users' commands, each user's in order, all users' at once.
//!
//! ```text
//!   arrives --> asks the desk at once, if it needs a quote
//!           --> waits for its user's earlier ones --> waits for its quote --> Submit .. answered --> Told
//! ```
//! A user's commands are handed on without waiting for each other, each with the number of the one before, without which the accounts do not execute it. So they see
//! his commands in the order in which he gave them, whatever is lost and repeated on the way; one that came too early is sent again when its turn has come. A dump of
//! everything waits until all that arrived before it has a reply.
//!
//! A request's number is the front's next one: what happens between two of a user's commands (a trigger that fires) lies between them in his log.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, QuoteBrought, StockSymbol, TradeWay, UserCommand, UserName, Verb,
    WorkloadLine,
};
use pares_wice::TransactionId;

use crate::desk::{DeskEffect, QuoteDesk, QuoteStanding};
use crate::line::QuoteFault;
use crate::session::{Cause, Moment, Session, UnderWay, Waiting};

/// What a front wants done, or says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEffect {
    /// Ask the quote server.
    Ask {
        /// The question's number.
        hit: u64,
        /// For which stock.
        symbol: StockSymbol,
        /// For which user.
        user: UserName,
    },
    /// Close the connection of a question.
    Abandon {
        /// The question's number.
        hit: u64,
    },
    /// Have a request executed, once, and tell [`BrokerFront::answered`].
    Submit {
        /// Under this name, however often it is repeated.
        id: TransactionId,
        /// The request.
        request: BrokerRequest,
    },
    /// A command has its reply.
    Told {
        /// Its place among the commands that arrived, from 0.
        arrival: u64,
        /// The command.
        command: UserCommand,
        /// The reply.
        reply: BrokerReply,
    },
}

/// A front: the users' commands that have no reply yet, and the desk that they ask.
#[derive(Debug)]
pub struct BrokerFront {
    pub(crate) desk: QuoteDesk,
    /// The number of the first session as a client of sites.
    first_client: u64,
    next_number: u64,
    arrived: u64,
    names: BTreeMap<UserName, usize>,
    /// That of nobody is the first.
    pub(crate) sessions: Vec<Session>,
    /// Who waits for a stock's quote.
    waiting: BTreeMap<StockSymbol, Vec<usize>>,
    /// Commands without a reply.
    open: BTreeSet<u64>,
    pub(crate) armed: BTreeMap<(StockSymbol, TradeWay, usize), u64>,
    /// When something pending comes to its end.
    pub(crate) ends: BTreeSet<(u64, usize, TradeWay)>,
}

impl BrokerFront {
    /// A front whose sessions are clients from `first_client` on, and whose requests are numbered from `first_number`, 1 at least. Neither may be another front's.
    #[must_use]
    pub fn new(first_client: u64, first_number: u64) -> Self {
        Self {
            desk: QuoteDesk::default(),
            first_client,
            next_number: first_number,
            arrived: 0,
            names: BTreeMap::new(),
            sessions: vec![Session::of(None)],
            waiting: BTreeMap::new(),
            open: BTreeSet::new(),
            armed: BTreeMap::new(),
            ends: BTreeSet::new(),
        }
    }

    /// Commands without a reply.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether nothing is under way or waits, and no quote is awaited.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_idle = |session: &Session| session.under_way.is_empty() && session.moments.is_empty();
        self.open.is_empty() && self.desk.is_idle() && self.sessions.iter().all(is_idle)
    }

    /// The quote desk.
    #[must_use]
    pub fn desk(&self) -> &QuoteDesk {
        &self.desk
    }

    /// Users who have given a command.
    pub fn users(&self) -> impl Iterator<Item = &UserName> {
        self.names.keys()
    }

    /// A command arrives. The line's number is its sender's; it is not used.
    pub fn arrives(&mut self, line: WorkloadLine, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        let at = self.session_of(line.command.user.as_ref());
        if let (Some(user), Some(symbol), None) = (&line.command.user, line.command.symbol, line.fault)
            && line.command.verb.needs_quote()
        {
            let user = user.clone();
            let mut asked = Vec::new();
            self.desk.want(symbol, &user, now_ms, &mut asked);
            self.follow(asked, now_ms, effects);
        }
        let arrival = self.arrived;
        self.arrived += 1;
        self.open.insert(arrival);
        let waiting = Waiting { arrival, command: line.command, fault: line.fault };
        self.sessions[at].commands.push_back(waiting);
        self.advance(at, now_ms, effects);
    }

    fn session_of(&mut self, user: Option<&UserName>) -> usize {
        let Some(user) = user else { return 0 };
        if let Some(at) = self.names.get(user) {
            return *at;
        }
        self.sessions.push(Session::of(Some(user.clone())));
        self.names.insert(user.clone(), self.sessions.len() - 1);
        self.sessions.len() - 1
    }

    /// The quote server has answered a question, or will not.
    pub fn quote(
        &mut self,
        hit: u64,
        answer: Result<QuoteBrought, QuoteFault>,
        now_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        let mut said = Vec::new();
        self.desk.arrived(hit, answer, now_ms, &mut said);
        self.follow(said, now_ms, effects);
    }

    /// Time has passed: what is due happens.
    pub fn tick(&mut self, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        let mut said = Vec::new();
        self.desk.tick(now_ms, &mut said);
        self.follow(said, now_ms, effects);
        self.end_what_is_due(now_ms, effects);
    }

    /// What the desk says.
    pub(crate) fn follow(&mut self, said: Vec<DeskEffect>, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        for said in said {
            match said {
                DeskEffect::Ask { hit, symbol, user } => {
                    effects.push(FrontEffect::Ask { hit, symbol, user });
                }
                DeskEffect::Abandon { hit } => effects.push(FrontEffect::Abandon { hit }),
                DeskEffect::Unclaimed { brought } => {
                    self.sessions[0].note(Moment::Hit(brought));
                    self.advance(0, now_ms, effects);
                }
                DeskEffect::News { symbol } => {
                    for at in self.waiting.remove(&symbol).unwrap_or_default() {
                        self.sessions[at].waits_for = None;
                        self.advance(at, now_ms, effects);
                    }
                    self.fire_what_is_good(symbol, now_ms, effects);
                }
            }
        }
    }

    /// A request has its reply.
    pub fn answered(
        &mut self,
        id: TransactionId,
        reply: BrokerReply,
        now_ms: u64,
        effects: &mut Vec<FrontEffect>,
    ) {
        let at = id.client.checked_sub(self.first_client).and_then(|at| usize::try_from(at).ok());
        let Some(at) = at.filter(|at| *at < self.sessions.len()) else { return };
        self.sessions[at].replied(id.sequence, reply);
        while let Some((cause, reply)) = self.sessions[at].settled() {
            match cause {
                Cause::Moment(moment) => self.moment_answered(at, &moment, &reply),
                Cause::Command(Waiting { arrival, command, .. }) => {
                    self.open.remove(&arrival);
                    self.command_answered(at, &command, &reply, now_ms);
                    effects.push(FrontEffect::Told { arrival, command, reply });
                }
            }
        }
        if let Some((sequence, request)) = self.sessions[at].again() {
            let id = TransactionId { sequence, ..id };
            effects.push(FrontEffect::Submit { id, request });
        }
        self.advance(at, now_ms, effects);
        if self.is_turn_of_dump() {
            self.advance(0, now_ms, effects);
        }
    }

    /// Whether a dump of everything may be next: all that arrived before it has a reply.
    fn is_turn_of_dump(&self) -> bool {
        self.sessions[0].commands.front().is_some_and(|dump| self.open.first() == Some(&dump.arrival))
    }

    /// Hands on what this session has next, while there is room and it waits for nothing.
    pub(crate) fn advance(&mut self, at: usize, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        if at == 0 && self.is_turn_of_dump() {
            self.note_unclaimed();
        }
        while self.sessions[at].has_room() {
            if let Some(moment) = self.sessions[at].moments.pop_front() {
                self.submit_moment(at, moment, now_ms, effects);
            } else if self.is_next_ready(at, now_ms, effects)
                && let Some(next) = self.sessions[at].commands.pop_front()
            {
                self.submit_command(at, next, now_ms, effects);
            } else {
                break;
            }
        }
    }

    /// No command comes any more: nothing more is asked for triggers, and hits that no command used are noted.
    pub fn close(&mut self, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        self.desk.close();
        self.note_unclaimed();
        self.advance(0, now_ms, effects);
    }

    /// Before everything is dumped, hits that no command used are noted.
    fn note_unclaimed(&mut self) {
        let mut said = Vec::new();
        self.desk.settle(&mut said);
        for said in said {
            if let DeskEffect::Unclaimed { brought } = said {
                self.sessions[0].note(Moment::Hit(brought));
            }
        }
    }

    /// Whether the next command waits for nothing.
    fn is_next_ready(&mut self, at: usize, now_ms: u64, effects: &mut Vec<FrontEffect>) -> bool {
        if at == 0 {
            return self.is_turn_of_dump();
        }
        let session = &self.sessions[at];
        let Some(Waiting { command, fault, .. }) = session.commands.front() else { return false };
        let (Some(user), Some(symbol), None) = (&command.user, command.symbol, fault) else { return true };
        if !command.verb.needs_quote() {
            return true;
        }
        if session.waits_for.is_some() {
            return false;
        }
        let mut said = Vec::new();
        let standing = self.desk.want(symbol, user, now_ms, &mut said);
        if standing == QuoteStanding::Coming {
            self.sessions[at].waits_for = Some(symbol);
            self.waiting.entry(symbol).or_default().push(at);
        }
        // It asks at most: nothing here depends on its effects.
        self.follow(said, now_ms, effects);
        standing != QuoteStanding::Coming
    }

    fn submit_command(&mut self, at: usize, next: Waiting, now_ms: u64, effects: &mut Vec<FrontEffect>) {
        let takes_quote = next.command.verb.needs_quote()
            || matches!(next.command.verb, Verb::SetBuyTrigger | Verb::SetSellTrigger);
        let symbol = next.command.symbol.filter(|_| takes_quote && next.fault.is_none());
        let quote = symbol.and_then(|symbol| self.desk.claim(symbol, now_ms));
        let asked = Asked::Command { command: next.command.clone(), fault: next.fault };
        let request = self.request(at, asked, quote, now_ms);
        self.sessions[at].latest = request.number;
        self.submit(at, request, Cause::Command(next), effects);
    }

    pub(crate) fn request(
        &mut self,
        at: usize,
        asked: Asked,
        quote: Option<QuoteBrought>,
        time_ms: u64,
    ) -> BrokerRequest {
        let (number, after) = (self.next_number, self.sessions[at].latest);
        self.next_number += 1;
        BrokerRequest { number, after, name: None, time_ms, quote, asked }
    }

    pub(crate) fn submit(
        &mut self,
        at: usize,
        request: BrokerRequest,
        cause: Cause,
        effects: &mut Vec<FrontEffect>,
    ) {
        let session = &mut self.sessions[at];
        session.sequence += 1;
        let sequence = session.sequence;
        let id = TransactionId { client: self.first_client + at as u64, sequence };
        effects.push(FrontEffect::Submit { id, request: request.clone() });
        session.under_way.push_back(UnderWay { sequence, request, cause, reply: None });
    }
}

#[cfg(test)]
mod tests;
