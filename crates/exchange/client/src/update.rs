//! What a gateway tells a client.

use std::time::Duration;

use pares_types::{
    Answer, Cancelled, ClientOrderId, GatewayId, InstrumentId, InstrumentStatus, ListEnd, MemberId, OrderKey,
    OrderNews, OrderStatus, OwnLimits, Price, Reason, Reply, RequestId, ShardId, Trade, TradeBusted,
};
use pares_wire::frame::GatewayFrame;

/// One message from the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// The sign-on was accepted; always the first.
    SignedOn {
        /// By which gateway.
        gateway: GatewayId,
        /// For whom.
        member: MemberId,
        /// Requests this session may have unanswered.
        in_flight_max: u16,
        /// The heartbeat in force; zero for none.
        heartbeat: Duration,
    },
    /// The gateway wants a proof before it accepts the sign-on; [`Client`](crate::Client) answers it by itself.
    Challenged {
        /// Which gateway.
        gateway: GatewayId,
        /// What it has made up.
        nonce: [u8; 32],
    },
    /// The request is durable in the gateway's journal and will be ordered.
    Journalled {
        /// Its name.
        client_order_id: ClientOrderId,
        /// Its identity in the exchange.
        request: RequestId,
    },
    /// The one answer to a request; committed.
    Answer(Answer),
    /// One of the member's orders traded.
    Trade(Trade),
    /// Shares of one of the member's orders were cancelled.
    Cancelled(Cancelled),
    /// One of the member's orders did something that nobody asked for just now.
    News(OrderNews),
    /// A trade of one of the member's orders was declared void.
    Busted(TradeBusted),
    /// The gateway did not take a request in; its name is still free.
    Rejected {
        /// Its name; 0 if the gateway could not read it.
        client_order_id: ClientOrderId,
        /// Why.
        reason: Reason,
    },
    /// The member's stream of a shard is live from here on.
    Resumed {
        /// The shard.
        shard: ShardId,
        /// The number of the next message.
        next: u64,
    },
    /// The member's stream of a shard is not told.
    NotResumed {
        /// The shard.
        shard: ShardId,
        /// Why.
        reason: Reason,
        /// The lowest number that is kept; 0 if none is.
        oldest: u64,
    },
    /// How an order is, in answer to [`Client::order_status`](crate::Client::order_status).
    OrderStatus(OrderStatus),
    /// The gateway knows of no order of the member with that key.
    UnknownOrder(OrderKey),
    /// An instrument, in answer to [`Client::list`](crate::Client::list).
    Instrument(InstrumentStatus),
    /// A row of the tick table of the instrument told before; as many as that said, lowest prices first.
    TickRow {
        /// The instrument.
        instrument: InstrumentId,
        /// The first price of the row.
        from: Price,
        /// The smallest price step from there up to the next row.
        tick: Price,
    },
    /// The end of a list, or why there is none.
    ListEnd(ListEnd),
    /// What the session may do, in answer to [`Client::own_limits`](crate::Client::own_limits).
    OwnLimits(OwnLimits),
    /// The answer to a ping.
    Pong {
        /// The ping's token.
        token: u64,
    },
}

impl From<GatewayFrame> for Update {
    fn from(frame: GatewayFrame) -> Self {
        match frame {
            GatewayFrame::SignedOn(signed_on) => Self::SignedOn {
                gateway: GatewayId(signed_on.gateway.get()),
                member: MemberId(signed_on.member.get()),
                in_flight_max: signed_on.in_flight_max.get(),
                heartbeat: Duration::from_millis(signed_on.heartbeat_ms.get().into()),
            },
            GatewayFrame::Challenge(challenge) => {
                Self::Challenged { gateway: GatewayId(challenge.gateway.get()), nonce: challenge.nonce }
            }
            GatewayFrame::Reply(reply) => reply.into(),
            GatewayFrame::Resumed { shard, next, reason: Reason::None } => Self::Resumed { shard, next },
            GatewayFrame::Resumed { shard, next: oldest, reason } => {
                Self::NotResumed { shard, reason, oldest }
            }
            GatewayFrame::OrderStatus(_, Some(status)) => Self::OrderStatus(status),
            GatewayFrame::OrderStatus(key, None) => Self::UnknownOrder(key),
            GatewayFrame::InstrumentStatus(status) => Self::Instrument(status),
            GatewayFrame::TickRow { instrument, from, tick } => Self::TickRow { instrument, from, tick },
            GatewayFrame::ListEnd(end) => Self::ListEnd(end),
            GatewayFrame::OwnLimits(own) => Self::OwnLimits(own),
            GatewayFrame::Pong(pong) => Self::Pong { token: pong.token.get() },
        }
    }
}

impl From<Reply> for Update {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Journalled { client_order_id, request } => Self::Journalled { client_order_id, request },
            Reply::Answer(answer) => Self::Answer(answer),
            Reply::Trade(trade) => Self::Trade(trade),
            Reply::Cancelled(cancelled) => Self::Cancelled(cancelled),
            Reply::News(news) => Self::News(news),
            Reply::Busted(bust) => Self::Busted(bust),
            Reply::Rejected { client_order_id, reason } => Self::Rejected { client_order_id, reason },
        }
    }
}
