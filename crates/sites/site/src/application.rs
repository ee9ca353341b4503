//! What a site executes.

use pares_store::{Reads, StoreError, Work, WorkError};
use thiserror::Error;

use crate::view::View;

/// Why a request has no effect.
#[derive(Debug, Error)]
pub enum ApplicationError {
    /// The application says no: certified and told like a reply, so that the request is not done elsewhere.
    #[error("{0}")]
    Refused(String),
    /// Something in the work cannot be done.
    #[error(transparent)]
    Work(#[from] WorkError),
    /// The store cannot be read: the site ends.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A function from requests to replies, over items.
///
/// It may be executed several times, at several sites, on several states; one of these executions commits, or none. It must have no
/// effects but through its work, and need not give the same each time.
pub trait Application {
    /// Executes a request that may change items.
    ///
    /// # Errors
    /// Why it changes nothing.
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError>;

    /// Answers a request that changes nothing, from the stable version.
    ///
    /// # Errors
    /// Why there is no answer.
    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError>;
}
