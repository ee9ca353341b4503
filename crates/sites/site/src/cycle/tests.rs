//! The duty cycle of one site, in memory.

mod proposing;
mod sessions;
mod status_messages;

use std::sync::Arc as Shared;
use std::sync::atomic::Ordering;

use pares_wice::{Body, ClusterId, Command, Entry, Era, Key, LogEntry, Message, Status, Write};

use super::effects::payloads;
use super::*;
use crate::backup::messages::{Handed, HandedVersions};
use crate::comparison::Said;
use crate::protocol::{Code, Horizon, Reply, WantedPieces};
use crate::testing::{Machine, TestSite};

const ID: TransactionId = TransactionId { client: 1, sequence: 1 };

fn execute(sequence: u64, request: &str) -> Ask {
    execute_seeing(sequence, Horizon::default(), request)
}

fn execute_seeing(sequence: u64, seen: Horizon, request: &str) -> Ask {
    Ask::Execute(TransactionId { sequence, ..ID }, seen, request.into())
}

fn read(tag: u64, request: &str) -> Ask {
    Ask::Read(tag, Horizon::default(), request.into())
}

fn done(body: &str, version: u64) -> Option<Reply> {
    Some(Reply { to: 1, code: Code::Done, horizon: seen(version), body: body.into() })
}

/// What a client of the test's database has seen.
fn seen(version: u64) -> Horizon {
    Horizon::of(crate::testing::IDENTITY, Version(version))
}

#[test]
fn a_request_is_executed_and_a_repeat_is_told_the_same() {
    let (machine, mut site) = Machine::with_site(&[1]);
    let add = execute(1, "noted n add a 5");
    assert_eq!(machine.ask(&mut site, &add), done("5 added to a", 1));
    assert_eq!(machine.ask(&mut site, &add), done("5 added to a", 1));
    assert_eq!(machine.ask(&mut site, &read(1, "get n")), done("1", 1));
}

/// Of a site's directory everything is put back to an old copy, and its store is not.
#[test]
fn old_log_under_newer_store_ends_site_without_source() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.ask(&mut site, &execute(1, "add a 5"));
    drop(site);
    let (disk, notes) = (machine.disk.copy(), machine.notes.borrow().clone());
    let mut site = machine.begin(&[1]).unwrap();
    machine.pass(&mut site, 3);
    for sequence in 2..5 {
        machine.ask(&mut site, &execute(sequence, "add a 5"));
    }
    drop(site);
    machine.notes.replace(notes);
    let mut machine = machine;
    machine.disk = disk;
    let mut site = machine.begin(&[1]).unwrap();
    let ended = (0..100).find_map(|_| {
        machine.now.set(machine.now.get() + TICK);
        site.turn(Duration::ZERO).err()
    });
    let (stored, delivered) = (Version(4), Version(1));
    let ended = ended.expect("it does not wait for ever");
    assert!(
        matches!(ended, ProcessError::Ahead { stored: s, delivered: d } if (s, d) == (stored, delivered)),
        "{ended}"
    );
    assert!(ended.is_damage());
}

fn turn(site: &mut TestSite) {
    site.turn(Duration::ZERO).unwrap();
}

#[test]
fn a_read_sees_what_was_stable_when_it_came_or_waits_for_it() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.pass(&mut site, 3);
    machine.client_sent(&execute(1, "add a 5").to_bytes());
    turn(&mut site);
    assert_eq!(machine.heard(), done("5 added to a", 1));
    machine.client_sent(&read(1, "get a").to_bytes());
    turn(&mut site);
    assert!(site.report().stored < site.report().stable);
    machine.step(); // the batch; the read waits for it
    assert_eq!(machine.told_client(), 0);
    turn(&mut site);
    machine.step();
    turn(&mut site);
    assert_eq!(machine.heard(), done("5", 1));
}

#[test]
fn more_reads_than_a_site_holds_are_refused() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.ask(&mut site, &execute(1, "add a 5"));
    for tag in 1..=3 {
        machine.client_sent(&read(tag, "get a").to_bytes());
    }
    turn(&mut site);
    assert_eq!(machine.heard().map(|reply| (reply.to, reply.code)), Some((3, Code::Busy)));
    machine.pass(&mut site, 3);
    let told = [machine.heard(), machine.heard()].map(|reply| reply.unwrap());
    assert_eq!(told.map(|reply| (reply.to, reply.code)), [(2, Code::Done), (1, Code::Done)]);
    assert_eq!(machine.ask(&mut site, &read(1, "get a")), done("5", 1));
}

#[test]
fn store_without_snapshot_refuses_read_and_stays_up() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.ask(&mut site, &execute(1, "add a 5"));
    machine.busy.store(true, Ordering::Relaxed);
    let refused = machine.ask(&mut site, &read(1, "get a")).unwrap();
    assert_eq!(refused.code, Code::Busy);
    machine.busy.store(false, Ordering::Relaxed);
    assert_eq!(machine.ask(&mut site, &read(1, "get a")), done("5", 1));
}

#[test]
fn what_was_answered_is_there_after_a_crash() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.ask(&mut site, &execute(1, "add a 5"));
    drop(site);
    machine.disk.crash(0);
    let mut site = machine.begin(&[1]).unwrap();
    machine.pass(&mut site, 3);
    assert_eq!(machine.ask(&mut site, &read(1, "get a")), done("5", 1));
}

#[test]
fn a_log_that_cannot_be_synced_ends_the_site() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.pass(&mut site, 3);
    machine.disk.fail_in(0);
    machine.client_sent(&execute(1, "add a 5").to_bytes());
    assert!(matches!(site.turn(Duration::ZERO), Err(ProcessError::Log(_))));
}

#[test]
fn store_damage_ends_site_without_wrong_answers() {
    let (machine, mut site) = Machine::with_site(&[1]);
    for (sequence, request) in [(1, "add a 1000"), (2, "add b 1000")] {
        machine.ask(&mut site, &execute(sequence, request)).unwrap();
    }
    let stored = site.report().delivered;
    let reads = ["get a", "sum", "list - - 9", "digest"].map(|request| read(3, request));
    let changes = ["transfer a b 300", "add a 1"].map(|change| execute(3, change));
    for ask in changes.into_iter().chain(reads) {
        machine.pass(&mut site, 8);
        assert_eq!((site.report().stored, machine.told_client()), (stored, 0));
        machine.rotten.store(true, Ordering::Relaxed);
        machine.client_sent(&ask.to_bytes());
        let turn = |_| {
            let ended = site.turn(Duration::ZERO).err();
            machine.step();
            ended
        };
        let ended = (0..8).find_map(turn).unwrap();
        assert!(matches!(ended, ProcessError::Store(_)) && ended.is_damage(), "{ended}");
        assert_eq!(machine.told_client(), 0, "{ask:?}");
        machine.rotten.store(false, Ordering::Relaxed);
        drop(site);
        site = machine.begin(&[1]).unwrap();
    }
    machine.pass(&mut site, 8);
    assert_eq!(site.report().delivered, stored, "nothing of it was certified");
}

#[test]
fn each_start_counts_and_a_torn_count_is_refused() {
    let machine = Machine::default();
    for _ in 0..3 {
        machine.begin(&[1]).unwrap();
    }
    assert_eq!(machine.notes.borrow()["life"], b"3\n");
    machine.notes.borrow_mut().insert("life".into(), Vec::new());
    let refused = machine.begin(&[1]).err().expect("nobody knows how many there were").to_string();
    assert!(refused.contains("the file `life` contains \"\""), "{refused}");
}

#[test]
fn an_application_that_sends_no_question_is_closed() {
    let (machine, mut site) = Machine::with_site(&[1]);
    machine.client_sent(&[9, 9]);
    machine.pass(&mut site, 1);
    assert!(machine.wire.closed.get());
}

#[test]
fn a_process_that_was_stopped_makes_up_for_two_ticks_only() {
    let machine = Machine::default();
    let mut site = machine.cycle(&[1]);
    machine.now.set(Duration::from_secs(60));
    site.turn(Duration::ZERO).unwrap();
    assert_eq!(site.ticks, 3);
}

#[test]
fn frames_that_mean_nothing_here_change_nothing() {
    let (machine, mut site) = Machine::with_site(&[1, 1]);
    machine.pass(&mut site, 5);
    let before = site.report();
    let last = Entry {
        version: Version(u64::MAX),
        era: Era::default(),
        body: Body::Configure(site.rules().unwrap().configuration()),
    };
    let messages = [
        Message::Stream { era: Era::default(), entries: vec![Shared::new(last)] },
        Message::Rewind { era: Era::default(), keep: Version(u64::MAX) },
    ];
    let last = Era { takeovers: u32::MAX, number: u32::MAX, by: ClusterId(1) };
    let status = Status {
        site: SiteId::new(1, 0),
        term: Term(u64::MAX),
        serial: u64::MAX,
        eras: vec![(Era::default(), Version(0))],
        promised: last,
        delivered: Version(u64::MAX),
        received: Version(u64::MAX),
        is_whole: true,
        ..Status::default()
    };
    let messages = messages.into_iter().chain([Message::Status(status)]);
    for message in messages.chain([Message::Rewind { era: last, keep: Version(0) }]) {
        machine.site_sent(&Between::Rules(&message.to_bytes()));
    }
    machine.site_sent(&Between::Rules(b"nothing"));
    machine.site_sent(&Between::Log(b"nothing"));
    machine.site_sent(&Between::Forwarded(ID, Code::Done, Version(9), b"nobody asked"));
    machine.pass(&mut site, 5);
    assert_eq!(site.report(), before);
}

#[test]
fn a_decision_that_cannot_be_is_refused_with_its_reason() {
    let (machine, mut site) = Machine::with_site(&[1, 1]);
    machine.pass(&mut site, 3);
    let refused = machine.ask(&mut site, &Ask::Operate(1, Command::Migrate(ClusterId(0)))).unwrap();
    assert_eq!((refused.code, &refused.body[..]), (Code::Impossible, &b"this is already the case"[..]));
}

#[test]
fn payloads_hold_all_entries_in_order_and_fit_a_record() {
    let entry = |version: u64| {
        let writes = vec![Write::put(pares_wice::Key::from("k"), pares_wice::Value::new(vec![0; 100_000]))];
        let id = TransactionId { client: 1, sequence: version };
        let body = Body::Update { id, attempt: 1, writes };
        let entry = Entry { version: Version(version), era: Era::default(), body };
        LogEntry::Stream { era: Era::default(), entry: Shared::new(entry) }
    };
    let entries: Vec<LogEntry> = (1..6).map(entry).collect();
    let all = payloads(entries.clone());
    assert_eq!(all.len(), 3);
    assert!(all.iter().flat_map(|(_, entries)| entries).eq(&entries));
    let read: Vec<LogEntry> =
        all.iter().flat_map(|(payload, _)| Vec::<LogEntry>::from_bytes(payload).unwrap()).collect();
    assert_eq!(read, entries);
    assert!(payloads(Vec::new()).is_empty());
}

/// Site 1.0 and 2.0 say the same of version 1, and it is not what this site has.
fn others_differ(machine: &Machine, site: &mut TestSite, seconds: u32) -> Option<ProcessError> {
    let ids = [SiteId::new(1, 0), SiteId::new(2, 0)];
    for _ in 0..seconds {
        for (id, other) in [(ids[0], ids[1]), (ids[1], ids[0])] {
            let said = Said { version: Version(1), digest: 7, agrees: vec![other] };
            machine.wire.site_says(number_of(id), Word::Digest(said).to_bytes(pares_link::SPEAKS));
        }
        for _ in 0..100 {
            machine.now.set(machine.now.get() + TICK);
            if let Err(ended) = site.turn(Duration::ZERO) {
                return Some(ended);
            }
            machine.step();
        }
    }
    None
}

#[test]
fn minority_site_ends_until_its_directory_is_moved() {
    let mut machine = Machine::default();
    machine.begins = Version(1);
    let stored = Stored { version: Version(1), position: 0, era: Era::default(), digest: 6 };
    machine.fill_store(&stored);
    let mut site = machine.begin(&[1, 1, 1]).unwrap();
    let ended = others_differ(&machine, &mut site, 8).expect("it is alone");
    assert!(matches!(ended, ProcessError::Differs { version: Version(1) }) && ended.is_damage(), "{ended}");
    assert!(ended.to_string().contains("move the whole directory"), "{ended}");
    drop(site);
    let again = machine.begin(&[1, 1, 1]).err().expect("it does not serve again");
    assert!(matches!(again, ProcessError::Differs { version: Version(1) }), "{again}");
    assert!(Machine::default().begin(&[1, 1, 1]).is_ok(), "a directory without a past");
}

#[test]
fn a_site_says_what_it_has_applied_and_who_differs() {
    let mut machine = Machine::default();
    machine.begins = Version(1);
    let stored = Stored { version: Version(1), position: 0, era: Era::default(), digest: 6 };
    machine.fill_store(&stored);
    let mut site = machine.begin(&[1, 1]).unwrap();
    let said = Said { version: Version(1), digest: 7, agrees: Vec::new() };
    machine.wire.site_says(0x0100, Word::Digest(said).to_bytes(pares_link::SPEAKS));
    machine.pass(&mut site, 800);
    assert_eq!(site.report().differing, ["1.0 differs up to version 1"]);
    assert!(site.notices().any(|notice| notice == Notice::Differs(SiteId::new(1, 0), Version(1))));
    let own = Word::Digest(Said { version: Version(1), digest: 6, agrees: Vec::new() })
        .to_bytes(pares_link::SPEAKS);
    assert!(machine.wire.to_sites.borrow().contains(&(0x0100, own)));
}

#[test]
fn versions_handed_out_as_stored_with_digests() {
    let (machine, mut site) = Machine::with_site(&[1]);
    for sequence in 1..=3 {
        assert!(machine.ask(&mut site, &execute(sequence, "add a 5")).is_some());
    }
    let mut handed = |after| {
        let reply = machine.ask(&mut site, &Ask::Versions(9, Version(after))).unwrap();
        assert_eq!((reply.to, reply.code), (9, Code::Done));
        HandedVersions::from_bytes(&reply.body).unwrap()
    };
    let (all, rest) = (handed(0), handed(2));
    let versions = all.versions.unwrap();
    assert_eq!(versions.iter().map(|handed| handed.entry.version.0).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(versions.iter().all(|handed| handed.digest.is_some()) && all.stored == Version(3));
    assert_eq!(rest.before, versions[1].digest);
    let last = &rest.versions.unwrap()[0];
    assert_eq!((&last.entry, last.digest), (&versions[2].entry, versions[2].digest));
    assert_eq!(handed(3).versions, Some(vec![]));
    assert_eq!(handed(u64::MAX).versions, Some(vec![]), "what nobody has yet");
}

#[test]
fn a_copy_comes_in_pieces_and_no_further_than_it_was_asked_for() {
    let (machine, mut site) = Machine::with_site(&[1]);
    let big = "v".repeat(100 << 10);
    for sequence in 1..=4 {
        let put = execute(sequence, &format!("put big/{sequence} {big}"));
        assert!(machine.ask(&mut site, &put).is_some());
    }
    let wanted = WantedPieces { copy: 0, next: 0, after: Key::new([]), until: 1 };
    machine.client_sent(&Ask::Copy(9, wanted.clone()).to_bytes());
    machine.pass(&mut site, 8);
    let told: Vec<Handed> = std::iter::from_fn(|| machine.heard())
        .map(|reply| Handed::from_bytes(&reply.body).unwrap())
        .collect();
    let [Handed::Piece(piece), Handed::Begun(begun)] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((begun.stored.version, piece.number, piece.is_last), (Version(4), 0, false));
    let unknown = Ask::Copy(9, WantedPieces { copy: begun.copy + 1, ..wanted.clone() });
    assert_eq!(machine.ask(&mut site, &unknown).map(|reply| reply.code), Some(Code::Impossible));
    *machine.wire.caller.borrow_mut() = Some("client-app".into());
    let denied = machine.ask(&mut site, &Ask::Copy(9, wanted));
    assert_eq!(denied.map(|reply| reply.code), Some(Code::Denied));
}
