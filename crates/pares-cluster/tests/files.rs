//! Replicas on real files: torn tails, failing disks, released segments.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::site::Site;
use pares_cluster::{ClusterLog, Config, Durability, Files, JournalError, LogError, OpenError, Replica};
use pares_log::{AppendError, Faults};

const SEGMENT_BYTES: u64 = 64 << 10;

fn open(dir: &Path, member: u8, members: u8, applied: u64, durability: Durability) -> Replica<Files> {
    let files = Files::open(dir, durability, SEGMENT_BYTES).unwrap();
    Replica::open(files, &Config { applied, ..Config::new(member, members) }).unwrap()
}

/// Everybody's messages, until there are none.
fn exchange(logs: &mut [Replica<Files>], sites: &mut [Site]) {
    while logs.iter().any(ClusterLog::pending) {
        for member in 0..logs.len() {
            logs[member].cycle(&mut sites[member]).unwrap();
            for (to, message) in std::mem::take(&mut sites[member].outbox) {
                logs[usize::from(to)].receive(member as u8, &message).unwrap();
            }
        }
    }
}

fn elect(logs: &mut [Replica<Files>], sites: &mut [Site]) -> usize {
    loop {
        exchange(logs, sites);
        if let Some(leader) = sites.iter().position(|site| site.role.leads) {
            return leader;
        }
        logs.iter_mut().for_each(Replica::tick);
    }
}

#[test]
fn three_replicas_on_files_go_on_where_they_were() {
    for durability in [Durability::Os, Durability::Disk] {
        let dirs: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let all = |applied| -> Vec<_> {
            let open =
                |(member, dir): (u8, &tempfile::TempDir)| open(dir.path(), member, 3, applied, durability);
            (0..3).zip(&dirs).map(open).collect()
        };
        let mut sites = vec![Site::default(); 3];
        for life in 0..3u8 {
            let mut logs = all(sites[0].applied);
            sites.iter_mut().for_each(|site| *site = site.saved());
            let leader = elect(&mut logs, &mut sites);
            (0..50).for_each(|number| logs[leader].propose(&[life, number]).unwrap());
            exchange(&mut logs, &mut sites);
        }
        let expected: Vec<[u8; 2]> =
            (0..3).flat_map(|life| (0..50).map(move |number| [life, number])).collect();
        assert!(sites.iter().all(|site| site.payloads() == expected));
    }
}

fn alone(dir: &Path, applied: u64) -> (Replica<Files>, Site) {
    let mut log = open(dir, 0, 1, applied, Durability::Disk);
    let mut site = Site::default();
    log.cycle(&mut site).unwrap();
    (log, site)
}

#[test]
fn a_torn_tail_is_cut_and_what_was_committed_stays() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, mut site) = alone(dir.path(), 0);
    (0..20u8).for_each(|number| log.propose(&[number; 100]).unwrap());
    log.cycle(&mut site).unwrap();
    let tail = pares_log::inspect(dir.path()).unwrap().stats.written;
    drop(log);
    let segment = dir.path().join("00000000000000000000.seg");
    let torn = [0x5a; 200];
    File::options().write(true).open(segment).unwrap().write_all_at(&torn, tail.0).unwrap();
    let (mut log, mut again) = alone(dir.path(), 0);
    assert_eq!(again.payloads(), site.payloads());
    log.propose(b"more").unwrap();
    log.cycle(&mut again).unwrap();
    assert_eq!(again.payloads().last(), Some(&&b"more"[..]));
}

#[test]
fn a_failing_sync_stops_the_replica_before_it_commits() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Faults::default());
    let config = pares_log::Config::default().segment_bytes(SEGMENT_BYTES).faults(faults.clone());
    let files = Files::open_with(dir.path(), Durability::Disk, config).unwrap();
    let mut log = Replica::open(files, &Config::new(0, 1)).unwrap();
    let mut site = Site::default();
    log.cycle(&mut site).unwrap();
    faults.sync.store(5, Ordering::Relaxed);
    log.propose(b"lost?").unwrap();
    let failed = Err(LogError::Journal(JournalError::Write(AppendError::Poisoned { errno: 5 })));
    assert_eq!(log.cycle(&mut site), failed);
    faults.sync.store(0, Ordering::Relaxed);
    assert_eq!(log.cycle(&mut site), failed);
    assert!(site.entries.is_empty());
    drop(log);
    let opened = Files::open(dir.path(), Durability::Disk, SEGMENT_BYTES);
    assert!(matches!(opened, Err(JournalError::Read { what }) if what.contains("earlier write")));
}

#[test]
fn compaction_releases_segments_and_the_rest_opens_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, mut site) = alone(dir.path(), 0);
    let mut number = 0u32;
    for _ in 0..10 {
        for _ in 0..100 {
            log.propose(&[&number.to_le_bytes()[..], &[0; 300]].concat()).unwrap();
            number += 1;
        }
        log.cycle(&mut site).unwrap();
        log.compact(site.applied.saturating_sub(150));
        log.cycle(&mut site).unwrap();
    }
    assert_eq!(log.held().1 - log.held().0, 150);
    let first = pares_log::inspect(dir.path()).unwrap().stats.released.0;
    assert!(first >= 3 * SEGMENT_BYTES, "released below {first} of 330 kB");
    drop(log);
    let (_, again) = alone(dir.path(), site.applied - 100);
    assert_eq!(again.entries, site.entries[site.entries.len() - 100..]);
    let files = Files::open(dir.path(), Durability::Disk, SEGMENT_BYTES).unwrap();
    let behind = Replica::open(files, &Config::new(0, 1)).map(|_| ());
    assert_eq!(behind, Err(OpenError::Behind { applied: 0, base: site.applied - 150 }));
}
