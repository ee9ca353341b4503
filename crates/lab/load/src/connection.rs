//! One member's connection, whatever it speaks.

use std::os::fd::BorrowedFd;

use pares_types::{ClientOrderId, ClientRequest};

use crate::error::LabError;

/// What a member receives about its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// What became of a request.
    Answered(ClientOrderId),
    /// A gateway did not take a request in.
    Rejected,
    /// An incoming order traded.
    Traded,
}

/// One member's connection.
pub(crate) trait Connection {
    /// What to wait on; none while there is no connection.
    fn socket(&self) -> Option<BorrowedFd<'_>>;

    /// Index of the gateway this member uses while it is there.
    fn home(&self) -> usize;

    /// Whether it is not served where it should be.
    fn is_away(&self) -> bool;

    /// Buffers a request; without a connection it is kept for the next one.
    ///
    /// # Errors
    /// If too much is waiting to be sent.
    fn send(&mut self, request: &ClientRequest) -> Result<(), LabError>;

    /// Sends what is buffered.
    ///
    /// # Errors
    /// If the connection is lost and losses are not to be survived.
    fn flush(&mut self) -> Result<(), LabError>;

    /// Hands out what has come in. Says how many messages that was.
    ///
    /// # Errors
    /// As [`Connection::flush`].
    fn poll(&mut self, on: &mut dyn FnMut(Told)) -> Result<usize, LabError>;

    /// Without a connection, tries one gateway after the other and repeats what is open at the first that is there.
    /// Says how many requests were sent a second time. With one there is nothing to do.
    fn come_back(&mut self, now_ns: u64) -> u64;

    /// Returns to its own gateway, at a moment in which nothing is open, so that nothing needs to be repeated.
    fn go_home(&mut self);

    /// Whether this is the first answer on a connection that replaced a lost one.
    fn take_fresh(&mut self) -> bool;
}
