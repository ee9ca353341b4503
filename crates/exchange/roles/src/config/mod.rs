//! The configuration of one system, and where everything of it lies.

mod day;
mod exposure;
mod instrument;
mod layout;
mod settings;

pub use day::DayConfig;
pub use exposure::{ClientCertificates, TlsSetting};
pub use instrument::{InstrumentConfig, PhaseSetting, TickSetting, TimetableSetting};
pub use layout::{Layout, bells};
pub use settings::{DurabilitySetting, ROLE_MAX, SignOnSetting, SystemConfig};
