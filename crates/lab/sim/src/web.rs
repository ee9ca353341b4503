//! A member that comes by HTTP: its clients, and the server between them and the gateways, whose rules are those that ship ([`Line`]).
//!
//! What crosses the network here is what a server and a gateway say to each other; HTTP itself loses nothing that a client would not notice. So a client is here who asks the line,
//! asks again by name what has no answer, and follows its streams; and the server dies now and then, with all that it knew.

mod client_requests;
mod follower;
mod guest;

use std::collections::BTreeMap;

use pares_flow::Random;
use pares_resources::{Effect, Line, LineTold, Question};
use pares_types::{Answer, ClientRequest, InstrumentId, MemberId, Reason, Reply, ShardId, Status};
use pares_wire::frame::{self, GatewayFrame, SignOn};

use crate::guest::Seat;
use crate::scenario::{MS, Scenario};
use crate::{Broken, Bug, Verdict, WebSeen, broken, defects, must};

use follower::Follower;

/// That an answer is its question's, and the same each time.
const ANSWER: &str = "Z1 an answer is its question's";
/// That an order is entered once, whatever dies.
const ONCE: &str = "Z2 an order once";
/// That streams are sent without a gap, and all that is sent is in the record.
const TOLD: &str = "Z3 all is told";
/// Before something is asked again.
const RETRY_NS: u64 = 10 * MS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Away,
    SigningOn,
    On,
}

/// What a waiting client wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    Request(u64),
    Question(Question),
}

struct Open {
    request: ClientRequest,
    retry_at_ns: u64,
}

/// The clients and the server of a member.
pub(crate) struct WebClient {
    member: MemberId,
    bug: Option<Bug>,
    random: Random,
    instruments: u32,
    left: u64,
    phase: Phase,
    /// When it signed on, or heard something last.
    since_ns: u64,
    is_doomed: bool,
    input: Vec<u8>,
    line: Line<u64>,
    /// Those who wait at the server.
    waiting: BTreeMap<u64, Waiting>,
    waiters: u64,
    /// What the server had not answered as it died: it is asked again.
    questions: Vec<Question>,
    /// The followers of the member's streams at the server: one that continues, and one that now and then begins far behind or ahead.
    followers: [Follower; 2],
    names: u64,
    open: BTreeMap<u64, Open>,
    /// All that was asked under a name.
    asked: BTreeMap<u64, Vec<ClientRequest>>,
    answered: BTreeMap<u64, Answer>,
    skips: bool,
    counts: WebSeen,
}

impl WebClient {
    pub(crate) fn seated(member: MemberId, scenario: &Scenario, mut random: Random) -> Seat {
        let home = random.index(8);
        let shards = (0..scenario.shards).map(|shard| ShardId(u16::try_from(shard).expect("few shards")));
        let mut client = Self {
            member,
            bug: scenario.bug,
            random,
            instruments: scenario.instruments(),
            left: scenario.requests_per_client,
            phase: Phase::Away,
            since_ns: 0,
            is_doomed: false,
            input: Vec::new(),
            line: Line::new(|_| false),
            waiting: BTreeMap::new(),
            waiters: 0,
            questions: Vec::new(),
            followers: [Follower::new(shards.clone()), Follower::new(shards)],
            names: 0,
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
            skips: false,
            counts: WebSeen::default(),
        };
        client.follow_all();
        Seat::new(member, None, home, client)
    }

    fn sign_on(&self) -> Vec<u8> {
        let (member, session) = (self.member.0.into(), 1_u16.into());
        let mut out = Vec::new();
        frame::write(&mut out, &SignOn { member, session, ..SignOn::default() });
        out
    }

    /// All who follow, each from where he stands.
    fn follow_all(&mut self) {
        for follower in 0..self.followers.len() {
            self.followers[follower].shards().into_iter().for_each(|shard| self.follow(follower, shard));
        }
    }

    fn follow(&mut self, follower: usize, shard: ShardId) {
        let next = self.followers[follower].follow(shard);
        self.line.follow(shard, next);
    }

    /// The server is another one, which knows nothing. Clients ask it at once.
    fn die(&mut self) {
        self.counts.deaths += 1;
        (self.line, self.is_doomed) = (Line::new(|_| false), false);
        for waiting in std::mem::take(&mut self.waiting).into_values() {
            if let Waiting::Question(question) = waiting {
                self.questions.push(question);
            }
        }
        self.follow_all();
        self.open.values_mut().for_each(|open| open.retry_at_ns = 0);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        let mut said = Vec::new();
        self.line.take_out(&mut said);
        out.append(&mut said);
    }

    fn on_frame(&mut self, now_ns: u64, frame: GatewayFrame, out: &mut Vec<u8>) -> Result<bool, Broken> {
        match (self.phase, frame) {
            (Phase::SigningOn, GatewayFrame::SignedOn(agreed)) => {
                self.counts.sign_ons += 1;
                (self.phase, self.since_ns, self.skips) = (Phase::On, now_ns, self.counts.sign_ons > 1);
                self.line.on_signed_on(agreed.in_flight_max.get(), None);
                let begun = out.len();
                self.flush(out);
                if self.bug == Some(Bug::RepeatUnderNewName) {
                    let renamed = defects::rename_orders(&out[begun..]);
                    out.truncate(begun);
                    out.extend(renamed);
                }
                Ok(false)
            }
            (Phase::On, frame) => {
                self.since_ns = now_ns;
                let mut effects = Vec::new();
                self.line.on_frame(frame, |effect| effects.push(effect));
                let mut is_over = false;
                for effect in effects {
                    is_over |= self.carry_out(now_ns, effect)?;
                }
                self.flush(out);
                Ok(is_over)
            }
            // The gateway refuses, for now.
            (_, _) => Ok(true),
        }
    }

    /// What follows from a frame. Whether the connection is of no more use.
    fn carry_out(&mut self, now_ns: u64, effect: Effect<u64>) -> Result<bool, Broken> {
        match effect {
            Effect::Told(waiter, told) => self.on_told(now_ns, waiter, told).map(|()| false),
            Effect::Stream(shard, number, reply) => {
                self.on_report(shard, number, reply);
                Ok(false)
            }
            Effect::Live(shard, next) => {
                self.followers.iter_mut().for_each(|one| one.on_live(shard, next, &mut self.counts));
                Ok(false)
            }
            Effect::NotTold(shard, oldest, reason) => {
                must(reason != Reason::UnknownShard || !self.followers[0].has(shard), TOLD, || {
                    format!("{}: nobody knows {shard}", self.member)
                })?;
                let (at_ns, counts) = (now_ns + RETRY_NS, &mut self.counts);
                self.followers.iter_mut().for_each(|one| one.on_not_told(shard, oldest, at_ns, counts));
                Ok(false)
            }
            Effect::Ended(reason) => {
                self.is_doomed |= matches!(reason, Reason::TakenOver | Reason::Revoked | Reason::WrongKey);
                Ok(true)
            }
        }
    }

    fn on_told(&mut self, now_ns: u64, waiter: u64, told: LineTold) -> Verdict {
        let other = || self.waiting.keys().copied().find(|other| *other != waiter);
        let is_question = matches!(self.waiting.get(&waiter), Some(Waiting::Question(_)));
        if is_question && self.bug == Some(Bug::LeaveQuestions) {
            return Ok(());
        }
        let waiter = if self.bug == Some(Bug::AnswerAnother) { other().unwrap_or(waiter) } else { waiter };
        let Some(waiting) = self.waiting.remove(&waiter) else { return Ok(()) };
        let told = self.spoilt(told);
        match (waiting, &told) {
            (Waiting::Request(name), LineTold::Answer(answer)) if answer.client_order_id.0 == name => {
                self.on_answer(name, *answer)
            }
            (Waiting::Request(name), LineTold::Rejected(reason)) => {
                let asked = &self.asked[&name];
                if *reason == Reason::DuplicateRequest && asked.iter().all(|one| *one == asked[0]) {
                    let why = "although nothing else was asked under that name";
                    return broken(ANSWER, format!("{}: {name} receives {told:?}, {why}", self.member));
                }
                // Nothing was done: for good, or the same again makes sense later.
                if pares_resources::status::retry_s(*reason).is_none() {
                    if let Some(before) = self.answered.get(&name) {
                        return self.unlike(name, before, &told);
                    }
                    self.open.remove(&name);
                } else if let Some(open) = self.open.get_mut(&name) {
                    open.retry_at_ns = now_ns + 2 * MS;
                }
                Ok(())
            }
            (Waiting::Question(question), told) if is_about(question, told) => {
                self.counts.questions += 1;
                Ok(())
            }
            (waiting, told) => broken(ANSWER, format!("{}: {waiting:?} is told {told:?}", self.member)),
        }
    }

    /// The answer to a request, each time the same.
    fn on_answer(&mut self, name: u64, answer: Answer) -> Verdict {
        let open = self.open.remove(&name);
        if let Some(Open { request, .. }) = open.filter(|open| open.request.asked() != answer.asked) {
            return broken(
                ANSWER,
                format!("{}: {request:?} receives {answer:?}, of another request", self.member),
            );
        }
        self.counts.answered += 1;
        self.counts.repeats += u64::from(answer.repeat);
        // A refusal may be another one the next time, and what is of all shards has no place.
        let before = self.answered.get(&name);
        if before.is_none() && answer.status == Status::Refused || answer.instrument == InstrumentId(0) {
            return Ok(());
        }
        let same = |one: &Answer| (one.shard, one.position, one.order, one.status);
        match before {
            Some(before) if same(before) != same(&answer) => self.unlike(name, before, &answer),
            _ => {
                self.answered.insert(name, answer);
                Ok(())
            }
        }
    }

    /// What was done is said to be something else, or not done.
    fn unlike(&self, name: u64, before: &Answer, now: &impl std::fmt::Debug) -> Verdict {
        broken(ANSWER, format!("{}: {name} was {before:?}, is {now:?}", self.member))
    }

    /// What a server with a defect says in place of that.
    fn spoilt(&self, told: LineTold) -> LineTold {
        match told {
            LineTold::Answer(answer) if answer.repeat && self.bug == Some(Bug::RefuseWhatWasDone) => {
                LineTold::Answer(Answer { status: Status::Refused, ..answer })
            }
            LineTold::Answer(Answer { repeat: true, status: Status::MassCancelled, .. })
                if self.bug == Some(Bug::ForgetMassCancels) =>
            {
                LineTold::Rejected(Reason::DuplicateRequest)
            }
            told => told,
        }
    }

    fn on_report(&mut self, shard: ShardId, number: u64, reply: Reply) {
        for (at, follower) in self.followers.iter_mut().enumerate() {
            if !follower.takes((shard, number), &mut self.counts) {
                continue;
            }
            self.counts.reports += 1;
            let skips = at == 0 && std::mem::take(&mut self.skips) && self.bug == Some(Bug::SkipAfterLoss);
            if !skips {
                follower.hear(shard, plain(reply));
            }
        }
    }
}

/// A report, whether it was sent before or not.
fn plain(reply: Reply) -> Reply {
    match reply {
        Reply::Answer(answer) => Reply::Answer(Answer { repeat: false, ..answer }),
        reply => reply,
    }
}

/// Whether that may be the answer to the question.
fn is_about(question: Question, told: &LineTold) -> bool {
    match (question, told) {
        (Question::Order(key), LineTold::Order(Some(order))) => {
            key == pares_types::OrderKey::Name(order.client_order_id)
        }
        (Question::Orders(of), LineTold::Orders(orders)) => {
            orders.iter().all(|order| of.is_none_or(|of: InstrumentId| of == order.instrument))
        }
        (Question::Order(_), LineTold::Order(None))
        | (Question::Instruments, LineTold::Instruments(_))
        | (Question::Limits, LineTold::Limits(_))
        | (_, LineTold::Rejected(_)) => true,
        _ => false,
    }
}
