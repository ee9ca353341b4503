//! A broker's front: it takes users' commands in their order, and hands each to the accounts with the quote that it needs.
//!
//! The obvious front asks for a quote when a command's turn comes, and waits. The legacy server takes up to four seconds for an answer and five cents for each: a
//! user with thirty stocks waits for a minute, and two users pay twice for one price. Here a quote is asked for when a command *arrives*, once for each
//! stock. A command waits for its own user's earlier ones and for its own quote, for nothing else.
//!
//! Rules: time and what others say are arguments, effects wait on a list until they are taken. [`BrokerFront`] holds nothing that matters: what was done is in
//! the accounts, and any other front that gets the same commands continues, and finds what is armed and pending.
//!
//! | module | what |
//! |---|---|
//! | `front` | users' commands in order; `user` is one user's part, `parts` all of them, `numbers` what they are called |
//! | `moments`, `look` | what happens without a command: triggers that fire, pending buys and sells that lapse; and how they are found again |
//! | `beside` | what supervisors say of a customer |
//! | `clock` | whether a front's clock is right |
//! | `backlog` | what waits, and for what |
//! | `fair` | commands on their way to a front: each user has his share of the room |
//! | `turns` | commands on their way to the sites: who is next when as many are there as may be |
//! | `desk` | quotes: one question for each stock at a time, its answer shared for 60 seconds |
//! | `desks` | desks that many fronts share: a desk's end, a front's end, and what they say |
//! | `line` | the quote server's line protocol |
//! | [`loader_lines`] | lines between loaders and fronts |
//! | `stand_in`, `draw` | what the stand-in for that server answers, and when |
//!
//! Invariants that it asserts:
//!
//! - A command has one place among those that arrived, and is reported once.
//! - Each part but the first, which is nobody's, has a user or is free; a free one is idle.
//! - A request is handed on once the front has its number and while its user has room, behind an earlier one of its session.
//! - What comes back from the sites was handed on.
//! - Of a stock one question is open at a time, and questions are numbered in their order.
//! - What is kept is counted: own triggers, early commands, held ones, those of each user and of nobody.
//! - A sender is in turn while parts of its wait, a user while he has something; who is served has waited for it.
//! - Own sessions, those beside and those given out are apart, and no more than a number has.

mod backlog;
mod beside;
mod clock;
mod desk;
mod desks;
mod effect;
mod fair;
mod front;
mod hits;
mod line;
pub mod loader_lines;
mod look;
mod moments;
mod numbers;
mod pace;
mod parts;
mod stand_in;
mod turns;
mod user;

pub use backlog::FrontBacklog;
pub use clock::{CLOCK_OFF_MAX_MS, CLOCK_SAID_MS};
pub use desk::{DeskEffect, HIT_MILLS, QUOTE_LIMIT_MS, QuoteDesk, QuoteStanding};
pub use desks::{
    DeskCall, DeskCalls, DeskNews, FRAME_MAX, FrontNumber, SharedDesk, SharedEffect, ToDesk, ToFront,
};
pub use effect::{Arrival, FrontEffect, NotTaken};
pub use fair::FairFeed;
pub use front::{BrokerFront, FRONT_OPEN_MAX};
pub use line::{QuoteFault, ask_line, read_reply, reply_line, signed_part};
pub use look::{LOOK_EVERY_MS, LOOK_PATIENCE_MS};
pub use numbers::FrontNumbers;
pub use stand_in::{StandIn, StandInAnswer, StandInSettings, StandInWords};
pub use turns::{AT_SITES_MAX, EACH_USER, EARLY_MAX, EARLY_OF_SENDER_MAX};
pub use user::{CommandOrder, GIVEN_UP_AFTER_MS};
