//! Sites with real logs, stores and sockets.

mod common;

use common::{PATIENCE, Sites, done};
use pares_site::CallError;
use pares_site::protocol::Code;
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

const A0: SiteId = SiteId::new(0, 0);
const B0: SiteId = SiteId::new(1, 0);

#[test]
fn one_site_alone_executes_and_remembers() {
    let dir = tempfile::tempdir().unwrap();
    let mut sites = Sites::start(dir.path(), 1, 1);
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"add alice 100", PATIENCE));
    assert_eq!(done(client.execute(b"transfer alice bob 30", PATIENCE)), "70");
    assert_eq!(done(client.read(b"get bob", PATIENCE)), "30");
    let refused = client.execute(b"transfer alice bob 71", PATIENCE);
    assert!(matches!(refused, Err(CallError::No { code: Code::Refused, .. })), "{refused:?}");
    sites.stop(A0);
    sites.run(A0);
    assert_eq!(done(client.execute(b"get alice", PATIENCE)), "70");
    assert_eq!(done(client.read(b"sum", PATIENCE)), "2 100");
}

#[test]
fn a_request_repeated_is_done_once() {
    let dir = tempfile::tempdir().unwrap();
    let sites = Sites::start(dir.path(), 1, 1);
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"add alice 100", PATIENCE));
    assert_eq!(done(client.execute(b"transfer alice bob 30", PATIENCE)), "70");
    assert_eq!(done(client.execute_again(b"transfer alice bob 30", PATIENCE)), "70");
    assert_eq!(done(client.read(b"get alice", PATIENCE)), "70");
}

#[test]
fn two_clusters_have_the_same_and_either_can_ask() {
    let dir = tempfile::tempdir().unwrap();
    let sites = Sites::start(dir.path(), 2, 2);
    let mut here = sites.client(1, &[A0]);
    let mut there = sites.client(2, &[B0]);
    done(here.execute(b"add alice 100", PATIENCE));
    for round in 1..=5 {
        done(there.execute(b"transfer alice bob 10", PATIENCE));
        assert_eq!(done(here.execute(b"transfer alice carol 5", PATIENCE)), (100 - round * 15).to_string());
    }
    assert_eq!(done(there.execute(b"get alice", PATIENCE)), "25");
}

#[test]
fn a_cluster_declared_lost_is_not_waited_for_and_comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut sites = Sites::start(dir.path(), 2, 1);
    let mut there = sites.client(1, &[B0]);
    done(there.execute(b"add alice 100", PATIENCE));
    sites.stop(A0);
    let lost = Command::DeclareLost(ClusterSet::default().with(ClusterId(0)));
    until(|| there.operate(lost, PATIENCE).is_ok());
    assert_eq!(done(there.execute(b"transfer alice bob 1", PATIENCE)), "99");
    sites.run(A0);
    until(|| there.operate(Command::Admit(ClusterId(0)), PATIENCE).is_ok());
    until(|| there.operate(Command::Migrate(ClusterId(0)), PATIENCE).is_ok());
    let mut here = sites.client(2, &[A0]);
    assert_eq!(done(here.execute(b"transfer alice bob 1", PATIENCE)), "98");
}

fn until(mut done: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        assert!(began.elapsed() < PATIENCE, "still not after {PATIENCE:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
