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
//! A front has no state that matters. Its number is the accounts', as are the latest numbers of sessions, so any other front continues them; and what is armed and pending it
//! reads again all the time (`look`).

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{
    Asked, BrokerReply, BrokerRequest, QuoteBrought, StockSymbol, UserName, Verb, is_order, session_of,
};
use pares_wice::TransactionId;

use crate::clock::ClockWatch;
use crate::desk::{DeskEffect, QuoteDesk, QuoteStanding};
use crate::effect::{Arrival, FrontEffect, NotTaken};
use crate::line::QuoteFault;
use crate::look::Looks;
use crate::moments::Ahead;
use crate::numbers::FrontNumbers;
use crate::turns::{AT_SITES_MAX, SiteTurns};
use crate::user::{Cause, CommandOrder, Moment, UnderWay, UserPart, Waiting};

/// Most commands without a reply that a front holds.
pub const FRONT_OPEN_MAX: usize = 200_000;
/// So many users' parts are kept, idle or not, before the idle ones are dropped.
pub(crate) const PARTS_KEPT: usize = 16_384;

/// A front: the users' commands that have no reply yet, and the desk that they ask.
#[derive(Debug)]
pub struct BrokerFront {
    pub(crate) desk: QuoteDesk,
    pub(crate) numbers: FrontNumbers,
    /// The client that asks for numbers, and how often it has.
    begin: TransactionId,
    is_beginning: bool,
    /// The number that its users' parts are clients by: the first that it was given.
    first_front: Option<u64>,
    arrived: u64,
    pub(crate) names: BTreeMap<UserName, usize>,
    /// That of nobody is the first.
    pub(crate) parts: Vec<UserPart>,
    pub(crate) free: Vec<usize>,
    /// From so many parts on, idle ones are dropped before another is made.
    pub(crate) parts_kept: usize,
    /// Who waits for a stock's quote.
    waiting: BTreeMap<StockSymbol, Vec<usize>>,
    /// Commands without a reply, and their users' parts.
    pub(crate) open: BTreeMap<u64, usize>,
    pub(crate) turns: SiteTurns,
    /// When a command that was early comes again, and whose.
    pub(crate) pauses: BTreeSet<(u64, usize)>,
    pub(crate) ahead: Ahead,
    pub(crate) looks: Looks,
    pub(crate) clock: ClockWatch,
    pub(crate) effects: Vec<FrontEffect>,
}

impl BrokerFront {
    /// A front that asks for its number as this client of sites, which no other is or was. Nothing is handed on before it has its number.
    #[must_use]
    pub fn new(client: u64) -> Self {
        Self {
            desk: QuoteDesk::default(),
            numbers: FrontNumbers::default(),
            begin: TransactionId { client, sequence: 0 },
            is_beginning: false,
            first_front: None,
            arrived: 0,
            names: BTreeMap::new(),
            parts: vec![UserPart::default()],
            free: Vec::new(),
            parts_kept: PARTS_KEPT,
            waiting: BTreeMap::new(),
            open: BTreeMap::new(),
            turns: SiteTurns::new(AT_SITES_MAX),
            pauses: BTreeSet::new(),
            ahead: Ahead::default(),
            looks: Looks::default(),
            clock: ClockWatch::default(),
            effects: Vec::new(),
        }
    }

    /// What is to be done, in this order: all of it since this was taken last.
    pub fn take_effects(&mut self) -> Vec<FrontEffect> {
        core::mem::take(&mut self.effects)
    }

    /// Its number, once it has one: no other front or desk has it.
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        self.first_front
    }

    /// A session, for commands whose sender numbers them. None until the front has a number.
    pub fn open_session(&mut self) -> Option<u64> {
        self.numbers.open_session()
    }

    /// Whether a sender who numbers his commands may continue this session, as far as this front can know.
    #[must_use]
    pub fn may_go_on(&self, session: u64) -> bool {
        self.numbers.may_go_on(session)
    }

    /// Commands without a reply.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Requests that were handed on and have no answer.
    #[must_use]
    pub fn at_sites(&self) -> usize {
        self.turns.at_sites()
    }

    /// From so many requests at the sites on, commands wait for their turn. If nobody says so, it is as many as the sites are soon through with, [`AT_SITES_MAX`] at most.
    pub fn set_window(&mut self, at_sites_max: usize) {
        self.turns.set_window(at_sites_max);
    }

    /// Those of a user, or those of nobody.
    #[must_use]
    pub fn open_of(&self, user: Option<&UserName>) -> usize {
        let at = user.map_or(Some(0), |user| self.names.get(user).copied());
        at.and_then(|at| self.parts.get(at)).map_or(0, UserPart::open)
    }

    /// Whether nothing is under way or waits, and no quote is awaited.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.desk.is_idle() && self.parts.iter().all(UserPart::is_idle)
    }

    /// The quote desk.
    #[must_use]
    pub fn desk(&self) -> &QuoteDesk {
        &self.desk
    }

    /// When [`BrokerFront::tick`] has something to do, ms, if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        let pause = self.pauses.first().map(|(due_ms, _)| *due_ms);
        let begin = (self.numbers.front().is_none() && !self.is_beginning).then_some(0);
        let look = self.number().and_then(|_| self.looks.next_deadline());
        let all = [begin, look, pause, self.ahead.next_deadline(), self.desk.next_deadline()];
        all.into_iter().flatten().min()
    }

    /// A command arrives; gives its place among all that did.
    ///
    /// # Errors
    /// [`NotTaken`]; nothing has changed then.
    pub fn arrives(&mut self, command: Arrival, now_ms: u64) -> Result<u64, NotTaken> {
        let Arrival { sender, user, order, asked } = command;
        if let CommandOrder::Session { number, after } = order
            && (number == 0 || !is_order(number, after))
        {
            return Err(NotTaken::Order);
        }
        if self.open.len() >= FRONT_OPEN_MAX {
            return Err(NotTaken::Busy);
        }
        self.look_at_clock(user.as_ref(), &asked, now_ms)?;
        let at = self.part_of(user.as_ref());
        if let (Some(user), Some((symbol, true))) = (&user, quote_of(&asked)) {
            self.desk.want(symbol, user, now_ms);
            self.follow(now_ms);
        }
        let arrival = self.arrived;
        self.arrived += 1;
        let before = self.open.insert(arrival, at);
        assert!(before.is_none(), "a place among those that arrived is given once");
        let sender = SiteTurns::sender_of(sender, at);
        self.parts[at].commands.push_back(Waiting { arrival, sender, is_early: false, order, asked });
        self.advance(at, now_ms);
        Ok(arrival)
    }

    /// The quote server has answered a question, or will not. The answer names its hit if the log does not have it yet, and is to have it from this front.
    pub fn quote(&mut self, hit: u64, answer: Result<QuoteBrought, QuoteFault>, now_ms: u64) {
        self.look_at_stamp(hit, &answer, now_ms);
        self.desk.arrived(hit, answer, now_ms);
        self.follow(now_ms);
    }

    /// Time has passed: what is due happens.
    pub fn tick(&mut self, now_ms: u64) {
        if self.numbers.front().is_none() && !self.is_beginning {
            self.ask_for_number(now_ms);
        }
        self.desk.tick(now_ms);
        self.follow(now_ms);
        self.happen_what_is_due(now_ms);
        while let Some(&(due_ms, at)) = self.pauses.first()
            && due_ms <= now_ms
        {
            self.pauses.pop_first();
            self.send_again(at, now_ms);
        }
        self.look(now_ms);
    }

    fn ask_for_number(&mut self, time_ms: u64) {
        self.is_beginning = true;
        self.begin.sequence += 1;
        let asked = Asked::BeginFront;
        let request = BrokerRequest { number: 0, after: 0, name: None, time_ms, quote: None, asked };
        self.effects.push(FrontEffect::Submit { id: self.begin, request });
    }

    fn begun(&mut self, reply: &BrokerReply, now_ms: u64) {
        let BrokerReply::FrontNumber { front } = *reply else { return };
        if core::mem::take(&mut self.is_beginning) {
            self.numbers.begin(front);
            self.first_front.get_or_insert(front);
            (0..self.parts.len()).for_each(|at| self.advance(at, now_ms));
        }
    }

    /// What the desk says.
    pub(crate) fn follow(&mut self, now_ms: u64) {
        for said in self.desk.take_effects() {
            match said {
                DeskEffect::Ask { hit, symbol, user } => {
                    self.effects.push(FrontEffect::Ask { hit, symbol, user });
                }
                DeskEffect::Abandon { hit } => self.effects.push(FrontEffect::Abandon { hit }),
                DeskEffect::Unclaimed { brought } => {
                    self.parts[0].note(Moment::Hit(brought));
                    self.advance(0, now_ms);
                }
                DeskEffect::News { symbol } => {
                    for at in self.waiting.remove(&symbol).unwrap_or_default() {
                        self.parts[at].waits_for = None;
                        self.advance(at, now_ms);
                    }
                    self.fire_what_is_good(symbol, now_ms);
                }
            }
        }
    }

    /// A request has its reply.
    pub fn answered(&mut self, id: TransactionId, reply: BrokerReply, now_ms: u64) {
        if id == self.begin {
            return self.begun(&reply, now_ms);
        }
        let Some(at) = self.part_of_client(id.client) else { return };
        let took_ms = self.parts[at].took_ms(id.sequence, now_ms);
        if self.parts[at].replied(id.sequence, reply, now_ms) {
            self.turns.came_back(took_ms, now_ms);
        }
        while let Some(one) = self.parts[at].settled() {
            self.settle(at, one, now_ms);
        }
        self.after_answer(at, now_ms);
    }

    fn settle(&mut self, at: usize, one: UnderWay, now_ms: u64) {
        let UnderWay { request, cause, reply: Some(reply), .. } = one else { return };
        let hit = request.quote.and_then(|brought| brought.hit);
        self.effects.extend(hit.map(|hit| FrontEffect::Noted { hit }));
        match cause {
            Cause::Moment(moment) => self.moment_answered(at, &moment, &reply),
            Cause::Command(waiting) => {
                self.is_through(&waiting);
                let Waiting { arrival, asked, .. } = waiting;
                if let Asked::Command { command, .. } | Asked::Settle { command, .. } = &asked {
                    self.command_answered(at, command, &reply, now_ms);
                }
                let number = request.number;
                self.effects.push(FrontEffect::Told { arrival, number, asked, reply: Some(reply) });
            }
        }
    }

    /// Whether a dump of everything may be next: all that arrived before it has a reply.
    pub(crate) fn is_turn_of_dump(&self) -> bool {
        self.parts[0].commands.front().is_some_and(|dump| self.open.keys().next() == Some(&dump.arrival))
    }

    /// Hands on what this user has next, while there is room and it waits for nothing.
    pub(crate) fn advance(&mut self, at: usize, now_ms: u64) {
        if at == 0 && self.is_turn_of_dump() {
            self.note_unclaimed();
        }
        while self.first_front.is_some() && self.parts[at].has_room() && self.numbers.peek().is_some() {
            if self.is_turn_of_moment(at)
                && let Some(moment) = self.parts[at].moments.pop_front()
            {
                self.submit_moment(at, moment, now_ms);
            } else if self.parts[at].has_room_for_command()
                && self.is_next_ready(at, now_ms)
                && self.is_its_turn(at)
                && let Some(next) = self.parts[at].commands.pop_front()
            {
                self.submit_command(at, next, now_ms);
            } else {
                break;
            }
        }
    }

    /// No command comes any more: nothing more is asked for triggers, and hits that no command used are noted.
    pub fn close(&mut self, now_ms: u64) {
        self.desk.close();
        self.looks.close();
        self.settle_hits(now_ms);
    }

    /// Whether the next command waits for nothing.
    pub(crate) fn is_next_ready(&mut self, at: usize, now_ms: u64) -> bool {
        if at == 0 {
            return self.parts[0].moments.is_empty() && self.parts[0].is_quiet() && self.is_turn_of_dump();
        }
        let part = &self.parts[at];
        let Some(Waiting { order, asked, .. }) = part.commands.front() else { return false };
        if matches!(order, CommandOrder::Arrival { .. })
            && let Some(latest) = part.latest_arrived()
            && self.numbers.peek().is_some_and(|next| session_of(next) != session_of(latest))
        {
            return false;
        }
        let (Some(user), Some((symbol, true))) = (&part.user, quote_of(asked)) else { return true };
        if part.waits_for.is_some() {
            return false;
        }
        let standing = self.desk.want(symbol, user, now_ms);
        if standing == QuoteStanding::Coming {
            self.parts[at].waits_for = Some(symbol);
            self.waiting.entry(symbol).or_default().push(at);
        }
        // It asks at most: nothing here depends on its effects.
        self.follow(now_ms);
        standing != QuoteStanding::Coming
    }

    pub(crate) fn submit_command(&mut self, at: usize, next: Waiting, now_ms: u64) {
        let quote = quote_of(&next.asked).and_then(|(symbol, _)| self.desk.claim(symbol, now_ms));
        let (number, after, name) = match &next.order {
            CommandOrder::Session { number, after } => (*number, *after, None),
            CommandOrder::Arrival { name } => {
                let after = self.parts[at].latest_arrived().unwrap_or_default();
                (self.numbers.next_own().expect("looked at before"), after, name.clone())
            }
        };
        let (time_ms, asked) = (self.time_of(&next.asked, now_ms), next.asked.clone());
        let request = BrokerRequest { number, after, name, time_ms, quote, asked };
        self.submit(at, request, Cause::Command(next));
    }
}

/// The stock whose quote a command brings if there is one, and whether it waits for it.
fn quote_of(asked: &Asked) -> Option<(StockSymbol, bool)> {
    let Asked::Command { command, fault: None } = asked else { return None };
    let is_set = matches!(command.verb, Verb::SetBuyTrigger | Verb::SetSellTrigger);
    let symbol = command.symbol.filter(|_| is_set || command.verb.needs_quote())?;
    Some((symbol, !is_set))
}

#[cfg(test)]
mod tests;
