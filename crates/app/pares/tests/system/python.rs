//! The Python client against a real exchange: two gateways, over TLS.

use std::path::Path;
use std::process::Command;

use pares_config::{SignOnSetting, TlsSetting};
use pares_node::SystemConfig;
use pares_types::{GatewayId, ShardId};

use crate::common::exchange::{PROGRAM, addresses, small, with_feed};
use crate::common::process::{Ran, Up, pares};

fn has_python() -> bool {
    let has = Command::new("python3").arg("--version").output().is_ok_and(|told| told.status.success());
    if !has {
        eprintln!("skipped: there is no python3");
    }
    has
}

/// Python in the folder of the client.
fn python() -> Command {
    let mut python = Command::new("python3");
    python.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../clients/python"));
    python.envs([("PYTHONPATH", "."), ("PYTHONDONTWRITEBYTECODE", "1")]);
    python
}

/// Runs modules of the client's own tests, and leaves none out.
fn all_pass(tests: &mut Command, modules: &[&str]) {
    let modules = modules.iter().map(|module| format!("tests.{module}"));
    let ran = Ran::of(tests.args(["-m", "unittest", "-v"]).args(modules));
    assert!(ran.is_ok() && !ran.complaint.contains("skipped"), "{}", ran.complaint);
}

/// As its README says.
#[test]
fn a_first_trade_in_python_signed_on_by_keys() {
    if !has_python() {
        return;
    }
    let up = Up::fresh(&SystemConfig { sign_on: SignOnSetting::Required, ..small(1) });
    for member in [3, 4] {
        pares(up.layout.root(), &format!("admin member add {member} --shared")).done();
    }
    let port = addresses(&up.layout, &up.config)[0].port().to_string();
    let first_trade = ["examples/first_trade.py", "127.0.0.1", &port];
    let told = Ran::of(python().args(first_trade).arg(up.layout.keys())).done();
    assert!(told.ends_with("member 3: sell 60 at 10.00\nmember 4: buy 60 at 10.00\n"), "{told}");
}

/// As the page of FIX says: a client's first minute, and a drop copy, which is a session without rights.
#[test]
fn orders_by_fix_in_python_and_a_session_that_may_only_look() {
    if !has_python() {
        return;
    }
    let small = small(1);
    let fix = small.gateways.clone();
    let config = SystemConfig { sign_on: SignOnSetting::Required, fix, ..small };
    let up = Up::fresh(&config);
    for words in ["add 7 --shared", "key 7 2 --shared", "right 7 none --session 2"] {
        pares(up.layout.root(), &format!("admin member {words}")).done();
    }
    let port = std::fs::read_to_string(up.layout.fix_address(GatewayId(0))).unwrap();
    let trade = |session: u16| {
        let key = up.layout.keys().join(format!("member-7-{session}.key"));
        Ran::of(python().args(["examples/fix_order.py", port.trim()]).arg(key).arg("ALFA")).done()
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
    let up = Up::fresh(&SystemConfig { tls: TlsSetting::On, ..small(2) });
    let addresses = addresses(&up.layout, &up.config).iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut tests = python();
    tests.env("PARES_ADDRESSES", addresses.join(",")).env("PARES_CA", up.layout.keys().join("ca.pem"));
    all_pass(&mut tests, &["test_protocol", "test_member", "test_feed", "test_exchange"]);
}

#[test]
fn python_receiver_stays_right_while_publishers_die() {
    if !has_python() {
        return;
    }
    let up = Up::fresh(&with_feed(small(1)));
    let lines = up.config.feed.as_ref().unwrap().lines(ShardId(0)).map(|line| line.to_string());
    let mut tests = python();
    tests.env("PARES_FEED_DIR", up.layout.root()).env("PARES_LINES", lines.join(","));
    tests.env("PARES_PROGRAM", PROGRAM);
    tests.env("PARES_ADDRESSES", addresses(&up.layout, &up.config)[0].to_string());
    all_pass(&mut tests, &["test_feed_exchange"]);
}
