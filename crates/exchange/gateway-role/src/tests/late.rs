//! What an operator sent that no longer waits for it.

use pares_types::{ClientOrderId, ClientRequest, Command, InstrumentId, MemberId};
use pares_wire::frame;

use super::rig::Rig;

const SECOND_NS: u64 = 1_000_000_000;

/// A client whose request lies unread.
fn asked(member: u32) -> (Rig, usize) {
    let mut rig = Rig::new();
    rig.world.pass(SECOND_NS);
    let client = rig.sign_on(member);
    rig.net.write(client, |out| frame::write_request(out, &block(member)));
    (rig, client)
}

fn block(member: u32) -> ClientRequest {
    let command = Command::Block { member: MemberId(member) };
    ClientRequest::Exchange { client_order_id: ClientOrderId(1), instrument: InstrumentId(0), command }
}

#[test]
fn a_gateway_that_stood_still_takes_nothing_in_of_an_operator() {
    for (member, pause_ns, is_read) in
        [(0, 3 * SECOND_NS, true), (0, 3 * SECOND_NS + 1, false), (7, 4 * SECOND_NS, true)]
    {
        let (mut rig, client) = asked(member);
        rig.world.pass(pause_ns);
        rig.settle();
        assert_eq!(!rig.journalled().is_empty(), is_read, "{member} {pause_ns}");
        assert_eq!(rig.net.is_open(client), is_read, "{member} {pause_ns}");
    }
}

#[test]
fn half_request_is_not_completed_silent_client_stays() {
    let mut rig = Rig::new();
    let (half, idle) = (rig.sign_on(0), rig.sign_on(0));
    let mut bytes = Vec::new();
    frame::write_request(&mut bytes, &block(5));
    rig.net.send(half, &bytes[..9]);
    rig.settle();
    rig.net.send(half, &bytes[9..]);
    rig.world.pass(3 * SECOND_NS + 1);
    rig.settle();
    assert_eq!((rig.net.is_open(half), rig.net.is_open(idle)), (false, true));
    assert!(rig.journalled().is_empty());
    assert!(rig.ask(idle, &block(5)).is_empty());
    assert!(!rig.journalled().is_empty());
}

#[test]
fn an_operator_that_has_hung_up_is_not_read() {
    for (member, is_read) in [(0, false), (7, true)] {
        let (mut rig, client) = asked(member);
        rig.net.close(client);
        rig.settle();
        assert_eq!(!rig.journalled().is_empty(), is_read, "{member}");
    }
}
