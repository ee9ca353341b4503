//! Questions to one site over one connection, and long answers.

use std::io;
use std::time::Duration;

use pares_link::{ClientStream, Door};
use pares_wice::codec::Coded;
use pares_wice::{KEY_BYTES_MAX, TRANSACTION_BYTES_MAX, VALUE_BYTES_MAX};

use super::BackupError;
use crate::place::giving::PIECE_BYTES;
use crate::protocol::{Ask, Code, Reply};

/// Longest frame that a site hands out, bytes.
pub(super) const FRAME_MAX: usize = 8 << 20;
const _: () =
    assert!(PIECE_BYTES + KEY_BYTES_MAX + VALUE_BYTES_MAX < FRAME_MAX, "a piece fits into one reply");
const _: () = assert!(TRANSACTION_BYTES_MAX < FRAME_MAX, "a version fits into one reply");
/// A site that says nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// The tag of all questions: one is open at a time.
pub(super) const TAG: u64 = 1;

/// A connection to one site.
pub struct BackupConnection {
    connection: ClientStream,
    site: String,
}

impl BackupConnection {
    /// Connects to the site behind that door.
    ///
    /// # Errors
    /// [`BackupError::Broken`] if there is no site.
    pub fn connect(door: &Door) -> Result<Self, BackupError> {
        let site = door.address().to_string();
        let broken = |source| BackupError::Broken { site: site.clone(), source };
        let connection = ClientStream::connect(door, FRAME_MAX).map_err(broken)?;
        connection.set_timeout(Some(PATIENCE)).map_err(broken)?;
        Ok(Self { connection, site })
    }

    pub(super) fn ask(&mut self, ask: &Ask) -> Result<(), BackupError> {
        let sent = self.connection.send(&ask.to_bytes());
        sent.map_err(|source| self.broken(source))
    }

    /// What the site says next.
    pub(super) fn receive(&mut self) -> Result<Vec<u8>, BackupError> {
        self.connection.receive().map_err(|source| self.broken(source))
    }

    /// Who is at the other end, for people.
    pub(super) fn site(&self) -> &str {
        &self.site
    }

    fn broken(&self, source: io::Error) -> BackupError {
        BackupError::Broken { site: self.site.clone(), source }
    }
}

/// What `site` hands out with a reply.
///
/// # Errors
/// [`BackupError::Later`] or [`BackupError::No`] if that is nothing, [`BackupError::Answer`] if it is no reply.
pub(super) fn handed<T: Coded>(reply: &[u8], site: &str) -> Result<T, BackupError> {
    let reply = Reply::from_bytes(reply)?;
    let why = || format!("{site}: {}", String::from_utf8_lossy(&reply.body));
    match reply.code {
        Code::Done => Ok(T::from_bytes(&reply.body)?),
        Code::Busy | Code::Elsewhere => Err(BackupError::Later(why())),
        _ => Err(BackupError::No(why())),
    }
}
