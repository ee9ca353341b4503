//! The configuration of one system, which nodes it has, and where everything of it lies.
//!
//! Every process of a system reads the same file and must find the same things by it; so what a setting means is said once, here, and
//! nothing here opens a file: text goes in, and a checked configuration or a [`ConfigError`] comes out.
//!
//! | module | what |
//! |---|---|
//! | `settings`, `instrument`, `feed`, `day` | the settings; `comments` is what a new file says of them |
//! | `durability`, `sign_on`, `exposure` | settings of one word, and which of them do not go together |
//! | `lanes`, `placement` | which venue executes which shards: as the settings say, and as they were moved |
//! | `hosts` | which node runs at which host |
//! | `shards`, `ids`, `budget` | what follows from them |
//! | `node_id` | the nodes by name |
//! | `layout` | where everything lies, and which bell is whose |

mod budget;
mod comments;
mod day;
mod durability;
mod error;
mod exposure;
mod feed;
mod hosts;
mod ids;
mod instrument;
mod lanes;
mod layout;
mod node_id;
mod placement;
mod settings;
mod shards;
mod sign_on;

pub use day::DayConfig;
pub use durability::DurabilitySetting;
pub use error::ConfigError;
pub use exposure::{ClientCertificates, TlsSetting};
pub use feed::{FEED_ROLE_MAX, FeedConfig};
pub use hosts::HostConfig;
pub use instrument::{InstrumentConfig, PhaseSetting, TickSetting, TimetableSetting};
pub use lanes::LaneConfig;
pub use layout::{Layout, bells};
pub use node_id::NodeId;
pub use placement::{MoveStep, Placement, Seats};
pub use settings::{ROLE_MAX, SystemConfig};
pub use sign_on::SignOnSetting;
