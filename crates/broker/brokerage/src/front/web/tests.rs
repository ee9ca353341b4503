//! The web server's end of a front over a site of this process.

use mio::{Poll, Token};
use pares_broker::{
    OrderAsked, PasswordString, PersonAsked, PersonRight, SessionDigest, UserCommand, Verb, WorkloadLine,
};
use pares_site::config::Promise;

use super::*;
use crate::front::old_stamps;

type Answered = oneshot::Receiver<Result<BrokerReply, Unavailable>>;

/// A front with a site, and the web server's ends.
struct World {
    floor: Floor,
    front: WebFront,
    calls: WebCalls,
    dir: tempfile::TempDir,
    _poll: Poll,
}

impl World {
    /// Quotes are at that address.
    fn new(quotes: SocketAddr) -> Self {
        let (dir, poll) = (tempfile::tempdir().unwrap(), Poll::new().unwrap());
        let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
        let floor = Floor::alone(&dir.path().join("site"), Promise::Os, None, quotes, None).unwrap();
        let (front, calls) = ends(waker, &[floor.address().unwrap().into()], dir.path()).unwrap();
        Self { floor, front, calls, dir, _poll: poll }
    }

    fn ask(&self, user: Option<&str>, asked: Asked) -> Answered {
        let (tell, told) = oneshot::channel();
        let user = user.and_then(UserName::new);
        self.front.ask.send(Question { user, name: None, asked, tell }).unwrap();
        told
    }

    fn turn(&mut self) {
        self.calls.turn(&mut self.floor);
        self.floor.turn().unwrap().iter().for_each(|told| self.calls.tell(told));
    }

    fn answer(&mut self, mut told: Answered) -> Result<BrokerReply, Unavailable> {
        loop {
            self.turn();
            if let Ok(told) = told.try_recv() {
                return told;
            }
        }
    }

    fn answer_to(&mut self, user: Option<&str>, asked: Asked) -> Result<BrokerReply, Unavailable> {
        let told = self.ask(user, asked);
        self.answer(told)
    }
}

const NOWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

fn line(line: &str) -> Asked {
    let WorkloadLine { command, fault, .. } = WorkloadLine::parse(line.as_bytes()).unwrap();
    Asked::Command { command, fault }
}

fn person(asked: PersonAsked) -> Asked {
    Asked::Person { asked }
}

fn supervisor() -> Asked {
    let (name, rights) = (UserName::new("ann").unwrap(), vec![PersonRight::Supervisor]);
    person(PersonAsked::Add { name, password: PasswordString("x".into()), rights, takes_account: true })
}

fn block(user: &str) -> Asked {
    let (user, by) = (UserName::new(user).unwrap(), UserName::new("ann").unwrap());
    Asked::Order { asked: OrderAsked::Block { user, is_blocked: true, by } }
}

#[test]
fn file_beyond_user_limit_is_refused_without_effect() {
    let mut world = World::new(NOWHERE.into());
    let folder = world.dir.path().join("users/jo");
    std::fs::create_dir_all(&folder).unwrap();
    (0..16).for_each(|file| std::fs::write(folder.join(format!("log{file}")), []).unwrap());
    let mut told_of = |user: &str, file: &str| {
        let command = UserCommand {
            user: UserName::new(user),
            file: Some(file.to_owned()),
            ..UserCommand::of(Verb::Dumplog)
        };
        world.answer_to(Some(user), Asked::Command { command, fault: None })
    };
    assert_eq!(told_of("jo", "another"), Err(Unavailable::ManyFiles));
    assert_eq!(told_of("jo", "log7"), Ok(BrokerReply::Done), "it is written anew");
    assert_eq!(told_of("al", "another"), Ok(BrokerReply::Done));
}

#[test]
fn side_requests_are_bounded_and_supervisors_have_room() {
    let mut world = World::new(NOWHERE.into());
    assert_eq!(world.answer_to(None, supervisor()), Ok(BrokerReply::Done));
    let nobody = || person(PersonAsked::Try { name: UserName::new("nobody").unwrap() });
    (0..PEOPLE_MAX).for_each(|_| drop(world.ask(None, nobody())));
    let beyond = world.ask(None, nobody());
    let mut blocks: Vec<_> = (PEOPLE_MAX..=DIRECT_MAX).map(|_| world.ask(None, block("jo"))).collect();
    let last = blocks.pop().unwrap();
    // All of it comes to the front at once, before the site says anything.
    world.calls.turn(&mut world.floor);
    assert_eq!(world.calls.direct.len(), DIRECT_MAX);
    for told in [beyond, last] {
        assert!(matches!(world.answer(told), Err(Unavailable::Busy(_))));
    }
    for told in blocks {
        let no_account = BrokerReply::Refused { refusal: Refusal::NoAccount };
        assert_eq!(world.answer(told), Ok(no_account));
    }
    let no_person = BrokerReply::Refused { refusal: Refusal::NoPerson };
    assert_eq!(world.answer_to(None, nobody()), Ok(no_person), "there is room again");
}

#[test]
fn user_has_one_dump_written_and_one_waiting() {
    let mut world = World::new(NOWHERE.into());
    world.floor.dumps_of_max = 2;
    let dump = |user: &str| line(&format!("[1] DUMPLOG,{user},log"));
    let asked = ["jo", "jo", "jo", "al"].map(|user| world.ask(Some(user), dump(user)));
    world.calls.turn(&mut world.floor);
    let busy = |told| matches!(told, Err(Unavailable::Busy(_)));
    assert_eq!(asked.map(|told| busy(world.answer(told))), [false, false, true, false]);
    let jo = || UserName::new("jo");
    world.floor.dumps_written = vec![jo()];
    assert_eq!(world.answer_to(Some("jo"), dump("jo")), Ok(BrokerReply::Done));
    world.floor.dumps_written = vec![jo(), None, jo()];
    assert!(busy(world.answer_to(Some("jo"), dump("jo"))));
    assert_eq!(world.answer_to(Some("al"), dump("al")), Ok(BrokerReply::Done));
}

#[test]
fn customer_commands_do_not_delay_limits_or_kill_switch() {
    // It takes connections, and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = World::new(silent.local_addr().unwrap());
    assert_eq!(world.answer_to(None, supervisor()), Ok(BrokerReply::Done));
    assert!(world.answer_to(Some("jo"), line("[1] ADD,jo,5.00")).is_ok());
    let mut buy = world.ask(Some("jo"), line("[2] BUY,jo,S,5.00"));
    for _ in 0..3 {
        assert_eq!(world.answer_to(None, block("jo")), Ok(BrokerReply::Done));
    }
    assert!(buy.try_recv().is_err(), "it waits for its quote");
    let order = OrderAsked::Place {
        user: UserName::new("al").unwrap(),
        terms: pares_broker::OrderTerms {
            symbol: StockSymbol::new("S").unwrap(),
            way: pares_broker::TradeWay::Buy,
            shares: 1,
            limit_cents: 1,
            life: pares_broker::OrderLife::Day,
        },
    };
    assert!(world.answer_to(Some("al"), line("[3] ADD,al,5.00")).is_ok());
    assert_eq!(world.answer_to(None, block("al")), Ok(BrokerReply::Done));
    let refused = Ok(BrokerReply::Refused { refusal: Refusal::Blocked });
    assert_eq!(world.answer_to(Some("al"), Asked::Order { asked: order }), refused);
}

#[test]
fn wrong_clock_blocks_sign_in_but_not_sign_out() {
    let mut world = World::new(old_stamps::serve());
    let tries = person(PersonAsked::Try { name: UserName::new("jo").unwrap() });
    let seen = person(PersonAsked::Seen { session: SessionDigest([1; 32]) });
    let no_person = BrokerReply::Refused { refusal: Refusal::NoPerson };
    assert_eq!(world.answer_to(None, tries.clone()), Ok(no_person), "the clock may be right");
    for symbol in ["A", "B", "C"] {
        world.answer_to(Some("jo"), line(&format!("[1] QUOTE,jo,{symbol}"))).unwrap();
    }
    let off = BrokerReply::Refused { refusal: Refusal::ClockOff };
    for asked in [tries, seen] {
        assert_eq!(world.answer_to(None, asked), Ok(off.clone()));
    }
    let out = person(PersonAsked::SignOut { session: SessionDigest([1; 32]) });
    assert_eq!(world.answer_to(None, out), Ok(BrokerReply::Unchanged));
}
