//! What an orderer's disk may forget.

use super::*;

#[test]
fn disks_lost_one_after_the_other_vote_again_behind_a_copy() {
    let (mut rig, _) = running(2);
    for round in 0..7 {
        let lost = round % 3;
        rig.kill(lost);
        rig.hosts[lost].world.remove_dir(format!("orderer-{lost}"));
        rig.start(lost);
        assert_eq!(rig.counter(lost, "votes"), 0, "it has forgotten what it promised");
        rig.run_until_whole(3 + round as u64);
        assert!(rig.hosts[lost].world.complaints().contains("its journal is not there"));
    }
}

#[test]
fn lost_power_makes_another_member_and_an_end_in_order_does_not() {
    let (mut rig, leader) = running(2);
    for index in 0..3 {
        rig.hosts[index].node.as_mut().unwrap().stop().unwrap();
        rig.kill(index);
        rig.hosts[index].world.boot();
    }
    (0..3).for_each(|index| rig.start(index));
    rig.run_until_whole(3);
    rig.kill(leader);
    rig.hosts[leader].world.boot();
    rig.start(leader);
    rig.run_until_whole(4);
    let told = |index: usize| rig.hosts[index].world.complaints().contains("this machine was started again");
    assert!((0..3).all(|index| told(index) == (index == leader)));
}

#[test]
fn after_a_loss_of_all_power_nobody_leads() {
    let (mut rig, _) = running(2);
    for index in 0..3 {
        rig.kill(index);
        rig.hosts[index].world.boot();
        rig.start(index);
    }
    rig.ask(&request(0, 3));
    for _ in 0..5_000 {
        rig.step();
        assert_eq!((rig.leader(), rig.counter(0, "ordered")), (None, 0));
    }
}

#[test]
fn a_damaged_orders_log_goes_aside_and_its_host_votes_again() {
    let (mut rig, leader) = running(2);
    rig.kill(leader);
    rig.hosts[leader].world.flip(NodeId::Orderer(HostId(leader as u8)), pares_log::Offset::START);
    rig.start(leader);
    rig.run_until_whole(3);
    let Host { world, .. } = &rig.hosts[leader];
    assert!(world.complaints().contains("its orders log is damaged"), "{}", world.complaints());
    let aside = format!("orderer-{leader}/{}1", pares_log::DAMAGED);
    assert!(world.list(aside.as_ref()).unwrap().contains(&"journal-1".to_owned()), "with the journal");
}

#[test]
fn a_note_that_is_not_whole_is_none() {
    let (mut rig, _) = running(1);
    rig.kill(0);
    let (path, text) = first_life(HostId(0));
    whole_file::write(&rig.hosts[0].world, &path, &text.replace('0', "1")).unwrap();
    rig.start(0);
    rig.run_until_whole(2);
    assert!(rig.hosts[0].world.complaints().contains("the note about its journal is damaged"));
}

#[test]
fn an_older_journal_is_found_out_and_is_another_members() {
    let (mut rig, leader) = running(2);
    let old = (leader + 1) % 3;
    let disk = rig.hosts[old].disk.copy();
    rig.run_until_whole(3);
    rig.kill(old);
    rig.hosts[old].disk = disk;
    rig.start(old);
    let told = |rig: &Rig| rig.hosts[old].world.complaints().contains("its journal is not there");
    rig.run_until(told);
    rig.run_until_whole(4);
}
