//! `pares stat` and `pares history` beside a system that is up, and without one.
#![allow(clippy::unwrap_used)] // a test

use std::io::{BufRead, BufReader};
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
    let (status, value) = judged(dir, arguments);
    assert_eq!(status, 0, "{arguments:?}");
    value
}

/// What it ends with, and what it prints.
fn judged(dir: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = pares(dir, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    (
        output.status.code().unwrap(),
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}")),
    )
}

/// A system that ends with the test, whatever becomes of it.
struct Up(Child);

impl Up {
    fn start(dir: &Path) -> (Self, String) {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("pares.toml"), "sign_on = \"open\"\ngateways = [\"127.0.0.1:0\"]").unwrap();
        let mut command = Command::new(PARES);
        let up = Self(command.arg("up").arg("--dir").arg(dir).stdout(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(60) {
            if judged(dir, &["stat", "--json"]).0 == 0 {
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
    enter_in(1, member, side, quantity, address);
}

fn enter_in(instrument: u32, member: u32, side: Side, quantity: u64, address: &str) {
    let order = NewOrder::limit(side, Price(100_000), Quantity(quantity));
    let (client_order_id, instrument) = (ClientOrderId(7), InstrumentId(instrument));
    let mut client = Client::connect(address, MemberId(member)).unwrap();
    client.submit_and_wait(&ClientRequest::Enter { client_order_id, instrument, order }).unwrap();
}

#[test]
fn trade_appears_in_stat_and_history_during_and_after() {
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
    let (status, stat) = judged(dir.path(), &["stat", "--json"]);
    assert_eq!(status, 3, "not running");
    assert_eq!((&stat["running"], &stat["shards"][0]["leads"]), (&false.into(), &Value::Null));
    let tables = pares(dir.path(), &["stat"]);
    let tables = String::from_utf8(tables.stdout).unwrap();
    assert!(tables.contains("not running (start it with `pares up"));
    assert!(tables.lines().skip(1).all(|line| line.chars().count() <= 120), "{tables}");
    assert_eq!(json(dir.path(), &["history", "trades", "--json"])["trades"].as_array().unwrap().len(), 1);
}

/// The process of a node that is up.
fn process(stat: &Value, node: &str) -> rustix::process::Pid {
    let nodes = stat["nodes"].as_array().unwrap();
    let pid = nodes.iter().find(|one| one["node"] == node).unwrap()["pid"].as_i64().unwrap();
    rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

#[test]
fn stat_ends_with_a_status_of_its_own_while_a_node_does_not_run() {
    let dir = tempfile::tempdir().unwrap();
    let (_up, _) = Up::start(dir.path());
    let (status, stat) = judged(dir.path(), &["stat", "--json"]);
    let venue = process(&stat, "venue-0");
    rustix::process::kill_process(venue, rustix::process::Signal::STOP).unwrap();
    let stopped = pares(dir.path(), &["stat"]);
    rustix::process::kill_process(venue, rustix::process::Signal::CONT).unwrap();
    assert_eq!((status, stopped.status.code()), (0, Some(4)));
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("venue-0 is stopped"));
}

#[test]
fn instrument_added_while_running_is_known_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, address) = Up::start(dir.path());
    json(dir.path(), &["admin", "add", "99", "ZULU", "--json"]);
    let taken = pares(dir.path(), &["admin", "add", "100", "zulu"]);
    assert!(String::from_utf8_lossy(&taken.stderr).contains("symbol_in_use"), "{taken:?}");
    json(dir.path(), &["admin", "rule", "ZULU", "static-band", "500", "--json"]);
    json(dir.path(), &["admin", "phase", "ZULU", "continuous", "--json"]);
    enter_in(99, 1, Side::Sell, 100, &address);
    enter_in(99, 2, Side::Buy, 60, &address);

    let orders = json(dir.path(), &["history", "orders", "--instrument", "zulu", "--json"]);
    assert_eq!(
        (orders["orders"].as_array().unwrap().len(), &orders["orders"][0]["symbol"]),
        (2, &"ZULU".into())
    );
    let stat = json(dir.path(), &["stat", "--json"]);
    let shards = stat["shards"].as_array().unwrap();
    assert!(shards.iter().any(|shard| shard["instruments"].as_array().unwrap().contains(&"ZULU".into())));
    for running in [true, false] {
        let all = json(dir.path(), &["instruments", "--json"]);
        assert_eq!(all["instruments"].as_array().unwrap().len(), 11, "running: {running}");
        let one = &json(dir.path(), &["instruments", "ZULU", "--json"])["instruments"][0];
        assert_eq!(
            (&one["id"], &one["phase"], &one["last"]),
            (&99.into(), &"continuous".into(), &"10.0000".into())
        );
        assert_eq!((&one["offer"]["quantity"], &one["bid"]), (&40.into(), &Value::Null));
        assert_eq!(one["rules"]["static_band"], 500);
        if running {
            up.stop();
        }
    }
    let table = String::from_utf8(pares(dir.path(), &["instruments"]).stdout).unwrap();
    let zulu = table.lines().find(|line| line.contains("ZULU")).unwrap();
    let words: Vec<&str> = zulu.split_whitespace().collect();
    assert_eq!(
        words[3..],
        ["continuous", "-", "-", "10.00", "40", "10.00", "-", "5.00", "%", "-", "1"],
        "{table}"
    );
}

#[test]
fn start_names_leftover_node_and_can_be_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("recorder-0");
    let _left = pares_log::Writer::open(&log, pares_log::Config::default()).unwrap();
    let mut command = Command::new(PARES);
    let piped = command.args(["up", "--dir"]).arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut up = piped.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(up.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let waits =
        format!("recorder-0 of an earlier start is still running as process {}; waiting", std::process::id());
    assert!(said.contains(&waits), "{said}");
    rustix::process::kill_process(rustix::process::Pid::from_child(&up), rustix::process::Signal::INT)
        .unwrap();
    let ended = up.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!((ended.status.code(), said.as_str()), (Some(0), "stopped before the system was up\n"));
}

#[test]
fn past_timetable_row_warns_that_it_applies_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (_up, _) = Up::start(dir.path());
    // Past by a nanosecond of this day at any hour, for an instrument that was never told the time.
    let past = ["admin", "rule", "BRAVO", "schedule", "00:00:00.000000001", "closed"];
    let told = pares(dir.path(), &past);
    assert!(told.status.success(), "{told:?}");
    assert!(String::from_utf8_lossy(&told.stderr).contains("takes effect at once"), "{told:?}");
    assert!(pares(dir.path(), &["admin", "time"]).status.success());
    let past = ["admin", "rule", "CHARLIE", "schedule", "00:00:00.000000001", "closed"];
    assert_eq!(String::from_utf8_lossy(&pares(dir.path(), &past).stderr), "");
    let wrong = pares(dir.path(), &["admin", "rule", "DELTA", "tick", "0.01", "0.05"]);
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("FROM must be a multiple of TICK"), "{wrong:?}");
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

#[test]
fn an_output_that_is_closed_ends_a_command_quietly() {
    let scratch = tempfile::tempdir().unwrap();
    let (_up, _) = Up::start(scratch.path());
    // Closed before the command begins: one that is quick would have said all that it has to say.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(PARES);
    let piped =
        command.args(["instruments", "--dir"]).arg(scratch.path()).stdout(writer).stderr(Stdio::piped());
    let ended = piped.spawn().unwrap().wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(141), ""));
}

/// The commands of the page's transcript, each with what it prints there.
fn transcript() -> Vec<(String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/operations/market.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("```console\n$ ").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let steps = block.split("\n$ ").map(|step| step.split_once('\n').unwrap_or((step, "")));
    steps.map(|(command, says)| (command.to_owned(), says.to_owned())).collect()
}

/// A text without its figures, and with one space where it has several.
fn shape(text: &str) -> String {
    let words = text.split_whitespace().map(|word| {
        let mut shape = word.replace(|letter: char| letter.is_ascii_digit(), "#");
        while shape.contains("##") {
            shape = shape.replace("##", "#");
        }
        shape
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_transcript_of_the_operations_page_works_as_printed() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("pares-data");
    let (_up, address) = Up::start(&dir);
    enter(1, Side::Sell, 100, &address);
    enter(2, Side::Buy, 60, &address);
    let mut differ = Vec::new();
    for (command, says) in transcript() {
        // The page's system has begun a day and let two members in before they traded.
        let command = command.replace("bust ALFA 6.0", "bust ALFA 1.0");
        let words = command.split_whitespace().skip(1);
        let output = Command::new(PARES).args(words).current_dir(scratch.path()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        if shape(&said) != shape(&says) {
            differ.push(format!("$ {command}\n{said}"));
        }
    }
    assert!(differ.is_empty(), "otherwise than printed:\n{}", differ.join("\n"));
}

#[test]
fn up_serves_http_to_this_machine_alone() {
    let dir = tempfile::tempdir().unwrap();
    // Nothing comes up here, whatever is let pass.
    std::fs::write(dir.path().join("pares.toml"), "nonsense").unwrap();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8420"] {
        let refused = pares(dir.path(), &["up", "--web", address]);
        let why = String::from_utf8(refused.stderr).unwrap();
        assert!(
            !refused.status.success() && why.contains("--web serves this machine only"),
            "{address}: {why}"
        );
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = pares(dir.path(), &["up", "--web", &taken.local_addr().unwrap().to_string()]);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("choose another address"), "{why}");
}
