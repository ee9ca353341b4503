//! Sockets of a process of the broker, all on its one thread.

mod conn;
mod hearing;
mod port;
mod retry;

pub use conn::Conn;
pub use hearing::Hearing;
pub use port::{Port, SocketOwner};
pub use retry::Retry;
