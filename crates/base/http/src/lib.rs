//! The common part of all our HTTP servers: connections with limits, bodies with bounds, problem documents, pages.
//!
//! The broker and the exchange serve different things to different people by the same rules of defence. Kept twice, the second copy would miss what the first one learnt.
//!
//! | module | what |
//! |---|---|
//! | [`connections`] | listening, TLS, how long a head may take |
//! | [`sharing`] | how many connections there are, and which of them makes room |
//! | [`places`], `stall` | so many at a time; those who do not read |
//! | [`asked`] | requests that every server refuses |
//! | [`body`] | a body in time, of bounded length |
//! | [`problem`] | what went wrong, as RFC 9457 says it |
//! | [`origins`] | pages of other origins that may call |
//! | [`headers`] | the headers of every answer |
//! | [`websocket`] | what a client's message is, and how a socket ends |
//! | [`pages`] | files of the program, and the modules in `pages/` that all pages share |

pub mod asked;
pub mod body;
pub mod connections;
pub mod headers;
pub mod origins;
pub mod pages;
pub mod places;
pub mod problem;
pub mod sharing;
mod socket;
mod stall;
pub mod websocket;
