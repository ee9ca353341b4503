//! What only the real log has: syncs, messages, elections, and the loss of what was promised.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use common::Rig;
use common::site::Site;
use common::world::{Weather, World};
use pares_cluster::memory::Disk;
use pares_cluster::{
    ClusterLog, EntryError, Incarnation, JournalError, LogError, MemberId, MemberRole, MessageError, Replica,
    ReplicaConfig, ReplicaError,
};

/// A world of three in which a member leads and nothing is under way.
fn calm(seed: u64) -> (World, u8) {
    let mut world = World::new(3, seed);
    let leader = world.elect();
    world.settle();
    (world, leader)
}

/// A cycle of a member, and what it sends.
fn cycled(world: &mut World, member: u8) -> Vec<(u8, Vec<u8>)> {
    let state = &mut world.members[usize::from(member)];
    state.log.as_mut().unwrap().cycle(&mut state.site).unwrap();
    std::mem::take(&mut state.site.outbox)
}

/// What it sends to that one.
fn message_to(world: &mut World, member: u8, other: u8) -> Option<Vec<u8>> {
    cycled(world, member).into_iter().find(|(to, _)| *to == other).map(|(_, message)| message)
}

#[test]
fn a_cluster_of_one_commits_in_the_cycle_that_proposes() {
    let mut world = World::new(1, 4);
    world.cycle(0);
    assert!(world.site(0).role.leads, "no time passed and nobody was asked");
    let syncs = world.members[0].disk.syncs();
    world.log(0).propose(b"alone").unwrap();
    world.log(0).propose(b"together").unwrap();
    world.cycle(0);
    assert_eq!(world.site(0).payloads(), [&b"alone"[..], b"together"]);
    assert_eq!(world.members[0].disk.syncs() - syncs, 1);
    assert_eq!(world.members[0].disk.unsynced(), 0);
    assert!(!world.log(0).pending());
}

#[test]
fn many_proposals_cost_one_sync_and_one_message_per_member() {
    let (mut world, leader) = calm(5);
    let syncs: Vec<u64> = world.members.iter().map(|member| member.disk.syncs()).collect();
    for number in 0..256u64 {
        world.log(leader).propose(&number.to_le_bytes()).unwrap();
    }
    let outbox = cycled(&mut world, leader);
    assert_eq!(outbox.len(), 2);
    for (to, message) in outbox {
        world.log(to).receive(leader, &message).unwrap();
        world.cycle(to);
    }
    world.settle();
    for (member, before) in world.members.iter().zip(syncs) {
        assert_eq!(member.site.entries.len(), 256);
        assert_eq!(member.disk.syncs() - before, 1);
    }
}

#[test]
fn oversized_batch_is_split_without_waiting() {
    let (mut world, leader) = calm(6);
    let long = vec![1; 700_000];
    (0..4).for_each(|_| world.log(leader).propose(&long).unwrap());
    assert_eq!(cycled(&mut world, leader).len(), 8);
}

#[test]
fn an_acknowledgement_waits_for_the_sync() {
    let (mut world, leader) = calm(7);
    let other = (leader + 1) % 3;
    world.log(leader).propose(b"x").unwrap();
    let message = message_to(&mut world, leader, other).unwrap();
    world.log(other).receive(leader, &message).unwrap();
    let state = &mut world.members[usize::from(other)];
    state.disk.fail_in(1);
    let failed = Err(LogError::Journal(JournalError::Simulated));
    assert_eq!(state.log.as_mut().unwrap().cycle(&mut state.site), failed);
    assert_eq!(state.site.outbox, []);
    state.disk.repair();
    assert_eq!(state.log.as_mut().unwrap().cycle(&mut state.site), failed, "it has stopped for good");
    assert!(matches!(state.log.as_mut().unwrap().propose(b"x"), Err(EntryError::NotDelegate { .. })));
}

#[test]
fn a_delegate_alone_steps_down() {
    let (mut world, leader) = calm(8);
    world.cut_off(leader);
    let gone =
        |world: &World| world.site(leader).role == MemberRole { delegate: None, ..world.site(leader).role };
    assert!(world.run_until(25, gone), "two beginnings of election_ticks and an answer under way");
    assert!(!world.site(leader).role.leads);
}

#[test]
fn lost_delegate_connection_is_replaced_at_once() {
    for seed in 0..30 {
        let (mut world, leader) = calm(seed);
        world.crash(leader, 0);
        world.hang_up(leader);
        let leads = |world: &World| world.leader().is_some();
        assert!(
            world.run_until(9, leads),
            "seed {seed}: less than any draw, though one of both may know less"
        );
    }
}

#[test]
fn impatient_members_replace_a_silent_delegate_at_once() {
    for seed in 0..30 {
        let (mut world, leader) = calm(seed);
        world.crash(leader, 0);
        let (first, second) = ((leader + 1) % 3, (leader + 2) % 3);
        for _ in 0..3 {
            world.log(first).impatient();
            world.settle();
            assert_eq!(world.leader(), None, "seed {seed}: the other has heard the delegate just now");
        }
        world.log(second).impatient();
        world.settle();
        assert_eq!(world.leader(), Some(second), "seed {seed}");
    }
}

#[test]
fn who_is_refused_while_impatient_asks_again() {
    let (mut world, leader) = calm(15);
    world.crash(leader, 0);
    let (first, second) = ((leader + 1) % 3, (leader + 2) % 3);
    world.cut_off(first);
    world.log(first).impatient();
    world.log(second).impatient();
    world.settle();
    world.heal();
    assert_eq!(world.leader(), None, "neither hears the other");
    world.log(first).impatient();
    world.settle();
    assert_eq!(world.leader(), Some(first));
}

#[test]
fn an_impatient_member_alone_changes_nothing() {
    let (mut world, leader) = calm(16);
    let role = world.site(leader).role;
    for number in 0..100 {
        world.log((leader + 1) % 3).impatient();
        world.log(leader).impatient();
        world.log(leader).propose(format!("{number}").as_bytes()).unwrap();
        (0..3).for_each(|_| world.step());
    }
    (0..10).for_each(|_| world.step());
    assert_eq!(world.site(leader).role, role);
    assert_eq!(world.site((leader + 1) % 3).payloads().len(), 100);
}

#[test]
fn less_informed_member_yields_to_better_one() {
    for seed in 0..30 {
        let (mut world, leader) = calm(seed);
        let [first, second] =
            [0, 1, 2].into_iter().filter(|member| *member != leader).collect::<Vec<_>>()[..]
        else {
            panic!("three without one are two");
        };
        world.cut_off(first);
        world.log(leader).propose(b"x").unwrap();
        world.settle();
        world.heal();
        world.crash(leader, 0);
        world.hang_up(leader);
        let leads = |world: &World| world.leader() == Some(second);
        assert!(
            world.run_until(12, leads),
            "seed {seed}: the first has stood in vain, and the second draws nothing"
        );
    }
}

#[test]
fn a_connection_that_ends_though_both_ends_live_changes_nothing() {
    let (mut world, leader) = calm(12);
    let role = world.site(leader).role;
    for number in 0..100 {
        world.log((leader + 1) % 3).lost(leader);
        world.log(leader).propose(format!("{number}").as_bytes()).unwrap();
        (0..7).for_each(|_| world.step());
    }
    assert_eq!(world.site(leader).role, role, "the third hears it, and says no");
    assert_eq!(world.site((leader + 1) % 3).payloads().len(), 100);
}

#[test]
fn who_was_away_does_not_disturb_the_delegate() {
    let (mut world, leader) = calm(9);
    let role = world.site(leader).role;
    world.cut_off((leader + 1) % 3);
    (0..500).for_each(|_| world.step());
    world.heal();
    (0..100).for_each(|_| world.step());
    assert_eq!(world.site(leader).role, role, "it asks before it begins a term");
    assert_eq!(world.site((leader + 1) % 3).role, MemberRole { leads: false, ..role });
}

#[test]
fn returning_member_counts_before_handing_out() {
    let (mut world, leader) = calm(13);
    let (behind, dead) = ((leader + 1) % 3, (leader + 2) % 3);
    world.cut_off(behind);
    (0..60).for_each(|number| world.log(leader).propose(&vec![number; 100_000]).unwrap());
    world.settle();
    world.heal();
    world.crash(dead, 0);
    world.log(leader).propose(b"needs who came back").unwrap();
    let has_all = |world: &World, member: u8| world.site(member).entries.len() == 61;
    assert!(world.run_until(20, |world| has_all(world, leader)));
    world.step(); // the other hears what is committed
    world.crash(leader, 0);
    world.lose_all();
    world.hang_up(leader);
    let said = world.trace;
    assert!(!has_all(&world, behind));
    while !has_all(&world, behind) {
        assert_eq!(world.trace, said, "it stands and could not lead");
        world.step();
    }
    assert!(world.run_until(20, |world| world.trace != said), "it stands");
}

#[test]
fn a_resigning_delegate_that_nobody_hears_goes_on() {
    let (mut world, leader) = calm(10);
    world.weather = Weather { loss_percent: 100, ..Weather::default() };
    assert!(world.log(leader).resign().is_some());
    assert_eq!(world.log(leader).propose(b"x"), Err(EntryError::Resigning));
    world.step();
    world.weather = Weather::default();
    // For as long as an election may take it waits for the other.
    (0..10).for_each(|_| world.step());
    world.log(leader).propose(b"y").unwrap();
    world.settle();
    assert_eq!(world.site(leader).payloads(), [b"y"]);
}

/// A cluster of three, of which one lacks what the others have let go of; and who leads, and who lacks.
fn one_lacks(seed: u64) -> (World, u8, u8) {
    let (mut world, leader) = calm(seed);
    let behind = (leader + 1) % 3;
    world.cut_off(behind);
    for number in 0..10u8 {
        world.log(leader).propose(&[number]).unwrap();
    }
    world.settle();
    let applied = world.site(leader).applied;
    world.log(leader).compact(applied);
    world.settle();
    world.heal();
    (world, leader, behind)
}

#[test]
fn who_lacks_what_is_gone_is_told_so_again() {
    let (mut world, _, behind) = one_lacks(11);
    assert!(world.run_until(50, World::a_lack_is_under_way));
    world.lose_all();
    assert!(world.run_until(100, |world| world.site(behind).entries.len() == 10));
    assert_eq!(world.site(behind).copies, 1);
}

#[test]
fn restarted_log_reopens_and_keeps_promises() {
    let (mut world, leader, behind) = one_lacks(12);
    assert!(world.run_until(100, |world| world.site(behind).copies == 1));
    world.settle();
    let (term, held) = (world.site(behind).role.term, world.log(behind).held());
    world.crash(behind, 0);
    world.start(behind);
    world.cycle(behind);
    assert_eq!((world.site(behind).role.term, world.log(behind).held()), (term, held));
    world.log(leader).propose(b"after").unwrap();
    assert!(world.run_until(50, |world| world.site(behind).entries == world.site(leader).entries));
}

#[test]
fn member_with_lost_disk_votes_again_when_complete() {
    let (mut world, leader) = calm(17);
    for number in 0..10u8 {
        world.log(leader).propose(&[number]).unwrap();
    }
    world.settle();
    let lost = (leader + 1) % 3;
    world.lose_disk(lost);
    let id = world.members[usize::from(lost)].id;
    let mut learned = false;
    for _ in 0..100 {
        world.step();
        let members = world.log(leader).members().clone();
        assert!(
            members
                .voters
                .iter()
                .filter(|member| member.number == lost)
                .all(|member| *member == id || !learned)
        );
        learned |= members.learners.contains(&id);
    }
    let voters = &world.log(leader).members().voters;
    assert!(learned && voters.contains(&id) && voters.len() == 3, "{voters:?}");
    // Of three again, another may fail.
    let other = (leader + 2) % 3;
    world.crash(other, 0);
    world.log(leader).propose(b"after").unwrap();
    world.settle();
    assert_eq!(world.site(lost).entries, world.site(leader).entries);
}

#[test]
fn a_life_of_a_disk_that_was_replaced_counts_for_nothing() {
    let (mut world, leader) = calm(18);
    let lost = (leader + 1) % 3;
    let old = (world.members[usize::from(lost)].disk.clone(), world.members[usize::from(lost)].id);
    world.lose_disk(lost);
    assert!(world.run_until(100, |world| !world.members[usize::from(lost)].joins));
    world.crash(lost, 0);
    (world.members[usize::from(lost)].disk, world.members[usize::from(lost)].id) = old;
    (world.members[usize::from(lost)].site, world.members[usize::from(lost)].saved) = Default::default();
    world.start(lost);
    world.crash((leader + 2) % 3, 0);
    world.log(leader).propose(b"x").unwrap();
    (0..100).for_each(|_| world.step());
    assert!(world.leader().is_none(), "the old disk is no majority with the delegate");
    assert!(world.truth.values().all(|(_, _, payload)| payload != b"x"));
}

#[test]
fn a_member_that_lost_what_it_promised_stops() {
    let (mut world, leader) = calm(13);
    world.log(leader).propose(b"x").unwrap();
    world.settle();
    let other = (leader + 1) % 3;
    world.crash(other, 0);
    world.members[usize::from(other)].disk = Disk::new();
    world.start(other);
    let heartbeat = std::iter::repeat_with(|| {
        world.log(leader).tick();
        message_to(&mut world, leader, other)
    });
    let heartbeat = heartbeat.flatten().next().unwrap();
    world.log(other).receive(leader, &heartbeat).unwrap();
    let forgotten = LogError::Forgotten { commit: world.site(leader).applied, last: 0 };
    assert_eq!(world.log(other).cycle(&mut Site::default()), Err(forgotten));
}

#[test]
fn a_log_belongs_to_one_member_of_one_cluster() {
    let (world, _) = calm(14);
    let disk = world.members[1].disk.clone();
    drop(world);
    let open = |config: &ReplicaConfig| Replica::open(disk.clone(), config).map(|_| ());
    let foreign = Err(ReplicaError::Foreign { number: 1 });
    assert_eq!(open(&ReplicaConfig::new(2, 3)), foreign);
    let other_life = MemberId { number: 1, incarnation: Incarnation(5) };
    assert_eq!(open(&ReplicaConfig { id: other_life, ..ReplicaConfig::new(1, 3) }), foreign);
    assert_eq!(open(&ReplicaConfig { database: "other".into(), ..ReplicaConfig::new(1, 3) }), foreign);
    assert_eq!(open(&ReplicaConfig::new(1, 3)), Ok(()));
    let applied = ReplicaConfig { applied: 100, ..ReplicaConfig::new(1, 3) };
    assert_eq!(open(&applied), Err(ReplicaError::Short { applied: 100, last: 1 }));
}

#[test]
fn a_state_older_than_the_log_is_refused() {
    let mut world = World::new(1, 15);
    world.cycle(0);
    (0..5u8).for_each(|number| world.log(0).propose(&[number]).unwrap());
    world.cycle(0);
    world.log(0).compact(4);
    world.cycle(0);
    assert_eq!(world.log(0).held(), (4, 6));
    assert_eq!(world.members[0].disk.records(), 4, "two entries, the base, the hard state");
    let disk = world.members[0].disk.clone();
    let behind = ReplicaConfig { applied: 3, ..ReplicaConfig::new(0, 1) };
    assert_eq!(Replica::open(disk, &behind).map(|_| ()), Err(ReplicaError::Behind { applied: 3, base: 4 }));
}

#[test]
fn an_impossible_configuration_is_refused() {
    let good = || ReplicaConfig::new(0, 3);
    for bad in [
        ReplicaConfig::new(9, 3),
        ReplicaConfig::new(0, 10),
        ReplicaConfig { heartbeat_ticks: 10, ..good() },
        ReplicaConfig { election_ticks: 10..10, ..good() },
        ReplicaConfig { inflight_max: 0, ..good() },
    ] {
        assert!(matches!(Replica::open(Disk::new(), &bad), Err(ReplicaError::Config { .. })), "{bad:?}");
    }
}

#[test]
fn bytes_that_are_no_message_are_refused_and_change_nothing() {
    let (mut world, leader) = calm(16);
    let other = (leader + 1) % 3;
    world.log(leader).propose(b"payload").unwrap();
    let message = message_to(&mut world, leader, other).unwrap();
    for len in 0..message.len() {
        let refused = world.log(other).receive(leader, &message[..len]);
        assert!(matches!(refused, Err(MessageError::Malformed { .. })), "{len} bytes");
    }
    let misdirected = Err(MessageError::Misdirected { from: leader, to: other });
    assert_eq!(world.log(other).receive((leader + 2) % 3, &message), misdirected);
    assert_eq!(world.log((leader + 2) % 3).receive(leader, &message), misdirected);
    assert_eq!(world.log(other).receive(9, &message), misdirected);
    let longer = [&message[..], b"x"].concat();
    assert!(world.log(other).receive(leader, &longer).is_err());
    assert!(!world.log(other).pending());
    assert_eq!(world.log(other).receive(leader, &message), Ok(()));
    assert!(world.log(other).pending());
}
