//! The front's promises: order, quotes shared, moments in their place, dumps last.

mod clock;
mod flood;
mod moments;
mod turns;

use std::collections::VecDeque;

use pares_broker::{
    ArmedPage, ArmedTrigger, BrokerRead, CommandName, HitName, LapsingPage, PendingExpiry, Refusal,
    StockQuote, TradeWay, WorkloadLine, number_in_session, session_of_front,
};
use pares_wice::TransactionId;
use pares_wice::codec::Coded as _;

use crate::user::GIVEN_UP_AFTER_MS;

use super::*;
use crate::FairFeed;

const NOON: u64 = 1_680_000_000_000;

/// A front, and what it has handed on.
struct At {
    front: BrokerFront,
    now_ms: u64,
    submitted: VecDeque<(TransactionId, BrokerRequest)>,
    /// How many were handed on so far.
    handed_on: usize,
    asked: Vec<(u64, StockSymbol)>,
    told: Vec<u64>,
    replies: BTreeMap<u64, BrokerReply>,
    given_up: Vec<u64>,
    /// Refused for the clock after they were taken.
    clock_off: Vec<u64>,
    noted: Vec<HitName>,
    looks: Vec<(u64, BrokerRead)>,
}

/// The client that asks for the front's number, and the front that it is given.
const BEGINNER: u64 = 3;
const FRONT: u64 = 5;
const CLOCK_OFF: BrokerReply = BrokerReply::Refused { refusal: Refusal::ClockOff };

/// The client of a user's part.
const fn client(at: u64) -> u64 {
    (FRONT << 32) + at
}

/// The front's own number.
fn own(count: u64) -> u64 {
    number_in_session(session_of_front(FRONT, 0), count)
}

impl At {
    fn new() -> Self {
        let front = BrokerFront::new(BEGINNER);
        let (submitted, asked, told, replies, given_up, clock_off) = <_>::default();
        let (handed_on, noted, looks) = <_>::default();
        let mut at = Self {
            front,
            now_ms: NOON,
            submitted,
            handed_on,
            asked,
            told,
            replies,
            given_up,
            clock_off,
            noted,
            looks,
        };
        at.tick(0);
        assert_eq!(at.answer(BrokerReply::FrontNumber { front: FRONT }).asked, Asked::BeginFront);
        at.handed_on = 0;
        at
    }

    fn take(&mut self) {
        for effect in self.front.take_effects() {
            match effect {
                FrontEffect::Ask { hit, symbol, .. } => self.asked.push((hit, symbol)),
                FrontEffect::Abandon { .. } => {}
                FrontEffect::Submit { id, request } => {
                    self.handed_on += 1;
                    self.submitted.push_back((id, request));
                }
                FrontEffect::Told { arrival, reply: Some(reply), .. } if reply == CLOCK_OFF => {
                    self.clock_off.push(arrival);
                }
                FrontEffect::Told { arrival, reply: Some(reply), .. } => {
                    self.told.push(arrival);
                    self.replies.insert(arrival, reply);
                }
                FrontEffect::Told { arrival, reply: None, .. } => self.given_up.push(arrival),
                FrontEffect::Noted { hit } => self.noted.push(hit),
                FrontEffect::Look { number, read } => self.looks.push((number, read)),
            }
        }
    }

    fn line(&mut self, line: &str) {
        self.arrives(line, CommandOrder::Arrival { name: None }).unwrap();
    }

    /// A command of a session of another front, which its sender numbers.
    fn of_session(&mut self, count: u64, after: u64, line: &str) {
        let [number, after] = [count, after].map(|count| number_in_session(session_of_front(1, 0), count));
        self.arrives(line, CommandOrder::Session { number, after }).unwrap();
    }

    fn arrives(&mut self, line: &str, order: CommandOrder) -> Result<u64, NotTaken> {
        self.brings(0, line, order)
    }

    /// A command comes over the connection of that number.
    fn brings(&mut self, sender: u64, line: &str, order: CommandOrder) -> Result<u64, NotTaken> {
        let line = WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
        let (user, asked) =
            (line.command.user.clone(), Asked::Command { command: line.command, fault: line.fault });
        self.takes(Arrival { sender, user, order, asked })
    }

    fn asks(&mut self, user: Option<UserName>, order: CommandOrder, asked: Asked) -> Result<u64, NotTaken> {
        self.takes(Arrival { sender: 0, user, order, asked })
    }

    fn takes(&mut self, arrival: Arrival) -> Result<u64, NotTaken> {
        let arrived = self.front.arrives(arrival, self.now_ms);
        self.take();
        arrived
    }

    /// Answers a look.
    fn look(&mut self, answer: Option<&[u8]>) -> BrokerRead {
        let (number, read) = self.looks.remove(0);
        self.front.looked(number, answer, self.now_ms);
        self.take();
        read
    }

    /// The oldest page that was asked for comes when it is not waited for any more: it is no answer to the one that is.
    fn look_shows_late(&mut self) {
        let late = ArmedPage { triggers: Vec::new(), next: Some(pares_wice::Key::new([1])) };
        self.look(Some(&late.to_bytes()));
    }

    /// Answers a whole look: these triggers of S are armed, these stacks pending.
    fn look_shows(&mut self, armed: &[(&str, TradeWay, u64)], stacks: &[(&str, TradeWay, u64)]) {
        let user = |name: &str| UserName::new(name).unwrap();
        let symbol = StockSymbol::new("S").unwrap();
        let trigger = |(name, way, price_cents): &(&str, TradeWay, u64)| ArmedTrigger {
            symbol,
            way: *way,
            user: user(name),
            price_cents: *price_cents,
        };
        let triggers = armed.iter().map(trigger).collect();
        let stack = |(name, way, placed_ms): &(&str, TradeWay, u64)| PendingExpiry {
            user: user(name),
            way: *way,
            placed_ms: *placed_ms,
        };
        let stacks = stacks.iter().map(stack).collect();
        self.look(Some(&ArmedPage { triggers, next: None }.to_bytes()));
        self.look(Some(&LapsingPage { stacks, next: None }.to_bytes()));
    }

    fn quote(&mut self, hit: u64, letters: &str, price_cents: u64) {
        self.quote_of(hit, letters, price_cents, self.now_ms);
    }

    fn quote_of(&mut self, hit: u64, letters: &str, price_cents: u64, server_ms: u64) {
        let symbol = StockSymbol::new(letters).unwrap();
        let (user, key) = ("jo".to_owned(), "k".to_owned());
        let quote = StockQuote { price_cents, symbol, user, server_ms, key };
        self.brought(hit, QuoteBrought { quote, hit: Some(HitName { desk: 1, count: hit }) });
    }

    fn brought(&mut self, hit: u64, brought: QuoteBrought) {
        self.front.quote(hit, Ok(brought), self.now_ms);
        self.take();
    }

    fn tick(&mut self, after_ms: u64) {
        self.now_ms += after_ms;
        self.front.tick(self.now_ms);
        self.take();
    }

    /// The oldest request that was handed on and not looked at yet.
    fn next(&mut self) -> BrokerRequest {
        self.submitted.front().expect("a request").1.clone()
    }

    /// Answers it.
    fn answer(&mut self, reply: BrokerReply) -> BrokerRequest {
        let (id, request) = self.submitted.pop_front().unwrap();
        self.front.answered(id, reply.clone(), self.now_ms);
        // The same once more is nothing.
        self.front.answered(id, reply, self.now_ms);
        self.take();
        request
    }
}

fn verb(request: &BrokerRequest) -> Verb {
    match &request.asked {
        Asked::Command { command, .. } => command.verb,
        other => panic!("{other:?}"),
    }
}

#[test]
fn commands_name_predecessor_and_do_not_wait_for_others() {
    let mut at = At::new();
    for line in ["ADD,jo,5.00", "ADD,al,5.00", "DISPLAY_SUMMARY,jo", "DISPLAY_SUMMARY,al"] {
        at.line(line);
    }
    let chain = at.submitted.iter().map(|(id, request)| (id.client, request.number, request.after));
    let expected = [(1, 1, None), (2, 2, None), (1, 3, Some(1)), (2, 4, Some(2))];
    let expected = expected.map(|(at, number, after)| (client(at), own(number), after.map_or(0, own)));
    assert_eq!(chain.collect::<Vec<_>>(), expected);
    (0..4).for_each(|_| drop(at.answer(BrokerReply::Done)));
    assert_eq!((at.told.as_slice(), at.front.open(), at.front.is_idle()), (&[0, 1, 2, 3][..], 0, true));
    (0..100).for_each(|_| at.line("ADD,jo,5.00"));
    assert_eq!(at.submitted.len(), 32, "a site remembers so many and as many again");
}

#[test]
fn early_command_is_resent_after_its_predecessor() {
    let mut at = At::new();
    (0..4).for_each(|_| at.line("ADD,jo,5.00"));
    let first = at.submitted.pop_front().unwrap();
    let later: Vec<_> = (0..3).map(|_| at.answer(BrokerReply::Early)).collect();
    assert!(at.submitted.is_empty() && at.told.is_empty());
    at.submitted.push_back(first);
    at.answer(BrokerReply::Done);
    for (index, request) in later.iter().enumerate() {
        let (id, again) = at.submitted[0].clone();
        assert_eq!((id.sequence, &again, at.submitted.len()), (5 + index as u64, request, 1));
        at.answer(BrokerReply::Done);
    }
    assert_eq!(at.told, [0, 1, 2, 3]);
    at.line("ADD,jo,5.00");
    at.line("ADD,jo,5.00");
    assert_eq!(at.submitted.len(), 1, "from now on one at a time");
}

#[test]
fn quote_is_requested_on_arrival_and_blocks_one_user() {
    let mut at = At::new();
    at.line("ADD,jo,5.00");
    at.line("BUY,jo,S,5.00");
    at.line("QUOTE,al,S");
    at.line("QUOTE,bo,T");
    assert_eq!(at.asked.len(), 2, "one for each stock, before its turn");
    at.answer(BrokerReply::Done);
    assert!(at.submitted.is_empty());
    at.quote(2, "T", 300);
    assert_eq!((at.submitted.len(), verb(&at.next())), (1, Verb::Quote));
    at.quote(1, "S", 400);
    let hits = at.submitted.iter().map(|(_, request)| request.quote.as_ref().unwrap().hit.is_some());
    assert_eq!(hits.collect::<Vec<_>>(), [true, true, false], "a hit is shown once");
    assert!(at.submitted.iter().skip(1).all(|(_, r)| r.quote.as_ref().unwrap().quote.price_cents == 400));
}

#[test]
fn ten_thousand_commands_behind_quote_block_no_others() {
    let (mut at, mut feed, mut users) = (At::new(), FairFeed::new(1_000), Vec::new());
    let read = |feed: &mut FairFeed<String>, user: &UserName, verb: &str| {
        feed.push(Some(user), format!("{verb},{user},{}", if verb == "QUOTE" { "S" } else { "5.00" }));
    };
    let slow = UserName::new("slow").unwrap();
    read(&mut feed, &slow, "QUOTE");
    (1..10_000).for_each(|_| read(&mut feed, &slow, "ADD"));
    while let Some(line) = feed.take() {
        users.push(slow.clone());
        at.line(&line);
    }
    assert_eq!(users.len(), 500, "half of the room, as long as he is alone");
    let others: Vec<_> = (0..99).map(|at| UserName::new(&format!("u{at}")).unwrap()).collect();
    others.iter().for_each(|user| (0..50).for_each(|_| read(&mut feed, user, "ADD")));
    loop {
        while let Some(line) = feed.take() {
            users.push(UserName::new(line.split(',').nth(1).unwrap()).unwrap());
            at.line(&line);
        }
        if at.submitted.is_empty() {
            break;
        }
        at.answer(BrokerReply::Done);
        at.told.drain(..).for_each(|arrival| feed.done(Some(&users[arrival as usize])));
    }
    let of_slow = users.iter().filter(|user| **user == slow).count();
    assert_eq!(users.len() - of_slow, 99 * 50, "all others are through, and no quote has come");
    assert_eq!((of_slow, feed.held()), (500, 9_500));
    assert_eq!((at.asked.len(), at.front.open()), (1, of_slow));
    at.quote(1, "S", 400);
    assert_eq!(at.submitted.len(), 32, "and he goes on");
}

#[test]
fn command_continues_without_quote_from_silent_server() {
    let mut at = At::new();
    at.line("BUY,jo,S,5.00");
    at.tick(crate::QUOTE_LIMIT_MS);
    assert_eq!((verb(&at.next()), at.next().quote), (Verb::Buy, None));
    at.line("BUY,al,S,5.00");
    assert_eq!((at.submitted.len(), at.asked.len()), (2, 1), "it is not asked again at once");
}

#[test]
fn a_dump_of_everything_is_last_of_what_came_before_it() {
    let mut at = At::new();
    at.line("QUOTE,jo,S");
    at.line("ADD,al,1.00");
    at.line("DUMPLOG,./log");
    at.line("ADD,al,2.00");
    at.answer(BrokerReply::Done);
    assert_eq!(at.submitted.len(), 1, "al's second command");
    at.answer(BrokerReply::Done);
    assert!(at.submitted.is_empty());
    at.quote(1, "S", 100);
    at.answer(BrokerReply::Done);
    assert_eq!(verb(&at.next()), Verb::Dumplog);
    at.answer(BrokerReply::Done);
    assert_eq!(at.told, [1, 3, 0, 2]);
}

#[test]
fn a_hit_that_no_command_used_is_in_the_log_before_the_dump() {
    let mut at = At::new();
    at.line("SET_BUY_TRIGGER,jo,S,2.00");
    at.answer(BrokerReply::Armed { shares: 0 });
    at.tick(0);
    at.quote(1, "S", 900);
    at.line("DUMPLOG,./log");
    assert!(matches!(at.next().asked, Asked::Hit), "{:?}", at.next());
    assert_eq!(at.next().quote.unwrap().quote.price_cents, 900);
    at.answer(BrokerReply::Unchanged);
    assert_eq!(verb(&at.next()), Verb::Dumplog);
}

#[test]
fn a_command_of_wrong_form_asks_for_nothing() {
    let mut at = At::new();
    at.line("BUY,jo,S,0.00");
    assert_eq!((at.asked.len(), at.next().quote), (0, None));
    let refused = BrokerReply::Refused { refusal: Refusal::BadAmount };
    assert!(matches!(at.answer(refused).asked, Asked::Command { fault: Some(Refusal::BadAmount), .. }));
}

#[test]
fn nothing_is_handed_on_before_the_front_has_its_number() {
    let mut at = At::new();
    at.front = BrokerFront::new(BEGINNER);
    at.line("ADD,jo,5.00");
    assert!(at.submitted.is_empty() && at.front.open_session().is_none());
    assert_eq!(at.front.next_deadline(), Some(0));
    at.tick(0);
    at.tick(9_000);
    assert_eq!(at.submitted.len(), 1, "it asks once");
    at.answer(BrokerReply::FrontNumber { front: 6 });
    assert_eq!(at.next().number, number_in_session(session_of_front(6, 0), 1));
    assert_eq!(at.front.open_session(), Some(session_of_front(6, 1)));
}

#[test]
fn session_command_has_sender_number_and_name() {
    let mut at = At::new();
    at.of_session(7, 3, "ADD,jo,5.00");
    let session = session_of_front(1, 0);
    assert_eq!(
        (at.next().number, at.next().after),
        (number_in_session(session, 7), number_in_session(session, 3))
    );
    at.answer(BrokerReply::Done);
    let name = CommandName::new("k");
    at.arrives("ADD,jo,5.00", CommandOrder::Arrival { name: name.clone() }).unwrap();
    assert_eq!((at.next().number, at.next().after, at.next().name), (own(1), 0, name));
    at.answer(BrokerReply::NameTaken);
    for (number, after) in [(0, 0), (number_in_session(session, 3), number_in_session(session, 3))] {
        let refused = at.arrives("ADD,jo,5.00", CommandOrder::Session { number, after });
        assert_eq!(refused, Err(NotTaken::Order));
    }
    assert_eq!((at.told.as_slice(), at.front.is_idle()), (&[0, 1][..], true));
}

#[test]
fn command_with_predecessor_elsewhere_retries_alone() {
    let mut at = At::new();
    at.tick(0);
    at.of_session(7, 3, "ADD,jo,5.00");
    at.of_session(8, 7, "ADD,jo,5.00");
    let second = at.submitted.pop_back().unwrap();
    at.answer(BrokerReply::Early);
    for pause_ms in [1, 2, 4, 8, 16, 32, 64, 128] {
        at.answer(BrokerReply::Early);
        assert!(at.submitted.is_empty());
        assert_eq!(at.front.next_deadline(), Some(at.now_ms + pause_ms));
        at.tick(pause_ms);
    }
    at.line("DISPLAY_SUMMARY,jo");
    assert_eq!(at.submitted.len(), 2);
    let early = at.submitted.pop_front().unwrap();
    at.answer(BrokerReply::Done);
    assert_eq!(at.told, [2], "of another session");
    at.submitted = [second, early].into();
    at.answer(BrokerReply::Early);
    assert_eq!(at.submitted.len(), 1, "it waits for the one before it here");
    at.answer(BrokerReply::Done);
    assert_eq!(at.next().after, number_in_session(session_of_front(1, 0), 7));
    at.answer(BrokerReply::Done);
    assert_eq!((at.told.as_slice(), at.given_up.len()), (&[2, 0, 1][..], 0));
}

/// Who broke off comes back with all that has no reply, and the front still has one of these, which was early.
#[test]
fn early_command_after_predecessor_blocks_nobody() {
    let mut at = At::new();
    at.tick(0);
    at.of_session(7, 6, "ADD,jo,5.00");
    // At once once more, and then after a pause.
    (0..2).for_each(|_| drop(at.answer(BrokerReply::Early)));
    at.of_session(6, 5, "ADD,jo,5.00");
    at.of_session(7, 6, "ADD,jo,5.00");
    let before = at.submitted.pop_front().unwrap();
    at.answer(BrokerReply::Early);
    at.submitted.push_back(before);
    at.answer(BrokerReply::Done);
    assert_eq!(at.told, [1]);
    at.tick(1);
    (0..2).for_each(|_| drop(at.answer(BrokerReply::Done)));
    at.told.sort_unstable();
    assert_eq!((at.told.as_slice(), at.given_up.len(), at.front.is_idle()), (&[0, 1, 2][..], 0, true));
}

#[test]
fn never_accepted_request_is_given_up_user_continues() {
    let mut at = At::new();
    for line in ["ADD,jo,5.00", "ADD,jo,6.00", "ADD,al,1.00"] {
        at.line(line);
    }
    let refused = at.submitted.pop_front().unwrap().0;
    at.front.not_taken(refused, at.now_ms);
    at.take();
    assert_eq!(at.given_up, [0]);
    at.answer(BrokerReply::Early); // jo's second, which waits for the first
    at.answer(BrokerReply::Done);
    assert_eq!((at.told.as_slice(), at.given_up.as_slice()), (&[2][..], &[0, 1][..]));
    at.line("ADD,jo,7.00");
    assert_eq!(at.next().after, 0);
    at.answer(BrokerReply::Done);
    assert_eq!((at.told.as_slice(), at.front.is_idle()), (&[2, 3][..], true));
}

#[test]
fn missing_predecessor_gives_up_chain_and_stores_hit() {
    let mut at = At::new();
    at.of_session(7, 3, "QUOTE,jo,S");
    at.quote(1, "S", 100);
    for count in 8..60 {
        at.of_session(count, count - 1, "ADD,jo,5.00");
    }
    let mut first = at.submitted.pop_front().unwrap();
    for (_, later) in at.submitted.clone() {
        assert_eq!(at.answer(BrokerReply::Early), later);
    }
    assert!(at.submitted.is_empty());
    let until_ms = at.now_ms + GIVEN_UP_AFTER_MS;
    while at.given_up.is_empty() {
        at.submitted.push_front(first.clone());
        at.answer(BrokerReply::Early);
        assert!(at.now_ms < until_ms + 50);
        let pause = at.front.pauses.first().map_or(0, |pause| pause.0 - at.now_ms);
        at.tick(pause);
        at.looks.clear();
        if at.given_up.is_empty() {
            first = at.submitted.pop_front().unwrap();
        }
    }
    assert!(at.now_ms >= until_ms);
    assert_eq!((at.given_up.len(), at.front.open()), (53, 0));
    assert!(matches!(at.answer(BrokerReply::Unchanged).asked, Asked::Hit));
    assert_eq!((at.noted.len(), at.front.is_idle()), (1, true));
}

#[test]
fn hit_is_stored_once_its_request_has_a_reply() {
    let mut at = At::new();
    at.line("QUOTE,jo,S");
    at.line("QUOTE,al,S");
    at.quote(1, "S", 100);
    let first = at.submitted.pop_front().unwrap();
    at.answer(BrokerReply::Done);
    assert_eq!(at.noted, []);
    at.submitted.push_back(first);
    at.answer(BrokerReply::Refused { refusal: Refusal::NoQuote });
    assert_eq!(at.noted, [HitName { desk: 1, count: 1 }]);
}

#[test]
fn parts_of_idle_users_are_dropped_and_their_names_go_on() {
    let mut at = At::new();
    at.front.parts_kept = 2;
    for user in ["a", "b", "c", "d"] {
        at.line(&format!("ADD,{user},1.00"));
        at.answer(BrokerReply::Done);
    }
    assert_eq!((at.front.names.len(), at.front.parts.len()), (2, 3));
    at.front.parts_kept = 2;
    at.line("ADD,e,1.00");
    assert_eq!((at.front.names.len(), at.front.parts.len()), (1, 3));
    let (id, request) = &at.submitted[0];
    assert_eq!((id.sequence, request.after), (3, 0), "no name is given out twice");
}

#[test]
fn a_front_is_busy_when_it_holds_as_much_as_it_may() {
    let mut at = At::new();
    for arrival in 0..FRONT_OPEN_MAX as u64 {
        at.front.open.insert(arrival + 1_000_000, 0);
    }
    assert_eq!(at.arrives("ADD,jo,1.00", CommandOrder::Arrival { name: None }), Err(NotTaken::Busy));
}
