//! What all requests share.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_broker::{AccountSummary, Asked, BrokerRead, BrokerReply, PersonAsked, SessionDigest, UserName};
use tokio::sync::broadcast::error::RecvError;

use crate::allowances::Allowances;
use crate::broker::Broker;
use crate::follow::Follows;
use crate::passwords::Passwords;
use crate::points::Points;
use crate::problem::{self, Answer};
use crate::settings::WebSettings;
use pares_http::connections::WebTransport;
use pares_http::places::Places;

/// Most sockets of a user.
const SOCKETS_OF_USER: usize = 8;
/// Most users who are known to have an account; then it is asked again.
const ACCOUNTS_KNOWN_MAX: usize = 10_000;

pub(crate) type Shared = Arc<App>;

pub(crate) struct App {
    pub(crate) front: Arc<dyn Broker>,
    pub(crate) settings: WebSettings,
    pub(crate) passwords: Passwords,
    pub(crate) commands: Allowances,
    pub(crate) reads: Allowances,
    pub(crate) callers: Allowances,
    pub(crate) fresh_quotes: Allowances,
    pub(crate) sign_ins: Allowances,
    pub(crate) proofs: Allowances,
    /// Users who are known to have an account: once there is one, there always is.
    accounts: Mutex<BTreeSet<UserName>>,
    /// Sessions that are being noted as used.
    noting: Mutex<BTreeSet<SessionDigest>>,
    pub(crate) points: Points,
    pub(crate) follows: Follows,
    /// Sockets, by user.
    pub(crate) sockets: Arc<Places<String>>,
    /// Whether people's connections are TLS.
    pub(crate) is_secure: bool,
    /// Whether the name counts by which it is asked.
    pub(crate) looks_at_host: bool,
}

impl App {
    pub(crate) fn new(broker: impl Broker, settings: WebSettings, transport: &WebTransport) -> Shared {
        Arc::new(Self {
            front: Arc::new(broker),
            passwords: Passwords::new(&settings),
            commands: Allowances::new(settings.commands),
            reads: Allowances::new(settings.reads),
            callers: Allowances::new(settings.callers),
            fresh_quotes: Allowances::new(settings.fresh_quotes),
            accounts: Mutex::default(),
            noting: Mutex::default(),
            sign_ins: Allowances::new(settings.sign_ins),
            proofs: Allowances::new(settings.proofs),
            points: Points::default(),
            follows: Follows::default(),
            sockets: Places::new(settings.connections_max, SOCKETS_OF_USER),
            is_secure: !matches!(transport, WebTransport::Loopback),
            looks_at_host: match transport {
                WebTransport::Loopback => true,
                WebTransport::Tls(_) => false,
                WebTransport::BehindProxy => !settings.hosts.is_empty(),
            },
            settings,
        })
    }

    /// From now on every quote that the front learns is a point.
    pub(crate) fn watch(self: &Arc<Self>) {
        let (app, mut quotes) = (Arc::downgrade(self), self.front.quotes());
        tokio::spawn(async move {
            loop {
                let quote = match quotes.recv().await {
                    Ok(quote) => quote,
                    Err(RecvError::Lagged(_)) => continue,
                    Err(RecvError::Closed) => break,
                };
                match app.upgrade() {
                    Some(app) => app.points.note(&quote),
                    None => break,
                }
            }
        });
    }

    pub(crate) fn now_ms(&self) -> u64 {
        (self.settings.clock)()
    }

    /// Whether the user has an account.
    pub(crate) async fn has_account(&self, user: &UserName) -> Answer<bool> {
        let known = || self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(user) {
            return Ok(true);
        }
        let reading = self.front.read(BrokerRead::Summary { user: user.clone() });
        let summary: Option<AccountSummary> = self.in_time(reading).await??;
        let mut known = known();
        if summary.is_some() {
            if known.len() >= ACCOUNTS_KNOWN_MAX {
                known.clear();
            }
            known.insert(user.clone());
        }
        Ok(summary.is_some())
    }

    pub(crate) fn noting(&self) -> MutexGuard<'_, BTreeSet<SessionDigest>> {
        self.noting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks about a person.
    pub(crate) async fn person(&self, asked: PersonAsked) -> Answer<BrokerReply> {
        let asking = self.front.ask(None, None, Asked::Person { asked });
        Ok(self.in_time(asking).await??)
    }

    /// The answer, if it comes in time.
    pub(crate) async fn in_time<T>(&self, answer: impl Future<Output = T>) -> Answer<T> {
        let patience = self.settings.patience;
        tokio::time::timeout(patience, answer).await.map_err(|_| problem::unavailable())
    }
}
