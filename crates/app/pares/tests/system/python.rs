//! The Python client against a real exchange: two gateways, over TLS.

use std::path::PathBuf;
use std::process::Command;

use pares_config::{SignOnSetting, TlsSetting};
use pares_node::SystemConfig;
use pares_types::{GatewayId, ShardId};

use crate::common::exchange::{PROGRAM, addresses, small, with_feed};
use crate::common::process::Up;

fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok_and(|told| told.status.success());
    if !has {
        eprintln!("skipped: there is no python3");
    }
    has
}

fn client() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../clients/python")
}

/// As its README says.
#[test]
fn a_first_trade_in_python_signed_on_by_keys() {
    if !has_python() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path(), &SystemConfig { sign_on: SignOnSetting::Required, ..small(1) });
    for member in ["3", "4"] {
        let added = Command::new(PROGRAM)
            .args(["admin", "member", "add", member, "--shared", "--dir"])
            .arg(up.layout.root())
            .output()
            .unwrap();
        assert!(added.status.success(), "{added:?}");
    }
    let address = addresses(&up.layout, &up.config)[0];
    let traded = Command::new("python3")
        .args(["examples/first_trade.py", "127.0.0.1", &address.port().to_string()])
        .arg(up.layout.keys())
        .current_dir(client())
        .envs([("PYTHONPATH", "."), ("PYTHONDONTWRITEBYTECODE", "1")])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&traded.stdout);
    assert!(traded.status.success(), "{traded:?}");
    assert!(told.ends_with("member 3: sell 60 at 10.00\nmember 4: buy 60 at 10.00\n"), "{told}");
}

/// As the page of FIX says: a client's first minute, and a drop copy, which is a session without rights.
#[test]
fn orders_by_fix_in_python_and_a_session_that_may_only_look() {
    if !has_python() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let small = small(1);
    let fix = small.gateways.clone();
    let config = SystemConfig { sign_on: SignOnSetting::Required, fix, ..small };
    let up = Up::start(dir.path(), &config);
    let admin = |words: &[&str]| {
        let told = Command::new(PROGRAM).arg("admin").args(words).arg("--dir").arg(up.layout.root()).output();
        let told = told.unwrap();
        assert!(told.status.success(), "{told:?}");
    };
    admin(&["member", "add", "7", "--shared"]);
    admin(&["member", "key", "7", "2", "--shared"]);
    admin(&["member", "right", "7", "none", "--session", "2"]);
    let port = std::fs::read_to_string(up.layout.fix_address(GatewayId(0))).unwrap();
    let trade = |session: u16| {
        let traded = Command::new("python3")
            .args(["examples/fix_order.py", port.trim()])
            .arg(up.layout.keys().join(format!("member-7-{session}.key")))
            .arg("ALFA")
            .current_dir(client())
            .envs([("PYTHONPATH", "."), ("PYTHONDONTWRITEBYTECODE", "1")])
            .output()
            .unwrap();
        assert!(traded.status.success(), "{traded:?}");
        String::from_utf8_lossy(&traded.stdout).into_owned()
    };
    let told = trade(1);
    assert!(told.contains("OrdStatus 0") && told.contains("OrdStatus 4, 0 executed, 0 left"), "{told}");
    let told = trade(2);
    assert!(told.contains("OrdStatus 8") && told.contains("no_right") && !told.contains("cancel"), "{told}");
}

#[test]
fn the_python_client_trades_through_a_fresh_pares_up() {
    if !has_python() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path(), &SystemConfig { tls: TlsSetting::On, ..small(2) });
    let addresses = addresses(&up.layout, &up.config).iter().map(ToString::to_string).collect::<Vec<_>>();
    let tested = Command::new("python3")
        .args(["-m", "unittest", "-v"])
        .args(
            ["test_protocol", "test_member", "test_feed", "test_exchange"]
                .map(|module| format!("tests.{module}")),
        )
        .current_dir(client())
        .env("PARES_ADDRESSES", addresses.join(","))
        .env("PARES_CA", up.layout.keys().join("ca.pem"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{told}");
    assert!(!told.contains("skipped"), "{told}");
}

#[test]
fn python_receiver_stays_right_while_publishers_die() {
    if !has_python() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let up = Up::start(dir.path(), &with_feed(small(1)));
    let lines = up.config.feed.as_ref().unwrap().lines(ShardId(0)).map(|line| line.to_string());
    let tested = Command::new("python3")
        .args(["-m", "unittest", "-v", "tests.test_feed_exchange"])
        .current_dir(client())
        .env("PARES_FEED_DIR", up.layout.root())
        .env("PARES_LINES", lines.join(","))
        .env("PARES_PROGRAM", PROGRAM)
        .env("PARES_ADDRESSES", addresses(&up.layout, &up.config)[0].to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&tested.stderr);
    assert!(tested.status.success(), "{told}");
    assert!(!told.contains("skipped"), "{told}");
}
