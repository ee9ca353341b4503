//! Sockets of a process of the broker, all on its one thread.

mod conn;
mod port;
mod pulse;
mod retry;

pub use conn::Conn;
pub use port::{Port, SocketOwner};
pub use pulse::Pulse;
pub use retry::Retry;
