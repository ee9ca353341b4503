//! The writer's connection, where it ended while nothing was written.
//!
//! A write that fails ends the store: nobody knows whether it was done. But a connection that was idle when its server went away had nothing under way,
//! and a site need not end for it. So one that was idle for a while is asked first whether it is still there, and another takes its place if the
//! store is found as it was left. A server that crashes loses the last commits, which did not wait for its disk; then it is not, and the store ends.

use std::time::{Duration, Instant};

use postgres::Client;

use super::store::{IMPATIENT, READ_MARK, lock, make, mark_of};
use super::{Options, failed};
use crate::error::StoreError;
use crate::mark::Mark;

/// Who has written so lately is not asked.
const IDLE: Duration = Duration::from_secs(1);

/// What is known of the writer's connection.
pub(super) struct Idle {
    options: Options,
    used: Instant,
    /// As the store was left.
    mark: Option<Mark>,
}

impl Idle {
    /// Connects to the server that `options` names.
    pub(super) fn begin(options: Options) -> Result<(Client, Self), StoreError> {
        let (client, mark) = connected(&options)?;
        Ok((client, Self { options, used: Instant::now(), mark }))
    }

    /// The store is left so.
    pub(super) fn leave(&mut self, mark: &Mark) {
        (self.used, self.mark) = (Instant::now(), Some(mark.clone()));
    }

    /// A connection in place of `client`, if that has ended meanwhile.
    pub(super) fn instead_of(&mut self, client: &mut Client) -> Result<Option<Client>, StoreError> {
        let is_asked = self.mark.is_some() && self.used.elapsed() > IDLE;
        self.used = Instant::now();
        if !is_asked || client.batch_execute("").is_ok() {
            return Ok(None);
        }
        let (client, found) = connected(&self.options)?;
        if found != self.mark {
            return Err(StoreError::Io("its PostgreSQL server has lost what it had written last".into()));
        }
        Ok(Some(client))
    }
}

/// A connection that is the writer's, and how it finds the store.
fn connected(options: &Options) -> Result<(Client, Option<Mark>), StoreError> {
    let mut client = options.connect()?;
    lock(&mut client)?;
    make(&mut client, options)?;
    client.batch_execute(IMPATIENT).map_err(failed)?;
    let mark = client.query_opt(READ_MARK, &[]).map_err(failed)?.as_ref().map(mark_of).transpose()?;
    Ok((client, mark))
}
