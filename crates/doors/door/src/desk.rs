//! The application of a session: requests of the member become frames, and frames become reports.
//!
//! ```text
//!   D F G q H AF --requests.rs---> ClientFrame     what was asked is remembered until it is answered
//!   8 9 r        <--reports.rs---- GatewayFrame
//!   x e, y f     --securities.rs- both ways
//!   V, W X Y     --market.rs----- the gateway shows the market
//!   AD, AE AQ    --trades.rs----- the gateway sends the stream again from its beginning
//! ```
//! It owns no order. What it remembers of live orders makes reports fuller; what it never received, it reports with less.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pares_types::{ClientOrderId, Symbol};
use pares_wire::frame::ClientFrame;

use crate::instruments::Instruments;
use crate::market::Subscriptions;
use crate::orders::Orders;
use crate::outbound::Told;
use crate::pending::{Asked, ListAsked, Questions, Trades};
use crate::streams::Streams;
use crate::types::{Heard, Version};

/// The application of a session.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) version: Version,
    /// It receives another member's stream, and may ask for nothing.
    pub(crate) is_copy: bool,
    pub(crate) instruments: Arc<Instruments>,
    pub(crate) orders: Orders,
    pub(crate) streams: Streams,
    pub(crate) asked: BTreeMap<ClientOrderId, Asked>,
    pub(crate) status_asked: Questions,
    /// The first is under way.
    pub(crate) lists: VecDeque<ListAsked>,
    pub(crate) list_token: u64,
    /// Questions for instruments whose symbols are sought, and symbols to seek.
    pub(crate) sought: VecDeque<(Vec<u8>, Vec<u8>)>,
    pub(crate) finds: Vec<Symbol>,
    pub(crate) has_market: bool,
    pub(crate) market: Subscriptions,
    pub(crate) trades: Trades,
    /// What happened at one position, until the answer there is known.
    pub(crate) held: Vec<Heard>,
    pub(crate) utc_ns: u64,
    pub(crate) refusals: u64,
    pub(crate) asks: Vec<ClientFrame>,
    pub(crate) told: Vec<Told>,
}

impl Desk {
    pub(crate) fn new(
        version: Version,
        instruments: Arc<Instruments>,
        orders_max: usize,
        streams: Streams,
    ) -> Self {
        Self {
            version,
            is_copy: false,
            instruments,
            orders: Orders::new(orders_max),
            streams,
            asked: BTreeMap::new(),
            status_asked: Questions::default(),
            lists: VecDeque::new(),
            list_token: 0,
            sought: VecDeque::new(),
            finds: Vec::new(),
            has_market: false,
            market: Subscriptions::default(),
            trades: Trades::default(),
            held: Vec::new(),
            utc_ns: 0,
            refusals: 0,
            asks: Vec::new(),
            told: Vec::new(),
        }
    }
}
