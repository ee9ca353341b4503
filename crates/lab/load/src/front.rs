//! Members that trade over a standard protocol through a front of the exchange's.
//!
//! What is measured or killed must be met as members meet it: bytes on a socket, numbers that outlive connections, requests that are asked again because
//! nobody knows what became of them. That is the same whatever they speak, and so is the member here; an engine speaks.
//!
//! | module | what |
//! |---|---|
//! | `line` | a connection's socket, and what has come in on it |
//! | `session` | one member, and how it continues at another gateway |
//! | `member_reports` | what members received |

mod line;
mod member_reports;
pub(crate) mod session;

use std::net::{SocketAddr, TcpStream};

use pares_types::ClientRequest;

pub(crate) use line::{Line, READ_BYTES};
pub use member_reports::FrontTold;

/// Why a connection is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrontEnd {
    /// It is gone, or the gateway has said goodbye: another gateway may do.
    Lost(String),
    /// One end does not keep to the protocol.
    Broken(String),
}

/// What a member hears of its requests, by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// What became of one.
    Answered(u64),
    /// It was not taken in.
    Rejected(u64),
    /// An order traded.
    Traded,
}

/// A session of a standard protocol on a connection.
pub(crate) trait FrontEngine: Sized + Send + 'static {
    /// Who calls, and as whom.
    type Caller: Send;
    /// What outlives connections.
    type Numbers: Default + Send;

    /// The caller, for who looks for a failure.
    fn name(caller: &Self::Caller) -> &str;

    /// Whether the protocol can say it.
    fn can_say(request: &ClientRequest) -> bool;

    /// Connects, and asks to be logged on under the session's numbers.
    ///
    /// # Errors
    /// If nobody listens there.
    fn call(
        address: SocketAddr,
        caller: &Self::Caller,
        numbers: Self::Numbers,
    ) -> Result<Self, (std::io::Error, Self::Numbers)>;

    /// The numbers, for the next connection.
    fn into_numbers(self) -> Self::Numbers;

    fn socket(&self) -> &TcpStream;

    fn is_logged_on(&self) -> bool;

    /// Buffers a request; `again` says that it may have been sent before.
    fn send(&mut self, request: &ClientRequest, again: bool);

    /// Sends what is buffered, as much of it as the connection takes.
    ///
    /// # Errors
    /// If the connection is gone.
    fn flush(&mut self) -> Result<(), FrontEnd>;

    /// Hands out what has come in, in order. Says how many messages that was.
    ///
    /// # Errors
    /// If the connection is of no more use.
    fn poll(&mut self, on: &mut dyn FnMut(Heard)) -> Result<usize, FrontEnd>;

    /// Whether requests may have been lost on this connection since this was last called.
    fn take_lost(&mut self) -> bool {
        false
    }
}
