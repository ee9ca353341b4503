//! How a client connects, as whom, and whom it believes.

use std::path::Path;
use std::time::Duration;

use pares_keys::{KeyFile, Secret};
use pares_tls::{Identity, TlsError, TlsFiles, Trust};
use pares_wire::GATEWAYS_NAME;

/// How a client connects and waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which of the member's sessions to sign on as, and its secret; without one, a gateway that wants a proof refuses.
    pub credential: Option<Credential>,
    /// Also report when each request is durable in the gateway's journal.
    pub journalled: bool,
    /// The member's streams are going to be resumed ([`crate::Client::resume`]): nothing of them is sent before.
    pub resumes: bool,
    /// How often each end has to hear the other ([`crate::Client::poll`]); a gateway may want it shorter or longer. `None`: never.
    pub heartbeat: Option<Duration>,
    /// How long to wait for the sign-on, and in [`crate::Client::submit_and_wait`] for the answer.
    pub patience: Duration,
    /// For gateways whose port is TLS.
    pub tls: Option<Tls>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            credential: None,
            journalled: false,
            resumes: false,
            heartbeat: None,
            patience: Duration::from_secs(5),
            tls: None,
        }
    }
}

/// Whom to believe to be a gateway.
#[derive(Clone, Debug)]
pub struct Tls {
    pub(crate) trust: Trust,
    /// What the gateway's certificate must name: a host name or an IP address.
    pub(crate) server_name: String,
}

impl Tls {
    /// Any gateway of the exchange whose authority's certificate (`ca.pem`) lies in that file.
    ///
    /// # Errors
    /// If there is none.
    pub fn of_exchange(authority: &Path) -> Result<Self, TlsError> {
        Ok(Self::believing(Trust::load(authority)?))
    }

    /// The same, and shows the certificate in `files` to a gateway that asks for one.
    ///
    /// # Errors
    /// If one of the files is not there, or they do not go together.
    pub fn certified(files: &TlsFiles) -> Result<Self, TlsError> {
        Ok(Self::believing(Identity::load(files)?.trust()?))
    }

    /// Any gateway that can prove its name to `trust`.
    #[must_use]
    pub fn believing(trust: Trust) -> Self {
        Self { trust, server_name: GATEWAYS_NAME.into() }
    }

    /// Only the gateway whose certificate bears that host name or IP address.
    #[must_use]
    pub fn named(self, server_name: &str) -> Self {
        Self { server_name: server_name.into(), ..self }
    }
}

/// One of a member's sessions, and what proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Which session, from 1.
    pub session: u16,
    /// Its secret.
    pub secret: Secret,
}

impl From<&KeyFile> for Credential {
    fn from(key: &KeyFile) -> Self {
        Self { session: key.session, secret: key.secret.clone() }
    }
}
