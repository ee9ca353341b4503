//! A member's trading system (docs/protocols/member.md; paper 2): servers that are all primary, and their traders' end.
//!
//! ```text
//!   traders --TCP--> member server 0 --submissions--> window <--submissions-- member server 1 <--TCP-- traders
//!                        | stream log                    (decided)                | stream log
//!                        +-----------------> peers fill each other <--------------+
//! ```
//! | module | what |
//! |---|---|
//! | [`config`] | `member.toml` |
//! | [`start`] | the window's next life, before any server runs |
//! | [`world`] | what a server touches besides the exchange's world |
//! | [`server`] | the duty cycle |
//! | [`sources`] | the market, and what the exchange tells the member |
//! | [`market`] | receives the market |
//! | [`reports`] | copies what the exchange tells the member |
//! | [`process`] | a server as a process |
//! | [`up`] | starts the servers, restarts what dies |
//! | [`client`] | a trader's end |

pub mod client;
pub mod config;
pub mod market;
mod notes;
pub mod process;
pub mod reports;
pub mod server;
pub mod sources;
pub mod start;
pub mod up;
pub mod world;

pub use client::{TraderClient, TraderNews, TraderOptions};
pub use config::MemberConfig;
pub use server::MemberServer;
