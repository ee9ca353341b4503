//! The server: paths behind connections with limits.

use std::net::SocketAddr;

use axum::Router;
use pares_http::connections::{HttpListener, WebError, WebTransport};

use crate::app::App;
use crate::routes::router;
use crate::settings::ApiSettings;

/// A server that listens, and serves once it is [run](ApiServer::run).
pub struct ApiServer {
    connections: HttpListener,
    router: Router,
}

impl ApiServer {
    /// Listens on `address`; port 0 is any free one. Needs a runtime of tokio with I/O and time.
    ///
    /// # Errors
    /// If it may not be reached so, or cannot be listened to.
    pub async fn bind(
        address: SocketAddr,
        transport: WebTransport,
        settings: ApiSettings,
    ) -> Result<Self, WebError> {
        let (most, patience) = (settings.connections_max, settings.patience);
        let connections = HttpListener::bind(address, transport.clone(), most, patience).await?;
        let app = App::new(settings, &transport);
        app.look_after();
        Ok(Self { connections, router: router(app) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.connections.address()
    }

    /// Serves until the future is dropped.
    pub async fn run(self) {
        self.connections.serve(self.router).await;
    }
}
