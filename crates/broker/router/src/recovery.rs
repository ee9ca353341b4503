//! A router begins: it claims, and reads what stands in the items; and it begins again with each connection.

use std::collections::{BTreeMap, VecDeque};

use pares_broker::{
    CustomerOrderId, ORDERS_PAGE_MAX, Order, OrderAsked, OrderRead, OrderStage, Refusal, RouterSeat,
    StockSymbol,
};
use pares_wice::codec::{Coded, DecodeError};

use crate::exchange::ListedStock;
use crate::router::{CLAIM_EVERY_MS, Question, ROUTER_SILENT_MS, Router, RouterEffect, Stage, Stream};

impl Router {
    /// Claims again what it has; else looks who has it.
    pub(crate) fn claim_or_look(&mut self) {
        let is_asked = |question: &Question| matches!(question, Question::Claim | Question::Seat);
        if self.now_ms < self.claim_due_ms || self.questions.values().any(is_asked) {
            return;
        }
        if self.stage == Stage::Claiming {
            self.claim_due_ms = self.now_ms + CLAIM_EVERY_MS / 2;
            self.read(OrderRead::Router, Question::Seat);
        } else {
            self.claim_due_ms = self.now_ms + CLAIM_EVERY_MS;
            self.claim(0);
        }
    }

    fn claim(&mut self, seen: u64) {
        self.ask(OrderAsked::Claim { router: self.number, member: self.member, seen }, Question::Claim);
    }

    /// Claims what nobody has, or whose claims have stood still for long enough.
    fn take_seat(&mut self, seat: Option<RouterSeat>) {
        let claims = seat.map_or(0, |seat| seat.claims);
        let is_silent = match self.seen {
            Some((seen, since_ms)) if seen == claims => {
                self.now_ms.saturating_sub(since_ms) >= ROUTER_SILENT_MS
            }
            _ => {
                self.seen = Some((claims, self.now_ms));
                false
            }
        };
        if is_silent || seat.is_none_or(|seat| seat.router == self.number) {
            self.claim(claims);
        }
    }

    /// It has a new term: all that it does from now on rests on what it reads now.
    pub(crate) fn recover(&mut self, term: u64) {
        self.lose();
        (self.stage, self.term) = (Stage::Recovering, term);
        self.read(OrderRead::Told, Question::Told);
    }

    /// What was looked for is found.
    ///
    /// # Errors
    /// If it is no answer to what was asked.
    pub fn found(&mut self, id: u64, bytes: &[u8], now_ms: u64) -> Result<(), DecodeError> {
        self.now_ms = now_ms;
        match self.questions.remove(&id) {
            Some(Question::Seat) => self.take_seat(Option::from_bytes(bytes)?),
            Some(Question::Told) => {
                for (shard, next) in Vec::<(u32, u64)>::from_bytes(bytes)? {
                    self.streams.insert(shard, Stream::from(next));
                }
                self.read(OrderRead::Open { from: 0 }, Question::Open);
            }
            Some(Question::Open) => self.take_open(Vec::from_bytes(bytes)?),
            Some(Question::Waiting) => self.take_waiting(Vec::from_bytes(bytes)?),
            Some(Question::Unwanted) => self.cancel(&Vec::<u64>::from_bytes(bytes)?),
            Some(Question::Owner { shard }) => self.take_owner(shard, Option::from_bytes(bytes)?),
            _ => {}
        }
        Ok(())
    }

    fn take_open(&mut self, found: Vec<(CustomerOrderId, Order)>) {
        let is_last = found.len() < ORDERS_PAGE_MAX;
        let last = found.last().map_or(0, |(_, order)| order.name);
        for (of, order) in found {
            self.keep(of, order.name, order.terms, order.state == OrderStage::Open);
        }
        if !is_last {
            self.read(OrderRead::Open { from: last + 1 }, Question::Open);
            return;
        }
        self.stage = Stage::Working;
        self.follow();
    }

    /// The exchange is reached: so it lists stocks. Nothing was sent on this connection before.
    pub fn connected(&mut self, listed: BTreeMap<StockSymbol, ListedStock>, now_ms: u64) {
        (self.listed, self.is_connected, self.now_ms) = (listed, true, now_ms);
        self.follow();
    }

    /// The exchange is not reached any more.
    pub fn disconnected(&mut self) {
        self.is_connected = false;
        self.streams.values_mut().for_each(|stream| stream.is_live = false);
    }

    /// All that was missed of a shard has been told.
    pub fn resumed(&mut self, shard: u32) {
        if let Some(stream) = self.streams.get_mut(&shard) {
            stream.is_live = true;
        }
    }

    /// Follows each shard from where it is, then sends what has no answer.
    fn follow(&mut self) {
        if self.stage != Stage::Working || !self.is_connected {
            return;
        }
        for shard in self.listed.values().map(|listing| listing.shard).collect::<Vec<_>>() {
            self.streams.entry(shard).or_insert_with(|| Stream::from(1));
        }
        for (shard, stream) in &mut self.streams {
            stream.is_live = false;
            self.effects.push(RouterEffect::Resume { shard: *shard, next: stream.next });
        }
        for routed in self.orders.values_mut() {
            (routed.due_ms, routed.cancel_due_ms) = (0, 0);
        }
        self.send_due();
    }

    /// What the exchange keeps of a shard begins behind what is wanted: nobody can apply what is missing.
    pub fn not_kept(&mut self) {
        self.halt(Refusal::OtherOrder);
    }
}

impl Stream {
    fn from(next: u64) -> Self {
        Self { next, queue: VecDeque::new(), is_asked: false, is_live: false }
    }
}
