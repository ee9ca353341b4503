//! Market data (docs/protocols/market-data.md): what the market sees of a shard's record, and how to read it.
//!
//! The usual feed is a process of its own with a primary and a stand-by, since its numbers are in its memory: when it dies, somebody has to
//! go on with them. Here the messages and their numbers follow from the committed record alone. So each process that has the record can
//! publish, any number at once, and a receiver need not care which of them it hears. (Swiss Exchange, paper 2, with today's forms.)
//!
//! | module | what |
//! |---|---|
//! | [`itch`] | messages, bytes |
//! | [`publication`] | a record becomes messages: sessions, instruments |
//! | `following` | its orders |
//! | `step` | one record |
//! | `listings` | its instruments |
//! | `living` | the orders that live, as far as messages need them |
//! | `stored` | a publication as bytes |
//! | [`mold`] | packets |
//! | [`publisher`] | messages become packets, now and again |
//! | `kept` | the messages of a session |
//! | `pace` | how often who asks is answered |
//! | [`receiver`] | packets of two lines become one sequence |
//! | [`books`] | messages become books |

pub mod books;
mod following;
pub mod itch;
mod kept;
mod listings;
mod living;
pub mod mold;
mod pace;
pub mod publication;
pub mod publisher;
pub mod receiver;
mod step;
mod stored;
