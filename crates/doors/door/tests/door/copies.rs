//! Sessions that receive another member's streams.

use pares_fix::dictionary::{FIX42, FIX44, FixDictionary};
use pares_port::SessionMark;
use pares_types::{MemberId, Reply, Role, Status};
use pares_wire::frame::ClientFrame;

use crate::rig::{Rig, SHARD, answer, trade};

/// Member 7's session 1, told of member 9, after a mark.
fn copy_of_nine(dictionary: &'static FixDictionary, mark: Option<&SessionMark>) -> Rig {
    let mut rig = Rig::new(dictionary);
    rig.copied = Some(MemberId(9));
    rig.says("A", "98=0|108=30|");
    rig.signs_on(mark);
    rig.ends_list();
    rig
}

#[test]
fn reports_to_a_copy_say_whose_order_it_is() {
    for (dictionary, party) in [(&FIX44, " 453=1 448=9 447=D 452=1 "), (&FIX42, " 76=9 ")] {
        let mut rig = copy_of_nine(dictionary, None);
        rig.resumed(1);
        rig.sent();
        rig.told(Reply::Answer(answer(5, 1, Status::Resting, 0, 100)));
        rig.told(Reply::Trade(trade(5, 2, Role::Resting, 40, 60)));
        let told = rig.sent();
        assert_eq!(told.len(), 2);
        assert!(told.iter().all(|told| told.starts_with("8 ") && told.contains(party)), "{told:?}");
    }
}

#[test]
fn a_copy_asks_for_nothing_and_what_it_is_refused_is_its_own() {
    let mut rig = copy_of_nine(&FIX44, None);
    rig.resumed(1);
    rig.sent();
    rig.asked.clear();
    rig.asks("D", "11=1|55=ACME|54=1|38=100|40=2|44=223.82|59=0|");
    rig.sends(&["11=1 17=R .. 150=8 .. !453= .. 58=no_right: "]);
    rig.asks("F", "11=2|41=5|55=ACME|54=1|38=100|");
    rig.asks("G", "11=3|41=5|55=ACME|54=1|38=90|40=2|44=223.82|");
    rig.asks("q", "11=4|530=7|");
    let told = rig.sent();
    let kinds: Vec<&str> = told.iter().map(|told| &told[..1]).collect();
    assert!(kinds == ["9", "9", "r"] && told.iter().all(|told| told.contains("58=no_right: ")), "{told:?}");
    assert!(rig.asked.is_empty(), "the other member's answers would be taken for its own");
}

#[test]
fn mark_positions_belong_to_its_member_streams_only() {
    let of = |copied: Option<u32>| SessionMark {
        member: MemberId(7),
        session: 1,
        next_in: 1,
        out_max: 40,
        copied: copied.map(MemberId),
        told: vec![(SHARD, 5)],
    };
    for (mark, next) in [(of(Some(9)), 5), (of(None), 0), (of(Some(8)), 0)] {
        let rig = copy_of_nine(&FIX44, Some(&mark));
        assert_eq!(rig.asked.last(), Some(&ClientFrame::Resume { shard: Some(SHARD), next }), "{mark:?}");
    }
    let mut rig = copy_of_nine(&FIX44, Some(&of(None)));
    rig.resumed(12);
    let sent = rig.sent_with(&["8", "9", "10", "35", "49", "52", "56", "60"]);
    assert!(sent[0].starts_with("A 34=41 "), "numbers go on: {sent:?}");
    assert_eq!((rig.marks[0].copied, &rig.marks[0].told[..]), (Some(MemberId(9)), &[(SHARD, 12)][..]));
    let mut own = Rig::new(&FIX44);
    own.logs_on(Some(&of(Some(9))), None);
    own.resumed(3);
    assert_eq!((own.marks[0].copied, &own.marks[0].told[..]), (None, &[(SHARD, 3)][..]), "and back");
}
