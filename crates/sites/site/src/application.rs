//! What a site executes.

use pares_store::{Reads, StoreError, Work, WorkError};
use thiserror::Error;

use crate::protocol::Code;
use crate::requests::Answer;
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
///
/// Executions share the site's one thread with everything else it does: while one runs, no other request is executed, no message is read and the
/// log's clock stalls. One that takes longer than a tenth of a second may cost the site its office. So it should look at few items, by name;
/// what walks many of them is for [`read`](Application::read), which has threads of its own, several at once.
pub trait Application: Send + Sync + 'static {
    /// Executes a request that may change items.
    ///
    /// # Errors
    /// Why it changes nothing.
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError>;

    /// Answers a request that changes nothing, from a stable version: on a snapshot of the store, beside everything else.
    ///
    /// # Errors
    /// Why there is no answer.
    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError>;

    /// SQL that makes views of its items (`pares_items`), where a PostgreSQL database holds them: run at each start, as [`Options::with_views`] says.
    ///
    /// [`Options::with_views`]: pares_store::postgres::Options::with_views
    fn views(&self) -> &'static str {
        ""
    }
}

/// What a client receives.
///
/// # Errors
/// If the store failed.
pub(crate) fn answer_of(result: Result<Vec<u8>, ApplicationError>) -> Result<Answer, StoreError> {
    match result {
        Ok(body) => Ok(Answer { code: Code::Done, body }),
        Err(ApplicationError::Store(error) | ApplicationError::Work(WorkError::Store(error))) => Err(error),
        Err(failure) => Ok(Answer { code: Code::Refused, body: failure.to_string().into_bytes() }),
    }
}
