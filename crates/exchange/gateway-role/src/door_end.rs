//! A connection at the port of another protocol: its door, which stands between the client's messages and the gateway's frames.
//!
//! ```text
//!  socket --input--> door --Incoming--> rules
//!  socket <--output- door <--frames---- rules     before each flush
//! ```
//! Everything else is as for every client: a door asks for nothing that a client of the gateway's own protocol could not ask for,
//! and receives what that client would receive.

use std::sync::Arc;

use pares_config::SystemConfig;
use pares_gateway::SessionId;
use pares_port::{DoorConfig, DoorFactory, DoorPort, MarketSubscription, ProtocolDoor, SessionMark, TapDoor};
use pares_roles::NodeError;
use pares_types::GatewayId;

use crate::types::Incoming;

/// What members that come by FIX call the exchange.
const COMP_ID: &str = "PARES";
/// Orders that the door of a connection remembers.
const ORDERS_MAX: usize = 65_536;

/// How the doors of a gateway are made.
#[derive(Clone, Debug)]
pub(crate) struct Doors {
    factory: Arc<dyn DoorFactory>,
    config: Arc<DoorConfig>,
}

impl Doors {
    /// None if there is no port of another protocol.
    pub(crate) fn of(
        (gateway, config): (GatewayId, &SystemConfig),
        factory: Arc<dyn DoorFactory>,
        has_market: bool,
    ) -> Result<Option<Self>, NodeError> {
        let door = DoorConfig {
            comp_id: COMP_ID.into(),
            gateway,
            // They come and go: each door asks for the list.
            instruments: Vec::new(),
            shards: config.shards()?.into_keys().collect(),
            has_market,
            orders_max: ORDERS_MAX,
        };
        let has_port = !config.fix.is_empty() || !config.ouch.is_empty();
        Ok(has_port.then(|| Self { factory, config: Arc::new(door) }))
    }

    fn open(&self, port: DoorPort) -> Box<dyn ProtocolDoor> {
        self.factory.door(port, &self.config)
    }
}

/// What such a connection has besides.
pub(crate) struct ProtocolAdapter {
    pub(crate) door: Box<dyn ProtocolDoor>,
    port: DoorPort,
    /// What the gateway said, before it is translated.
    pub(crate) frames: Vec<u8>,
    /// When the door gets the time.
    pub(crate) due_ns: Option<u64>,
    /// What it was heard to want of the market.
    pub(crate) wish: MarketSubscription,
    /// It has no say any more.
    pub(crate) is_silent: bool,
}

impl ProtocolAdapter {
    pub(crate) fn new(port: DoorPort, doors: &Doors) -> Box<Self> {
        Box::new(Self {
            door: doors.open(port),
            port,
            frames: Vec::new(),
            due_ns: None,
            wish: MarketSubscription::Nothing,
            is_silent: false,
        })
    }

    pub(crate) fn as_taped(&self) -> TapDoor {
        self.port.into()
    }

    /// Bytes that are not translated.
    pub(crate) fn untold(&self) -> usize {
        self.frames.len()
    }

    /// What it wants of the market by now.
    pub(crate) fn market_wish(&self) -> MarketSubscription {
        if self.is_silent { MarketSubscription::Nothing } else { self.door.market_wish() }
    }

    pub(crate) fn next_deadline_ns(&self) -> Option<u64> {
        self.door.next_deadline_ns().filter(|_| !self.is_silent)
    }
}

/// What doors ask of the gateway.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) incoming: Vec<(SessionId, Incoming)>,
    pub(crate) marks: Vec<(SessionId, SessionMark)>,
}
