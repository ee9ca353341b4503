//! Bells of both kinds, and a storm of naps and rings in which no wake is lost.

use super::*;
use std::time::Instant;

const WATCHDOG: Duration = Duration::from_secs(20); // only a lost wake reaches it

#[test]
fn a_listener_that_is_awake_is_not_woken() {
    let dir = tempfile::tempdir().unwrap();
    let bells = Bells::create(dir.path()).unwrap();
    let mut bell = bells.listen(3, BellKind::Futex).unwrap();
    assert!(!bells.ringer().ring(3));
    bell.prepare();
    bell.cancel();
    assert!(!bells.ringer().ring(3));
    assert_eq!(bells.rings(3), 0);
}

#[test]
fn a_ring_between_prepare_and_wait_is_not_lost() {
    let dir = tempfile::tempdir().unwrap();
    let bells = Bells::create(dir.path()).unwrap();
    let mut bell = bells.listen(0, BellKind::Futex).unwrap();
    bell.prepare();
    assert!(Bells::open(dir.path()).unwrap().ringer().ring(0));
    assert!(bell.wait(WATCHDOG));
}

#[test]
fn waiting_ends_at_the_timeout_unrung() {
    let dir = tempfile::tempdir().unwrap();
    let mut bell = Bells::create(dir.path()).unwrap().listen(0, BellKind::Futex).unwrap();
    bell.prepare();
    assert!(!bell.wait(Duration::from_millis(1)));
}

#[test]
fn a_dead_listener_costs_its_ringers_one_call_and_then_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let bells = Bells::create(dir.path()).unwrap();
    for kind in [BellKind::Futex, BellKind::Fifo] {
        let mut bell = bells.listen(9, kind).unwrap();
        bell.prepare();
        drop(bell);
        let mut ringer = bells.ringer();
        assert!(ringer.ring(9));
        assert!((0..1000).all(|_| !ringer.ring(9)));
    }
}

#[test]
fn a_pipe_nobody_drains_does_not_block_its_ringers() {
    let dir = tempfile::tempdir().unwrap();
    let bells = Bells::create(dir.path()).unwrap();
    let mut bell = bells.listen(1, BellKind::Fifo).unwrap();
    let mut ringer = bells.ringer();
    for _ in 0..100_000 {
        bell.prepare();
        assert!(ringer.ring(1));
    }
    bell.drain();
    bell.prepare();
    assert!(!readable(&bell, Duration::ZERO), "drained");
    ringer.ring(1);
    assert!(readable(&bell, WATCHDOG));
}

#[test]
fn ringer_stopped_while_waking_cannot_clear_later_nap() {
    let dir = tempfile::tempdir().unwrap();
    let bells = Bells::create(dir.path()).unwrap();
    let mut bell = bells.listen(1, BellKind::Fifo).unwrap();
    bell.prepare();
    let (mut stopped, seen) = (bells.ringer(), bell.nap);
    bell.drain();
    bell.prepare();
    stopped.wake(1, seen);
    assert_ne!(bells.parked(1).load(Ordering::SeqCst), 0);
}

#[test]
fn no_wake_is_lost_between_two_threads_that_park_and_ring() {
    for kind in [BellKind::Futex, BellKind::Fifo] {
        ping_pong(kind, 20_000);
    }
}

/// Two threads hand a number back and forth; each parks whenever the other is not done yet.
fn ping_pong(kind: BellKind, rounds: u64) {
    let dir = tempfile::tempdir().unwrap();
    let bells = Bells::create(dir.path()).unwrap();
    let turn = AtomicU64::new(0);
    let player = |me: u64| {
        let mut bell = bells.listen(me as usize, kind).unwrap();
        let mut ringer = bells.ringer();
        for round in 0..rounds {
            sleep_until(&mut bell, || turn.load(Ordering::Acquire) == 2 * round + me);
            turn.store(2 * round + me + 1, Ordering::Release);
            ringer.ring(1 - me as usize);
        }
    };
    std::thread::scope(|s| {
        s.spawn(|| player(0));
        s.spawn(|| player(1));
    });
    assert_eq!(turn.into_inner(), 2 * rounds);
}

fn sleep_until(bell: &mut Bell, ready: impl Fn() -> bool) {
    while !ready() {
        bell.prepare();
        if ready() {
            bell.cancel();
            return;
        }
        let before = Instant::now();
        match bell.fd() {
            None => drop(bell.wait(WATCHDOG)),
            Some(_) => drop(readable(bell, WATCHDOG)),
        }
        bell.drain();
        assert!(before.elapsed() < WATCHDOG, "a wake was lost");
    }
}

fn readable(bell: &Bell, timeout: Duration) -> bool {
    let fd = bell.fd().unwrap();
    let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
    let limit = rustix::time::Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&limit)).unwrap() == 1
}
