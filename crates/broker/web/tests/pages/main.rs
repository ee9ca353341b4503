//! The pages in a real browser: Chromium, driven as a person would, against the server with a stand-in for the sites.
//!
//! | module | what |
//! |---|---|
//! | `day` | every command, by mouse and by keyboard alone |
//! | `orders` | orders on the exchange, and a supervisor's limits |
//! | `access` | what axe-core finds, and a phone's width |
//! | `live` | notices, lost answers, many updates a second, weight |
//! | `support` | the server; the browser is `pares-browser` |
//!
//! Where there is no Chromium these tests say so and check nothing. What the pages look like is left in `target/screenshots`.

#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![allow(clippy::print_stderr, clippy::print_stdout)] // a test that skips says why

mod access;
mod day;
mod live;
mod orders;
mod support;
