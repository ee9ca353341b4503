//! The server, over a broker in memory whose prices and clock a test sets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pares_broker::PersonRight;
use pares_web::{WebServer, WebSettings, WebTransport, add_person};

use super::stand_in::MemoryBroker;
use super::{Hand, Tab};

/// The password of all.
pub(crate) const PASSWORD: &str = "correct horse battery";
const SUPERVISOR: &str = "supervisor";

/// A server that serves as long as its runtime runs.
pub(crate) struct Server {
    broker: MemoryBroker,
    address: String,
    /// How far its clock is ahead, ms.
    ahead_ms: Arc<AtomicU64>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let ahead_ms = Arc::new(AtomicU64::new(0));
        let settings = settings(ahead_ms.clone());
        let broker = MemoryBroker::new(settings.clock.clone());
        add_person(&broker, &settings, SUPERVISOR, PASSWORD, &PersonRight::ALL).await.unwrap();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = WebServer::bind(any, WebTransport::Loopback, broker.clone(), settings).await.unwrap();
        let address = format!("http://{}", server.address());
        tokio::spawn(broker.clone().live());
        tokio::spawn(server.run());
        Self { broker, address, ahead_ms }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// From now on this is the price.
    pub(crate) fn price(&self, symbol: &str, cents: u64) {
        self.broker.set_price(symbol, cents);
    }

    /// So much time passes at once.
    pub(crate) fn pass(&self, ms: u64) {
        self.ahead_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// Signs in as one who may do everything.
    pub(crate) async fn enter_supervisor(&self, page: &Tab) {
        Hand::Mouse.write(page, "#in-name", SUPERVISOR).await;
        Hand::Mouse.write(page, "#in-password", PASSWORD).await;
        Hand::Mouse.press(page, "#sign-in button").await;
        page.find("#ticket").await;
    }
}

// A password takes no time: that it takes some is tested elsewhere.
fn settings(ahead_ms: Arc<AtomicU64>) -> WebSettings {
    let clock = WebSettings::default().clock;
    WebSettings {
        password_cost: (8, 1),
        clock: Arc::new(move || clock() + ahead_ms.load(Ordering::Relaxed)),
        ..WebSettings::default()
    }
}
