//! What all requests share.

use std::sync::Arc;
use std::time::Duration;

use pares_http::connections::WebTransport;

use crate::sessions::Sessions;
use crate::settings::ApiSettings;
use crate::symbols::Symbols;

/// How often sessions are looked through.
const SWEEP_EACH: Duration = Duration::from_secs(1);

pub(crate) type Shared = Arc<App>;

pub(crate) struct App {
    pub(crate) settings: ApiSettings,
    pub(crate) sessions: Sessions,
    pub(crate) symbols: Symbols,
    pub(crate) is_secure: bool,
    looks_at_host: bool,
}

impl App {
    pub(crate) fn new(settings: ApiSettings, transport: &WebTransport) -> Shared {
        Arc::new(Self {
            sessions: Sessions::new(settings.sessions_max),
            symbols: Symbols::default(),
            is_secure: !matches!(transport, WebTransport::Loopback),
            looks_at_host: match transport {
                WebTransport::Loopback => true,
                WebTransport::Tls(_) => false,
                WebTransport::BehindProxy => !settings.hosts.is_empty(),
            },
            settings,
        })
    }

    /// Looks after sessions, until no owner of this is left.
    pub(crate) fn look_after(self: &Arc<Self>) {
        let app = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut turn = tokio::time::interval(SWEEP_EACH);
            loop {
                turn.tick().await;
                let Some(app) = app.upgrade() else { break };
                app.sessions.sweep(app.settings.idle);
            }
        });
    }

    /// The names by which requests may come, if that counts.
    pub(crate) fn names(&self) -> Option<&[String]> {
        self.looks_at_host.then_some(self.settings.hosts.as_slice())
    }
}
