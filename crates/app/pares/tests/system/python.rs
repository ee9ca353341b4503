//! The Python client against a real exchange: two gateways, over TLS.

use std::path::PathBuf;
use std::process::Command;

use pares_node::SystemConfig;
use pares_node::config::TlsSetting;

use crate::common::exchange::{addresses, small};
use crate::common::process::Up;

#[test]
fn the_python_client_trades_through_a_fresh_pares_up() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|told| told.status.success()) {
        eprintln!("skipped: there is no python3");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path(), &SystemConfig { tls: TlsSetting::On, ..small(2) });
    let addresses = addresses(&up.layout, &up.config).iter().map(ToString::to_string).collect::<Vec<_>>();
    let client = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../clients/python");
    let tested = Command::new("python3")
        .args(["-m", "unittest", "-v"])
        .current_dir(client)
        .env("PARES_ADDRESSES", addresses.join(","))
        .env("PARES_CA", up.layout.keys().join("ca.pem"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{told}");
    assert!(!told.contains("skipped"), "{told}");
}
