//! People at a front whose clock is off.

use mio::{Poll, Token};
use pares_broker::{PersonAsked, SessionDigest, WorkloadLine};
use pares_site::config::Promise;

use super::*;
use crate::front::old_stamps;

#[test]
fn wrong_clock_blocks_sign_in_but_not_sign_out() {
    let (dir, poll) = (tempfile::tempdir().unwrap(), Poll::new().unwrap());
    let waker = Arc::new(Waker::new(poll.registry(), Token(0)).unwrap());
    let mut floor =
        Floor::alone(&dir.path().join("site"), Promise::Os, None, old_stamps::serve(), None).unwrap();
    let (front, mut calls) = ends(waker, &[floor.address().unwrap().into()], dir.path()).unwrap();
    let mut told_of = |user: Option<UserName>, asked: Asked| {
        let (tell, mut told) = oneshot::channel();
        front.ask.send(Question { user, name: None, asked, tell }).unwrap();
        loop {
            calls.turn(&mut floor);
            floor.turn().unwrap().iter().for_each(|told| calls.tell(told));
            if let Ok(told) = told.try_recv() {
                return told;
            }
        }
    };
    let [tries, seen] = [
        PersonAsked::Try { name: UserName::new("jo").unwrap() },
        PersonAsked::Seen { session: SessionDigest([1; 32]) },
    ]
    .map(|asked| Asked::Person { asked });
    let no_person = BrokerReply::Refused { refusal: Refusal::NoPerson };
    assert_eq!(told_of(None, tries.clone()), Ok(no_person), "the clock may be right");
    for symbol in ["A", "B", "C"] {
        let line = WorkloadLine::parse(format!("[1] QUOTE,jo,{symbol}").as_bytes()).unwrap();
        let asked = Asked::Command { command: line.command, fault: None };
        told_of(line_user(&asked), asked).unwrap();
    }
    let off = BrokerReply::Refused { refusal: Refusal::ClockOff };
    for asked in [tries, seen] {
        assert_eq!(told_of(None, asked), Ok(off.clone()));
    }
    let out = PersonAsked::SignOut { session: SessionDigest([1; 32]) };
    assert_eq!(told_of(None, Asked::Person { asked: out }), Ok(BrokerReply::Unchanged));
}

fn line_user(asked: &Asked) -> Option<UserName> {
    let Asked::Command { command, .. } = asked else { return None };
    command.user.clone()
}
