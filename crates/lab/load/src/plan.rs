//! What to offer, to whom and how fast.

use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use pares_client::{Credential, Tls};
use pares_flow::{FlowInstrument, SyntheticConfig, SyntheticFlow};
use pares_node::SystemConfig;
use pares_types::{ClientOrderId, InstrumentId, MemberId, Price, Quantity};

use crate::fix::FixPlan;
use crate::ouch::OuchPlan;
use crate::web::WebPlan;

/// How fast to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// Requests per second, evenly spaced.
    PerSecond(u64),
    /// As fast as the system answers, with so many in flight: finds the highest sustained rate.
    Max,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "max" => Ok(Self::Max),
            _ => match text.replace('_', "").parse() {
                Ok(rate) if (1..=10_000_000).contains(&rate) => Ok(Self::PerSecond(rate)),
                _ => Err("a rate must be a number of requests per second up to 10,000,000, or `max`".into()),
            },
        }
    }
}

/// What members speak.
#[derive(Clone, Debug)]
pub enum LoadProtocol {
    /// The exchange's own.
    Binary,
    /// FIX 4.4; the plan's addresses are the gateways' ports for it.
    Fix(FixPlan),
    /// OUCH; likewise. Members prove nothing.
    Ouch(OuchPlan),
    /// HTTP; the plan's addresses are servers of it. Members prove nothing.
    Web(WebPlan),
}

/// A load.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// The gateways; the member at place `k` uses gateway `k` modulo their number.
    pub addresses: Vec<SocketAddr>,
    /// Whom to believe to be a gateway, if their ports are TLS.
    pub tls: Option<Tls>,
    /// What the members sign on with, the first member's first; none if gateways let any client in.
    pub credentials: Vec<Credential>,
    /// What the members speak.
    pub protocol: LoadProtocol,
    /// Members, one connection each.
    pub members: u32,
    /// The first of them; their numbers follow each other.
    pub first_member: u32,
    /// How fast.
    pub rate: Rate,
    /// How long; `None`: until stopped.
    pub duration: Option<Duration>,
    /// The flow's seed.
    pub seed: u64,
    /// What is traded.
    pub instruments: Vec<FlowInstrument>,
    /// Requests in flight at most; a request due while that many are waits, and its latency shows it.
    pub in_flight_max: usize,
    /// The first client order id; ids are for life, so a lasting system needs a new one each time.
    pub first_client_order_id: u64,
    /// Orders that rest per instrument, about.
    pub resting_orders: usize,
    /// Whether members whose gateway is lost continue at another one, repeating what is unanswered; otherwise
    /// the load ends with an error.
    pub resume: bool,
}

impl LoadPlan {
    /// A load on a system just started, over all its instruments.
    #[must_use]
    pub fn new(config: &SystemConfig, addresses: Vec<SocketAddr>, rate: Rate) -> Self {
        let instruments = config.instruments.iter().map(|instrument| FlowInstrument {
            id: InstrumentId(instrument.id),
            tick: Price(instrument.tick),
            lot: Quantity(instrument.lot),
            start: Price(instrument.tick * 10_000),
        });
        Self {
            members: u32::try_from(addresses.len()).expect("at most 16 gateways"),
            addresses,
            tls: None,
            credentials: Vec::new(),
            protocol: LoadProtocol::Binary,
            first_member: 1,
            rate,
            duration: None,
            seed: 1,
            instruments: instruments.collect(),
            in_flight_max: match rate {
                Rate::Max => 2_048,
                Rate::PerSecond(_) => 16_384,
            },
            first_client_order_id: 1,
            resting_orders: 500,
            resume: false,
        }
    }

    /// The member at that place.
    #[must_use]
    pub fn member(&self, place: usize) -> MemberId {
        MemberId(self.first_member + u32::try_from(place).expect("a place among the members"))
    }

    /// The commands to send.
    #[must_use]
    pub fn flow(&self) -> SyntheticFlow {
        SyntheticFlow::new(&SyntheticConfig {
            seed: self.seed,
            instruments: self.instruments.clone(),
            members: (0..self.members as usize).map(|place| self.member(place)).collect(),
            first_client_order_id: ClientOrderId(self.first_client_order_id),
            live_orders_max: self.resting_orders,
        })
    }
}
