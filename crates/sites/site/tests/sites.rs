//! Sites with real logs, stores and sockets.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::path::Path;
use std::time::Duration;

use common::{Engine, PATIENCE, Sites, done, report, until};
use pares_site::items::Items;
use pares_site::protocol::Code;
use pares_site::{CallError, Process, ProcessError, SitesConfig};
use pares_store::StoreError;
use pares_testbed::ports::free_address;
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

const A0: SiteId = SiteId::new(0, 0);
const B0: SiteId = SiteId::new(1, 0);

over_every_engine!(
    one_site_alone_executes_and_remembers,
    what_is_put_is_read_as_it_was_whatever_it_looks_like,
    a_request_repeated_is_done_once,
    a_note_says_how_often_a_request_was_executed,
    two_clusters_have_the_same_and_either_can_ask,
    a_request_is_not_refused_at_one_site_and_done_at_another,
    a_refusal_repeated_stays_one,
    a_cluster_declared_lost_is_not_waited_for_and_comes_back,
    a_log_is_let_go_of_and_a_site_that_was_away_gets_a_copy,
    a_site_that_lost_its_disk_is_filled_and_votes_again,
    empty_certifier_cluster_returns_after_declared_lost,
);

fn is_refused(said: &Result<Vec<u8>, CallError>) -> bool {
    matches!(said, Err(CallError::No { code: Code::Refused, .. }))
}

fn one_site_alone_executes_and_remembers(engine: Engine) {
    let Some(mut sites) = Sites::start_over(engine, 1, 1) else { return };
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"add alice 100", PATIENCE));
    assert_eq!(done(client.execute(b"transfer alice bob 30", PATIENCE)), "alice has 70 left");
    assert_eq!(done(client.read(b"get bob", PATIENCE)), "30");
    let refused = client.execute(b"transfer alice bob 71", PATIENCE);
    assert!(is_refused(&refused), "{refused:?}");
    sites.restart(A0);
    assert_eq!(done(client.execute(b"get alice", PATIENCE)), "70");
    assert_eq!(done(client.read(b"sum", PATIENCE)), "2 100");
}

fn what_is_put_is_read_as_it_was_whatever_it_looks_like(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 1, 1) else { return };
    let mut client = sites.client(1, &[A0]);
    for (put, read) in [
        ("sixteen_bytes___", "sixteen_bytes___"),
        ("two words,  and more", "two words,  and more"),
        ("12", "12"),
        ("\"12\"", "12"),
    ] {
        let request = format!("put it {put}");
        assert_eq!(done(client.execute(request.as_bytes(), PATIENCE)), format!("it is {put}"));
        assert_eq!(done(client.read(b"get it", PATIENCE)), read);
    }
    let refused = client.execute(b"add it 1", PATIENCE);
    assert!(is_refused(&refused), "text is no counter: {refused:?}");
    done(client.execute(b"noted note/1 put other two words", PATIENCE));
    assert_eq!(done(client.read(b"get other", PATIENCE)), "two words");
    done(client.execute(b"put put 5", PATIENCE));
    done(client.execute(b"transfer put x 2", PATIENCE));
    assert_eq!(done(client.read(b"get put", PATIENCE)), "3");
}

fn a_request_repeated_is_done_once(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 1, 1) else { return };
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"add alice 100", PATIENCE));
    assert_eq!(done(client.execute(b"transfer alice bob 30", PATIENCE)), "alice has 70 left");
    assert_eq!(done(client.execute_again(b"transfer alice bob 30", PATIENCE)), "alice has 70 left");
    assert_eq!(done(client.read(b"get alice", PATIENCE)), "70");
}

fn a_note_says_how_often_a_request_was_executed(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 1, 1) else { return };
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"add alice 100", PATIENCE));
    assert_eq!(done(client.execute(b"noted note/1 transfer alice bob 30", PATIENCE)), "alice has 70 left");
    assert_eq!(
        done(client.execute_again(b"noted note/1 transfer alice bob 30", PATIENCE)),
        "alice has 70 left"
    );
    client.execute(b"noted note/2 transfer alice bob 300", PATIENCE).unwrap_err();
    done(client.execute(b"noted note/3 add bob 1", PATIENCE));
    assert_eq!(done(client.read(b"list note/ - 9", PATIENCE)), "note/1 1\nnote/3 1\n");
    assert_eq!(done(client.read(b"list note/ note/1 1", PATIENCE)), "note/3 1\n");
    assert_eq!(done(client.read(b"list note/ note/3 1", PATIENCE)), "");
    client.read(b"list note/ alice 1", PATIENCE).unwrap_err();
    let before = done(client.read(b"digest", PATIENCE));
    done(client.execute(b"put bob x", PATIENCE));
    assert_ne!(done(client.read(b"digest", PATIENCE)), before);
}

#[test]
fn several_requests_together_are_one_transaction() {
    let sites = Sites::start(1, 1);
    let mut client = sites.client(1, &[A0]);
    let reply =
        done(client.execute(b"together append list 7; append list 8; get list; add alice 5", PATIENCE));
    assert_eq!(reply, "7 appended to list\n8 appended to list\n7 8\n5 added to alice\n");
    let refused = client.execute(b"together append list 9; transfer alice bob 6", PATIENCE);
    assert!(is_refused(&refused), "{refused:?}");
    client.execute(b"together append list 9; together get list", PATIENCE).unwrap_err();
    client.execute(b"append alice 9", PATIENCE).unwrap_err();
    assert_eq!(done(client.read(b"together get list; get alice", PATIENCE)), "7 8\n5\n");
}

fn two_clusters_have_the_same_and_either_can_ask(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 2, 2) else { return };
    let mut here = sites.client(1, &[A0]);
    let mut there = sites.client(2, &[B0]);
    done(here.execute(b"add alice 100", PATIENCE));
    for round in 1..=5 {
        done(there.execute(b"transfer alice bob 10", PATIENCE));
        let left = format!("alice has {} left", 100 - round * 15);
        assert_eq!(done(here.execute(b"transfer alice carol 5", PATIENCE)), left);
    }
    // The site that is asked may be the one of its cluster that has the last one a moment later.
    until(|| done(there.execute(b"get alice", PATIENCE)) == "25");
}

/// The first attempt commits at a site that no other hears of, and its client asks another, which knows less and would refuse.
fn a_request_is_not_refused_at_one_site_and_done_at_another(engine: Engine) {
    let short = Duration::from_secs(1);
    let Some(mut sites) = Sites::start_over(engine, 2, 1) else { return };
    let mut first = sites.client(1, &[A0]);
    done(first.execute(b"add carol 1", PATIENCE));
    sites.stop(B0);
    let mut client = sites.client(2, &[A0]);
    let before = report(&mut first).delivered;
    assert!(matches!(first.execute(b"add alice 100", short), Err(CallError::Silence(_))));
    until(|| report(&mut first).delivered > before);
    assert!(matches!(client.execute(b"transfer alice bob 30", short), Err(CallError::Silence(_))));
    until(|| report(&mut first).delivered > before + 1);
    sites.stop(A0);
    sites.run(B0);
    let mut client = sites.client(2, &[B0]); // the same number, and so the same request
    let again = client.execute(b"transfer alice bob 30", Duration::from_secs(2));
    assert!(matches!(again, Err(CallError::Silence(_))), "{again:?}");
    sites.run(A0);
    assert_eq!(done(client.execute_again(b"transfer alice bob 30", PATIENCE)), "alice has 70 left");
}

fn a_refusal_repeated_stays_one(engine: Engine) {
    let Some(sites) = Sites::start_over(engine, 1, 1) else { return };
    let (mut client, mut other) = (sites.client(1, &[A0]), sites.client(2, &[A0]));
    client.execute(b"transfer alice bob 30", PATIENCE).unwrap_err();
    done(other.execute(b"add alice 100", PATIENCE));
    let again = client.execute_again(b"transfer alice bob 30", PATIENCE);
    assert!(is_refused(&again), "{again:?}");
}

fn a_cluster_declared_lost_is_not_waited_for_and_comes_back(engine: Engine) {
    let Some(mut sites) = Sites::start_over(engine, 2, 1) else { return };
    let mut there = sites.client(1, &[B0]);
    done(there.execute(b"add alice 100", PATIENCE));
    sites.stop(A0);
    let lost = Command::DeclareLost(ClusterSet::default().with(ClusterId(0)));
    until(|| there.operate(lost, PATIENCE).is_ok());
    assert_eq!(done(there.execute(b"transfer alice bob 1", PATIENCE)), "alice has 99 left");
    sites.run(A0);
    until(|| there.operate(Command::Admit(ClusterId(0)), PATIENCE).is_ok());
    until(|| there.operate(Command::Migrate(ClusterId(0)), PATIENCE).is_ok());
    let mut here = sites.client(2, &[A0]);
    assert_eq!(done(here.execute(b"transfer alice bob 1", PATIENCE)), "alice has 98 left");
}

fn a_log_is_let_go_of_and_a_site_that_was_away_gets_a_copy(engine: Engine) {
    let Some(mut sites) = Sites::start_over(engine, 1, 3) else { return };
    let mut client = sites.client(1, &[A0, SiteId::new(0, 1)]);
    done(client.execute(b"put before here", PATIENCE));
    let away = SiteId::new(0, 2);
    sites.stop(away);
    // Until both that are left have let go of the log's beginning.
    sites.outgrow_logs(&mut client, &[A0, SiteId::new(0, 1)]);
    sites.run(away);
    let mut there = sites.client(2, &[away]);
    until(|| there.read(b"get before", PATIENCE).is_ok_and(|value| value == b"here"));
    done(there.execute(b"put after there", PATIENCE));
    client.has_seen(there.horizon());
    assert_eq!(done(client.execute(b"get after", PATIENCE)), "there");
}

/// Changes one bit in each copy of the value that consists of this byte.
fn rot(file: &Path, byte: u8) {
    let mut bytes = std::fs::read(file).unwrap();
    let copies: Vec<usize> = (1..bytes.len() - 1000)
        .filter(|at| bytes[at - 1] != byte && bytes[*at..at + 1000].iter().all(|other| *other == byte))
        .collect();
    assert!(!copies.is_empty());
    copies.into_iter().for_each(|at| bytes[at + 500] ^= 4);
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn site_with_damaged_store_refilled_after_move() {
    let mut sites = Sites::start(1, 3);
    let (peer, hurt) = (SiteId::new(0, 1), SiteId::new(0, 2));
    let store = sites.directory(hurt).join("store");
    let mut client = sites.client(1, &[A0, peer]);
    done(client.execute(format!("put long {}", "q".repeat(2000)).as_bytes(), PATIENCE));
    done(client.execute(b"add alice 1000", PATIENCE));
    // Until its log alone could not bring its store back any more.
    sites.outgrow_logs(&mut client, &[hurt]);
    sites.stop(hurt);
    rot(&store.join("items.redb"), b'q');
    let config = SitesConfig::load(&sites.dir).unwrap();
    let refused = || Process::open(&config, hurt, &sites.dir, Items).err().unwrap();
    for _ in 0..2 {
        let error = refused();
        assert!(error.is_damage() && error.to_string().contains("move the whole directory"), "{error}");
    }
    std::fs::remove_dir_all(&store).unwrap();
    let error = refused();
    assert!(matches!(error, ProcessError::Gap { .. }) && error.is_damage(), "{error}");
    assert_eq!(done(client.execute(b"transfer alice bob 300", PATIENCE)), "alice has 700 left");
    sites.lose_disk(hurt);
    sites.run(hurt);
    let mut there = sites.client(2, &[hurt]);
    until(|| there.read(b"get bob", PATIENCE).is_ok_and(|value| value == b"300"));
    assert_eq!(done(there.execute(b"transfer alice bob 100", PATIENCE)), "alice has 600 left");
    until(|| client.read(b"digest", PATIENCE).unwrap() == there.read(b"digest", PATIENCE).unwrap());
}

#[test]
fn site_with_wrong_certifier_setting_is_refused() {
    let mut sites = Sites::start(2, 1);
    sites.stop(B0);
    let mut config = SitesConfig::load(&sites.dir).unwrap();
    config.certifier = 1;
    std::fs::write(sites.dir.join("sites.toml"), config.to_text()).unwrap();
    sites.run(B0);
    let mut client = sites.client(1, &[B0]);
    let begun = std::time::Instant::now();
    loop {
        let report = report(&mut client);
        if report.refused.iter().any(|why| why.contains("0.0") && why.contains("`certifier`")) {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{report:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_server_that_is_away_is_no_damage_and_is_named() {
    let Some(mut sites) = Sites::start_over(Engine::Postgres, 1, 1) else { return };
    sites.stop(A0);
    let nowhere = tempfile::tempdir().unwrap();
    sites.config.store = Some(format!("postgres:///x?host={}&user=postgres", nowhere.path().display()));
    let error = Process::open(&sites.config, A0, &sites.dir, Items).err().unwrap();
    assert!(matches!(error, ProcessError::Store(StoreError::Io(_))) && !error.is_damage(), "{error}");
    assert!(error.to_string().contains("No such file") && error.to_string().contains("server"), "{error}");
}

#[test]
fn two_processes_never_write_one_database() {
    let Some(sites) = Sites::start_over(Engine::Postgres, 1, 1) else { return };
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"put a 1", PATIENCE));
    let other = tempfile::tempdir().unwrap();
    let mut config = sites.config.clone();
    let place = &mut config.sites[0];
    (place.peers, place.clients) = (free_address(), free_address());
    config.make_directories(other.path()).unwrap();
    let error = Process::open(&config, A0, other.path(), Items).err().unwrap();
    assert!(matches!(error, ProcessError::Store(StoreError::InUse(_))), "{error}");
}

fn a_site_that_lost_its_disk_is_filled_and_votes_again(engine: Engine) {
    let Some(mut sites) = Sites::start_over(engine, 1, 3) else { return };
    let [peer, hurt] = [1, 2].map(|number| SiteId::new(0, number));
    let mut client = sites.client(1, &[A0, peer]);
    for number in 0..50 {
        done(client.execute(format!("add account/{number} {}", number + 1).as_bytes(), PATIENCE));
    }
    for lost in [hurt, A0] {
        sites.stop(lost);
        sites.lose_disk(lost);
        sites.run(lost);
        let mut there = sites.client(10 + u64::from(lost.number), &[lost]);
        // Before it votes again, the cluster cannot afford to lose a second disk.
        until(|| report(&mut there).apart.is_none() && report(&mut there).votes);
        until(|| {
            there.read(b"digest", PATIENCE).is_ok_and(|own| own == client.read(b"digest", PATIENCE).unwrap())
        });
    }
    // Either of the two that lost their disks is a majority with the third.
    for stopped in [peer, hurt, A0] {
        // It may not have been let in to vote yet.
        until(|| [A0, peer, hurt].iter().all(|site| report(&mut sites.client(30, &[*site])).votes));
        sites.stop(stopped);
        let others: Vec<SiteId> = [A0, peer, hurt].into_iter().filter(|site| *site != stopped).collect();
        let mut there = sites.client(20 + u64::from(stopped.number), &others);
        done(there.execute(b"add account/0 1", PATIENCE));
        sites.run(stopped);
    }
    until(|| client.read(b"get account/0", PATIENCE).is_ok_and(|value| value == b"4"));
}

fn empty_certifier_cluster_returns_after_declared_lost(engine: Engine) {
    let Some(mut sites) = Sites::start_over(engine, 2, 2) else { return };
    let mut there = sites.client(1, &[B0]);
    done(there.execute(b"add alice 100", PATIENCE));
    let lost = [A0, SiteId::new(0, 1)];
    lost.into_iter().for_each(|site| sites.stop(site));
    lost.into_iter().for_each(|site| sites.lose_disk(site));
    // Directories as `pares site init` made them, put back by an operator who believes that they are all that is needed.
    SitesConfig::load(&sites.dir).unwrap().make_directories(&sites.dir).unwrap();
    lost.into_iter().for_each(|site| sites.run(site));
    let mut here = sites.client(2, &lost);
    let refused = here.execute(b"add alice 1", Duration::from_secs(2)).unwrap_err();
    assert!(!matches!(refused, CallError::No { code: Code::Done, .. }), "{refused}");
    assert!(report(&mut here).apart.is_some());
    let declared = Command::DeclareLost(ClusterSet::default().with(ClusterId(0)));
    let mut delegates = [B0, SiteId::new(1, 1)].map(|site| sites.client(3 + u64::from(site.number), &[site]));
    let mut told =
        |command| until(|| delegates.iter_mut().any(|delegate| delegate.operate(command, PATIENCE).is_ok()));
    told(declared);
    told(Command::Admit(ClusterId(0)));
    until(|| here.read(b"get alice", PATIENCE).is_ok_and(|value| value == b"100"));
    assert_eq!(done(here.execute(b"transfer alice bob 30", PATIENCE)), "alice has 70 left");
    until(|| here.read(b"digest", PATIENCE).unwrap() == there.read(b"digest", PATIENCE).unwrap());
}

#[test]
fn cluster_missing_most_disks_asks_to_be_declared_lost() {
    let mut sites = Sites::start(2, 3);
    done(sites.client(1, &[A0]).execute(b"add alice 100", PATIENCE));
    let lost = [SiteId::new(0, 1), SiteId::new(0, 2)];
    lost.into_iter().for_each(|site| sites.stop(site));
    lost.into_iter().for_each(|site| sites.lose_disk(site));
    lost.into_iter().for_each(|site| sites.run(site));
    for site in lost {
        let mut client = sites.client(2 + u64::from(site.number), &[site]);
        until(|| report(&mut client).apart.is_some_and(|why| why.contains("`pares site lost 0 --yes`")));
    }
}

#[test]
fn a_disk_that_was_replaced_is_not_let_in_again() {
    let mut sites = Sites::start(1, 3);
    let hurt = SiteId::new(0, 2);
    let [own, old, new] = ["site-0-2", "old", "new"].map(|name| sites.dir.join(name));
    let mut client = sites.client(1, &[A0, SiteId::new(0, 1)]);
    done(client.execute(b"add alice 100", PATIENCE));
    sites.stop(hurt);
    std::fs::rename(&own, &old).unwrap();
    sites.run(hurt);
    let mut there = sites.client(2, &[hurt]);
    until(|| report(&mut there).apart.is_none() && report(&mut there).votes);
    sites.stop(hurt);
    std::fs::rename(&own, new).unwrap();
    std::fs::rename(old, &own).unwrap();
    let config = SitesConfig::load(&sites.dir).unwrap();
    let mut process = Process::open(&config, hurt, &sites.dir, Items).unwrap();
    let began = std::time::Instant::now();
    let ended = loop {
        match process.turn(Duration::from_millis(20)) {
            Ok(()) => assert!(began.elapsed() < PATIENCE, "it takes part"),
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, ProcessError::Expelled) && ended.is_damage(), "{ended}");
}

/// The others' stores had not been flushed, so that they say of themselves that nothing is stable.
#[test]
fn restored_directories_found_nothing_amid_restarts() {
    let mut sites = Sites::start(2, 1);
    let mut there = sites.client(1, &[B0]);
    done(there.execute(b"add alice 100", PATIENCE));
    [A0, B0].into_iter().for_each(|site| sites.stop(site));
    sites.lose_disk(A0);
    SitesConfig::load(&sites.dir).unwrap().make_directories(&sites.dir).unwrap();
    // As a crash before its first flush leaves it: the log is there, and the store is not.
    std::fs::remove_dir_all(sites.dir.join("site-1-0/store")).unwrap();
    [A0, B0].into_iter().for_each(|site| sites.run(site));
    let mut here = sites.client(2, &[A0]);
    until(|| {
        let refused = here.execute(b"add alice 1", Duration::from_secs(2)).unwrap_err();
        matches!(refused, CallError::No { code: Code::Elsewhere, .. })
    });
    assert!(report(&mut here).apart.is_some());
}
