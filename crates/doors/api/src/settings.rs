//! The settings with which this interface starts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pares_tls::Trust;

use crate::market::ReceivedMarket;

/// Where gateways listen, as far as it is known now.
pub type Gateways = Arc<dyn Fn() -> Vec<SocketAddr> + Send + Sync>;

/// Limits, and where the exchange is.
#[derive(Clone)]
pub struct ApiSettings {
    /// Asked whenever a gateway is called.
    pub gateways: Gateways,
    /// Whom to believe to be a gateway, where those speak TLS.
    pub tls: Option<Trust>,
    /// The market, if this process receives it.
    pub market: Option<Arc<ReceivedMarket>>,
    /// No request waits longer for its body, or for an answer of the exchange.
    pub patience: Duration,
    /// A session that is not used for so long ends.
    pub idle: Duration,
    /// Connections at a time; of one network (of IPv6 a /64) at most half.
    pub connections_max: usize,
    /// Sessions at a time, those included that are signing on.
    pub sessions_max: usize,
    /// Names besides those of this machine by which requests may come.
    pub hosts: Vec<String>,
    /// [Origins](pares_http::origins) of other servers' pages that may call.
    pub origins: Vec<String>,
}

impl ApiSettings {
    /// The usual limits.
    #[must_use]
    pub fn new(gateways: Gateways) -> Self {
        Self {
            gateways,
            tls: None,
            market: None,
            patience: Duration::from_secs(5),
            idle: Duration::from_secs(30 * 60),
            connections_max: 4_096,
            sessions_max: 1_024,
            hosts: Vec::new(),
            origins: Vec::new(),
        }
    }
}
