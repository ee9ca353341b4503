//! A member's client: asks, repeats what is not answered, and remembers what it was told.

use std::collections::{BTreeMap, BTreeSet};

use pares_gateway::{Answer, ClientRequest, SessionId};
use pares_types::{
    ClientOrderId, InstrumentId, MemberId, NewOrder, OrderKind, Price, Quantity, Side, TimeInForce,
};

use crate::random::Random;

/// The price around which orders come in.
const MIDDLE: u64 = 500_000;

/// A request that is not answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) request: ClientRequest,
    pub(crate) first_sent_ns: u64,
    pub(crate) retry_at_ns: u64,
    /// Something happened to it for which no time is promised: rejected, or its connection broke.
    pub(crate) spoilt: bool,
}

/// A client and all it knows.
pub(crate) struct Client {
    pub(crate) member: MemberId,
    random: Random,
    pub(crate) left: u64,
    names: u64,
    pub(crate) open: BTreeMap<u64, Open>,
    /// Names under which orders were entered.
    entered: Vec<u64>,
    pub(crate) answers: BTreeMap<u64, Answer>,
    /// Names whose request no gateway takes.
    pub(crate) abandoned: BTreeSet<u64>,
    /// Names answered for the first time, by session.
    pub(crate) first_answers: BTreeSet<(SessionId, u64)>,
    /// By gateway.
    pub(crate) connections: Vec<Option<SessionId>>,
    pub(crate) home: usize,
}

impl Client {
    pub(crate) fn new(index: usize, requests: u64, gateways: usize, mut random: Random) -> Self {
        Self {
            member: MemberId(u32::try_from(index).expect("few clients") + 1),
            home: random.index(gateways),
            random,
            left: requests,
            names: 0,
            open: BTreeMap::new(),
            entered: Vec::new(),
            answers: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            first_answers: BTreeSet::new(),
            connections: vec![None; gateways],
        }
    }

    /// Thinks of something new to ask; returns its name.
    pub(crate) fn invent(&mut self, instruments: u32, now_ns: u64) -> u64 {
        self.names += 1;
        self.left -= 1;
        let client_order_id = ClientOrderId(self.names);
        let instrument = InstrumentId(1 + self.random.below(instruments.into()) as u32);
        let target = match self.entered.len() {
            0 => None,
            known => Some(ClientOrderId(self.entered[known - 1 - self.random.index(known.min(12))])),
        };
        let request = match (self.random.below(100), target) {
            (0..=13, Some(target)) => ClientRequest::Amend {
                client_order_id,
                target,
                price: self.price(),
                quantity: Quantity(self.random.between(1, 30)),
            },
            (14..=33, Some(target)) => ClientRequest::Cancel { client_order_id, target },
            (34..=35, _) => ClientRequest::MassCancel { client_order_id, instrument },
            (36..=37, _) => ClientRequest::MassCancel { client_order_id, instrument: InstrumentId(0) },
            (38, _) => self.enter(client_order_id, InstrumentId(9_999)),
            _ => self.enter(client_order_id, instrument),
        };
        if matches!(request, ClientRequest::Enter { instrument, .. } if instrument.0 <= instruments) {
            self.entered.push(self.names);
        }
        let open = Open { request, first_sent_ns: now_ns, retry_at_ns: now_ns, spoilt: false };
        self.open.insert(self.names, open);
        self.names
    }

    fn enter(&mut self, client_order_id: ClientOrderId, instrument: InstrumentId) -> ClientRequest {
        let side = if self.random.chance(500) { Side::Buy } else { Side::Sell };
        let limit = OrderKind::Limit { price: self.price() };
        let (kind, time_in_force, post_only) = match self.random.below(100) {
            0..=9 => (limit, TimeInForce::Ioc, false),
            10..=14 => (limit, TimeInForce::Fok, false),
            15..=19 => (OrderKind::Market, TimeInForce::Ioc, false),
            20..=26 => (limit, TimeInForce::Day, true),
            27 => (OrderKind::Market, TimeInForce::Ioc, true),
            _ => (limit, TimeInForce::Day, false),
        };
        // Now and then nothing at all, or more than is allowed.
        let quantity = Quantity(if self.random.chance(20) {
            1_000 * self.random.below(3)
        } else {
            self.random.between(1, 20)
        });
        let order = NewOrder { side, kind, time_in_force, post_only, quantity };
        ClientRequest::Enter { client_order_id, instrument, order }
    }

    /// Around the middle, so that about every second order trades; now and then off the tick.
    fn price(&mut self) -> Price {
        let steps = self.random.below(12) as i64 - 6;
        let off = i64::from(self.random.chance(10));
        Price(MIDDLE as i64 + steps * 100 + off)
    }

    /// Whether the order that a request names will never exist.
    pub(crate) fn target_abandoned(&self, request: &ClientRequest) -> bool {
        match request {
            ClientRequest::Amend { target, .. } | ClientRequest::Cancel { target, .. } => {
                self.abandoned.contains(&target.0)
            }
            _ => false,
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left == 0 && self.open.is_empty()
    }
}
