//! The users of a broker's fronts: each numbers his commands in a session, as a loader does, and gives those without a reply again at another front when
//! his own dies, breaks off or gives up. So every command that he gave must be in his log in the end, once, in its order, with the reply that he received.

use std::collections::{BTreeMap, VecDeque};

use pares_broker::{Asked, AuditEntry, BrokerReply, UserName, WorkloadLine, dollars, number_in_session};
use pares_flow::Random;
use pares_front::{Arrival, CommandOrder};

use super::fronts::FRONTS;
use super::sites::Sites;
use super::{Broken, Verdict, must};

const USERS: usize = 6;
/// Commands of a user without a reply.
const GIVEN_MAX: usize = 4;
/// Of a thousand turns of his front, in how many a user gives a command, breaks off and goes elsewhere, and begins another session.
const COMMANDS_PERMILLE: u64 = 250;
const BREAKS_PERMILLE: u64 = 5;
const SESSIONS_PERMILLE: u64 = 10;

#[derive(Clone, Debug)]
struct Given {
    number: u64,
    after: u64,
    asked: Asked,
}

/// A user who trades.
#[derive(Debug)]
pub(super) struct Person {
    name: UserName,
    /// At which front, in which of its lives.
    at: (usize, u64),
    /// None before the first.
    session: Option<u64>,
    /// Commands in it so far.
    count: u64,
    /// Commands without a reply.
    given: VecDeque<Given>,
    /// The numbers of all commands, in their order.
    gave: Vec<u64>,
    told: BTreeMap<u64, BrokerReply>,
}

pub(super) fn people() -> Vec<Person> {
    let person = |number: usize| Person {
        name: UserName::new(&format!("user{number}")).expect("it is a name"),
        at: (number % FRONTS, 0),
        session: None,
        count: 0,
        given: VecDeque::new(),
        gave: Vec::new(),
        told: BTreeMap::new(),
    };
    (0..USERS).map(person).collect()
}

/// A command line of anything, at a time.
fn line(name: &UserName, random: &mut Random) -> String {
    let symbol = ["A", "BC", "DEF"][random.index(3)];
    let (cents, more) = (random.between(1, 99_999), random.between(100, 99_999_999));
    match random.below(22) {
        0..=2 => format!("ADD,{name},{}", dollars(more)),
        3 => format!("QUOTE,{name},{symbol}"),
        4..=6 => format!("BUY,{name},{symbol},{}", dollars(more / 10)),
        7 | 8 => format!("COMMIT_BUY,{name}"),
        9 => format!("CANCEL_BUY,{name}"),
        10 | 11 => format!("SELL,{name},{symbol},{}", dollars(cents)),
        12 => format!("COMMIT_SELL,{name}"),
        13 => format!("CANCEL_SELL,{name}"),
        14 | 15 => format!("SET_BUY_AMOUNT,{name},{symbol},{}", dollars(more / 10)),
        16 | 17 => format!("SET_BUY_TRIGGER,{name},{symbol},{}", dollars(cents)),
        18 => format!("SET_SELL_AMOUNT,{name},{symbol},{}", dollars(cents)),
        19 => format!("SET_SELL_TRIGGER,{name},{symbol},{}", dollars(cents)),
        20 => format!("CANCEL_SET_BUY,{name},{symbol}"),
        _ => format!("CANCEL_SET_SELL,{name},{symbol}"),
    }
}

impl Person {
    /// Whether a command has no reply.
    pub(super) fn waits(&self) -> bool {
        !self.given.is_empty()
    }

    /// The next command of his session.
    fn next(&mut self, session: u64, asked: Asked) -> Given {
        let after = number_in_session(session, self.count);
        self.count += 1;
        let given = Given { number: after + 1, after, asked };
        self.given.push_back(given.clone());
        self.gave.push(given.number);
        given
    }

    /// His log holds what he gave, once and in order, with the replies that he received.
    fn check(&self, log: &[&AuditEntry]) -> Verdict {
        let commands = log.iter().filter(|entry| entry.record.command.is_some());
        let logged: Vec<_> = commands.map(|entry| (entry.record.number, Some(&entry.record.reply))).collect();
        let gave = self.gave.iter().map(|number| (*number, self.told.get(number)));
        let gave: Vec<_> = gave.collect();
        must(logged == gave, Broken::Disordered, || {
            let odd = logged.iter().zip(&gave).find(|(logged, gave)| logged != gave);
            let (name, has, counts) = (&self.name, logged.len(), gave.len());
            format!("{name} gave {counts} commands, {has} are in the log: {odd:x?}")
        })
    }
}

impl Sites {
    /// A user gives his next command, perhaps; or goes to another front with those that have no reply.
    pub(super) fn person_turn(&mut self, person: usize, front: usize) {
        let (at, life) = self.fronts().people[person].at;
        if self.fronts().places[at].life != life || (at == front && self.random.chance(BREAKS_PERMILLE)) {
            return self.person_moves(person);
        }
        if at != front {
            return;
        }
        let state = &self.fronts().people[person];
        let may = state.given.len() < GIVEN_MAX;
        if !may || self.faults.over || !self.random.chance(COMMANDS_PERMILLE) {
            return;
        }
        let Some(session) = self.session_of(person, front) else { return };
        let name = self.fronts().people[person].name.clone();
        let text = format!("[1] {}", line(&name, &mut self.random));
        let WorkloadLine { command, fault, .. } =
            WorkloadLine::parse(text.as_bytes()).expect("it is a command");
        let given = self.fronts().people[person].next(session, Asked::Command { command, fault });
        self.give(person, front, given);
    }

    /// His session, or another: only when nothing of the one before is without a reply.
    fn session_of(&mut self, person: usize, front: usize) -> Option<u64> {
        let begins = self.random.chance(SESSIONS_PERMILLE);
        let state = &self.fronts().people[person];
        if state.session.is_some() && !(begins && state.given.is_empty()) {
            return state.session;
        }
        let session = self.front_of(front)?.open_session()?;
        let state = &mut self.fronts().people[person];
        (state.session, state.count) = (Some(session), 0);
        state.session
    }

    fn give(&mut self, person: usize, front: usize, given: Given) {
        let Given { number, after, asked } = given;
        let user = Some(self.fronts().people[person].name.clone());
        self.note(|| format!("front {front} is given {number:#x} {asked:?}"));
        let command =
            Arrival { sender: person as u64, user, order: CommandOrder::Session { number, after }, asked };
        let now_ms = self.front_ms(front);
        self.with_front(front, |place| {
            if let Some(front) = &mut place.front {
                let arrival = front.arrives(command, now_ms).expect("it is in order, and few are open");
                place.of.insert(arrival, (person, number));
            }
        });
    }

    /// He gives what has no reply again, at another front or the same.
    pub(super) fn person_moves(&mut self, person: usize) {
        let front = self.random.index(FRONTS);
        if self.front_of(front).and_then(|front| front.number()).is_none() {
            return;
        }
        let life = self.fronts().places[front].life;
        let state = &mut self.fronts().people[person];
        state.at = (front, life);
        let given: Vec<Given> = state.given.iter().cloned().collect();
        self.note(|| format!("user {person} goes to front {front} with {}", given.len()));
        for given in given {
            self.give(person, front, given);
        }
    }

    /// A front tells a reply, or gives the command up.
    pub(super) fn person_told(&mut self, person: usize, number: u64, reply: Option<BrokerReply>) {
        let state = &mut self.fronts().people[person];
        let Some(place) = state.given.iter().position(|given| given.number == number) else { return };
        match reply {
            Some(reply) => {
                state.given.remove(place);
                state.told.insert(number, reply);
                self.summary.committed += 1;
            }
            // He comes again.
            None => state.at.1 = 0,
        }
    }

    /// Every user's log, in the end.
    pub(super) fn check_people(&self) -> Verdict {
        let Some(fronts) = &self.fronts else { return Ok(()) };
        let log = self.checker.log();
        fronts.desks.check(&log)?;
        let mut of: BTreeMap<&str, Vec<&AuditEntry>> = BTreeMap::new();
        for entry in &log {
            of.entry(&entry.user).or_default().push(entry);
        }
        for person in &fronts.people {
            person.check(of.get(person.name.as_str()).map_or(&[], Vec::as_slice))?;
        }
        Ok(())
    }
}
