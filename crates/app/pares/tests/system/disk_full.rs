//! A full disk under one log: requests are refused or wait, nothing acknowledged is lost, and once there is
//! room everything continues without a restart.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use pares_client::{Client, ClientError, Update};
use pares_node::{Layout, SystemConfig};
use pares_types::{GatewayId, Reason, RecorderId, Side, VenueId};
use pares_wire::frame;

use crate::bad_input::signed_on;
use crate::common::exchange::{Exchange, gateway, recorder, small, venue};
use crate::common::process::Up;
use crate::common::{eventually, limit, load, record};
use crate::tap::tap;

/// A small disk of its own, mounted at a log's directory.
struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts it; says why and returns none where that is not allowed.
    fn mount(at: &Path, mib: u32) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).stderr(Stdio::null());
        let mounted = mount.status().is_ok_and(|status| status.success());
        if !mounted {
            eprintln!("skipped: mounting a small tmpfs is not allowed here");
        }
        mounted.then(|| Self { at: at.to_owned() })
    }

    /// Uses up all room that is left.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.filler()).unwrap();
        while filler.write_all(&[1; 4_096]).is_ok() {}
    }

    fn make_room(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a failed test may still hold files open.
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(Stdio::null()).status();
    }
}

/// A system of which `log` lies on a small disk. The disk is dropped after the system.
fn start(config: &SystemConfig, mib: u32, log: impl Fn(&Layout) -> PathBuf) -> Option<(Exchange, SmallDisk)> {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let disk = SmallDisk::mount(&log(&Layout::new(dir.path())), mib)?;
    Some((Exchange::start_in(dir, config), disk))
}

/// A member that sends pairs of orders that trade with each other, as fast as they are answered.
struct Flood {
    client: Client,
    sent: u64,
    answered: u64,
    rejected: Vec<Reason>,
}

impl Flood {
    fn new(exchange: &Exchange, member: u32) -> Self {
        Self { client: exchange.client(0, member), sent: 0, answered: 0, rejected: Vec::new() }
    }

    fn open(&self) -> u64 {
        self.sent - self.answered - self.rejected.len() as u64
    }

    /// Sends nothing more until all is answered.
    fn finish(&mut self) {
        self.run(0, |flood| flood.open() == 0);
    }

    /// So many more are answered.
    fn works_again(&mut self, more: u64) {
        let enough = self.answered + more;
        self.run(100, |flood| flood.answered >= enough);
        assert!(self.answered >= enough, "it works again");
        self.finish();
    }

    /// Keeps up to `in_flight` orders open until `done`, or nothing has come for a second.
    fn run(&mut self, in_flight: u64, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            while self.open() < in_flight {
                let name = self.sent + 1;
                let side = if name.is_multiple_of(2) { Side::Sell } else { Side::Buy };
                match self.client.send(&limit(name, 3, side, 1, 1_000_000)) {
                    Ok(()) => self.sent = name,
                    Err(ClientError::Backlogged) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            self.client.flush().unwrap();
            if !self.client.wait(std::time::Duration::from_secs(3)).unwrap() {
                return;
            }
            let Self { client, answered, rejected, .. } = self;
            client
                .poll(|update| match update {
                    Update::Answer(_) => *answered += 1,
                    Update::Rejected { reason, .. } => rejected.push(reason),
                    _ => {}
                })
                .unwrap();
        }
    }
}

/// Everything answered is recorded, nothing else is, and all recorders agree.
fn check(exchange: &mut Exchange, floods: &[&Flood]) {
    let records = record::agreed(exchange);
    record::check_matching(exchange.config(), &records);
    let recorded = records.values().map(Vec::len).sum::<usize>() as u64;
    assert_eq!(recorded, floods.iter().map(|flood| flood.answered).sum::<u64>());
    assert_eq!(exchange.supervisor().restarts(), 0);
}

#[test]
fn full_gateway_disk_rejects_requests_until_room() {
    let config = SystemConfig { in_flight_max: 130_000, session_in_flight_max: 65_000, ..small(1) };
    let Some((mut exchange, disk)) = start(&config, 24, |layout| layout.gateway_log(GatewayId(0))) else {
        return;
    };
    let mut flood = Flood::new(&exchange, 7);
    flood.run(100, |flood| flood.answered >= 1_000);
    // No venue reads on, so nothing of the log is released; what is prepared is used up in the end.
    disk.fill();
    let venues = [0, 1].map(venue);
    venues.iter().for_each(|&venue| exchange.freeze(venue));
    let mut second = Flood::new(&exchange, 8); // one session may not have so many in flight
    flood.run(60_000, |flood| flood.rejected.len() >= 1_000);
    second.run(60_000, |second| second.rejected.len() >= 1_000);
    assert!(second.rejected.contains(&Reason::StorageUnavailable), "{:?}", second.rejected.first());
    venues.iter().for_each(|&venue| exchange.thaw(venue));
    second.finish();
    flood.finish();
    disk.make_room();
    flood.works_again(40_000);
    check(&mut exchange, &[&flood, &second]);
}

#[test]
fn full_disk_of_only_venue_or_recorder_stalls_until_room() {
    let logs: [fn(&Layout) -> PathBuf; 2] = [
        |layout: &Layout| layout.venue_log(VenueId(0)),
        |layout: &Layout| layout.recorder_log(RecorderId(0)),
    ];
    for (log, is_venue) in logs.into_iter().zip([true, false]) {
        let config = SystemConfig { venues: if is_venue { 1 } else { 2 }, recorders: 1, ..small(1) };
        let Some((mut exchange, disk)) = start(&config, 24, log) else { return };
        let mut flood = Flood::new(&exchange, 7);
        flood.run(100, |flood| flood.answered >= 1_000);
        disk.fill();
        if is_venue {
            // The recorder reads nothing, so nothing of the log is released.
            exchange.freeze(recorder(0));
            flood.run(16_000, |_| false);
            exchange.thaw(recorder(0));
        } else {
            flood.run(100, |flood| flood.answered >= 200_000);
            assert!(flood.answered < 200_000, "there was no room for so many");
            assert_eq!(flood.open(), 100, "the last ones wait");
        }
        disk.make_room();
        flood.finish();
        flood.works_again(20_000);
        check(&mut exchange, &[&flood]);
    }
}

#[test]
fn disk_full_under_one_venue_or_recorder_disturbs_nobody() {
    let logs: [fn(&Layout) -> PathBuf; 2] = [
        |layout: &Layout| layout.venue_log(VenueId(1)),
        |layout: &Layout| layout.recorder_log(RecorderId(1)),
    ];
    for log in logs {
        let Some((mut exchange, disk)) = start(&small(1), 24, log) else { return };
        let mut traders = load::traders(&exchange, 4);
        load::trade(&mut exchange, &mut traders, 200);
        disk.fill();
        load::trade(&mut exchange, &mut traders, 20_000);
        disk.make_room();
        load::finish_and_check(&mut exchange, &mut traders);
        assert_eq!(exchange.supervisor().restarts(), 0);
    }
}

#[test]
fn a_node_whose_complaints_the_disk_does_not_take_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    let log = layout.venue_log(VenueId(0));
    [layout.run(), log.clone()].iter().for_each(|dir| std::fs::create_dir_all(dir).unwrap());
    std::os::unix::fs::symlink("/dev/full", layout.complaints(venue(0))).unwrap();
    // It says that it sets this aside.
    std::fs::write(log.join("marks"), [7; 8192]).unwrap();
    let up = Up::start(dir.path(), &SystemConfig { venues: 1, ..small(1) });
    assert!(log.join("damaged-1/marks").exists(), "{}", up.said);
}

/// The gateway takes no notice of it; `pares tap` reports what is missing.
#[test]
fn disk_full_under_a_tap_costs_the_tap_and_nothing_else() {
    let config = SystemConfig { tap: true, ..small(1) };
    let Some((exchange, disk)) = start(&config, 52, |layout| layout.tap(GatewayId(0))) else { return };
    disk.fill();
    let lost = || exchange.counter(gateway(0), "tap_lost_bytes");
    let mut talker = Talker::new(exchange.addresses()[0]);
    // One segment of 16 MiB, or two; there is no room for more.
    while lost() == 0 {
        talker.talk();
    }
    let mut client = exchange.client(0, 7);
    let mut names = 1..;
    let mut sell = || {
        client.submit_and_wait(&limit(names.next().unwrap(), 1, Side::Sell, 5, 2_238_200)).unwrap();
    };
    // What is small has room for a while.
    while exchange.counter(gateway(0), "tap_untold_entries") == 0 {
        sell();
    }
    (0..5).for_each(|_| sell());
    // The tap ends before that, and no entry of it says what was lost: the counters do, and the record.
    let (ok, said) = tap(&exchange, "reconcile");
    let told = ["entries that gateways report as lost", "recorded requests in no tap"];
    assert!(!ok && told.iter().all(|what| said.contains(what)), "{said}");
    disk.make_room();
    let mut before = lost();
    eventually("the tap goes on", || {
        talker.talk();
        lost() == std::mem::replace(&mut before, lost())
    });
    let (_, said) = tap(&exchange, "list");
    assert!(said.contains("lost: "), "{said}");
}

/// A client that sends a thousand pings at once.
struct Talker(TcpStream);

impl Talker {
    fn new(gateway: SocketAddr) -> Self {
        Self(signed_on(gateway, 9))
    }

    fn talk(&mut self) {
        let mut ping = Vec::new();
        frame::write(&mut ping, &frame::Ping { token: 1.into() });
        self.0.write_all(&ping.repeat(1_000)).unwrap();
        self.0.read_exact(&mut ping.repeat(1_000)).unwrap();
    }
}

/// It is opened as soon as there is room, without a restart.
#[test]
fn a_tap_that_found_the_disk_full_begins_when_there_is_room() {
    let config = SystemConfig { tap: true, ..small(1) };
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let Some(disk) = SmallDisk::mount(&Layout::new(dir.path()).tap(GatewayId(0)), 52) else { return };
    disk.fill();
    let exchange = Exchange::start_in(dir, &config);
    let mut client = exchange.client(0, 7);
    client.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    let count = |name| exchange.counter(gateway(0), name);
    eventually("it loses all", || count("tap_untold_entries") > 0);
    disk.make_room();
    eventually("the tap has begun", || count("tap_untold_entries") == 0);
    client.submit_and_wait(&limit(2, 1, Side::Sell, 5, 2_238_200)).unwrap();
    eventually("it is in the tap", || tap(&exchange, "show --order 2").1.contains("Enter"));
    let complaints = std::fs::read_to_string(exchange.layout().complaints(gateway(0))).unwrap();
    assert!(complaints.contains("for now") && !complaints.contains("Move"), "{complaints}");
    let (ok, said) = tap(&exchange, "reconcile");
    assert!(!ok && said.contains("1 recorded requests in no tap"), "{said}");
    drop((exchange, disk));
}
