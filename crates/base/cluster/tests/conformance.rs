//! What every cluster log does, asked of the real one and of its twin.

mod common;

use common::Rig;
use common::site::Site;
use common::world::World;
use pares_cluster::shared::{Group, Shared};
use pares_cluster::{ClusterLog, EntryError, Members};

/// One whose behaviour is compared.
trait Conforming: Rig {
    fn new(members: u8) -> Self;
    /// Lets time pass until a delegate leads, if one can, and nothing is left to do.
    fn run(&mut self);
    fn kill(&mut self, member: u8);
    fn leader(&self) -> u8;

    fn propose(&mut self, payload: &str) {
        let leader = self.leader();
        self.log(leader).propose(payload.as_bytes()).expect("the delegate takes it");
        self.run();
    }

    fn texts(&self, member: u8) -> Vec<String> {
        let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("text");
        self.site(member).payloads().into_iter().map(text).collect()
    }
}

impl Conforming for World {
    fn new(members: u8) -> World {
        World::new(members, 42)
    }

    fn run(&mut self) {
        (0..150).for_each(|_| self.step());
        self.settle();
    }

    fn kill(&mut self, member: u8) {
        self.crash(member, 0);
    }

    fn leader(&self) -> u8 {
        self.leader().expect("somebody leads")
    }
}

/// Ends of one shared log; who is dead or cut off makes no cycles, and is no delegate for long.
struct Ends {
    group: Group,
    ends: Vec<Option<Shared>>,
    sites: Vec<Site>,
    saved: Vec<Site>,
    alone: Vec<bool>,
}

impl Ends {
    fn here(&self, member: u8) -> bool {
        self.ends[usize::from(member)].is_some() && !self.alone[usize::from(member)]
    }

    fn cycle(&mut self, member: u8) {
        let (log, site) = (&mut self.ends[usize::from(member)], &mut self.sites[usize::from(member)]);
        let log = log.as_mut().expect("open");
        log.cycle(site).expect("never fails");
        if site.lacks.take().is_some() {
            let furthest = self.sites.iter().max_by_key(|site| site.applied).expect("some").clone();
            self.sites[usize::from(member)].copy(&furthest);
            self.ends[usize::from(member)] = None;
            self.ends[usize::from(member)] = Some(self.group.open(member, furthest.applied));
        }
    }
}

impl Rig for Ends {
    type Log = Shared;

    fn log(&mut self, member: u8) -> &mut Shared {
        self.ends[usize::from(member)].as_mut().expect("open")
    }

    fn site(&self, member: u8) -> &Site {
        &self.sites[usize::from(member)]
    }

    fn save(&mut self, member: u8) {
        self.saved[usize::from(member)] = self.site(member).saved();
    }

    fn start(&mut self, member: u8) {
        let at = usize::from(member);
        self.sites[at] = self.saved[at].saved();
        self.ends[at] = Some(self.group.open(member, self.sites[at].applied));
    }

    fn cut_off(&mut self, member: u8) {
        self.alone[usize::from(member)] = true;
    }

    fn heal(&mut self) {
        self.alone.fill(false);
    }
}

impl Conforming for Ends {
    fn new(members: u8) -> Ends {
        let count = usize::from(members);
        let group = Group::new(members);
        let ends = (0..members).map(|member| Some(group.open(member, 0))).collect();
        let (sites, saved) = (vec![Site::default(); count], vec![Site::default(); count]);
        Ends { group, ends, sites, saved, alone: vec![false; count] }
    }

    fn run(&mut self) {
        let members = self.ends.len() as u8;
        let here: Vec<u8> = (0..members).filter(|&member| self.here(member)).collect();
        if !self.group.delegate().is_some_and(|delegate| here.contains(&delegate)) {
            self.group.elect(*here.first().expect("somebody is left"), 0);
        }
        for _ in 0..10 {
            here.iter().for_each(|&member| self.cycle(member));
        }
        assert!(here.iter().all(|&member| !self.log(member).pending()), "there is always more to do");
    }

    fn kill(&mut self, member: u8) {
        self.ends[usize::from(member)] = None;
    }

    fn leader(&self) -> u8 {
        let leads = |member: &u8| self.here(*member) && self.site(*member).role.leads;
        (0..self.ends.len() as u8).find(leads).expect("somebody leads")
    }
}

fn running<R: Conforming>(members: u8) -> R {
    let mut rig = R::new(members);
    rig.run();
    rig
}

fn one_leads_and_all_know_who<R: Conforming>() {
    let rig = running::<R>(3);
    let role = rig.site(rig.leader()).role;
    assert_eq!(role.delegate, Some(rig.leader()));
    for member in 0..3 {
        let seen = rig.site(member).role;
        assert_eq!((seen.term, seen.delegate), (role.term, role.delegate));
        assert_eq!(seen.leads, member == rig.leader());
    }
}

fn only_the_delegate_takes_proposals_and_not_all<R: Conforming>() {
    let mut rig = running::<R>(3);
    let (leader, other) = (rig.leader(), (rig.leader() + 1) % 3);
    let refused = Err(EntryError::NotDelegate { delegate: Some(leader) });
    assert_eq!(rig.log(other).propose(b"x"), refused);
    assert_eq!(rig.log(leader).propose(b""), Err(EntryError::Empty));
    let long = vec![0; 1 << 20];
    let too_large = EntryError::TooLarge { len: 1 << 20, max: (1 << 20) - 32 };
    assert_eq!(rig.log(leader).propose(&long), Err(too_large));
    assert_eq!(rig.log(leader).propose(&long[32..]), Ok(()));
    rig.run();
    assert!((0..3).all(|member| rig.site(member).payloads() == [&long[32..]]));
}

fn a_backlog_is_refused_until_some_is_committed<R: Conforming>() {
    let mut rig = running::<R>(3);
    let leader = rig.leader();
    let long = vec![1; 1 << 19];
    let mut count = 0;
    while rig.log(leader).propose(&long).is_ok() {
        count += 1;
    }
    assert_eq!(count, 128, "64 MiB");
    assert!(matches!(rig.log(leader).propose(b"x"), Err(EntryError::Backlog { bytes }) if bytes == 64 << 20));
    rig.run();
    rig.log(leader).propose(b"x").expect("the delegate takes it");
    rig.run();
    assert_eq!(rig.site(leader).entries.len(), 129);
}

fn all_are_given_the_same_in_the_order_of_the_calls<R: Conforming>() {
    let mut rig = running::<R>(3);
    let leader = rig.leader();
    for number in 0..1000u64 {
        rig.log(leader).propose(&number.to_le_bytes()).expect("the delegate takes it");
        if number % 100 == 7 {
            rig.run();
        }
    }
    rig.run();
    for member in 0..3 {
        assert_eq!(rig.site(member).entries, rig.site(leader).entries, "member {member}");
        assert!((0..1000u64).map(u64::to_le_bytes).eq(rig.site(member).payloads()));
    }
}

fn a_new_delegate_knows_all_before_it_leads<R: Conforming>() {
    let mut rig = running::<R>(3);
    let first = rig.leader();
    rig.propose("a");
    rig.propose("b");
    rig.kill(first);
    rig.run();
    let second = rig.leader();
    assert_ne!(first, second);
    assert!(rig.site(second).role.term > 1);
    assert_eq!(rig.texts(second), ["a", "b"]);
    rig.propose("c");
    rig.start(first);
    rig.run();
    for member in 0..3 {
        assert_eq!(rig.texts(member), ["a", "b", "c"], "member {member}");
    }
}

fn what_a_lost_delegate_proposed_is_nowhere_or_everywhere<R: Conforming>() {
    let mut rig = running::<R>(3);
    let first = rig.leader();
    rig.propose("a");
    rig.cut_off(first);
    rig.log(first).propose(b"in vain").expect("the delegate takes it");
    rig.run();
    assert_ne!(rig.leader(), first);
    rig.propose("b");
    rig.heal();
    rig.run();
    assert!(!rig.site(first).role.leads);
    for member in 0..3 {
        assert_eq!(rig.texts(member), ["a", "b"], "member {member}");
    }
}

fn a_restart_goes_on_behind_the_saved_state<R: Conforming>() {
    let mut rig = running::<R>(3);
    let member = (rig.leader() + 1) % 3;
    rig.propose("a");
    rig.save(member);
    rig.propose("b");
    rig.kill(member);
    rig.propose("c");
    rig.start(member);
    assert_eq!(rig.texts(member), ["a"]);
    rig.run();
    assert_eq!(rig.texts(member), ["a", "b", "c"]);
}

fn resigning_hands_over_without_loss<R: Conforming>() {
    let mut rig = running::<R>(3);
    let first = rig.leader();
    assert_eq!(rig.log((first + 1) % 3).resign(), None);
    rig.log(first).propose(b"a").expect("the delegate takes it");
    let second = rig.log(first).resign().expect("somebody is there");
    assert!(rig.log(first).propose(b"too late").is_err());
    rig.run();
    assert_eq!(rig.leader(), second);
    rig.propose("b");
    for member in 0..3 {
        assert_eq!(rig.texts(member), ["a", "b"], "member {member}");
    }
}

fn claiming_takes_over_without_loss<R: Conforming>() {
    let mut rig = running::<R>(3);
    let first = rig.leader();
    rig.log(first).claim();
    rig.run();
    assert_eq!(rig.leader(), first, "it has what it claims");
    rig.log(first).propose(b"a").expect("the delegate takes it");
    let second = (first + 1) % 3;
    rig.log(second).claim();
    rig.run();
    assert_eq!(rig.leader(), second);
    rig.propose("b");
    for member in 0..3 {
        assert_eq!(rig.texts(member), ["a", "b"], "member {member}");
    }
}

fn who_misses_compacted_entries_needs_a_copy<R: Conforming>() {
    let mut rig = running::<R>(3);
    let (leader, behind) = (rig.leader(), (rig.leader() + 1) % 3);
    rig.propose("a");
    rig.cut_off(behind);
    rig.propose("b");
    rig.propose("c");
    for member in (0..3).filter(|&member| member != behind) {
        rig.save(member);
        let applied = rig.site(member).applied;
        rig.log(member).compact(applied);
    }
    rig.run();
    rig.propose("d");
    rig.heal();
    rig.run();
    assert_eq!((rig.site(behind).copies, rig.site(leader).copies), (1, 0));
    rig.propose("e");
    for member in 0..3 {
        assert_eq!(rig.texts(member), ["a", "b", "c", "d", "e"], "member {member}");
    }
}

fn a_copy_begins_where_the_log_still_is<R: Conforming>() {
    let mut rig = running::<R>(1);
    rig.propose("a");
    rig.propose("b");
    let last = rig.site(0).applied;
    rig.save(0);
    rig.log(0).compact(last - 1);
    rig.run();
    for index in [last - 2, last + 1] {
        assert_eq!(rig.log(0).beginning(index), None);
    }
    let beginning = rig.log(0).beginning(last).expect("it was handed out");
    assert_eq!((beginning.index, beginning.members), (last, Members::first(1)));
}

fn one_alone_needs_nobody<R: Conforming>() {
    let mut rig = running::<R>(1);
    rig.propose("a");
    assert_eq!(rig.log(0).resign(), None);
    rig.kill(0);
    rig.start(0);
    rig.run();
    rig.propose("b");
    assert_eq!(rig.texts(0), ["a", "b"]);
}

macro_rules! both {
    ($($behaviour:ident)*) => {
        mod the_replica { $(#[test] fn $behaviour() { super::$behaviour::<super::World>() })* }
        mod the_twin { $(#[test] fn $behaviour() { super::$behaviour::<super::Ends>() })* }
    };
}

both! {
    one_leads_and_all_know_who
    only_the_delegate_takes_proposals_and_not_all
    a_backlog_is_refused_until_some_is_committed
    all_are_given_the_same_in_the_order_of_the_calls
    a_new_delegate_knows_all_before_it_leads
    what_a_lost_delegate_proposed_is_nowhere_or_everywhere
    a_restart_goes_on_behind_the_saved_state
    resigning_hands_over_without_loss
    claiming_takes_over_without_loss
    who_misses_compacted_entries_needs_a_copy
    a_copy_begins_where_the_log_still_is
    one_alone_needs_nobody
}
