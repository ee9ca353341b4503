//! Market data (docs/protocols/market-data.md): what the market sees of a shard's record, and how to read it.
//!
//! The usual feed is a process of its own with a primary and a stand-by, since its numbers are in its memory: when it dies, the stand-by has to
//! continue them. Here the messages and their numbers follow from the committed record alone. So each process that has the record can
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
//! | [`publisher`] | messages become packets |
//! | [`resending`] | and again, on request |
//! | [`store`] | what a publisher keeps of its sessions, wherever |
//! | [`kept`] | in memory |
//! | `pace` | how often who asks is answered |
//! | [`soup`] | messages over a connection |
//! | `asked` | what a client asks for by its login |
//! | [`serving`] | a replayer's side of it: replay, snapshot |
//! | [`snapshot`] | books become messages |
//! | [`receiver`] | packets of two lines become one sequence |
//! | `dropped` | what came to nothing |
//! | [`books`] | messages become books |
//! | [`subscription`] | the feed of a shard, as programs have it: sessions, late joins, gaps that nothing fills |
//! | `recovery` | what it does by TCP |
//! | `calling` | a connection to a replayer |

mod asked;
pub mod books;
mod calling;
mod dropped;
mod early;
mod following;
pub mod itch;
pub mod kept;
mod listings;
mod living;
pub mod mold;
mod pace;
pub mod publication;
pub mod publisher;
pub mod receiver;
mod recovery;
pub mod resending;
pub mod serving;
pub mod snapshot;
pub mod soup;
mod step;
pub mod store;
mod stored;
pub mod subscription;
