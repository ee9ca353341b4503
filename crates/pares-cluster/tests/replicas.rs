//! Three replicas on one simulated network, in fair weather.

mod common;

use common::world::World;
use pares_cluster::{ClusterLog, ProposeError, Role};

#[test]
fn three_replicas_elect_a_delegate_and_commit_everywhere() {
    let mut world = World::new(3, 1);
    let leader = world.elect();
    for number in 0..100u8 {
        world.log(leader).propose(&[number, 7]).unwrap();
    }
    assert!(world.run_until(20, |world| (0..3).all(|member| world.site(member).entries.len() == 100)));
    let expected: Vec<[u8; 2]> = (0..100).map(|number| [number, 7]).collect();
    for member in 0..3 {
        assert_eq!(world.site(member).payloads(), expected, "member {member}");
    }
}

#[test]
fn who_is_not_delegate_says_who_is() {
    let mut world = World::new(3, 2);
    let leader = world.elect();
    world.settle();
    let other = (leader + 1) % 3;
    let refused = ProposeError::NotDelegate { delegate: Some(leader) };
    assert_eq!(world.log(other).propose(b"x"), Err(refused));
    assert_eq!(world.site(other).role, Role { leads: false, ..world.site(leader).role });
}

#[test]
fn a_dead_delegate_is_replaced_and_nothing_committed_is_lost() {
    let mut world = World::new(3, 3);
    let first = world.elect();
    world.log(first).propose(b"before").unwrap();
    world.settle();
    world.crash(first, 0);
    assert!(world.run_until(100, |world| world.leader().is_some()));
    let second = world.leader().unwrap();
    world.log(second).propose(b"after").unwrap();
    world.settle();
    world.start(first);
    assert!(world.run_until(100, |world| world.site(first).entries.len() == 2));
    for member in 0..3 {
        assert_eq!(world.site(member).payloads(), [&b"before"[..], b"after"], "member {member}");
    }
}

#[test]
fn a_cluster_of_one_commits_in_the_cycle_that_proposes() {
    let mut world = World::new(1, 4);
    world.cycle(0);
    assert!(world.site(0).role.leads, "no time passed and nobody was asked");
    world.log(0).propose(b"alone").unwrap();
    world.cycle(0);
    assert_eq!(world.site(0).payloads(), [b"alone"]);
    assert_eq!(world.members[0].disk.unsynced(), 0);
    assert!(!world.log(0).pending());
}
