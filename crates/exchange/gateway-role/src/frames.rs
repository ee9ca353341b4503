//! What a client's frame asks of its gateway.

use pares_gateway::SessionId;
use pares_roles::world::{Sockets, World};
use pares_types::{ClientOrderId, OrderKey, Reason, Reply, ShardId, Timestamp};
use pares_wire::frame::{self, ClientFrame, Pong};

use crate::GatewayNode;

impl<W: World, S: Sockets> GatewayNode<W, S> {
    pub(crate) fn on_frame(&mut self, now_ns: u64, session: SessionId, frame: ClientFrame) {
        match frame {
            ClientFrame::Request(request) => {
                self.rules.on_request(Timestamp(now_ns), session, request, &mut self.edge);
            }
            ClientFrame::SignOn(sign_on) => self.on_sign_on(session, &sign_on),
            ClientFrame::Proof(proof) => self.on_proof(Timestamp(now_ns), session, &proof),
            ClientFrame::Resume { shard, next } => self.on_resume(session, shard, next),
            ClientFrame::CancelAfter { after_ms } => {
                self.on_cancel_after(Timestamp(now_ns), session, after_ms)
            }
            ClientFrame::OrderStatusRequest(key) => self.on_order_status(session, key),
            ClientFrame::ListRequest(request) => self.lists.ask(session, request, &mut self.edge),
            ClientFrame::LimitsRequest { token } => self.on_limits(session, token),
            ClientFrame::Ping(ping) => {
                let pong = Pong { token: ping.token };
                self.edge.connections.write(session, |output| frame::write(output, &pong));
            }
        }
    }

    fn on_cancel_after(&mut self, now: Timestamp, session: SessionId, after_ms: u32) {
        let mono_ns = self.edge.world.mono_ns();
        let due_ns = (after_ms > 0).then(|| mono_ns + u64::from(after_ms) * 1_000_000);
        self.rules.on_cancel_after(now, session, due_ns, &mut self.edge);
    }

    fn on_order_status(&mut self, session: SessionId, key: OrderKey) {
        let status = self.rules.order_status(session, key);
        self.edge.connections.write(session, |output| match status {
            Ok(status) => frame::write_order_status(output, key, status),
            Err(reason) => write_rejection(output, reason),
        });
    }

    fn on_limits(&mut self, session: SessionId, token: u64) {
        let own = self.rules.own_limits(session, token);
        self.edge.connections.write(session, |output| match own {
            Ok(own) => frame::write_own_limits(output, &own),
            Err(reason) => write_rejection(output, reason),
        });
    }

    fn on_resume(&mut self, session: SessionId, shard: Option<ShardId>, next: u64) {
        let shards: Vec<ShardId> = shard.map_or_else(|| self.rules.shards().collect(), |shard| vec![shard]);
        for shard in shards {
            self.resuming.resume((session, shard, next), &mut self.rules, &mut self.edge);
        }
    }
}

/// Of what has no name.
pub(crate) fn write_rejection(output: &mut Vec<u8>, reason: Reason) {
    frame::write_reply(output, &Reply::Rejected { client_order_id: ClientOrderId(0), reason });
}
