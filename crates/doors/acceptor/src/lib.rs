//! FIX sessions on connections.
//!
//! | module | what |
//! |---|---|
//! | [`acceptor`] | which session a connection has; bytes in, bytes out, no sockets |
//! | [`echo`] | the application of the acceptance files: it sends back what it gets |
//! | [`sockets`] | the same on TCP, in one thread |

pub mod acceptor;
pub mod echo;
pub mod sockets;
