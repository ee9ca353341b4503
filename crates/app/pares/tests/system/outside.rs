//! `pares stat` and `pares history` beside a system that is up, and without one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use pares_client::Client;
use pares_node::SystemConfig;
use pares_types::{MemberId, Side};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::PROGRAM;
use crate::common::process::{Ran, Up, pares};
use crate::common::{eventually, limit};

fn json(dir: &Path, arguments: &str) -> Value {
    let ran = pares(dir, &format!("{arguments} --json"));
    assert_eq!(ran.status, Some(0), "{arguments}: {ran:?}");
    ran.json()
}

/// A system as its file means it that says next to nothing, up and well; and where its gateway is.
fn up_in(dir: &Path) -> (Up, String) {
    let config = SystemConfig::parse("sign_on = \"open\"\ngateways = [\"127.0.0.1:0\"]").unwrap();
    std::fs::create_dir_all(dir).unwrap();
    let up = Up::start(dir, &config);
    eventually("all is well", || pares(dir, "stat").is_ok());
    let address = std::fs::read_to_string(dir.join("run/gateway-0.addr")).unwrap();
    (up, address)
}

fn enter(member: u32, side: Side, quantity: u64, address: &str) {
    enter_in(1, member, side, quantity, address);
}

fn enter_in(instrument: u32, member: u32, side: Side, quantity: u64, address: &str) {
    let mut client = Client::connect(address, MemberId(member)).unwrap();
    client.submit_and_wait(&limit(7, instrument, side, quantity, 100_000)).unwrap();
}

#[test]
fn trade_appears_in_stat_and_history_during_and_after() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, address) = up_in(dir.path());
    enter(1, Side::Sell, 100, &address);
    enter(2, Side::Buy, 60, &address);

    let stat = json(dir.path(), "stat");
    assert_eq!((&stat["running"], &stat["epoch"]), (&true.into(), &1.into()));
    assert_eq!((stat["nodes"].as_array().unwrap().len(), stat["logs"].as_array().unwrap().len()), (5, 5));
    let orders = json(dir.path(), "history orders --instrument ALFA --status resting");
    let order = &orders["orders"][0];
    assert_eq!((&order["price"], &order["executed"]), (&"10.0000".into(), &60.into()));
    let story = json(dir.path(), &format!("history order {}", order["order"].as_str().unwrap()));
    assert_eq!(
        (&story["trades"][0]["buy_member"], &story["trades"][0]["aggressor"]),
        (&2.into(), &"buy".into())
    );

    stop(&mut up);
    let stopped = pares(dir.path(), "stat --json");
    assert_eq!(stopped.status, Some(3), "not running");
    let stat = stopped.json();
    assert_eq!((&stat["running"], &stat["shards"][0]["leads"]), (&false.into(), &Value::Null));
    let tables = pares(dir.path(), "stat").out;
    assert!(tables.contains("not running (start it with `pares up"));
    assert!(tables.lines().skip(1).all(|line| line.chars().count() <= 120), "{tables}");
    assert_eq!(json(dir.path(), "history trades")["trades"].as_array().unwrap().len(), 1);
}

/// Ends it as Ctrl-C does.
fn stop(up: &mut Up) {
    up.signal(Signal::INT);
    assert!(up.wait());
}

#[test]
fn instrument_added_while_running_is_known_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (mut up, address) = up_in(dir.path());
    json(dir.path(), "admin add 99 ZULU");
    let taken = pares(dir.path(), "admin add 100 zulu");
    assert!(taken.complaint.contains("symbol_in_use"), "{taken:?}");
    json(dir.path(), "admin rule ZULU static-band 500");
    json(dir.path(), "admin phase ZULU continuous");
    enter_in(99, 1, Side::Sell, 100, &address);
    enter_in(99, 2, Side::Buy, 60, &address);

    let orders = json(dir.path(), "history orders --instrument zulu");
    assert_eq!(
        (orders["orders"].as_array().unwrap().len(), &orders["orders"][0]["symbol"]),
        (2, &"ZULU".into())
    );
    let stat = json(dir.path(), "stat");
    let shards = stat["shards"].as_array().unwrap();
    assert!(shards.iter().any(|shard| shard["instruments"].as_array().unwrap().contains(&"ZULU".into())));
    for running in [true, false] {
        let all = json(dir.path(), "instruments");
        assert_eq!(all["instruments"].as_array().unwrap().len(), 11, "running: {running}");
        let one = &json(dir.path(), "instruments ZULU")["instruments"][0];
        assert_eq!(
            (&one["id"], &one["phase"], &one["last"]),
            (&99.into(), &"continuous".into(), &"10.0000".into())
        );
        assert_eq!((&one["offer"]["quantity"], &one["bid"]), (&40.into(), &Value::Null));
        assert_eq!(one["rules"]["static_band"], 500);
        if running {
            stop(&mut up);
        }
    }
    let table = pares(dir.path(), "instruments").out;
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
    let mut command = Command::new(PROGRAM);
    let piped = command.args(["up", "--dir"]).arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut up = piped.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(up.stderr.take().unwrap()).read_line(&mut said).unwrap();
    let waits =
        format!("recorder-0 of an earlier start is still running as process {}; waiting", std::process::id());
    assert!(said.contains(&waits), "{said}");
    kill_process(Pid::from_child(&up), Signal::INT).unwrap();
    let ended = up.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned();
    assert_eq!((ended.status.code(), said.as_str()), (Some(0), "stopped before the system was up\n"));
}

#[test]
fn past_timetable_row_warns_that_it_applies_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (_up, _) = up_in(dir.path());
    // Past by a nanosecond of this day at any hour, for an instrument that was never told the time.
    let past = |symbol| pares(dir.path(), &format!("admin rule {symbol} schedule 00:00:00.000000001 closed"));
    let told = past("BRAVO");
    assert!(told.is_ok() && told.complaint.contains("takes effect at once"), "{told:?}");
    pares(dir.path(), "admin time").done();
    assert_eq!(past("CHARLIE").complaint, "");
    let wrong = pares(dir.path(), "admin rule DELTA tick 0.01 0.05");
    assert!(wrong.complaint.contains("FROM must be a multiple of TICK"), "{wrong:?}");
}

#[test]
fn without_a_system_one_is_told_how_to_start_it() {
    let dir = tempfile::tempdir().unwrap();
    for arguments in ["stat", "history orders"] {
        let ran = pares(dir.path(), arguments);
        assert!(!ran.is_ok() && ran.complaint.contains("start one with `pares up --dir"), "{ran:?}");
    }
}

#[test]
fn an_output_that_is_closed_ends_a_command_quietly() {
    let scratch = tempfile::tempdir().unwrap();
    let (_up, _) = up_in(scratch.path());
    // Closed before the command begins: one that is quick would have said all that it has to say.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(PROGRAM);
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
    let (_up, address) = up_in(&dir);
    enter(1, Side::Sell, 100, &address);
    enter(2, Side::Buy, 60, &address);
    let mut differ = Vec::new();
    for (command, says) in transcript() {
        // The page's system has begun a day and let two members in before they traded.
        let command = command.replace("bust ALFA 6.0", "bust ALFA 1.0");
        let words = command.split_whitespace().skip(1);
        let said = Ran::of(Command::new(PROGRAM).args(words).current_dir(scratch.path())).said();
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
        let refused = pares(dir.path(), &format!("up --web {address}"));
        let why = "--web serves this machine only";
        assert!(!refused.is_ok() && refused.complaint.contains(why), "{address}: {refused:?}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let refused = pares(dir.path(), &format!("up --web {}", taken.local_addr().unwrap()));
    assert!(!refused.is_ok() && refused.complaint.contains("choose another address"), "{refused:?}");
}
