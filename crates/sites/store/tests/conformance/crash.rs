//! A process is killed while it applies.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use pares_store::{Applied, Store as _};
use pares_wice::Version;

use crate::common::history::{replayed, version};
use crate::place::{Kind, Place, open};
use crate::suite::items;

/// Names the store that the other process is to write: `redb /tmp/x`.
const STORE: &str = "PARES_STORE_TO_WRITE";
const BATCH: u64 = 7;

pub(crate) fn a_process_that_dies_leaves_a_prefix(place: &Place) {
    place.open().flush().unwrap();
    for round in 0..5 {
        let (applied, flushed) = run_and_kill(place, 4 + round * 9);
        let store = place.open();
        let found = store.applied();
        assert!(found >= flushed, "flushed up to {flushed}, found {found}");
        if place.kind != Kind::Redb {
            // redb keeps in memory what is not flushed; the others have told the operating system.
            assert!(found >= applied, "applied up to {applied}, found {found}");
        }
        assert_eq!(found.0 % BATCH, 0, "a batch is there as a whole or not at all");
        assert_eq!(*store.meta(), found.0.to_le_bytes()[..usize::from(found.0 > 0) * 8]);
        let snapshot = store.snapshot().unwrap();
        assert_eq!(items(&*snapshot), items(&*replayed(found).snapshot().unwrap()), "up to {found}");
    }
}

/// Has another process write until it has said so many lines, and kills it while it continues. Gives the last versions of
/// which it said that they were applied, and flushed.
fn run_and_kill(place: &Place, lines: usize) -> (Version, Version) {
    let mut child = writer(place);
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut seen = (Version(0), Version(0));
    let mut read = 0;
    for line in output.lines() {
        let line = line.unwrap();
        match line.split_once(' ').map(|(word, number)| (word, number.parse().map(Version))) {
            Some(("applied", Ok(version))) => seen.0 = version,
            Some(("flushed", Ok(version))) => seen.1 = version,
            _ => continue,
        }
        read += 1;
        if read == lines {
            child.kill().unwrap();
            break;
        }
    }
    assert_eq!(read, lines, "the writer ended by itself: {:?}", child.wait());
    child.wait().unwrap();
    seen
}

fn writer(place: &Place) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::the_process_that_is_killed", "--nocapture"])
        .env(STORE, format!("{:?} {}", place.kind, place.address))
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Does nothing unless started by `run_and_kill`.
#[test]
fn the_process_that_is_killed() {
    let Ok(store) = std::env::var(STORE) else { return };
    let (kind, address) = store.split_once(' ').unwrap();
    let kind = match kind {
        "Redb" => Kind::Redb,
        "Postgres" => Kind::Postgres,
        other => panic!("{other}"),
    };
    let store = open(kind, address).unwrap();
    println!();
    for round in 1.. {
        let applied = store.applied().0;
        let batch: Vec<Applied> = (applied + 1..=applied + BATCH).map(version).collect();
        store.apply(&batch, Some(&(applied + BATCH).to_le_bytes())).unwrap();
        println!("applied {}", store.applied());
        if round % 4 == 0 {
            println!("flushed {}", store.flush().unwrap());
        }
    }
}
