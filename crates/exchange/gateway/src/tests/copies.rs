//! Drop copy: sessions that receive another member's streams, and may ask for nothing.

use pares_types::{
    ClientOrderId, Entry, List, ListRequest, MemberId, OrderKey, Reason, Reply, Rights, ShardId, Side,
    Timestamp,
};

use super::permits::{Floor, OPERATOR, OTHER, TRADER, key};
use super::world::{Gate, amend, cancel, enter, exchange, mass_cancel};
use crate::{Resume, SessionId};

/// Session 1 of member 9, which session 2 of member 7 copies.
const COPIED: u64 = 20;

fn floor() -> Floor {
    let mut floor = Floor::new();
    floor.register(9, 0, Entry::AddMember);
    floor.register(9, 1, Entry::SetKey(key(4)));
    assert_eq!(floor.sign_on(COPIED, 9, 1), Ok(()));
    floor.register(7, 2, Entry::SetCopied(MemberId(9)));
    assert_eq!(floor.gone(), [(SessionId(OTHER), Reason::Revoked)], "a connection is told of one member");
    assert_eq!(floor.sign_on(OTHER, 7, 2), Ok(()));
    floor
}

/// Has it committed. The orders whose trades each session received.
fn trades(floor: &mut Floor, session: u64, request: pares_types::ClientRequest) -> Vec<(u64, u64)> {
    assert_eq!(floor.ask(session, request), None);
    let name = |reply| if let Reply::Trade(trade) = reply { Some(trade.client_order_id.0) } else { None };
    floor.world.replies(0).into_iter().filter_map(|(session, reply)| Some((session, name(reply)?))).collect()
}

#[test]
fn drop_copy_receives_only_the_copied_member() {
    let mut floor = floor();
    trades(&mut floor, COPIED, enter(501, 1, Side::Sell, 5, 100));
    let told = trades(&mut floor, TRADER, enter(701, 1, Side::Buy, 5, 100));
    assert_eq!(told, [(TRADER, 701), (COPIED, 501), (OTHER, 501)]);
    let Gate { gateway, .. } = &mut floor.world.gates[0];
    let copy = SessionId(OTHER);
    assert_eq!(gateway.on_resume(copy, ShardId(0), 1), Ok(Resume::FromRecord(MemberId(9))));
    let status =
        |session, name| gateway.order_status(SessionId(session), OrderKey::Name(ClientOrderId(name)));
    assert_eq!(status(OTHER, 501), status(COPIED, 501));
    assert_eq!(status(OTHER, 701), Ok(None));
    assert_eq!(gateway.copied(copy), Some(MemberId(9)));
    let own = gateway.own_limits(copy, 0).unwrap();
    assert_eq!((own.member, own.session, own.rights), (MemberId(7), 2, Rights::NONE));
}

#[test]
fn a_list_is_of_the_orders_that_the_session_is_told_of() {
    let mut floor = floor();
    trades(&mut floor, COPIED, enter(501, 1, Side::Sell, 5, 100));
    trades(&mut floor, TRADER, enter(701, 1, Side::Sell, 5, 100));
    for (session, name) in [(OTHER, 501), (TRADER, 701)] {
        let (mut listed, request) =
            (Vec::new(), ListRequest { token: 0, list: List::Orders, instrument: None });
        let gateway = &floor.world.gates[0].gateway;
        let told = gateway.tell_list(SessionId(session), &request, 0, &mut |one| {
            let crate::Listed::Order(status) = one else { panic!("{one:?}") };
            listed.push(status.client_order_id.0);
        });
        assert_eq!((told, listed), (Ok(None), vec![name]));
    }
}

#[test]
fn drop_copy_may_send_nothing_not_even_cancel() {
    let mut floor = floor();
    trades(&mut floor, COPIED, enter(501, 1, Side::Sell, 5, 100));
    for request in [
        enter(801, 1, Side::Sell, 5, 100),
        amend(802, 501, 4, 100),
        cancel(803, 501),
        mass_cancel(804, 0),
        exchange(805, 0, pares_types::Command::Block { member: MemberId(7) }),
        // Neither is it told the answer to a name that its member has used.
        enter(501, 1, Side::Sell, 5, 100),
    ] {
        let asked = floor.world.gates[0].sink.log.len();
        assert_eq!(floor.ask(OTHER, request), Some(Reason::NoRight), "{request:?}");
        assert_eq!(floor.world.gates[0].sink.log.len(), asked);
    }
    // The session that asked is gone: the newest of the member that trades receives the answer, never the copy.
    floor.world.ask(0, COPIED, enter(502, 1, Side::Sell, 5, 101));
    floor.world.gates[0].gateway.on_disconnect(SessionId(COPIED));
    floor.world.replies(0);
    floor.world.settle();
    assert_eq!(floor.world.replies(0), []);
}

#[test]
fn register_change_disconnects_affected_session() {
    let mut floor = floor();
    floor.register(7, 2, Entry::SetCopied(MemberId(7)));
    assert_eq!(floor.gone(), [(SessionId(OTHER), Reason::Revoked)]);
    assert_eq!(floor.sign_on(OTHER, 7, 2), Ok(()));
    assert_eq!(floor.ask(OTHER, enter(801, 1, Side::Sell, 5, 100)), None, "it trades again");
    floor.register(7, 2, Entry::SetCopied(MemberId(9)));
    floor.gone();
    assert_eq!(floor.sign_on(OTHER, 7, 2), Ok(()));
    floor.register(9, 0, Entry::RemoveMember);
    assert_eq!(floor.gone(), [(SessionId(COPIED), Reason::Revoked), (SessionId(OTHER), Reason::Revoked)]);
    assert_eq!(floor.sign_on(OTHER, 7, 2), Err(Reason::WrongKey), "its key goes with the member");
    floor.register(9, 0, Entry::AddMember);
    floor.register(7, 2, Entry::SetKey(key(9)));
    assert_eq!(floor.sign_on(OTHER, 7, 2), Ok(()));
    assert_eq!(
        floor.world.gates[0].gateway.copied(SessionId(OTHER)),
        None,
        "who has that number now is another"
    );
}

#[test]
fn a_copy_counts_among_the_sessions_of_the_member_whose_it_is() {
    let mut floor = floor();
    let Gate { gateway, sink, .. } = &mut floor.world.gates[0];
    assert_eq!(gateway.on_sign_on(SessionId(30), (MemberId(7), 2), false, sink), Ok(()));
    assert_eq!(floor.gone(), [(SessionId(OTHER), Reason::TakenOver)], "and is taken over as others are");
    floor.register(7, 0, Entry::RemoveMember);
    assert_eq!(floor.gone(), [(SessionId(TRADER), Reason::Revoked), (SessionId(30), Reason::Revoked)]);
    let Gate { gateway, sink, .. } = &mut floor.world.gates[0];
    gateway.on_request(Timestamp(9), SessionId(30), cancel(1, 1), sink);
    assert_eq!(floor.sign_on(OPERATOR + 30, 0, 2), Ok(()));
}
