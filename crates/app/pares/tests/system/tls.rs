//! Gateways whose ports are TLS: what members and strangers meet there.

use pares_client::{Client, Options, Tls};
use pares_node::SystemConfig;
use pares_node::config::TlsSetting;
use pares_types::{MemberId, Price, Side, Status};

use crate::common::exchange::{Exchange, addresses, small};
use crate::common::limit;
use crate::common::process::Up;

/// A system whose gateways' ports are TLS.
fn with_tls() -> SystemConfig {
    SystemConfig { tls: TlsSetting::On, ..small(1) }
}

#[test]
fn an_order_over_tls_through_a_fresh_pares_up() {
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path(), &with_tls());
    let keys = up.layout.keys();
    assert!(up.said.contains(&keys.display().to_string()), "{}", up.said);
    let tls = Some(Tls::of_exchange(&keys.join("ca.pem")).unwrap());
    let address = addresses(&up.layout, &up.config)[0];
    let options = Options { tls, ..Options::default() };
    let mut client = Client::connect_with(address, MemberId(7), options).unwrap();
    let rests = client.submit_and_wait(&limit(1, 1, Side::Sell, 100, 2_238_200)).unwrap();
    assert_eq!(rests.status, Status::Resting);
}
