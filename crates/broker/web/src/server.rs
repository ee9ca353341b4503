//! The server: the broker's paths behind connections with limits.

use std::net::SocketAddr;

use axum::Router;
use pares_http::connections::{HttpListener, WebError, WebTransport};

use crate::app::App;
use crate::broker::Broker;
use crate::routes::router;
use crate::settings::WebSettings;

/// A server that listens, and serves once it is [run](WebServer::run).
pub struct WebServer {
    connections: HttpListener,
    router: Router,
}

impl WebServer {
    /// Listens on `address`; port 0 is any free one. Needs a runtime of tokio with I/O and time.
    ///
    /// # Errors
    /// If it may not be reached so, or cannot be listened to.
    pub async fn bind(
        address: SocketAddr,
        transport: WebTransport,
        broker: impl Broker,
        settings: WebSettings,
    ) -> Result<Self, WebError> {
        let (most, patience) = (settings.connections_max, settings.patience);
        let connections = HttpListener::bind(address, transport.clone(), most, patience).await?;
        let app = App::new(broker, settings, &transport);
        app.watch();
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
