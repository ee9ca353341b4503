//! The gateway's rules, put to the test from outside: whole gateways before a small exchange.

mod clock;
mod copies;
mod days;
mod endless;
mod exchange;
mod guards;
mod listings;
mod news;
mod permits;
mod positions;
mod property;
mod queries;
mod room;
mod rules;
mod scenarios;
mod status;
mod world;
