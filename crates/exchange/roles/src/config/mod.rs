//! The configuration of one system, and where everything of it lies.

mod budget;
mod comments;
mod day;
mod durability;
mod exposure;
mod feed;
mod ids;
mod instrument;
mod layout;
mod settings;
mod shards;
mod sign_on;

pub use day::DayConfig;
pub use durability::DurabilitySetting;
pub use exposure::{ClientCertificates, TlsSetting};
pub use feed::{FEED_ROLE_MAX, FeedConfig};
pub use instrument::{InstrumentConfig, PhaseSetting, TickSetting, TimetableSetting};
pub use layout::{Layout, bells};
pub use settings::{ROLE_MAX, SystemConfig};
pub use sign_on::SignOnSetting;
