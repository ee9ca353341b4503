//! The rules of a member's trading system (docs/protocols/member.md; paper 2, sections 2 and 5).
//!
//! The paper's trading system has a primary that orders and a secondary that listens; when the primary dies, this has to be detected. Here
//! the servers are equals. What comes from the exchange is a function of its record and needs no agreement. What arises inside the member
//! (messages, notes, quotes between traders, copies of own orders) is one numbered stream, ordered as the exchange orders requests: servers
//! race for the positions of a window, the first wins, the others conform.
//!
//! | module | what |
//! |---|---|
//! | [`item`] | what the stream holds, and its bytes |
//! | [`names`] | what was submitted before, and where it stands |
//! | `lanes` | submitted and not ordered, decided and not taken |
//! | [`local`] | the stream at one server |
//! | [`trader`] | a trader's end of it |
//! | [`frame`] | what servers, traders and peers say to each other |
//! | [`blocks`] | the stream encoded once for all who follow it |
//! | [`session`] | one trader's connection: what it sends, how far it is |
//! | [`shown`] | books for those who want the latest state only |
//! | [`transfer`] | how fast a server fills another |
//! | [`view`], [`market`] | what is shown of a book, and what it is worth |
//! | [`holdings`] | what a member's trades come to |

pub mod blocks;
pub mod frame;
pub mod holdings;
pub mod item;
mod lanes;
pub mod local;
pub mod market;
pub mod names;
pub mod session;
pub mod shown;
pub mod trader;
pub mod transfer;
pub mod view;
