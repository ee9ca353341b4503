//! Real processes: killed writers, stopped and killed readers, a disk that is really full.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests, too; children speak through stdout

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{numbered, payloads, small, wait_until};
use pares_log::{AppendError, Config, Offset, Reader, Writer};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::tempdir;

const ROLE: &str = "PARES_LOG_TEST_ROLE";
const DIR: &str = "PARES_LOG_TEST_DIR";

/// Starts this test program again as another process that plays `role` on the log in `dir`.
fn start(role: &str, dir: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "role_of_a_child", "--nocapture", "--test-threads=1"]);
    command.env(ROLE, role).env(DIR, dir).stdout(Stdio::piped()).spawn().unwrap()
}

/// Waits until the child says `word` on a line of its own (the test runner's output comes first).
fn hear(child: &mut Child, word: &str) {
    let output = BufReader::new(child.stdout.as_mut().unwrap());
    assert!(output.lines().map_while(Result::ok).any(|line| line.contains(word)), "the child ended early");
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn role_of_a_child() {
    let (Ok(role), Ok(dir)) = (std::env::var(ROLE), std::env::var(DIR)) else { return };
    let dir = Path::new(&dir);
    match role.as_str() {
        "writer" => write_for_ever(dir),
        "reader" => read_for_ever(dir),
        "counting-reader" => println!("\nread {}", count(dir, 20_000)),
        other => panic!("no role {other}"),
    }
}

fn write_for_ever(dir: &Path) {
    let (mut writer, _) = Writer::open(dir, Config::default().segment_bytes(64 << 10)).unwrap();
    for n in 0.. {
        writer.append(&numbered(n)).unwrap();
        writer.publish();
        if n == 1000 {
            println!("\nwriting");
        }
    }
}

fn read_for_ever(dir: &Path) {
    let mut reader = Reader::open(dir, Offset::START).unwrap();
    println!("\nreading");
    loop {
        let _any = reader.next().unwrap();
    }
}

fn count(dir: &Path, records: u32) -> u32 {
    let mut reader = Reader::open(dir, Offset::START).unwrap();
    for n in 0..records {
        loop {
            match reader.next().unwrap() {
                Some(record) => break assert_eq!(record.payload, numbered(n)),
                None => std::thread::yield_now(),
            }
        }
    }
    records
}

#[test]
fn a_reader_in_another_process_sees_every_record_in_order() {
    let dir = tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), Config::default().segment_bytes(64 << 10)).unwrap();
    let mut reader = start("counting-reader", dir.path());
    for n in 0..20_000 {
        writer.append(&numbered(n)).unwrap();
        writer.publish();
    }
    hear(&mut reader, "read 20000");
    assert!(reader.wait().unwrap().success());
}

#[test]
fn a_writer_killed_at_any_instant_loses_nothing_published() {
    let dir = tempdir().unwrap();
    for _ in 0..5 {
        let log = dir.path().join("log");
        let mut writer = start("writer", &log);
        hear(&mut writer, "writing");
        let mut reader = Reader::open(&log, Offset::START).unwrap();
        wait_until(|| reader.written().0 > 1 << 20);
        signal(&writer, Signal::KILL);
        writer.wait().unwrap();
        let published = reader.written();
        let (writer, recovery) = Writer::open(&log, small()).unwrap();
        assert!(recovery.tail >= published && recovery.lost_bytes == 0, "{recovery:?}");
        for n in 0.. {
            match reader.next().unwrap() {
                Some(record) => assert_eq!(record.payload, numbered(n)),
                None => break,
            }
        }
        assert_eq!(reader.offset(), recovery.tail);
        drop(writer);
        std::fs::remove_dir_all(log).unwrap();
    }
}

#[test]
fn a_stopped_or_killed_reader_has_no_effect_on_the_writer() {
    let dir = tempdir().unwrap();
    let (mut writer, _) = Writer::open(dir.path(), small()).unwrap();
    let mut reader = start("reader", dir.path());
    hear(&mut reader, "reading");
    for (n, disturbance) in [(500, Signal::STOP), (1000, Signal::KILL), (1500, Signal::KILL)] {
        signal(&reader, disturbance);
        for n in n - 500..n {
            writer.append(&numbered(n)).unwrap();
            writer.publish();
        }
    }
    reader.wait().unwrap();
    assert_eq!(payloads(dir.path()), (0..1500).map(numbered).collect::<Vec<_>>());
}

/// A file system of one mebibyte, unmounted when dropped.
struct TinyDisk(tempfile::TempDir);

impl TinyDisk {
    fn mount() -> Option<TinyDisk> {
        let dir = tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(dir.path()).stderr(Stdio::null());
        mount.status().is_ok_and(|status| status.success()).then(|| TinyDisk(dir))
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(self.0.path()).status().unwrap();
    }
}

#[test]
fn full_disk_refuses_appends_until_there_is_room() {
    let Some(disk) = TinyDisk::mount() else {
        println!("skipped: mounting a tiny file system needs root");
        return;
    };
    let (log, ballast) = (disk.0.path().join("log"), disk.0.path().join("ballast"));
    std::fs::write(&ballast, vec![1; 300 << 10]).unwrap();
    let (mut writer, _) = Writer::open(&log, Config::default().segment_bytes(128 << 10)).unwrap();
    let mut accepted = 0;
    let refused = loop {
        match writer.append(&numbered(accepted)) {
            Ok(_) => accepted += 1,
            Err(e) => break e,
        }
    };
    assert_eq!((refused, accepted > 500), (AppendError::Full, true));
    writer.publish();
    std::fs::remove_file(ballast).unwrap();
    wait_until(|| writer.append(&numbered(accepted)).is_ok());
    writer.publish();
    assert_eq!(payloads(&log), (0..=accepted).map(numbered).collect::<Vec<_>>());
    drop(writer);
}
