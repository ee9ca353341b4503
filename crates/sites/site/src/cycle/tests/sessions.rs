//! What a client has seen, reads of the latest, and what one transaction holds against another.

use std::sync::mpsc::channel;

use pares_sql::{Executed, Ready, Verdict};
use pares_store::Work;

use super::*;
use crate::items::Items;
use crate::view::View;

/// Longer than a site waits for what it does not have.
const PATIENCE_TICKS: u32 = 160;

fn read_seeing(seen: Horizon) -> Ask {
    Ask::Read(1, seen, b"get a".to_vec())
}

/// A site whose item `a` is 5, at version 1.
fn begun() -> (Machine, TestSite) {
    let (machine, mut site) = Machine::with_site(&[1]);
    assert_eq!(machine.ask(&mut site, &execute(1, "put a 5")), done("a is 5", 1));
    (machine, site)
}

/// What a client receives, and how far that goes.
fn told(machine: &Machine) -> Option<(Code, u64)> {
    machine.heard().map(|reply| (reply.code, reply.horizon.version.0))
}

#[test]
fn lagging_site_answers_client_once_caught_up() {
    let (machine, mut site) = begun();
    let later = [read_seeing(seen(3)), execute_seeing(2, seen(2), "get a")];
    assert_eq!(later.map(|ask| machine.ask(&mut site, &ask)), [None, None]);
    machine.client_sent(&execute(3, "put a 6").to_bytes());
    machine.pass(&mut site, 16);
    let mut told: Vec<Reply> = std::iter::from_fn(|| machine.heard()).collect();
    told.sort_by_key(|reply| reply.to);
    let told = told.iter().map(|reply| (reply.to, &reply.body[..], reply.horizon));
    let expected = [(1, &b"6"[..], seen(3)), (2, b"6", seen(3)), (3, b"a is 6", seen(2))];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[test]
fn client_ahead_of_all_is_redirected_and_holds_place() {
    let (machine, mut site) = begun();
    let lie = seen(1 << 63);
    for ask in [read_seeing(lie), execute_seeing(2, lie, "put a 6")] {
        assert_eq!(machine.ask(&mut site, &ask), None);
    }
    assert_eq!(machine.ask(&mut site, &execute_seeing(3, lie, "put a 7")).unwrap().code, Code::Elsewhere);
    assert_eq!(machine.ask(&mut site, &read_seeing(lie)).unwrap().code, Code::Busy);
    assert_eq!(machine.ask(&mut site, &read(1, "get a")), done("5", 1), "others go on");
    machine.pass(&mut site, PATIENCE_TICKS);
    assert_eq!([told(&machine), told(&machine)], [Some((Code::Elsewhere, 0)); 2]);
    assert_eq!((site.report().open, site.report().delivered), (0, 1), "nothing of it is done");
}

#[test]
fn what_was_seen_of_another_database_is_told_so() {
    let (machine, mut site) = begun();
    let other = Horizon::of("another", Version(1));
    let latest = Ask::Latest(1, other, b"get a".to_vec());
    for ask in [read_seeing(other), latest, execute_seeing(2, other, "put a 6")] {
        assert_eq!(machine.ask(&mut site, &ask).unwrap().code, Code::Impossible);
    }
}

/// A database that was begun again under its old identity has none of the versions that the client has seen.
#[test]
fn a_database_begun_anew_is_behind_all_that_was_seen_of_it() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.client_sent(&read_seeing(seen(1)).to_bytes());
    machine.pass(&mut site, PATIENCE_TICKS);
    assert_eq!(told(&machine), Some((Code::Elsewhere, 0)));
}

#[test]
fn an_answer_that_another_site_gave_says_how_far_that_site_was() {
    let (machine, mut site) = Machine::with_site(&[1, 1]);
    machine.ask(&mut site, &execute(1, "put a 5"));
    site.cycle().requests.open.get_mut(&ID).unwrap().state = crate::requests::State::Forwarded { ticks: 0 };
    machine.site_sent(&Between::Forwarded(ID, Code::Done, Version(77), b"done"));
    machine.pass(&mut site, 1);
    assert_eq!(machine.heard(), done("done", 77));
}

#[test]
fn forwarded_request_runs_on_seen_version_or_not() {
    let (machine, mut site) = begun();
    machine.site_sent(&Between::Forward(TransactionId { client: 2, sequence: 1 }, Version(9), b"put a 6"));
    machine.pass(&mut site, PATIENCE_TICKS);
    assert_eq!((site.report().open, site.report().delivered), (0, 1));
}

#[test]
fn the_latest_is_read_behind_an_empty_transaction() {
    let (machine, mut site) = begun();
    let latest = Ask::Latest(1, Horizon::default(), b"get a".to_vec());
    assert_eq!(machine.ask(&mut site, &latest), done("5", 2));
    assert_eq!(machine.ask(&mut site, &latest), done("5", 3));
    machine.pass(&mut site, PATIENCE_TICKS);
    assert_eq!(site.report().delivered, 3, "where nobody asks, nothing is ordered");
}

/// Its number of an earlier life, before its disk was lost: it is committed already, and lies before what was answered since.
#[test]
fn a_barrier_of_an_earlier_life_is_not_taken_for_a_later_one() {
    let (machine, mut site) = begun();
    let latest = Ask::Latest(1, Horizon::default(), b"get a".to_vec());
    assert_eq!(machine.ask(&mut site, &latest), done("5", 2));
    drop(site);
    machine.notes.borrow_mut().remove("life");
    let mut site = machine.begin(&[1]).unwrap();
    machine.pass(&mut site, 3);
    assert_eq!(machine.ask(&mut site, &latest), done("5", 3), "one of its own is ordered");
}

#[test]
fn the_latest_is_not_known_while_a_cluster_does_not_answer() {
    let (machine, mut site) = Machine::with_site(&[1, 1]);
    for round in 1..=3 {
        machine.client_sent(&Ask::Latest(round, Horizon::default(), b"sum".to_vec()).to_bytes());
        machine.pass(&mut site, PATIENCE_TICKS);
        assert_eq!(told(&machine), Some((Code::Elsewhere, 0)));
    }
    assert_eq!(site.report().delivered, 1, "one barrier is under way at a time");
}

/// What becomes of two requests, each executed without what the other does.
fn concurrent(requests: [&str; 2]) -> Vec<Verdict> {
    let machine = Machine::default();
    let mut site = machine.cycle(&[1]);
    let pass = |site: &mut Cycle<Machine, Items>| {
        for _ in 0..PATIENCE_TICKS {
            machine.now.set(machine.now.get() + TICK);
            site.turn(Duration::ZERO).unwrap();
            machine.step();
        }
    };
    site.submit(ID, b"together put a 1; put b 1".to_vec());
    pass(&mut site);
    let snapshot = site.base.version();
    let executed = |request: &str| {
        let mut work = Work::new(View::new(site.site.overlay(), &*site.base, snapshot));
        Items.execute(request.as_bytes(), &mut work).unwrap();
        work.finish(ID, 1, snapshot).writes
    };
    let executed = requests.map(executed);
    let outcomes = executed.map(|writes| {
        let (verdict, outcome) = channel();
        let executed = Executed { snapshot, writes, ..Executed::default() };
        site.transact(Ready { executed, verdict });
        outcome
    });
    pass(&mut site);
    let told: Vec<Verdict> = outcomes.into_iter().map(|outcome| outcome.try_recv().unwrap()).collect();
    let done = told.iter().filter(|told| **told == Verdict::Committed).count() as u64;
    let work = &site.work;
    assert_eq!((work.executed, work.done, work.lost), (3, 1 + done, 2 - done), "the first request and these");
    told
}

#[test]
fn two_that_expect_what_the_other_changes_do_not_both_commit() {
    let are_done = |requests| concurrent(requests).iter().filter(|told| **told == Verdict::Committed).count();
    assert_eq!(are_done(["together expect a 1; put b 2", "together expect b 1; put a 2"]), 1);
    assert_eq!(are_done(["together absent c; put d 2", "together absent d; put c 2"]), 1);
    assert_eq!(are_done(["together expect a 1; put b 2", "add a 1"]), 1);
    assert_eq!(
        are_done(["together get a; put b 2", "together get b; put a 2"]),
        2,
        "what is only read is not held"
    );
}

#[test]
fn several_items_are_compared_and_set_at_once_or_nothing_is() {
    let (machine, mut site) = begun();
    let told = |site: &mut TestSite, sequence, request: &str| {
        let reply = machine.ask(site, &execute(sequence, request)).unwrap();
        (reply.code, String::from_utf8(reply.body).unwrap())
    };
    let set = "together expect a 5; absent b; put a 6; put b two words";
    assert_eq!(told(&mut site, 2, set).0, Code::Done);
    assert_eq!(told(&mut site, 3, set), (Code::Refused, "changed: a is 6, not 5".into()));
    let absent = "together expect a 6; absent b; put a 7";
    assert_eq!(told(&mut site, 4, absent), (Code::Refused, "changed: there is an item b".into()));
    assert_eq!(
        told(&mut site, 5, "together expect b two words; expect a 6; get a").1.lines().last(),
        Some("6")
    );
    assert_eq!(told(&mut site, 6, "expect a \"6\"").1, "changed: a is 6, not \"6\"");
}
