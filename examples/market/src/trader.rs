//! A member's program: orders around what it holds an instrument to be worth, on one connection.
//!
//! The obvious program stops when its gateway dies, and then cannot tell what became of its last requests. This one keeps what is
//! unanswered ([`OpenRequests`]), connects to the next gateway and repeats it there: a repeat gets the answer of the first, never a second execution.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError, ClientRequest, OpenRequests, Role, Update};
use pares_types::{ClientOrderId, InstrumentId, MemberId, NewOrder, Price, Quantity, Side, TimeInForce};

use crate::board::{Board, INSTRUMENTS};

/// Between two requests of a trader, on average.
const PACE: Duration = Duration::from_millis(40);
/// Orders of a trader that may rest; the oldest make room.
const RESTING_MAX: usize = 40;
/// Shares of an order are multiples of this.
const LOT: u64 = 100;
/// Between two tries to reach a gateway.
const RETRY: Duration = Duration::from_millis(20);

/// One trader.
pub struct Trader {
    member: MemberId,
    /// Files in which gateways say where they listen.
    gateways: Vec<PathBuf>,
    /// Which of them it is connected to, or tries next.
    at: usize,
    board: Arc<Board>,
    random: u64,
    names: u64,
    open: OpenRequests,
    sent: HashMap<ClientOrderId, Instant>,
    /// Its orders that may rest, the oldest first.
    resting: VecDeque<ClientOrderId>,
}

impl Trader {
    /// A trader that begins at one of the gateways.
    pub fn new(member: u32, gateways: Vec<PathBuf>, board: Arc<Board>) -> Self {
        Self {
            member: MemberId(member),
            at: member as usize % gateways.len(),
            gateways,
            board,
            random: u64::from(member) << 32 | 0x9e37_79b9,
            names: 0,
            open: OpenRequests::new(),
            sent: HashMap::new(),
            resting: VecDeque::new(),
        }
    }

    /// Trades until `stop` is set; on another connection whenever one is lost.
    pub fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            // What ends a connection is no matter: another gateway continues.
            if self.connect().is_none_or(|mut client| self.trade(&mut client, stop).is_err()) {
                self.at = (self.at + 1) % self.gateways.len();
                std::thread::sleep(RETRY);
            }
        }
    }

    fn connect(&self) -> Option<Client> {
        let address = std::fs::read_to_string(&self.gateways[self.at]).ok()?;
        Client::connect(address.trim(), self.member).ok()
    }

    /// Trades on this connection until it is lost.
    fn trade(&mut self, client: &mut Client, stop: &AtomicBool) -> Result<(), ClientError> {
        if !self.open.is_empty() || self.names > 0 {
            let repeated = self.open.repeat_all(client)?;
            let (member, gateway) = (self.member, client.gateway());
            self.board.tell(format!("trader {member} goes on at gateway-{gateway}, repeats {repeated}"));
        }
        let mut next = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            if Instant::now() >= next {
                let request = self.choose();
                self.submit(client, &request)?;
                next += PACE / 2 + PACE.mul_f64(self.below(1_000) as f64 / 1e3);
            }
            client.wait(next.saturating_duration_since(Instant::now()))?;
            let mut updates = Vec::new();
            client.poll(|update| updates.push(update))?;
            updates.iter().for_each(|update| self.on_update(update));
        }
        Ok(())
    }

    fn submit(&mut self, client: &mut Client, request: &ClientRequest) -> Result<(), ClientError> {
        match self.open.submit(client, request) {
            // The gateway reads nothing just now; this request is not missed.
            Err(ClientError::Backlogged) => return Ok(()),
            submitted => submitted?,
        }
        self.sent.insert(request.client_order_id(), Instant::now());
        client.flush()?;
        Ok(())
    }

    /// What it wants next: half of the time to rest near the value, otherwise to trade at once or to take back its oldest order.
    fn choose(&mut self) -> ClientRequest {
        self.names += 1;
        let client_order_id = ClientOrderId(self.names);
        let wish = self.below(8);
        let is_full = self.resting.len() >= RESTING_MAX;
        if (is_full || wish < 2)
            && let Some(target) = self.resting.pop_front()
        {
            return ClientRequest::Cancel { client_order_id, target };
        }
        let instrument = self.below(INSTRUMENTS.len() as u64) as usize;
        let order = self.order(instrument, wish < 4);
        if order.time_in_force == TimeInForce::Day {
            self.resting.push_back(client_order_id);
        }
        let instrument = InstrumentId(instrument as u32 + 1);
        ClientRequest::Enter { client_order_id, instrument, order }
    }

    fn order(&mut self, instrument: usize, at_once: bool) -> NewOrder {
        let step = self.below(5) as i64 - 2;
        let value = self.board.value(instrument, step);
        let side = if self.below(2) == 0 { Side::Buy } else { Side::Sell };
        let away = if at_once { -4 } else { 1 + self.below(12) as i64 };
        let cents = if side == Side::Buy { value - away } else { value + away };
        let quantity = Quantity(LOT * (1 + self.below(9)));
        let time_in_force = if at_once { TimeInForce::Ioc } else { TimeInForce::Day };
        NewOrder { time_in_force, ..NewOrder::limit(side, Price(cents * 100), quantity) }
    }

    fn on_update(&mut self, update: &Update) {
        if let Some(request) = self.open.on_update(update) {
            let sent = self.sent.remove(&request.client_order_id());
            self.board.answered(sent.map(|sent| sent.elapsed()).unwrap_or_default());
        }
        match update {
            // Both sides receive a report of a trade.
            Update::Trade(trade) if trade.role == Role::Incoming => {
                let instrument = trade.instrument.0 as usize - 1;
                self.board.traded(instrument, trade.price);
            }
            _ => {}
        }
    }

    /// A number below `bound` (Marsaglia, Xorshift RNGs, 2003).
    fn below(&mut self, bound: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % bound
    }
}
