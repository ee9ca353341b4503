//! What a gateway and the doors of other protocols say to each other, and what its tap writes.
//!
//! A gateway that names the protocols it translates depends on all of them, and each new one changes the gateway. So the exchange
//! has the interface, the doors implement it, and the program that starts a gateway hands it a [`DoorFactory`].
//!
//! ```text
//!            socket --bytes--> ProtocolDoor --ClientFrame--> gateway
//!            socket <--bytes-- ProtocolDoor <--GatewayFrame- gateway
//!
//!   program --DoorFactory--> gateway        pares-fix, pares-door, pares-ouch: above the exchange
//! ```
//! | module | what |
//! |---|---|
//! | `door` | the interface of a door, and what makes one |
//! | `market`, `levels` | the market as a door is shown it |
//! | `tap` | an entry of the tap's log |
//! | `secrets` | what keeps secrets out of it |

mod door;
mod levels;
mod market;
mod secrets;
mod tap;

pub use door::{
    DoorAction, DoorConfig, DoorFactory, DoorPort, DoorTime, LOGON_CLOCK_NS, LogonProof, ProtocolDoor,
    SessionMark, Sink,
};
pub use levels::{DEPTH, Levels};
pub use market::{MarketBook, MarketSubscription, MarketView};
pub use secrets::SecretScan;
pub use tap::{
    TAP_BYTES_MAX, TAP_HEAD_BYTES, TapClose, TapDoor, TapEntry, TapFault, TapHead, TapKind, TapLoss,
};
