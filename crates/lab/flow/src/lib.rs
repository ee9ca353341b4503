//! Order flow: recorded days (LOBSTER, ITCH) turned into commands whose results can be checked, and
//! seeded synthetic flow.
//!
//! A recorded day tells what an exchange *did*; an exchange wants to be told what to *do*. The obvious
//! way, feeding the record into a book as state changes, proves nothing about matching: the book under
//! test would never match. Here every recorded execution becomes an opposite immediate-or-cancel order
//! that must fill the very order the record names, so price-time priority is put to the proof at each
//! one, and the book is rebuilt from the exchange's answers alone and compared with the published one.
//!
//! ```text
//!  lobster / itch --Recorded--> Translator --Action--> Replay --FlowCommand--> exchange
//!    (source)                   shadow book              |                        |
//!                                                     Checker <--outcome, events--+
//!                                                     BookMirror == published?
//! ```
//!
//! Nothing here touches the network: [`Replay`] hands out commands and takes answers back, any number
//! later, so its driver may keep as many in flight as it likes.

mod actions;
mod check;
mod command;
mod itch;
mod lobster;
mod mirror;
mod paper;

mod recorded;
mod replay;
mod scenarios;
mod schedule;
mod shadow;
mod synthetic;
mod translate;

pub use actions::Actions;
pub use check::{Checker, Discrepancy, Mismatch};
pub use command::{Action, Expectation, FlowAction, FlowCommand, FlowStep, RowCheck};
pub use itch::{ItchCounts, ItchSelect, ItchSource};
pub use lobster::LobsterSource;
pub use mirror::BookMirror;
pub use paper::PaperFlow;
pub use pares_random::Random;
pub use recorded::{
    BookChange, Depth, DepthLevel, OrderRef, RecordedEvent, RecordedEvents, RecordedId, SourceError,
};
pub use replay::{Replay, ReplayReport};
pub use scenarios::{
    BookMessage, BookScenario, MessageKind, SCENARIO_MEMBERS, SCENARIO_ORDERS, SCENARIO_SEED,
    SCENARIO_START_TICKS,
};
pub use schedule::Schedule;
pub use synthetic::{FlowInstrument, SyntheticConfig, SyntheticFlow};
pub use translate::{Tally, Translator, TranslatorConfig};
