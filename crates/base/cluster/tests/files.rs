//! Replicas on real files: torn tails, failing disks, released segments.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use common::site::Site;
use pares_cluster::{
    ClusterLog, Durability, Files, Journal, JournalError, LogError, Replica, ReplicaConfig, ReplicaError,
};
use pares_log::{AppendError, Device};
use pares_os::{MapError, Mapping};
use pares_random::Random;

const SEGMENT_BYTES: u64 = 64 << 10;

/// A device that fails on command.
#[derive(Debug, Default)]
struct Sick {
    /// The error number of every sync of a segment; 0 for none.
    sync: AtomicI32,
    /// Syncs of segments until one fails, that one included; 0 for none.
    syncs_to_failure: AtomicU64,
    /// The error number of every attempt to make a segment; 0 for none.
    make: AtomicI32,
}

impl Device for Sick {
    fn sync(&self, path: &Path, file: &File) -> std::io::Result<()> {
        let left = self.syncs_to_failure.load(Ordering::Relaxed);
        if path.extension().is_some_and(|extension| extension == "seg") {
            self.syncs_to_failure.store(left.saturating_sub(1), Ordering::Relaxed);
            match (left, self.sync.load(Ordering::Relaxed)) {
                (1, _) => return Err(std::io::Error::from_raw_os_error(5)),
                (_, 0) => {}
                (_, errno) => return Err(std::io::Error::from_raw_os_error(errno)),
            }
        }
        file.sync_data()
    }

    fn make(&self, path: &Path, len: usize) -> Result<Mapping, MapError> {
        match self.make.load(Ordering::Relaxed) {
            0 => Mapping::create(path, len),
            errno => {
                let source = std::io::Error::from_raw_os_error(errno);
                Err(MapError::Io { step: "make", path: path.to_owned(), source })
            }
        }
    }
}

/// Files on that device.
fn on(sick: &Arc<Sick>, dir: &Path, durability: Durability) -> Files {
    let config = pares_log::Config::default().segment_bytes(SEGMENT_BYTES).device(sick.clone());
    Files::open_with(dir, durability, config).unwrap()
}

fn open(dir: &Path, member: u8, members: u8, applied: u64, durability: Durability) -> Replica<Files> {
    let files = Files::open(dir, durability, SEGMENT_BYTES).unwrap();
    Replica::open(files, &ReplicaConfig { applied, ..ReplicaConfig::new(member, members) }).unwrap()
}

/// Delivers all members' messages, until there are none.
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

/// A log of twenty records: its directory and segment, what they came to, and where nothing is written.
fn twenty_written() -> (tempfile::TempDir, PathBuf, Site, u64) {
    let dir = tempfile::tempdir().unwrap();
    let (mut log, mut site) = alone(dir.path(), 0);
    (0..20u8).for_each(|number| log.propose(&[number; 100]).unwrap());
    log.cycle(&mut site).unwrap();
    let written = pares_log::inspect(dir.path()).unwrap().stats.written.0;
    let segment = dir.path().join("00000000000000000000.seg");
    (dir, segment, site, written)
}

#[test]
fn a_torn_tail_is_cut_and_what_was_committed_stays() {
    let (dir, segment, site, written) = twenty_written();
    File::options().write(true).open(segment).unwrap().write_all_at(&[0x5a; 200], written).unwrap();
    let (mut log, mut again) = alone(dir.path(), 0);
    assert_eq!(again.payloads(), site.payloads());
    log.propose(b"more").unwrap();
    log.cycle(&mut again).unwrap();
    assert_eq!(again.payloads().last(), Some(&&b"more"[..]));
}

#[test]
fn a_bit_that_changed_is_damage_that_nobody_is_told_to_cut() {
    let (dir, segment, site, written) = twenty_written();
    let bytes = std::fs::read(&segment).unwrap();
    let mut found = 0;
    for at in (0..written).step_by(61) {
        let mut changed = bytes.clone();
        changed[at as usize] ^= 4;
        std::fs::write(&segment, changed).unwrap();
        let opened = Files::open(dir.path(), Durability::Os, SEGMENT_BYTES)
            .map_err(pares_cluster::ReplicaError::from)
            .and_then(|files| Replica::open(files, &ReplicaConfig::new(0, 1)));
        match opened {
            // Where nothing is written.
            Ok(mut log) => {
                let mut again = Site::default();
                log.cycle(&mut again).unwrap();
                assert_eq!(again.payloads(), site.payloads(), "byte {at}");
            }
            Err(error) => {
                let told = error.to_string();
                assert!(error.is_damage() && told.contains("whole directory"), "{told}");
                assert!(!told.contains("journal cut"), "{told}");
                found += 1;
            }
        }
    }
    assert!(found > 30, "{found} found");
}

#[test]
fn a_failing_sync_stops_the_replica_before_it_commits() {
    let dir = tempfile::tempdir().unwrap();
    let sick = Arc::new(Sick::default());
    let files = on(&sick, dir.path(), Durability::Disk);
    let mut log = Replica::open(files, &ReplicaConfig::new(0, 1)).unwrap();
    let mut site = Site::default();
    log.cycle(&mut site).unwrap();
    sick.sync.store(5, Ordering::Relaxed);
    log.propose(b"lost?").unwrap();
    let failed = Err(LogError::Journal(JournalError::Write(AppendError::Poisoned { errno: 5 })));
    assert_eq!(log.cycle(&mut site), failed);
    sick.sync.store(0, Ordering::Relaxed);
    assert_eq!(log.cycle(&mut site), failed);
    assert!(site.entries.is_empty());
    drop(log);
    let (mut log, mut again) = alone(dir.path(), 0);
    assert!(again.entries.is_empty());
    log.propose(b"kept").unwrap();
    log.cycle(&mut again).unwrap();
    assert_eq!(again.payloads(), [b"kept"]);
}

#[test]
fn unmade_segment_costs_no_written_record() {
    let dir = tempfile::tempdir().unwrap();
    let sick = Arc::new(Sick::default());
    let files = on(&sick, dir.path(), Durability::Os);
    let mut log = Replica::open(files, &ReplicaConfig::new(0, 1)).unwrap();
    let mut site = Site::default();
    sick.make.store(5, Ordering::Relaxed);
    let failed = (0u32..10_000).find_map(|number| {
        let _refused_once_it_has_failed = log.propose(&[&number.to_le_bytes()[..], &[0; 300]].concat());
        log.cycle(&mut site).err()
    });
    let poisoned = AppendError::Poisoned { errno: 5 };
    assert_eq!(failed, Some(LogError::Journal(JournalError::Write(poisoned))));
    drop(log);
    let mut again = Site::default();
    let mut log = open(dir.path(), 0, 1, 0, Durability::Os);
    log.cycle(&mut again).unwrap();
    assert!(site.entries.len() > 100, "{} entries", site.entries.len());
    assert_eq!(again.entries[..site.entries.len()], site.entries);
}

#[test]
fn a_poisoned_log_that_lacks_what_was_promised_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let sick = Arc::new(Sick::default());
    let mut files = on(&sick, dir.path(), Durability::Disk);
    let place = files.append(b"promised", b"").unwrap();
    files.sync().unwrap();
    sick.sync.store(5, Ordering::Relaxed);
    files.append(b"lost?", b"").unwrap();
    files.sync().unwrap_err();
    drop(files);
    let segment = dir.path().join("00000000000000000000.seg");
    File::options().write(true).open(segment).unwrap().write_all_at(&[0x5a; 8], place).unwrap();
    let opened = Files::open(dir.path(), Durability::Disk, SEGMENT_BYTES);
    assert!(matches!(opened, Err(JournalError::Damaged { .. })), "{opened:?}");
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
    let behind = Replica::open(files, &ReplicaConfig::new(0, 1)).map(|_| ());
    assert_eq!(behind, Err(ReplicaError::Behind { applied: 0, base: site.applied - 150 }));
}

/// A member whose disk fails now and then; opened again, its log ends where it is known to be on the device.
struct Member {
    dir: tempfile::TempDir,
    sick: Arc<Sick>,
    log: Option<Replica<Files>>,
    site: Site,
}

impl Member {
    fn start(&mut self, member: u8) {
        let files = on(&self.sick, self.dir.path(), Durability::Disk);
        // The site's own state survives: what is under test is the log's.
        self.site = self.site.saved();
        let config = ReplicaConfig { applied: self.site.applied, ..ReplicaConfig::new(member, 3) };
        self.log = Some(Replica::open(files, &config).unwrap());
    }

    /// A tick, a proposal and a cycle; what it sends, and whether its disk failed.
    fn live(&mut self, payload: &[u8]) -> (Vec<(u8, Vec<u8>)>, bool) {
        let Some(log) = &mut self.log else { return (Vec::new(), false) };
        log.tick();
        // Refused by all but the delegate.
        let _ = log.propose(payload);
        let failed = log.cycle(&mut self.site).is_err();
        if failed {
            self.log = None;
            self.sick.syncs_to_failure.store(0, Ordering::Relaxed);
        }
        (std::mem::take(&mut self.site.outbox), failed)
    }
}

#[test]
fn members_whose_disks_fail_in_turn_lose_nothing_committed() {
    let mut random = Random::new(77);
    let new = |_| {
        let (dir, sick) = (tempfile::tempdir().unwrap(), Arc::default());
        Member { dir, sick, log: None, site: Site::default() }
    };
    let mut members: Vec<Member> = (0..3).map(new).collect();
    (0..3).zip(&mut members).for_each(|(number, member)| member.start(number));
    let mut failures = 0;
    for round in 0..500u64 {
        let victim = random.index(3);
        if members.iter().all(|member| member.log.is_some()) && random.percent(8) {
            members[victim].sick.syncs_to_failure.store(1 + random.below(4), Ordering::Relaxed);
        }
        for number in 0..3u8 {
            let member = &mut members[usize::from(number)];
            if member.log.is_none() && random.percent(10) {
                member.start(number);
            }
            let (outbox, failed) = member.live(&round.to_le_bytes());
            failures += u32::from(failed);
            for (to, message) in outbox {
                if let Some(log) = &mut members[usize::from(to)].log {
                    log.receive(number, &message).unwrap();
                }
            }
        }
    }
    let longest =
        members.iter().map(|member| &member.site.entries).max_by_key(|entries| entries.len()).unwrap();
    assert!(members.iter().all(|member| longest.starts_with(&member.site.entries)));
    assert!(failures > 10 && longest.len() > 100, "{failures} failures, {} entries", longest.len());
}
