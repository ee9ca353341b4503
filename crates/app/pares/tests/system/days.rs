//! Business days: begun and ended by hand and by the timetable, and reported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command as Process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pares_client::{ClientError, Update};
use pares_config::DayConfig;
use pares_log::MarksReader;
use pares_node::SystemConfig;
use pares_types::{
    ClientOrderId, ClientRequest, InstrumentId, NewOrder, Price, Quantity, Reason, RecorderId, ShardId, Side,
    Status, TimeInForce,
};
use pares_wire::record::ResultRecord;
use serde_json::{Value, json};

use crate::common::exchange::{Exchange, PROGRAM, gateway, recorder, small, venue};
use crate::common::process::{Ran, pares};
use crate::common::{eventually, limit, record};

fn json(exchange: &Exchange, arguments: &str) -> (Option<i32>, Value) {
    let ran = exchange.pares(&format!("{arguments} --json"));
    (ran.status, ran.json())
}

fn good_till_cancelled(name: u64, price: i64) -> ClientRequest {
    let order =
        NewOrder { time_in_force: TimeInForce::Gtc, ..NewOrder::limit(Side::Buy, Price(price), Quantity(5)) };
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument: InstrumentId(1), order }
}

#[test]
fn day_ended_by_hand_reported_alike_and_followed() {
    let mut exchange = Exchange::start(&small(1));
    assert_eq!(json(&exchange, "admin day begin 2026-11-23").0, Some(0));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    let stays = buyer.submit_and_wait(&good_till_cancelled(1, 2_230_000)).unwrap();
    assert_eq!(stays.status, Status::Resting);
    seller.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 3, 2_238_200)).unwrap();

    assert_eq!(json(&exchange, "admin day end").0, Some(0));
    let refused = seller.submit_and_wait(&limit(2, 1, Side::Sell, 5, 2_238_200)).unwrap();
    assert_eq!(refused.reason, Reason::DayOver);
    eventually("all recorders have the day", || {
        exchange.tick();
        exchange.pares("day report --json").is_ok()
    });
    let (_, report) = json(&exchange, "day report 2026-11-23");
    assert_eq!((&report["agreed"], report["recorders"].as_array().unwrap().len()), (&true.into(), 2));
    let traded = &report["instruments"][0];
    assert_eq!((&traded["closing"], &traded["quantity"]), (&"223.8200".into(), &3.into()));
    assert_eq!(report["members"][1]["orders"], 2);
    assert!(exchange.pares("day report --html").out.contains("Business day 2026-11-23"));

    assert_eq!(json(&exchange, "admin day begin 2026-11-23").0, Some(1), "not twice");
    assert_eq!(json(&exchange, "admin day begin 2026-11-24").0, Some(0));
    let filled = seller.submit_and_wait(&limit(3, 1, Side::Sell, 5, 2_230_000)).unwrap();
    assert_eq!(filled.status, Status::Filled, "the order that was good till cancelled");
    let records = record::agreed(&mut exchange);
    record::check_matching(exchange.config(), &records);
}

/// Trades so many times on a day of its own; the recorders have all of it then.
fn trade_a_day(exchange: &mut Exchange, day: &str, names: std::ops::Range<u64>) {
    assert_eq!(json(exchange, &format!("admin day begin {day}")).0, Some(0));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    for name in names {
        seller.submit_and_wait(&limit(name, 1, Side::Sell, 5, 2_238_200)).unwrap();
        buyer.submit_and_wait(&limit(name, 1, Side::Buy, 5, 2_238_200)).unwrap();
    }
    assert_eq!(json(exchange, "admin day end").0, Some(0));
    eventually("all recorders have the day", || {
        exchange.tick();
        // Before the first recorder has it, it is an error and no report.
        exchange.pares(&format!("day report {day} --json")).is_ok()
    });
}

#[test]
fn closed_days_are_archived_and_read_again_from_the_archive() {
    let mut exchange = Exchange::start(&small(1));
    trade_a_day(&mut exchange, "2026-11-23", 1..20);
    trade_a_day(&mut exchange, "2026-11-24", 20..40);
    let scratch = tempfile::tempdir().unwrap();
    let (archive, read) = (scratch.path().join("archive"), scratch.path().join("read"));
    let manifests = || {
        let log = exchange.layout().recorder_log(pares_types::RecorderId(0));
        pares_archive::Days::new(&log, &[]).manifests().unwrap()
    };
    eventually("the recorder has closed both days", || manifests().len() == 2);
    let [first, second] = &manifests()[..] else { panic!() };
    assert_eq!((first.until, first.until % first.segment_bytes), (second.from, 0), "a day begins a segment");

    exchange.pares(&format!("archive --to {}", archive.display())).done();
    let restore = |into: &Path| {
        let words = format!("archive restore --from {} --into {}", archive.display(), into.display());
        Ran::of(Process::new(PROGRAM).args(words.split_whitespace()))
    };
    restore(&read).done();
    let trades = pares(&read, "history trades --json --limit 100").json();
    assert_eq!(trades["trades"].as_array().unwrap().len(), 39);
    let of_archive = format!("day report --archive {}", archive.display());
    for day in ["2026-11-23", "2026-11-24"] {
        let (_, system) = json(&exchange, &format!("day report {day}"));
        assert_eq!(json(&exchange, &format!("{of_archive} {day}")), (Some(0), system.clone()));
        let one = pares(&read, &format!("day report {day} --json")).json();
        assert_eq!((&one["recorders"], &system["recorders"]), (&json!([0]), &json!([0, 1])));
        assert_eq!((&one["shards"], &one["members"]), (&system["shards"], &system["members"]));
        assert_eq!(one["instruments"], system["instruments"]);
    }
    assert_eq!(json(&exchange, &of_archive).1["day"], "2026-11-24", "the last");
    assert!(pares(&read, "day report").done().ends_with("recorder-1 has no report of this day here\n"));
    std::fs::write(archive.join("recorder-0/2026-11-24/manifest.json"), "{}").unwrap();
    let differs = exchange.pares(&of_archive);
    assert_eq!(differs.status, Some(7), "{differs:?}");
    assert!(differs.out.contains("read out of recorder-1: they differ"), "{differs:?}");
    std::fs::remove_dir_all(archive.join("recorder-1/2026-11-24")).unwrap();
    assert_eq!(exchange.pares(&of_archive).status, Some(1), "the other is damaged");
    exchange.pares(&format!("archive --to {}", archive.display()));
    std::fs::remove_dir_all(archive.join("recorder-1")).unwrap();
    let alone = exchange.pares(&of_archive).out;
    assert!(alone.ends_with("recorder-1 has no report of this day here\n"), "{alone}");
    assert_eq!(exchange.pares(&format!("{of_archive} 2026-11-25")).status, Some(1));

    let up = pares(&read, "up");
    assert!(!up.is_ok() && up.complaint.contains("archived days"), "a record is no system: {up:?}");

    let packed = archive.join("recorder-0/2026-11-23").join(format!("{}.zst", first.segments[0].name));
    let mut bytes = std::fs::read(&packed).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&packed, bytes).unwrap();
    let again = restore(&scratch.path().join("again"));
    assert!(!again.is_ok() && again.complaint.contains("damaged"), "{again:?}");
    one_recorder_that_fails_keeps_no_other_from_being_archived(&exchange, &scratch.path().join("other"));
}

fn one_recorder_that_fails_keeps_no_other_from_being_archived(exchange: &Exchange, archive: &Path) {
    std::fs::create_dir(archive).unwrap();
    std::fs::write(archive.join("recorder-0"), "in the way").unwrap();
    let ran = exchange.pares(&format!("archive --json --to {}", archive.display()));
    assert_eq!(ran.status, Some(1));
    let errors = &ran.complaint;
    assert!(errors.contains("recorder-0 is not archived") && !errors.contains("recorder-1"), "{errors}");
    let archived = ran.json();
    assert_eq!(
        (&archived["recorder"], archived["days"].as_array().unwrap().len()),
        (&json!("recorder-1"), 2)
    );
}

/// Where each recorder's log begins.
fn begins(exchange: &Exchange) -> Vec<u64> {
    let released = |id| MarksReader::open(&exchange.layout().recorder_log(id)).unwrap().stats().released.0;
    exchange.config().recorder_ids().map(released).collect()
}

/// Where each recorder's files of a day end.
fn ends(exchange: &Exchange, day: &str) -> Vec<u64> {
    let end = |id| {
        let all = pares_archive::Days::new(&exchange.layout().recorder_log(id), &[]).manifests().unwrap();
        all.into_iter().find(|manifest| manifest.day == day).map_or(0, |manifest| manifest.until)
    };
    exchange.config().recorder_ids().map(end).collect()
}

/// Four days, the first of which leaves an order behind; all are closed.
fn trade_four_days(exchange: &mut Exchange) {
    let stays = exchange.client(0, 9).submit_and_wait(&good_till_cancelled(1, 2_230_000)).unwrap();
    assert_eq!(stays.status, Status::Resting);
    for (day, name) in (23..27).zip((1..).step_by(100)) {
        trade_a_day(exchange, &format!("2026-11-{day}"), name..name + 100);
    }
    eventually("all recorders have closed the last day", || {
        exchange.tick();
        ends(exchange, "2026-11-26").iter().all(|end| *end > 0)
    });
}

/// A system that keeps a day beside the last, and has four.
fn four_days() -> Exchange {
    let mut exchange = Exchange::start(&SystemConfig { retention_days: 1, checkpoint_every: 8, ..small(2) });
    trade_four_days(&mut exchange);
    exchange
}

/// Member 5 asks until it is so. It is refused, and recorded: checkpoints come with the traffic.
fn eventually_with_traffic(exchange: &mut Exchange, what: &str, mut is_so: impl FnMut(&Exchange) -> bool) {
    static NAME: AtomicU64 = AtomicU64::new(1);
    let mut other = exchange.client(0, 5);
    eventually(what, || {
        exchange.tick();
        let name = NAME.fetch_add(1, Ordering::Relaxed);
        for instrument in [1, 3] {
            other
                .submit_and_wait(&limit(
                    2 * name + u64::from(instrument),
                    instrument,
                    Side::Buy,
                    1,
                    2_230_000,
                ))
                .unwrap();
        }
        is_so(exchange)
    });
}

/// A directory to archive in; a bucket, if `PARES_TEST_BUCKET` names one and this is a program that can: `cargo xtask s3` sees to both.
fn archive_in(dir: &Path) -> String {
    std::env::var("PARES_TEST_BUCKET").unwrap_or_default() + &dir.display().to_string()
}

/// Archives days, and waits until each recorder has dropped all up to one of them.
fn archive_and_wait(exchange: &mut Exchange, archive: &str, archived: &[&str], dropped: &str) {
    for day in archived {
        let command = format!("archive --to {archive} --day {day}");
        exchange.pares(&command).done();
    }
    // A day goes once all shards have checkpoints behind it.
    eventually_with_traffic(exchange, "the day is dropped", |exchange| {
        begins(exchange) == ends(exchange, dropped)
    });
}

#[test]
fn what_is_archived_and_old_is_dropped_and_all_start_without_it() {
    let mut exchange = four_days();
    let scratch = tempfile::tempdir().unwrap();
    let archive = archive_in(scratch.path());
    let trades = |exchange: &Exchange, archive: &str| {
        json(exchange, &format!("history trades --recorder 0 --limit 1000 {archive}")).1
    };
    let before = trades(&exchange, "");
    assert_eq!(before["trades"].as_array().unwrap().len(), 400);
    // The day after it is not archived; then the last day and the one before it are kept.
    archive_and_wait(&mut exchange, &archive, &["2026-11-23", "2026-11-25"], "2026-11-23");
    archive_and_wait(&mut exchange, &archive, &["2026-11-24", "2026-11-26"], "2026-11-24");

    let (reason, oldest) = stream(&exchange, 7, 1);
    assert!(reason == Reason::NotKept && oldest > 1, "{reason}: {oldest}");
    assert_eq!(stream(&exchange, 7, oldest).0, Reason::None, "all that is kept is told");
    let repeat = exchange.client(0, 7).submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200));
    assert!(matches!(repeat, Err(ClientError::Rejected(Reason::TooOld))), "{repeat:?}");

    let archive = format!("--archive {archive}");
    assert_eq!(trades(&exchange, &archive), before, "of the archive and the log");
    assert_eq!(trades(&exchange, &archive), before, "of the index");
    std::fs::remove_file(exchange.layout().root().join("history-0.sqlite")).unwrap();
    assert_eq!(trades(&exchange, "")["trades"].as_array().unwrap().len(), 200, "without the archive");

    for node in [gateway(1), venue(0), recorder(1)] {
        assert!(exchange.kill(node));
        exchange.wait_until_up();
    }
    exchange.stop();
    exchange.start_again();
    assert_eq!(begins(&exchange), ends(&exchange, "2026-11-24"), "nothing more is gone");
    assert_eq!(json(&exchange, "day report 2026-11-26").0, Some(0));
    assert_eq!(json(&exchange, "admin day begin 2026-11-27").0, Some(0));
    let mut seller = exchange.client(1, 7);
    let first = seller.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    assert_eq!(first.reason, Reason::DuplicateRequest, "never executed again; the first answer is dropped");
    let filled = seller.submit_and_wait(&limit(1_000, 1, Side::Sell, 5, 2_230_000)).unwrap();
    assert_eq!(filled.status, Status::Filled, "the order that was good till cancelled");
    assert_eq!(stream(&exchange, 7, 1), (Reason::NotKept, oldest));
    exchange.kill(venue(1));
    exchange.wait_until_up();
    let filled = seller.submit_and_wait(&limit(1_001, 1, Side::Sell, 5, 2_238_200)).unwrap();
    assert_eq!(filled.status, Status::Resting);
}

/// Of each shard the first position in a recorder's log, and the one behind the last.
fn kept(exchange: &Exchange, id: u16) -> BTreeMap<ShardId, (u64, u64)> {
    let mut kept = BTreeMap::new();
    let Ok(mut log) = pares_log::Reader::at_start(&exchange.layout().recorder_log(RecorderId(id))) else {
        return kept;
    };
    while let Ok(Some(entry)) = log.next() {
        let Ok(record) = ResultRecord::read(entry.payload) else { continue };
        let at = record.position().0;
        let (_, end) = kept.entry(record.shard()).or_insert((at, at));
        assert_eq!(*end, at, "recorder {id} has a gap");
        *end += 1;
    }
    kept
}

/// Of which shards a recorder has checkpoints.
fn checkpoints(exchange: &Exchange, id: u16) -> BTreeSet<String> {
    let dir = std::fs::read_dir(exchange.layout().recorder_log(RecorderId(id)).join("checkpoints"));
    let names = dir.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter_map(|name| Some(name.strip_suffix(".ckpt")?.split_once('-')?.0.to_owned())).collect()
}

/// Takes recorders' disks away while they are dead.
fn wipe(exchange: &Exchange, ids: &[u16]) {
    for id in ids {
        // A process that was just killed may be making its last file.
        let dir = exchange.layout().recorder_log(RecorderId(*id));
        eventually("the disk is empty", || std::fs::remove_dir_all(&dir).is_ok() || !dir.exists());
    }
}

#[test]
fn wiped_recorders_are_refilled_with_retained_records() {
    let mut exchange = four_days();
    let (scratch, dir) = (tempfile::tempdir().unwrap(), exchange.dir());
    let days = ["2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26"];
    archive_and_wait(&mut exchange, &archive_in(scratch.path()), &days, "2026-11-24");
    let first = |exchange: &Exchange, id| {
        kept(exchange, id).into_values().map(|(first, _)| first).collect::<Vec<_>>()
    };
    let begin = first(&exchange, 0);
    assert!(begin.iter().all(|first| *first > 0), "{begin:?}");
    let are_filled = |exchange: &Exchange, ids: &[u16]| {
        ids.iter().all(|id| first(exchange, *id) == begin && kept(exchange, *id) == kept(exchange, 0))
    };

    // What venues have in their logs of this life no recorder needs from another.
    exchange.stop();
    exchange.start_again();
    exchange.look_away(true);
    exchange.kill(recorder(1));
    wipe(&exchange, &[1]);
    exchange.look_away(false);
    eventually_with_traffic(&mut exchange, "it is filled", |exchange| are_filled(exchange, &[1]));

    // All but one, and one that was not there before.
    exchange.stop();
    wipe(&exchange, &[1]);
    let more = SystemConfig { recorders: 3, ..exchange.config().clone() };
    std::fs::write(exchange.layout().config(), more.text()).unwrap();
    let mut exchange = Exchange::start_in(dir, &more);
    eventually_with_traffic(&mut exchange, "both are filled and have checkpoints", |exchange| {
        are_filled(exchange, &[1, 2]) && checkpoints(exchange, 1).len() == begin.len()
    });
    for node in [gateway(1), venue(0), recorder(1)] {
        assert!(exchange.kill(node));
        exchange.wait_until_up();
    }

    // The one that filled them.
    exchange.stop();
    wipe(&exchange, &[0]);
    exchange.start_again();
    eventually_with_traffic(&mut exchange, "it is filled", |exchange| are_filled(exchange, &[1, 2]));
    (0..3).for_each(|_| assert_eq!(stream(&exchange, 7, 1).0, Reason::NotKept));
    assert_eq!(json(&exchange, "admin day begin 2026-11-27").0, Some(0));
    let filled = exchange.client(1, 7).submit_and_wait(&limit(1_000, 1, Side::Sell, 5, 2_230_000)).unwrap();
    assert_eq!(filled.status, Status::Filled, "the order that was good till cancelled");
}

/// Takes a recorder's disk away while the others trade, and waits until an operator may take the next one.
fn replace_disk(exchange: &mut Exchange, id: u16) {
    let before = kept(exchange, id);
    exchange.look_away(true);
    exchange.kill(recorder(id));
    wipe(exchange, &[id]);
    exchange.look_away(false);
    eventually("it is filled, and nothing is wrong", || {
        exchange.tick();
        kept(exchange, id) == before && exchange.pares("stat").is_ok()
    });
}

/// What may happen to an operator who did not wait, and what helps.
fn lose_checkpoints_and_put_a_disk_back(exchange: &mut Exchange, old: &Path) {
    let dir = |id| exchange.layout().recorder_log(RecorderId(id));
    let copied = Process::new("cp").arg("-r").arg(dir(0)).arg(old).status().unwrap();
    assert!(copied.success());
    (0..2).for_each(|id| std::fs::remove_dir_all(dir(id).join("checkpoints")).unwrap());
    exchange.start_again();
    let stat = exchange.pares("stat");
    assert_eq!(stat.status, Some(4), "{stat:?}");
    eventually("the venues go on without those shards", || exchange.counter(venue(0), "shards_away") == 2);
    assert!(exchange.complaints().contains("shard 1 cannot start: no checkpoint of it is readable"));
    assert!(checkpoints(exchange, 0).is_empty() && checkpoints(exchange, 1).is_empty());
    exchange.stop();
    let dir = exchange.layout().recorder_log(RecorderId(0));
    std::fs::remove_dir_all(&dir).unwrap();
    std::fs::rename(old.join("recorder-0"), &dir).unwrap();
    exchange.start_again();
}

#[test]
fn serial_disk_replacement_keeps_quiet_shard_state() {
    let mut exchange = Exchange::start(&SystemConfig { retention_days: 1, checkpoint_every: 8, ..small(1) });
    let mut member = exchange.client(0, 9);
    let mut order = good_till_cancelled(1, 2_230_000);
    if let ClientRequest::Enter { instrument, client_order_id, .. } = &mut order {
        (*instrument, *client_order_id) = (InstrumentId(3), ClientOrderId(2));
    }
    assert_eq!(member.submit_and_wait(&order).unwrap().status, Status::Resting);
    trade_four_days(&mut exchange);
    let archive = tempfile::tempdir().unwrap();
    let days = ["2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26"];
    archive_and_wait(&mut exchange, &archive_in(archive.path()), &days, "2026-11-24");
    assert!(kept(&exchange, 0).values().all(|(first, _)| *first > 0), "nobody has the beginning");
    // From here on nothing happens in any shard, so no venue takes a checkpoint.
    exchange.stop();
    exchange.start_again();

    let old = tempfile::tempdir().unwrap();
    for id in [0, 1, 0] {
        replace_disk(&mut exchange, id);
        assert_eq!(checkpoints(&exchange, id).len(), 2, "of both shards");
    }
    exchange.stop();
    lose_checkpoints_and_put_a_disk_back(&mut exchange, old.path());
    assert_eq!(json(&exchange, "admin day begin 2026-11-27").0, Some(0));
    for instrument in [1, 3] {
        let sell = limit(1_000 + u64::from(instrument), instrument, Side::Sell, 5, 2_230_000);
        let filled = exchange.client(0, 7).submit_and_wait(&sell).unwrap();
        assert_eq!(filled.status, Status::Filled, "the order that was good till cancelled: {instrument}");
    }
    assert!(!exchange.layout().recorder_log(RecorderId(0)).join("checkpoints/1-0.ckpt").exists());
}

/// Why a member does not receive its stream of the first shard from a number on, and from which number it can; else what it receives next.
fn stream(exchange: &Exchange, member: u32, from: u64) -> (Reason, u64) {
    let mut client = exchange.client(0, member);
    client.resume(Some(ShardId(0)), from).unwrap();
    client.flush().unwrap();
    let mut told = None;
    eventually("the member hears of its stream", || {
        client
            .poll(|update| match update {
                Update::NotResumed { reason, oldest, .. } => told = Some((reason, oldest)),
                Update::Resumed { next, .. } => told = Some((Reason::None, next)),
                _ => {}
            })
            .unwrap();
        told.is_some()
    });
    told.unwrap()
}

#[test]
fn a_running_system_is_backed_up_and_started_from_the_copy() {
    let mut exchange = Exchange::start(&small(1));
    trade_a_day(&mut exchange, "2026-11-23", 1..20);
    let (scratch, copied) = (tempfile::tempdir().unwrap(), Arc::new(tempfile::tempdir().unwrap()));
    let (backup, copy) = (scratch.path().join("backup"), copied.path().to_owned());
    exchange.pares(&format!("backup {}", backup.display())).done();
    pares(&copy, &format!("restore {}", backup.display())).done();
    let report = |dir: &Path| pares(dir, "day report 2026-11-23 --json").done();
    assert_eq!(report(&copy), report(exchange.layout().root()), "hashes, totals, statistics");
    let again = Exchange::start_in(copied, exchange.config());
    let mut member = again.client(0, 7);
    let first = member.submit_and_wait(&limit(1, 1, Side::Sell, 5, 2_238_200)).unwrap();
    assert!(first.repeat, "it remembers what it had answered");
    assert_eq!(json(&again, "admin day begin 2026-11-24").0, Some(0));
}

#[test]
fn two_gateways_begin_one_day_by_the_timetable() {
    let day = Some(DayConfig { begin: "00:00".into(), end: "00:00".into(), weekends: true });
    let mut exchange = Exchange::start(&SystemConfig { day, ..small(2) });
    eventually("the day has begun", || {
        exchange.tick();
        let records = record::of_recorder(&exchange, pares_types::RecorderId(0));
        records.values().all(|shard| {
            let accepted = shard.iter().filter(|one| one.outcome.status == Status::Accepted);
            accepted
                .filter(|one| matches!(one.request.command, pares_types::Command::BeginDay { .. }))
                .count()
                == 1
        })
    });
    let mut member = exchange.client(1, 7);
    assert_eq!(member.submit_and_wait(&good_till_cancelled(1, 2_230_000)).unwrap().status, Status::Resting);
}
