//! `pares stat` and `pares history` beside a system that is up, and without one.
#![allow(clippy::unwrap_used)] // a test

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use pares_client::{Client, ClientRequest};
use pares_types::{ClientOrderId, InstrumentId, MemberId, NewOrder, Price, Quantity, Side};
use serde_json::Value;

const PARES: &str = env!("CARGO_BIN_EXE_pares");

fn pares(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(PARES).args(arguments).arg("--dir").arg(dir).output().unwrap()
}

fn json(dir: &Path, arguments: &[&str]) -> Value {
    let output = pares(dir, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A system that ends with the test, whatever becomes of it.
struct Up(Child);

impl Up {
    fn start(dir: &Path) -> (Self, String) {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("pares.toml"), "gateways = [\"127.0.0.1:0\"]").unwrap();
        let mut command = Command::new(PARES);
        let up = Self(command.arg("up").arg("--dir").arg(dir).stdout(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            let stat = json(dir, &["stat", "--json"]);
            if stat["nodes"].as_array().unwrap().iter().all(|node| node["state"] == "up") {
                return (up, std::fs::read_to_string(dir.join("run/gateway-0.addr")).unwrap());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the system does not come up");
    }

    fn stop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // Its nodes end with it. It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn enter(member: u32, side: Side, quantity: u64, address: &str) {
    let order = NewOrder::limit(side, Price(100_000), Quantity(quantity));
    let (client_order_id, instrument) = (ClientOrderId(7), InstrumentId(1));
    let mut client = Client::connect(address, MemberId(member)).unwrap();
    client.submit_and_wait(&ClientRequest::Enter { client_order_id, instrument, order }).unwrap();
}

#[test]
fn a_trade_is_seen_in_stat_and_history_while_the_system_runs_and_after() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, address) = Up::start(dir.path());
    enter(1, Side::Sell, 100, &address);
    enter(2, Side::Buy, 60, &address);

    let stat = json(dir.path(), &["stat", "--json"]);
    assert_eq!((&stat["running"], &stat["epoch"]), (&true.into(), &1.into()));
    assert_eq!((stat["nodes"].as_array().unwrap().len(), stat["logs"].as_array().unwrap().len()), (5, 5));
    let orders =
        json(dir.path(), &["history", "orders", "--instrument", "ALFA", "--status", "resting", "--json"]);
    let order = &orders["orders"][0];
    assert_eq!((&order["price"], &order["executed"]), (&"10.0000".into(), &60.into()));
    let story = json(dir.path(), &["history", "order", order["order"].as_str().unwrap(), "--json"]);
    assert_eq!(
        (&story["trades"][0]["buy_member"], &story["trades"][0]["aggressor"]),
        (&2.into(), &"buy".into())
    );

    up.stop();
    let stat = json(dir.path(), &["stat", "--json"]);
    assert_eq!((&stat["running"], &stat["shards"][0]["leads"]), (&false.into(), &Value::Null));
    let tables = pares(dir.path(), &["stat"]);
    assert!(String::from_utf8_lossy(&tables.stdout).contains("not running (start it with `pares up"));
    assert_eq!(json(dir.path(), &["history", "trades", "--json"])["trades"].as_array().unwrap().len(), 1);
}

#[test]
fn without_a_system_one_is_told_how_to_start_it() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in [&["stat"][..], &["history", "orders"]] {
        let output = pares(dir.path(), arguments);
        let says = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && says.contains("start one with `pares up --dir"), "{says}");
    }
}
