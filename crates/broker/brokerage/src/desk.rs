//! Quote desks as processes, and a front's connections to them. What they say to each other is `pares-front`'s.

mod links;
mod serve;

pub use links::DeskLinks;
pub use serve::{Args, run};
