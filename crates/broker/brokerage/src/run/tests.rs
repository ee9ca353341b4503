//! Workloads through a site, with a server that misbehaves; the log at the end says all of it.

use std::io::Cursor;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};

use pares_broker::{BrokerReply, BrokerRequest};
use pares_oracle::{Oracle, shared_data};
use pares_wice::codec::Coded as _;

use super::*;
use crate::generate;

mod sql;

/// Runs each of these tests, which take a function that makes an empty store, over every kind of store.
macro_rules! over_every_store {
    ($($test:ident),* $(,)?) => {
        mod over_redb {
            $(#[test] fn $test() { super::$test(|| None); })*
        }
        mod over_postgres {
            $(#[test] fn $test() {
                // Where there is no PostgreSQL, that is said, and the test left out.
                if pares_testbed::postgres::server().is_some() {
                    super::$test(|| Some(super::database()));
                }
            })*
        }
    };
}

over_every_store! {
    workload_log_is_complete_despite_bad_quote_server,
    every_reply_of_a_workload_is_the_oracles,
    every_reply_of_the_published_workloads_is_the_oracles,
}

/// The URL of a PostgreSQL database that nobody else has, and that the site makes.
fn database() -> String {
    static NUMBER: AtomicU16 = AtomicU16::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let place = pares_testbed::postgres::server().unwrap().connection("");
    let host = place.split(' ').next().unwrap().trim_start_matches("host=");
    format!("postgres:///broker_{number}?host={host}&user=postgres")
}

fn args(file: PathBuf, bad_per_mille: u64) -> Args {
    let behaviour = Behaviour { seed: 7, instant: true, bad_per_mille };
    let (logs, picture) = (Some(file.with_extension("logs")), Some(file.with_extension("svg")));
    Args { window: 500, logs, picture, json: true, ..Args::of(file, Promise::Os, behaviour) }
}

fn workload_log_is_complete_despite_bad_quote_server(store: fn() -> Option<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload");
    generate::run(&generate::Args::of(&file, 3_000, 12, 40)).unwrap();
    for bad_per_mille in [0, 150] {
        let args = Args { store: store(), force: true, ..args(file.clone(), bad_per_mille) };
        run(&Args { store: store(), ..args.clone() }).unwrap();
        let figures = measure(&args).unwrap();
        assert!(std::fs::read_to_string(args.picture.unwrap()).unwrap().contains("waiting for a quote"));
        assert_eq!(figures.times.values().map(|times| times.count).sum::<u64>(), 3_000);
        assert_eq!(figures.per_100ms.iter().sum::<u64>(), 3_000);
        assert!(figures.slowest_quote_ms.is_some() && figures.backlog.is_some(), "{figures:?}");
        assert_eq!(figures.hedges, Some(0));
        assert!(figures.audit_verified && figures.conserved, "{figures:?}");
        assert_eq!((figures.commands, figures.unreadable, figures.users), (3_000, 0, 12));
        assert!(figures.refused > 500 && figures.done > 500, "{figures:?}");
        assert_eq!(figures.quote_faults > 0, bad_per_mille > 0, "{figures:?}");
        assert!(figures.hits >= 40 && figures.elements["accountTransaction"] > 100, "{figures:?}");
        let log = args.logs.unwrap().join("testLOG");
        assert_eq!(
            audit::replay(&log).unwrap().report.count("userCommand"),
            3_000,
            "the dump that was commanded"
        );
        let broken = dir.path().join("broken");
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&broken, text.replacen("<action>add<", "<action>remove<", 1)).unwrap();
        assert!(audit::run(&audit::Args::of(&broken)).is_err());
        audit::run(&audit::Args::of(&log)).unwrap();
    }
}

#[test]
fn a_workload_of_anything_ends_and_every_line_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload");
    let lines = "[1] ADD,jo,10.00\nnothing\n\n[2] STEAL,jo\n\u{fe}\n[3] BUY,jo,S,0.00\n[4] COMMIT_BUY,\n\
                 [5] DUMPLOG,jo,../../jo.xml\n[6] DUMPLOG,../..\n[7] QUOTE,al,ZZ";
    std::fs::write(&file, lines).unwrap();
    let args = args(file, 0);
    let figures = measure(&args).unwrap();
    assert!(figures.audit_verified && figures.conserved, "{figures:?}");
    assert_eq!((figures.commands, figures.unreadable, figures.refused), (6, 3, 3), "{figures:?}");
    let logs = args.logs.unwrap();
    assert_eq!(names_in(&logs), ["audit.xml", "users"], "in the folder of logs, and nowhere else");
    assert_eq!(names_in(&logs.join("users/jo")), ["jo.xml"]);
}

#[test]
fn a_file_without_a_single_command_is_no_workload() {
    let dir = tempfile::tempdir().unwrap();
    let args = args(dir.path().join("workload"), 0);
    for text in ["", " \n\n", "<xs:schema>\n</xs:schema>\n"] {
        std::fs::write(&args.file, text).unwrap();
        let told = run(&Args { force: true, ..args.clone() }).unwrap_err().to_string();
        assert!(told.contains("none of its lines is a command"), "{told}");
    }
    let nowhere = Args { force: true, store: Some("postgres://".into()), ..args };
    assert!(matches!(run(&nowhere), Err(BrokerageError::Usage(why)) if why.contains("postgres://HOST")));
}

fn names_in(dir: &Path) -> Vec<std::ffi::OsString> {
    let names = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

#[test]
fn user_log_does_not_replace_the_full_log() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload");
    let lines = "[1] ADD,al,10.00\n[2] DUMPLOG,testLOG\n[3] DUMPLOG,jo,testLOG\n[4] DUMPLOG,testLOG,a";
    std::fs::write(&file, lines).unwrap();
    let args = args(file, 0);
    measure(&args).unwrap();
    let log = |path: &str| std::fs::read_to_string(args.logs.as_ref().unwrap().join(path)).unwrap();
    assert!(log("testLOG").contains("<username>al</username>"));
    assert!(!log("users/jo/testLOG").contains("<username>al</username>"));
    assert!(log("users/testLOG/a").contains("DUMPLOG"));
}

/// Runs a workload, and holds every reply, and every account in the end, against the oracle.
fn as_the_oracle_has_it(workload: Vec<u8>, bad_per_mille: u64, store: Option<&str>) -> (Running, Checked) {
    let dir = tempfile::tempdir().unwrap();
    let server = stand_in(Behaviour { seed: 3, instant: true, bad_per_mille }).unwrap();
    let floor = Floor::alone(dir.path(), Promise::Os, store, server.address(), None).unwrap();
    let mut running =
        Running::begin(floor, dir.path().to_owned(), ProgressBar::hidden(), <_>::default()).unwrap();
    running.feed(Cursor::new(workload), 5_000).unwrap();
    running.settle().unwrap();
    let checked = running.check(Some(&server)).unwrap();
    let mut oracle = Oracle::default();
    let seen = running.floor.seen.iter();
    let mut seen: Vec<_> =
        seen.map(|(bytes, reply)| (BrokerRequest::from_bytes(bytes).unwrap(), reply)).collect();
    seen.sort_by_key(|(request, _)| request.number);
    for (request, reply) in seen.into_iter().filter(|(_, reply)| **reply != BrokerReply::Early) {
        assert_eq!(oracle.run(&request), *reply, "{request:?}");
    }
    for (user, told) in &checked.report.accounts {
        let Some(expected) = oracle.users.get(user) else { continue };
        assert_eq!(told.cash_cents, i128::from(expected.cash), "{user}");
        assert_eq!(told.shares, expected.shares, "{user}");
        assert_eq!(told.held_cents(), i128::from(expected.held()), "{user}");
    }
    assert!(checked.audit_verified && checked.conserved);
    if let Some(url) = store {
        sql::is_as_the_log_says(url, &mut running, &checked.report);
    }
    let log = std::fs::read_to_string(&running.whole.as_ref().unwrap().0).unwrap();
    assert_ne!(shared_data::is_valid(&log, pares_os::clock::now_ns() / 1_000_000), Some(false));
    (running, checked)
}

fn every_reply_of_a_workload_is_the_oracles(store: fn() -> Option<String>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload");
    generate::run(&generate::Args::of(&file, 3_000, 5, 9)).unwrap();
    let (running, checked) = as_the_oracle_has_it(std::fs::read(file).unwrap(), 50, store().as_deref());
    assert_eq!(running.tally.told(), 3_000);
    assert!(checked.report.count("systemEvent") > 0, "some trigger has fired");
}

fn every_reply_of_the_published_workloads_is_the_oracles(store: fn() -> Option<String>) {
    for (name, commands) in [
        ("1userWorkLoad", 100),
        ("2userWorkLoad", 10_000),
        ("10User_testWorkLoad", 10_000),
        ("45User_testWorkLoad", 10_000),
    ] {
        published(name, commands, store().as_deref());
    }
}

#[test]
#[ignore = "all: a minute and more; the shorter ones prove the same"]
fn every_reply_of_the_longest_published_workload_is_the_oracles() {
    published("100User_testWorkLoad", 100_000, None);
}

fn published(name: &str, commands: u64, store: Option<&str>) {
    let Some(workload) = shared_data::workload(name) else { return };
    let (running, _) = as_the_oracle_has_it(workload, 0, store);
    assert_eq!((running.tally.told(), running.tally.unreadable), (commands, 0), "{name}");
}
