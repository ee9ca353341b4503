//! The gateway's rules, put to the test from outside: whole gateways before a small exchange.

mod exchange;
mod property;
mod rules;
mod scenarios;
mod world;
