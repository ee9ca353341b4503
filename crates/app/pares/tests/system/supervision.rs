//! `pares up` as a user runs it: what it leaves behind (nothing), and what it costs when nothing happens.

use std::sync::Arc;
use std::time::{Duration, Instant};

use pares_client::Client;
use pares_types::MemberId;
use pares_types::{Quantity, Side, Status};
use rustix::process::{Pid, Signal, WaitOptions, kill_process};

use crate::common::exchange::{self, Exchange, gateway, small, venue};
use crate::common::process::{Up, cpu_ticks, is_alive, pares, pid_of};
use crate::common::{eventually, limit};

fn client(up: &Up, member: u32) -> Client {
    Client::connect(exchange::addresses(&up.layout, &up.config)[0], MemberId(member)).unwrap()
}

#[test]
fn ctrl_c_stops_everything() {
    let mut up = Up::fresh(&small(2));
    client(&up, 7).submit_and_wait(&limit(1, 1, Side::Sell, 5, 1_000_000)).unwrap();
    let nodes = up.nodes();
    up.signal(Signal::INT);
    assert!(up.wait(), "it ends well");
    assert!(nodes.iter().all(|&(_, pid)| !is_alive(pid)), "all nodes ended before it did");

    let again = Up::start(up.layout.root(), &small(2));
    let filled = client(&again, 8).submit_and_wait(&limit(1, 1, Side::Buy, 5, 1_000_000)).unwrap();
    assert_eq!((filled.status, filled.executed), (Status::Filled, Quantity(5)));
}

/// A terminal that closes, Ctrl-C beside a node that is stopped, and SIGKILL, also then: everything ends.
#[test]
fn the_supervisor_is_killed_and_leaves_no_orphan() {
    // Under `nohup` children ignore the signal too; one that is handled is not inherited as ignored.
    let _restored = signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default()).unwrap();
    for (signal, to_venue) in [
        (Signal::HUP, None),
        (Signal::INT, Some(Signal::STOP)),
        (Signal::KILL, None),
        (Signal::KILL, Some(Signal::STOP)),
    ] {
        let mut up = Up::fresh(&small(1));
        let nodes = up.nodes();
        to_venue.iter().for_each(|&signal| kill_process(pid_of(&up.layout, venue(0)), signal).unwrap());
        if signal == Signal::HUP {
            // A terminal hangs up on all that it shows at once.
            nodes.iter().for_each(|&(_, pid)| kill_process(pid, signal).unwrap());
        }
        up.signal(signal);
        assert_eq!(up.wait(), signal != Signal::KILL, "it ends well: {signal:?}");
        for (role, pid) in nodes {
            if signal == Signal::KILL {
                eventually(&format!("{role} has ended"), || !is_alive(pid));
            }
            assert!(!is_alive(pid), "{signal:?}: {role} ended before it did");
        }
    }
}

#[test]
fn unwaitable_node_does_not_block_stopping_others() {
    let mut exchange = Exchange::start(&small(1));
    let nodes =
        exchange.roles().into_iter().map(|role| (role, pid_of(exchange.layout(), role))).collect::<Vec<_>>();
    let (_, first_stopped) = nodes[nodes.len() - 1];
    kill_process(first_stopped, Signal::KILL).unwrap();
    // The test reaps the process, so the supervisor cannot learn how it ended.
    rustix::process::waitpid(Some(first_stopped), WaitOptions::empty()).unwrap();
    let stopped = exchange.supervisor().stop().unwrap_err();
    assert!(stopped.to_string().contains("waiting for a process"), "{stopped}");
    assert!(nodes.iter().all(|&(_, pid)| !is_alive(pid)));
}

#[test]
fn the_supervisor_is_killed_and_the_next_start_works_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for life in 1..=5 {
        let mut up = Up::start(dir.path(), &small(2));
        assert!(up.said.contains(&format!("epoch {life};")), "{}", up.said);
        client(&up, 7).submit_and_wait(&limit(life, 1, Side::Sell, 5, 1_000_000)).unwrap();
        up.signal(Signal::KILL);
        up.wait();
    }
}

#[test]
fn supervisor_with_blocked_output_still_restarts_nodes() {
    // Its output is closed once it is up.
    let mut up = Up::fresh(&small(1));
    for node in [venue(0), gateway(0)] {
        let before = pid_of(&up.layout, node);
        kill_process(before, Signal::KILL).unwrap();
        eventually(&format!("{node} is back"), || pid_of(&up.layout, node) != before);
    }
    client(&up, 7).submit_and_wait(&limit(1, 1, Side::Sell, 5, 1_000_000)).unwrap();
    up.signal(Signal::INT);
    assert!(up.wait(), "it ends well");
}

#[test]
fn a_second_supervisor_is_refused_and_told_why() {
    let up = Up::fresh(&small(1));
    let second = pares(up.layout.root(), "up");
    assert!(!second.is_ok() && second.complaint.contains("another `pares up`"), "{second:?}");
    client(&up, 7).submit_and_wait(&limit(1, 1, Side::Sell, 5, 1_000_000)).unwrap();
}

#[test]
fn a_taken_address_is_named_with_the_setting_that_chooses_it() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let layout = pares_node::Layout::new(dir.path());
    let taken = format!("gateway-0: cannot listen at {address}: Address already in use");
    for (setting, config) in [
        ("gateways", pares_node::SystemConfig { gateways: vec![address], ..small(1) }),
        ("ouch", pares_node::SystemConfig { ouch: vec![address], ..small(1) }),
    ] {
        pares_node::config::save(&config, &layout.config()).unwrap();
        let up = pares(dir.path(), "up");
        assert_eq!(up.status, Some(1));
        for why in [&taken, &format!("Change the address: `{setting}` in pares.toml")] {
            assert!(up.complaint.contains(why), "{up:?}");
        }
    }
}

#[test]
fn idle_system_uses_little_cpu() {
    let exchange = Exchange::start(&pares_node::SystemConfig {
        gateways: small(1).gateways,
        ..pares_node::SystemConfig::default()
    });
    exchange.client(0, 7).submit_and_wait(&limit(1, 1, Side::Sell, 5, 1_000_000)).unwrap();
    let pids: Vec<Pid> = exchange.roles().into_iter().map(|role| pid_of(exchange.layout(), role)).collect();
    let used = || pids.iter().map(|&pid| cpu_ticks(pid)).sum::<u64>();
    std::thread::sleep(Duration::from_millis(500));
    let ticks_per_s = || {
        let (before, began) = (used(), Instant::now());
        std::thread::sleep(Duration::from_secs(2));
        (used() - before) as f64 / began.elapsed().as_secs_f64()
    };
    // 100 ticks to the second; the promise is 5 % of one core, the test allows 10 % for a noisy machine, and what is left to start has three tries.
    let is_idle = |ticks_per_s: &f64| *ticks_per_s < 10.0;
    let tries: Vec<f64> = (0..3).map(|_| ticks_per_s()).take_while(|one| !is_idle(one)).collect();
    assert!(tries.len() < 3, "{tries:?} ticks a second, idle");
}
