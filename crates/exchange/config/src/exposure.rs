//! Who may reach the gateways, and what protects them there.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::{ConfigError, SignOnSetting, SystemConfig};

/// Whether the gateways' ports are TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsSetting {
    /// Unencrypted.
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
    /// Where members come in, by whichever protocol.
    pub fn ports(&self) -> impl Iterator<Item = &SocketAddr> {
        self.gateways.iter().chain(&self.fix).chain(&self.ouch)
    }

    /// The same, beyond this machine.
    pub fn exposed_ports(&self) -> impl Iterator<Item = &SocketAddr> {
        self.ports().filter(|address| !address.ip().is_loopback())
    }

    fn check_port(&self, key: &str, addresses: &[SocketAddr]) -> Result<(), ConfigError> {
        let is_each = addresses.is_empty() || addresses.len() == self.gateways.len();
        let why = || format!("`{key}` must name one address for each of `gateways`, or none");
        if is_each { Ok(()) } else { Err(ConfigError(why())) }
    }

    /// Checks that gateways which strangers may reach are protected, or that the operator knows that they are not.
    pub(crate) fn check_exposure(&self) -> Result<(), ConfigError> {
        if self.tls == TlsSetting::Off && self.client_certificates == ClientCertificates::Required {
            let why = "`client_certificates = \"required\"` needs `tls = \"on\"`: the TLS handshake checks the certificates";
            return Err(ConfigError(why.into()));
        }
        self.check_port("fix", &self.fix)?;
        self.check_port("ouch", &self.ouch)?;
        let exposed = self.exposed_ports().next();
        let Some(address) = exposed.filter(|_| !self.gateways_exposed) else { return Ok(()) };
        let missing = match (self.tls, self.sign_on) {
            (TlsSetting::On, SignOnSetting::Required) => return Ok(()),
            (TlsSetting::Off, SignOnSetting::Required) => {
                "anyone on the network path can read the traffic. Set `tls = \"on\"`"
            }
            (_, SignOnSetting::Open) => {
                "anyone who reaches it can trade for any member and operate the exchange. Set `sign_on = \
                 \"required\"` and `tls = \"on\"`"
            }
        };
        Err(ConfigError(format!(
            "gateway {address} would listen beyond this machine: {missing}, listen on loopback (127.0.0.1), or set \
             `gateways_exposed = true` if that network is trusted"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposed_gateway_is_refused_without_consent() {
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
    fn fix_beyond_loopback_needs_what_a_gateway_needs_there() {
        let config = |fix: &str, tls, gateways_exposed| {
            let (fix, sign_on) = (vec![fix.parse().unwrap()], SignOnSetting::Required);
            SystemConfig { fix, tls, sign_on, gateways_exposed, ..SystemConfig::default() }.check()
        };
        config("127.0.0.1:0", TlsSetting::Off, false).unwrap();
        config("192.0.2.1:7200", TlsSetting::On, false).unwrap();
        let refusal = config("192.0.2.1:7200", TlsSetting::Off, false).unwrap_err().to_string();
        assert!(refusal.contains("192.0.2.1:7200") && refusal.contains("read the traffic"), "{refusal}");
        config("192.0.2.1:7200", TlsSetting::Off, true).unwrap();
        let fix = vec!["127.0.0.1:0".parse().unwrap(); 2];
        assert!(SystemConfig { fix, ..SystemConfig::default() }.check().is_err(), "of one gateway");
    }

    #[test]
    fn a_gateway_beyond_this_machine_needs_encryption_and_sign_on() {
        let address = "192.0.2.1:7100".parse().unwrap();
        let beyond = SystemConfig { gateways: vec![address], tls: TlsSetting::On, ..SystemConfig::default() };
        let why = |config: &SystemConfig| config.check().unwrap_err().to_string();
        assert!(why(&beyond).contains("can trade for any member"));
        let signed_on = SystemConfig { sign_on: SignOnSetting::Required, ..beyond };
        assert!(signed_on.check().is_ok());
        assert!(why(&SystemConfig { tls: TlsSetting::Off, ..signed_on }).contains("read the traffic"));
    }

    #[test]
    fn certificates_of_clients_need_tls() {
        let client_certificates = ClientCertificates::Required;
        let config = SystemConfig { client_certificates, ..SystemConfig::default() };
        assert!(config.check().unwrap_err().to_string().contains("`tls = \"on\"`"));
    }
}
