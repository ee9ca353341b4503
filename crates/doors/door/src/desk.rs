//! The application of a session: requests of the member become frames, and frames become reports.
//!
//! ```text
//!   D F G q H AF --requests.rs---> ClientFrame     what was asked is remembered until it is answered
//!   8 9 r        <--reports.rs---- GatewayFrame
//!   x e, y f     --securities.rs- both ways
//!   V, W X Y     --market.rs----- the gateway shows the market
//!   AD, AE AQ    --trades.rs----- the stream is told again from its beginning
//! ```
//! It owns no order. What it remembers of those that live makes reports fuller; what it has never heard of it reports with less.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pares_types::{ClientOrderId, InstrumentId, ListRequest, OrderStatus, Side, Symbol};
use pares_wire::frame::ClientFrame;

use crate::instruments::Instruments;
use crate::market::Subscriptions;
use crate::orders::Orders;
use crate::reports::Heard;
use crate::securities::Security;
use crate::statuses::Questions;
use crate::streams::Streams;
use crate::told::{Terms, Told, Version};
use crate::trades::Trades;

/// What a member has asked for and was not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) what: What,
    /// It may be a duplicate, and its sender does not ask: if it was answered before, he was told.
    pub(crate) is_duplicate: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    Enter,
    Change(Change),
    Mass(Mass),
}

/// A replacement or a cancel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// The order's first name, as far as it is known.
    pub(crate) entry: ClientOrderId,
    /// The name that the member gave it.
    pub(crate) original: ClientOrderId,
    /// What it is to be; `None`: cancelled.
    pub(crate) terms: Option<Terms>,
}

impl Change {
    /// CxlRejResponseTo (434).
    pub(crate) fn responds_to(self) -> u8 {
        if self.terms.is_none() { b'1' } else { b'2' }
    }
}

/// A cancel of all orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mass {
    /// MassCancelRequestType.
    pub(crate) asked: u8,
    pub(crate) instrument: Option<InstrumentId>,
    pub(crate) side: Option<Side>,
}

/// A question that a list of the gateway's answers.
#[derive(Debug)]
pub(crate) struct ListAsked {
    pub(crate) id: Vec<u8>,
    pub(crate) request: ListRequest,
    pub(crate) found: Found,
}

/// What is known of a list so far.
#[derive(Debug)]
pub(crate) enum Found {
    /// The last order, which waits until it is known whether it is the last.
    Orders(Option<OrderStatus>),
    /// Instruments: the first message says how many there are.
    Securities(Vec<Security>),
    /// Whether the instrument of that symbol was met.
    Security(Vec<u8>, bool),
}

/// The application of a session.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) version: Version,
    /// It is told of another member, and may ask for nothing.
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
