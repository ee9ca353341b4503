//! Logging in, going on, heartbeats, the end.

use pares_port::LogonProof;
use pares_types::{ClientOrderId, Reason, Reply, ShardId, Status};
use pares_wire::frame::{ClientFrame, GatewayFrame, SignedOn};

use crate::rig::{Rig, SHARD, answer, enter, login, packet, trade};

fn accepted(session: &str, next: u64) -> Vec<(char, Vec<u8>)> {
    vec![('A', format!("{session:>10}{next:>20}").into_bytes())]
}

fn resumes(rig: &Rig, next: u64) -> bool {
    rig.asked.last() == Some(&ClientFrame::Resume { shard: Some(SHARD), next })
}

#[test]
fn a_login_with_a_number_goes_on_there() {
    let mut rig = Rig::new();
    rig.gives(&login("7", "1-0", "42"));
    let sign_on = rig.signs_on.unwrap();
    assert_eq!((sign_on.member.get(), sign_on.session.get(), sign_on.flags.get()), (7, 1, 2));
    rig.hears(GatewayFrame::SignedOn(SignedOn::default()));
    assert_eq!(rig.packets(), []);
    rig.lists();
    assert!(resumes(&rig, 42), "{:?}", rig.asked);
    assert_eq!(rig.packets(), accepted("1-0", 42));
    // What lies before is not told again, and no packet is out of turn.
    rig.told(Reply::Trade(trade(5, 41)));
    assert_eq!(rig.packets(), []);
    rig.told(Reply::Trade(trade(5, 42)));
    assert_eq!(rig.packets().len(), 1);
    rig.told(Reply::Trade(trade(5, 44)));
    assert_eq!(rig.texts(), ["+ gap 43", "Z "]);
    assert!(rig.is_closed);
}

#[test]
fn neither_a_door_nor_a_proof_prints_or_keeps_the_password() {
    let password = *b"secret    ";
    let (as_bytes, mut rig) = (format!("{password:?}"), Rig::new());
    rig.gives(&login("7", "1-0", "42"));
    assert!(rig.signs_on.is_some() && !format!("{:?}", rig.door).contains(&as_bytes));
    rig.hears(GatewayFrame::SignedOn(SignedOn::default()));
    assert!(!format!("{:?}", rig.door).contains(&as_bytes));
    assert_eq!(format!("{:?}", LogonProof::Token(password)), "Token");
}

/// To a gateway the highest number says that nothing is wanted any more.
#[test]
fn highest_number_is_awaited_like_any_unused() {
    let mut rig = Rig::new();
    rig.gives(&login("7", "1-0", &u64::MAX.to_string()));
    rig.hears(GatewayFrame::SignedOn(SignedOn::default()));
    rig.lists();
    assert!(resumes(&rig, u64::MAX - 1), "{:?}", rig.asked);
}

#[test]
fn a_login_without_a_number_begins_with_what_comes() {
    let mut rig = Rig::new();
    rig.gives(&login("7", "", "0"));
    rig.hears(GatewayFrame::SignedOn(SignedOn::default()));
    rig.lists();
    assert!(resumes(&rig, 0));
    assert_eq!(rig.packets(), []);
    rig.hears(GatewayFrame::Resumed { shard: SHARD, next: 9, reason: Reason::None });
    assert_eq!(rig.packets(), accepted("1-0", 9));
}

#[test]
fn what_is_sent_before_the_answer_is_taken_then() {
    let mut rig = Rig::new();
    rig.gives(&[login("7", "1-0", "1"), packet(b'U', &enter(1, "ACME", &[]))].concat());
    rig.hears(GatewayFrame::SignedOn(SignedOn::default()));
    rig.lists();
    assert!(matches!(rig.asked.last(), Some(ClientFrame::Request(_))), "{:?}", rig.asked);
}

#[test]
fn who_is_not_let_in_is_told_how() {
    for (member, session, next, code) in [
        ("", "1-0", "1", b'A'),
        ("07", "1-0", "1", b'A'),
        ("7", "1-2", "1", b'S'),
        ("7", "1", "1", b'S'),
        ("7", "1-0", "x", b'S'),
    ] {
        let mut rig = Rig::new();
        rig.gives(&login(member, session, next));
        assert_eq!(
            (rig.packets(), rig.is_closed),
            (vec![('J', vec![code])], true),
            "{member} {session} {next}"
        );
    }
    let mut rig = Rig::new();
    rig.gives(&login("7", "1-0", "1"));
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(0), reason: Reason::WrongKey });
    assert_eq!((rig.packets(), rig.is_closed), (vec![('J', vec![b'A'])], true));
    // Another member's orders have no numbers of this session.
    let mut rig = Rig::new();
    rig.gives(&login("7", "1-0", "1"));
    rig.hears(GatewayFrame::SignedOn(SignedOn { copied: 9.into(), ..SignedOn::default() }));
    assert_eq!((rig.packets(), rig.is_closed), (vec![('J', vec![b'A'])], true));
}

#[test]
fn first_packet_must_be_login_or_connection_ends() {
    for bytes in [packet(b'U', b"Q"), vec![0, 0], vec![255, 255, b'L'], packet(b'R', b"")] {
        let mut rig = Rig::new();
        rig.gives(&bytes);
        assert_eq!((rig.packets(), rig.is_closed), (vec![], true));
    }
}

#[test]
fn each_end_hears_the_other() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.waits(999_999_999);
    assert_eq!(rig.packets(), []);
    rig.waits(1);
    assert_eq!(rig.packets(), [('H', vec![])]);
    for _ in 0..20 {
        rig.waits(1_000_000_000);
        rig.gives(&packet(b'R', b""));
    }
    assert!(!rig.is_closed);
    // Half a packet is no sign of life.
    rig.gives(&[0]);
    rig.waits(14_999_999_999);
    assert!(!rig.is_closed);
    rig.waits(1);
    assert!(rig.is_closed);
}

#[test]
fn a_logout_ends_the_connection() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.gives(&packet(b'O', b""));
    assert!(rig.is_closed);
}

#[test]
fn a_session_that_is_ended_is_told_why() {
    let mut rig = Rig::logged_on("1-0", 1);
    rig.told(Reply::Rejected { client_order_id: ClientOrderId(0), reason: Reason::TakenOver });
    assert_eq!((rig.texts(), rig.is_closed), (vec!["+ taken_over".into(), "Z ".into()], true));
    let mut rig = Rig::logged_on("1-0", 1);
    rig.hears(GatewayFrame::Resumed { shard: SHARD, next: 70, reason: Reason::NotKept });
    assert_eq!((rig.texts(), rig.is_closed), (vec!["+ not_kept 70".into(), "Z ".into()], true));
}

#[test]
fn another_shard_s_stream_is_not_told() {
    let mut rig = Rig::logged_on("1-0", 1);
    let answer = pares_types::Answer { shard: ShardId(1), ..answer(1, 1, Status::Resting, 0, 100) };
    rig.told(Reply::Answer(answer));
    assert_eq!(rig.packets(), []);
}
