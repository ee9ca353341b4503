//! A member that trades at random, survives its gateways and remembers every answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use pares_client::{Answer, Client, ClientError, OpenRequests, Trade, Update};
use pares_flow::Random;
use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, MemberId, NewOrder, NewTerms, Price, Quantity, Reason, Side,
    TimeInForce,
};

/// A member, its connection and all it received.
pub(crate) struct Trader {
    pub(crate) member: MemberId,
    /// The first answer to each request.
    pub(crate) answers: BTreeMap<ClientOrderId, Answer>,
    pub(crate) rejected: Vec<(ClientOrderId, Reason)>,
    pub(crate) trades: Vec<Trade>,
    /// Connections lost, and found again.
    pub(crate) reconnects: u64,
    open: OpenRequests,
    client: Option<Client>,
    addresses: Vec<SocketAddr>,
    /// Index of the gateway in use, or to be tried next.
    at: usize,
    random: Random,
    instruments: u32,
    names: u64,
}

impl Trader {
    /// A member that trades instruments 1 to `instruments` at `addresses[at]`, and at the next one when that
    /// gateway is gone.
    pub(crate) fn new(member: u32, addresses: &[SocketAddr], at: usize, instruments: u32) -> Self {
        Self {
            member: MemberId(member),
            answers: BTreeMap::new(),
            rejected: Vec::new(),
            trades: Vec::new(),
            reconnects: 0,
            open: OpenRequests::new(),
            client: None,
            addresses: addresses.to_vec(),
            at: at % addresses.len(),
            random: super::random(u64::from(member)),
            instruments,
            names: 0,
        }
    }

    /// Requests submitted so far.
    pub(crate) fn submitted(&self) -> u64 {
        self.names
    }

    pub(crate) fn open(&self) -> &OpenRequests {
        &self.open
    }

    /// Gateways may listen elsewhere after a start of everything.
    pub(crate) fn moved(&mut self, addresses: &[SocketAddr]) {
        self.addresses = addresses.to_vec();
        self.client = None;
    }

    /// Connects if need be, submits until `in_flight` requests are open, and takes in what came back. Does
    /// not wait. Says how many updates came.
    pub(crate) fn pump(&mut self, in_flight: usize) -> usize {
        let Some(mut client) = self.client.take().or_else(|| self.connect()) else { return 0 };
        match self.exchange(&mut client, in_flight) {
            Ok(updates) => {
                self.client = Some(client);
                updates
            }
            Err(ClientError::Closed | ClientError::Io(_)) => {
                self.reconnects += 1;
                self.at = (self.at + 1) % self.addresses.len();
                0
            }
            Err(error) => panic!("member {}: {error}", self.member),
        }
    }

    /// Connects to the next gateway that is there and repeats what is unanswered.
    fn connect(&mut self) -> Option<Client> {
        let connected = Client::connect(self.addresses[self.at], self.member).and_then(|mut client| {
            self.open.repeat_all(&mut client)?;
            Ok(client)
        });
        if connected.is_err() {
            self.at = (self.at + 1) % self.addresses.len();
        }
        connected.ok()
    }

    fn exchange(&mut self, client: &mut Client, in_flight: usize) -> Result<usize, ClientError> {
        while self.open.len() < in_flight {
            let request = self.next_request();
            self.open.submit(client, &request)?;
        }
        client.flush()?;
        let mut updates = Vec::new();
        let polled = client.poll(|update| updates.push(update));
        // What came before a connection was lost counts.
        updates.iter().for_each(|update| self.on_update(update));
        polled
    }

    fn on_update(&mut self, update: &Update) {
        self.open.on_update(update);
        match *update {
            Update::Answer(answer) => self.on_answer(answer),
            Update::Rejected { client_order_id, reason } => self.rejected.push((client_order_id, reason)),
            Update::Trade(trade) => self.trades.push(trade),
            _ => {}
        }
    }

    /// Whatever is answered again must be answered the same.
    fn on_answer(&mut self, answer: Answer) {
        let answer = answer.content();
        let first = *self.answers.entry(answer.client_order_id).or_insert(answer);
        assert_eq!(answer, first, "member {}: two answers to one request", self.member);
    }

    fn next_request(&mut self) -> ClientRequest {
        self.names += 1;
        let client_order_id = ClientOrderId(self.names);
        match self.random.below(100) {
            _ if self.names < 10 => self.enter(client_order_id),
            0..20 => ClientRequest::Cancel { client_order_id, target: self.earlier_order() },
            20..30 => ClientRequest::Amend {
                client_order_id,
                target: self.earlier_order(),
                terms: NewTerms::new(self.price(), Quantity(1 + self.random.below(100))),
            },
            30 => ClientRequest::MassCancel {
                client_order_id,
                instrument: InstrumentId(1 + self.random.below(self.instruments.into()) as u32),
                side: None,
            },
            31 => ClientRequest::MassCancel { client_order_id, instrument: InstrumentId(0), side: None },
            _ => self.enter(client_order_id),
        }
    }

    /// One of the last names used; it may be no order's.
    fn earlier_order(&mut self) -> ClientOrderId {
        ClientOrderId(self.names - 1 - self.random.below(8))
    }

    fn price(&mut self) -> Price {
        Price(1_000_000 + 100 * self.random.below(8) as i64)
    }

    fn enter(&mut self, client_order_id: ClientOrderId) -> ClientRequest {
        let instrument = InstrumentId(1 + self.random.below(self.instruments.into()) as u32);
        let side = if self.random.percent(50) { Side::Buy } else { Side::Sell };
        let time_in_force = match self.random.below(10) {
            0 => TimeInForce::Ioc,
            1 => TimeInForce::Fok,
            _ => TimeInForce::Day,
        };
        let plain = NewOrder::limit(side, self.price(), Quantity(1 + self.random.below(50)));
        let order = NewOrder { time_in_force, ..plain };
        ClientRequest::Enter { client_order_id, instrument, order }
    }
}
