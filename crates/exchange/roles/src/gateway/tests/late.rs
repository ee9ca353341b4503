//! What an operator sent that no longer waits for it.

use pares_types::{ClientOrderId, ClientRequest, Command, InstrumentId, MemberId};
use pares_wire::frame::{self, GatewayFrame, SignOn};

use super::rig::Rig;

const SECOND_NS: u64 = 1_000_000_000;

/// Somebody with a heartbeat of a second, whose request lies unread.
fn asked(member: u32) -> (Rig, usize) {
    let mut rig = Rig::new();
    rig.world.pass(SECOND_NS);
    let client = rig.net.connect();
    let mut bytes = Vec::new();
    let sign_on = SignOn { member: member.into(), heartbeat_ms: 1_000.into(), ..SignOn::default() };
    frame::write(&mut bytes, &sign_on);
    rig.net.send(client, &bytes);
    rig.settle();
    assert!(matches!(rig.told(client)[..], [GatewayFrame::SignedOn(_)]));
    let command = Command::Block { member: MemberId(member) };
    let (client_order_id, instrument) = (ClientOrderId(1), InstrumentId(0));
    bytes.clear();
    frame::write_request(&mut bytes, &ClientRequest::Exchange { client_order_id, instrument, command });
    rig.net.send(client, &bytes);
    (rig, client)
}

#[test]
fn an_operator_that_was_not_heard_for_three_heartbeats_is_not_read() {
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
fn an_operator_that_has_hung_up_is_not_read() {
    for (member, is_read) in [(0, false), (7, true)] {
        let (mut rig, client) = asked(member);
        rig.net.close(client);
        rig.settle();
        assert_eq!(!rig.journalled().is_empty(), is_read, "{member}");
    }
}
