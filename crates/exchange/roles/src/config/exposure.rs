//! Who may reach the gateways, and what protects them there.

use serde::{Deserialize, Serialize};

use super::SystemConfig;
use crate::NodeError;

/// Whether the gateways' ports are TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsSetting {
    /// In the clear.
    Off,
    /// TLS 1.3, by certificates in the system's directory.
    On,
}

/// What clients must show in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientCertificates {
    /// Nothing.
    None,
    /// A certificate of the system's authority (mutual TLS).
    Required,
}

impl SystemConfig {
    /// Checks that gateways which strangers may reach are protected, or that the operator knows that they are not.
    pub(super) fn check_exposure(&self) -> Result<(), NodeError> {
        if self.tls == TlsSetting::Off && self.client_certificates == ClientCertificates::Required {
            let why = "`client_certificates = \"required\"` needs `tls = \"on\"`: certificates are shown in its handshake";
            return Err(NodeError::Config(why.into()));
        }
        let exposed = self.gateways.iter().find(|address| !address.ip().is_loopback());
        let Some(address) = exposed.filter(|_| !self.gateways_exposed) else { return Ok(()) };
        let missing = match (self.tls, self.client_certificates) {
            (TlsSetting::On, ClientCertificates::Required) => return Ok(()),
            (TlsSetting::Off, _) => {
                "everybody who reaches it can trade for any member, run the market as the exchange, and read all that \
                 passes. Set `tls = \"on\"` and `client_certificates = \"required\"`"
            }
            (TlsSetting::On, _) => {
                "everybody who reaches it can trade for any member and run the market as the exchange. Set \
                 `client_certificates = \"required\"`"
            }
        };
        Err(NodeError::Config(format!(
            "gateway {address} would listen beyond this machine: {missing}, listen on loopback (127.0.0.1), or set \
             `gateways_exposed = true` if that network is trusted"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_beyond_loopback_is_refused_unless_that_is_understood() {
        let config = |address: &str, gateways_exposed| {
            let gateways = vec![address.parse().unwrap()];
            SystemConfig { gateways, gateways_exposed, ..SystemConfig::default() }.check()
        };
        for address in ["0.0.0.0:7100", "192.0.2.1:7100", "[::]:0"] {
            let refusal = config(address, false).unwrap_err().to_string();
            assert!(refusal.contains(address) && refusal.contains("gateways_exposed"), "{refusal}");
            config(address, true).unwrap();
        }
        for address in ["127.0.0.1:0", "127.9.9.9:1", "[::1]:0"] {
            config(address, false).unwrap();
        }
    }

    #[test]
    fn a_gateway_beyond_this_machine_needs_encryption_and_certificates() {
        let address = "192.0.2.1:7100".parse().unwrap();
        let beyond = SystemConfig { gateways: vec![address], ..SystemConfig::default() };
        let why = |config: SystemConfig| config.check().unwrap_err().to_string();
        assert!(why(beyond.clone()).contains("read all that passes"));
        let encrypted = SystemConfig { tls: TlsSetting::On, ..beyond };
        assert!(why(encrypted.clone()).contains("can trade for any member"));
        let client_certificates = ClientCertificates::Required;
        assert!(SystemConfig { client_certificates, ..encrypted }.check().is_ok());
    }

    #[test]
    fn certificates_of_clients_need_tls() {
        let client_certificates = ClientCertificates::Required;
        let config = SystemConfig { client_certificates, ..SystemConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("`tls = \"on\"`"));
    }
}
