//! `pares broker` as a person uses it: a workload is written, run, and its log verified.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

#[allow(dead_code)] // the tests of a system use all of it
#[path = "../system/common/mod.rs"]
mod common;
mod up;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pares_tls::{Authority, Lifetime, TlsFiles, Trust};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::eventually;
use crate::common::process::{Ran, Running};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pares");

fn pares_broker(dir: &Path, arguments: &str) -> Ran {
    program(dir, &format!("broker {arguments}"))
}

/// Runs `pares` in that directory.
fn program(dir: &Path, arguments: &str) -> Ran {
    Ran::of(Command::new(PROGRAM).current_dir(dir).args(arguments.split_whitespace()))
}

/// Standard error of what is refused.
fn refusal(ran: Ran) -> String {
    assert!(!ran.is_ok(), "{ran:?}");
    ran.complaint
}

#[test]
fn workload_runs_log_verifies_changed_log_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let done = |arguments: &str| pares_broker(dir.path(), arguments).done();
    done("generate day --commands 500 --users 4 --stocks 5");
    let told = done("run day --instant --durability os --logs logs --json");
    let figures: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(figures["commands"], 500);
    for figure in ["audit_verified", "conserved"] {
        assert_eq!(figures[figure], true, "{told}");
    }
    for figure in
        ["commands_per_s", "best_second", "slowest_quote_ms", "seconds", "hits", "dollars", "conflicts"]
    {
        assert!(!figures[figure].is_null(), "no {figure}: {told}");
    }
    let verdict = done("audit verify logs/testLOG");
    assert!(verdict.contains("it adds up; not proven: without its head"), "{verdict}");
    let head = figures["log_head"].as_str().unwrap();
    let proven = done(&format!("audit verify logs/testLOG --head {head} --json"));
    assert!(proven.contains(&format!("\"head\":\"{head}\",\"proof\":\"head\"")), "{proven}");
    let log = std::fs::read_to_string(dir.path().join("logs/testLOG")).unwrap();
    std::fs::write(dir.path().join("changed"), log.replacen("<funds>", "<funds>9", 1)).unwrap();
    assert_eq!(pares_broker(dir.path(), "audit verify changed").status, Some(1));
    assert_eq!(pares_broker(dir.path(), "run nothing").status, Some(1));
    let nowhere = refusal(pares_broker(dir.path(), "run day --instant --picture none/x.svg"));
    assert!(nowhere.contains("none/x.svg") && nowhere.contains("--picture"), "{nowhere}");
}

/// A line, and what becomes of it.
enum Becomes {
    Done,
    /// In the log, with this reason.
    Refused(&'static str),
    /// No command: it is counted.
    Unreadable,
}
use Becomes::{Done, Refused, Unreadable};

const OTHER_FIELDS: Becomes = Refused("the command has the wrong fields");
const NO_USER: Becomes = Refused("a user's name must be 1 to 32 visible characters");
const NO_SYMBOL: Becomes = Refused("a symbol must be 1 to 3 upper-case letters");
const NO_AMOUNT: Becomes = Refused("an amount must be above zero, with at most two decimals");
const NO_FILE: Becomes = Refused("a file's name may have only letters, digits, dots and dashes");

/// Every form of a line that is wrong, and some that only look so.
fn lines() -> Vec<(Vec<u8>, Becomes)> {
    let mut lines: Vec<(Vec<u8>, Becomes)> = Vec::new();
    let mut all = |texts: &[&str], becomes: fn() -> Becomes| {
        lines.extend(texts.iter().map(|text| (text.as_bytes().to_vec(), becomes())));
    };
    all(&["[1] ADD,jo,10.00", "  [2]  ADD , jo , 10.00\t", "[3] ADD,jo,10\r", "[3] ADD,jo,10.5"], || Done);
    all(&["ADD,jo,1.00", "[] ADD,jo,1.00", "[x] ADD,jo,1.00", "[-1] ADD,jo,1.00"], || Unreadable);
    all(&["[0] ADD,jo,1.00", "[1 ADD,jo,1.00", "[1]", "[1.5] ADD,jo,1.00"], || Unreadable);
    all(&["[99999999999999999999] ADD,jo,1.00", "[1] [2] ADD,jo,1.00"], || Unreadable);
    all(&["[1] STEAL,jo", "[1] add,jo,1.00", "[1] ,ADD,jo,1.00", "[1] ADD jo 1.00"], || Unreadable);
    all(&["[1] ADD,j\u{e9},1.00", "[1] ADD,jo,\u{661}.00", "\u{feff}[1] ADD,jo,1.00"], || Unreadable);
    all(&["[1] ADD", "[1] ADD,jo", "[1] ADD,jo,1.00,", "[1] ADD,jo,1,000.00"], || OTHER_FIELDS);
    all(&["[1] COMMIT_BUY,jo,S", "[1] BUY,jo,1.00", "[1] DUMPLOG", "[1] DUMPLOG,jo,a,b"], || OTHER_FIELDS);
    all(&["[1] ADD,,1.00", "[1] ADD,a b,1.00", "[1] ADD,a\0b,1.00", "[1] ADD,\u{1b}[2J,1.00"], || NO_USER);
    all(&["[1] ADD,a\tb,1.00", "[1] ADD,a\u{7f},1.00", "[1] DUMPLOG,,log"], || NO_USER);
    all(&["[1] ADD,a23456789012345678901234567890123,1.00"], || NO_USER);
    all(
        &["[1] QUOTE,jo,LONG", "[1] QUOTE,jo,abc", "[1] QUOTE,jo,A1", "[1] QUOTE,jo,", "[1] QUOTE,jo,A B"],
        || NO_SYMBOL,
    );
    all(&["[1] ADD,jo,0", "[1] ADD,jo,0.00", "[1] ADD,jo,-5.00", "[1] ADD,jo,1.005", "[1] ADD,jo,"], || {
        NO_AMOUNT
    });
    all(&["[1] ADD,jo,1000000000000000000000000000000", "[1] ADD,jo,10000000000000.01"], || NO_AMOUNT);
    all(&["[1] ADD,jo,1e3", "[1] ADD,jo,+1", "[1] ADD,jo,$1", "[1] ADD,jo,.5", "[1] ADD,jo,5."], || {
        NO_AMOUNT
    });
    all(&["[1] ADD,jo,NaN", "[1] ADD,jo,0x10", "[1] SET_BUY_AMOUNT,jo,S,0.00"], || NO_AMOUNT);
    all(
        &[
            "[1] DUMPLOG,jo,../../climbs.xml",
            "[1] DUMPLOG,jo,/etc/absolute",
            "[1] DUMPLOG,jo,..\\..\\windows",
        ],
        || Done,
    );
    all(&["[1] DUMPLOG,jo,..", "[1] DUMPLOG,jo,", "[1] DUMPLOG,jo,.hidden", "[1] DUMPLOG,jo,a\0b"], || {
        NO_FILE
    });
    all(&["[1] DUMPLOG,jo,logs/", "[1] DUMPLOG,jo,a b", "[1] DUMPLOG,jo,$(id)"], || NO_FILE);
    lines.push((b"[1] ADD,\xff\xfe,1.00".to_vec(), Unreadable));
    lines.push(([&b"[1] DUMPLOG,jo,"[..], &[b'x'; 65]].concat(), NO_FILE));
    lines.push(([&b"[1] BUY,jo,S,"[..], &[b'9'; 1 << 20]].concat(), NO_AMOUNT));
    lines
}

#[test]
fn malformed_lines_are_refused_without_harm() {
    let dir = tempfile::tempdir().unwrap();
    let lines = lines();
    let file: Vec<u8> = lines.iter().flat_map(|(line, _)| [line.as_slice(), b"\n"].concat()).collect();
    std::fs::write(dir.path().join("day"), file).unwrap();
    let run = pares_broker(dir.path(), "run day --instant --durability os --logs logs --json");
    assert!(run.is_ok() && run.complaint.contains("day, line 5 is not a command"), "{run:?}");
    let figures = run.json();
    let count = |is_such: fn(&Becomes) -> bool| lines.iter().filter(|(_, becomes)| is_such(becomes)).count();
    assert_eq!(figures["done"], count(|becomes| matches!(becomes, Done)), "{figures}");
    assert_eq!(figures["refused"], count(|becomes| matches!(becomes, Refused(_))), "{figures}");
    assert_eq!(figures["unreadable"], count(|becomes| matches!(becomes, Unreadable)), "{figures}");
    let log = std::fs::read_to_string(dir.path().join("logs/audit.xml")).unwrap();
    let told = log
        .lines()
        .filter_map(|line| line.trim().strip_prefix("<errorMessage>")?.strip_suffix("</errorMessage>"));
    let (mut told, mut expected): (Vec<&str>, Vec<&str>) = (told.collect(), Vec::new());
    expected.extend(
        lines.iter().filter_map(|(_, becomes)| if let Refused(why) = becomes { Some(*why) } else { None }),
    );
    told.sort_unstable();
    expected.sort_unstable();
    assert_eq!(told, expected);
    let names = |folder: &str| {
        let entries = std::fs::read_dir(dir.path().join(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names("logs"), ["audit.xml", "users"], "in the folder of logs");
    assert_eq!(names("logs/users/jo"), ["absolute", "climbs.xml", "windows"]);
    assert_eq!(names("."), ["day", "logs"], "and nowhere else");
}

/// The children of that process whose command line has this word.
fn children(of: u32, word: &str) -> Vec<u32> {
    let is_child = |id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(of) && line.split(|byte| *byte == 0).nth(2) == Some(word.as_bytes())
    };
    let all = std::fs::read_dir("/proc").expect("/proc is there");
    all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).filter(is_child).collect()
}

/// A workload that runs at three sites, three fronts and two desks.
fn started_apart(dir: &Path) -> Child {
    pares_broker(dir, "generate day --commands 20000 --users 60").done();
    let mut command = Command::new(PROGRAM);
    command.env("TMPDIR", dir).current_dir(dir);
    let apart = "--sites 3 --fronts 3 --desks 2 --window 300";
    let run = format!("broker run day --instant --durability os --json {apart}");
    command.args(run.split_whitespace()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until that is so of the number of a run's children of that name, or it has ended.
fn await_children(run: &mut Child, word: &str, is_so: impl Fn(usize) -> bool) {
    while !is_so(children(run.id(), word).len()) && run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Sends SIGKILL; whether the process was there.
fn kill(process: u32) -> bool {
    kill_process(Pid::from_raw(process as i32).unwrap(), Signal::KILL).is_ok()
}

#[test]
#[ignore = "all: a minute of load"]
fn sites_that_die_before_a_log_is_verified_are_started_again() {
    // In the last quiet second, and while the log is read; a busy machine may be too late for it.
    for after_ms in [0, 1_050] {
        let killed_two = (0..9).any(|_| {
            let dir = tempfile::tempdir().unwrap();
            let mut run = started_apart(dir.path());
            await_children(&mut run, "front", |fronts| fronts > 0);
            await_children(&mut run, "front", |fronts| fronts == 0);
            std::thread::sleep(Duration::from_millis(after_ms));
            let killed = children(run.id(), "site").into_iter().take(2).filter(|site| kill(*site)).count();
            let output = run.wait_with_output().unwrap();
            assert!(output.status.success(), "{killed} killed: {}", String::from_utf8_lossy(&output.stderr));
            let figures: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(figures["elements"]["userCommand"], 20_000, "{figures}");
            killed == 2
        });
        assert!(killed_two, "each run was over {after_ms} ms after its fronts");
    }
}

#[test]
fn killed_fronts_desks_sites_lose_and_double_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = started_apart(dir.path());
    let mut killed = 0;
    for (word, all) in [("front", 3), ("desk", 2), ("site", 3), ("front", 3), ("site", 3)] {
        await_children(&mut run, word, |there| there == all);
        let Some(victim) = children(run.id(), word).first().copied() else { continue };
        killed += u32::from(kill(victim));
    }
    let output = run.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && killed > 0, "{killed} killed: {told}{said}");
    let figures: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(figures["commands"], 20_000, "{told}");
    assert_eq!(figures["elements"]["userCommand"], 20_000, "{told}");
    let times = figures["times"].as_object().unwrap().values();
    assert_eq!(times.map(|times| times["count"].as_u64().unwrap()).sum::<u64>(), 20_000, "{told}");
    for of_others in ["last_quote_s", "slowest_quote_ms", "hedges", "backlog"] {
        assert!(figures.get(of_others).is_none(), "nobody knows it here: {of_others}");
    }
}

/// What a run says whose files are gone at its end, and one of whose desks was killed. Nothing if it was over before.
fn failed_after_a_death() -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut run = started_apart(dir.path());
    await_children(&mut run, "front", |fronts| fronts == 3);
    let made = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let broker = made.map(|path| path.join("broker")).find(|path| path.exists())?;
    // They read it as they start.
    let serves = |front| {
        let said = std::fs::read_to_string(broker.join(format!("front-{front}.log"))).unwrap_or_default();
        said.contains("front for loaders at")
    };
    while !(0..3).all(serves) && run.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let is_removed = std::fs::remove_file(broker.join("sites.toml")).is_ok();
    let is_killed = children(run.id(), "desk").first().is_some_and(|desk| kill(*desk));
    let output = run.wait_with_output().unwrap();
    (is_removed && is_killed && !output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
}

#[test]
#[ignore = "all: a minute of load; the killed fronts, desks and sites prove the same"]
fn a_run_that_fails_says_who_died_before() {
    let said = (0..9).find_map(|_| failed_after_a_death()).expect("each run was over too soon");
    assert!(said.contains("sites.toml") && said.contains("desk ") && said.contains("signal: 9"), "{said}");
}

#[test]
fn pages_exposed_without_tls_are_refused_with_advice() {
    let dir = tempfile::tempdir().unwrap();
    let said = refusal(pares_broker(dir.path(), "up --http 0.0.0.0:8080"));
    assert!(said.contains("--tls-cert FILE") && said.contains("--plain-behind-proxy"), "{said}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made");
}

/// One front with pages by TLS, and routers for an exchange that is not there.
fn up(dir: &Path, files: &TlsFiles, port: u16) -> Running {
    let mut command = Command::new(PROGRAM);
    command.current_dir(dir).args(["broker", "up", "--instant", "--fronts", "1", "--desks", "1"]);
    command.args(["--http", &format!("127.0.0.1:{port}"), "--exchange", "127.0.0.1:1"]);
    Running::start(command.arg("--tls-cert").arg(&files.certificate).arg("--tls-key").arg(&files.key))
}

/// The front's answer by TLS, once there is one.
fn answer(trust: &Trust, port: u16) -> String {
    let mut answer = None;
    eventually("the front answers", || {
        let asked: std::io::Result<String> =
            TcpStream::connect(("127.0.0.1", port)).and_then(|mut stream| {
                let mut client = trust.dial("localhost").unwrap();
                let request = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                client.writer().write_all(request.as_bytes())?;
                let mut text = Vec::new();
                while !text.ends_with(b"}") {
                    client.complete_io(&mut stream)?;
                    let mut part = [0; 4_096];
                    match client.reader().read(&mut part) {
                        Ok(0) => break,
                        Ok(count) => text.extend_from_slice(&part[..count]),
                        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(String::from_utf8(text).unwrap())
            });
        answer = asked.ok();
        answer.is_some()
    });
    answer.unwrap()
}

#[test]
fn up_serves_tls_pages_and_restarts_dead_routers() {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::named(dir.path(), "web");
    let authority = Authority::in_dir(dir.path(), "broker").unwrap();
    authority.issue(&files, &["localhost".to_owned()], Lifetime::Endless).unwrap();
    let port = pares_testbed::ports::free_address().port();
    let mut broker = up(dir.path(), &files, port);
    let mut said = broker.lines();
    let told: Vec<String> = said.by_ref().take_while(|line| !line.contains("Ctrl-C")).collect();
    let has = |words: &str| told.iter().any(|line| line.contains(words));
    assert!(has("pages at https://127.0.0.1:") && has("the exchange at 127.0.0.1:1"), "{told:?}");
    let text = answer(&Trust::load(&files.ca).unwrap(), port);
    assert!(text.starts_with("HTTP/1.1 200") && text.contains("strict-transport-security"), "{text}");
    let routers = || children(broker.0.id(), "router");
    eventually("both routers run", || routers().len() == 2);
    let first = routers()[0];
    let log = |router: u8| {
        let file = dir.path().join(format!("broker-data/router-{router}.log"));
        std::fs::read_to_string(file).unwrap_or_default()
    };
    // One is active and cannot sign on; the other does not try, or it would end the first one's connection where there is an exchange.
    eventually("one router is at work, the other stands by", || {
        let words = [log(0), log(1)];
        let is_at_work =
            |words: &&String| words.contains("active, term 1, but no gateway accepts its sign-on");
        words.iter().filter(is_at_work).count() == 1
            && words.iter().any(|words| words.ends_with("router: standby\n"))
    });
    assert!(kill(first));
    assert!(said.any(|line| line.contains("router") && line.contains("restarting it")));
    eventually("another router is there", || routers().len() == 2 && !routers().contains(&first));
}

#[test]
fn workload_log_is_complete_before_processes_end() {
    let dir = tempfile::tempdir().unwrap();
    let done = |arguments: &str| pares_broker(dir.path(), arguments).done();
    done("generate day --commands 2000 --users 9 --stocks 5");
    let told = done("run day --instant --durability os --logs logs --fronts 2 --desks 1 --json");
    let figures: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(figures["log_file"], "logs/testLOG");
    let names = std::fs::read_dir(dir.path().join("logs")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["testLOG"], "whole, and nothing beside it");
    let log = std::fs::read_to_string(dir.path().join("logs/testLOG")).unwrap();
    assert_eq!(log.matches("<userCommand>").count(), 2_000);
    done("audit verify logs/testLOG");
}
