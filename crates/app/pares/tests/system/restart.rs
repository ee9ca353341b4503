//! Everything restarted together: nothing acknowledged is lost, what is unanswered is answered when repeated.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pares_config::DurabilitySetting;
use pares_node::lost::OnLoss;
use pares_node::{Supervisor, SystemConfig};
use pares_types::{Epoch, Side};
use rustix::process::{Signal, kill_process};

use crate::common::exchange::{Exchange, PROGRAM, small};
use crate::common::process::Up;
use crate::common::{limit, load};

/// SIGKILL for the supervisor and all nodes while members trade, and a new start on the same directory; so many
/// times.
fn trade_while_restarting(config: &SystemConfig, times: u32) {
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let mut up = Up::start(dir.path(), config);
    let mut exchange = Exchange::watch(Arc::clone(&dir), config);
    let mut traders = load::traders(&exchange, 4);
    for life in 1..=times {
        assert!(up.said.contains(&format!("epoch {life};")), "{}", up.said);
        load::trade(&mut exchange, &mut traders, 300);
        let nodes = up.nodes();
        up.signal(Signal::KILL);
        for (_, pid) in nodes {
            // The kernel may have been quicker.
            let _ = kill_process(pid, Signal::KILL);
        }
        up.wait();
        up = Up::start(dir.path(), config);
        traders.iter_mut().for_each(|trader| trader.moved(&exchange.addresses()));
    }
    load::trade(&mut exchange, &mut traders, 300);
    let records = load::finish_and_check(&mut exchange, &mut traders);
    for shard in records.values() {
        assert!(shard.is_sorted_by_key(|one| one.epoch), "a decision of an earlier life came late");
        assert_eq!(shard.last().unwrap().epoch, Epoch(times + 1));
    }
}

#[test]
fn everything_restarted_together_loses_nothing_acknowledged() {
    trade_while_restarting(&small(2), 4);
}

#[test]
fn full_restart_loses_nothing_acknowledged_on_disk() {
    trade_while_restarting(&SystemConfig { durability: DurabilitySetting::Disk, ..small(1) }, 2);
}

#[test]
fn everything_restarted_together_reaches_a_quorum_again() {
    trade_while_restarting(&SystemConfig { recorders: 3, quorum: 2, ..small(1) }, 2);
}

/// Copies what lies in a directory, not what lies below.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_file() {
            std::fs::copy(&entry, to.join(entry.file_name().unwrap())).unwrap();
        }
    }
}

#[test]
fn old_logs_refused_until_operator_gives_up_losses() {
    let config = SystemConfig { durability: DurabilitySetting::Disk, ..small(1) };
    let mut exchange = Exchange::start(&config);
    let order = |name| limit(name, 1, Side::Buy, 5, 20_000);
    exchange.client(0, 7).submit_and_wait(&order(1)).unwrap();
    exchange.stop();
    let logs: Vec<PathBuf> = config.recorder_ids().map(|id| exchange.layout().recorder_log(id)).collect();
    logs.iter().for_each(|log| copy(log, &log.with_extension("old")));
    exchange.start_again();
    let mut client = exchange.client(0, 7);
    (2..=5).for_each(|name| _ = client.submit_and_wait(&order(name)).unwrap());
    exchange.stop();
    for log in &logs {
        std::fs::remove_dir_all(log).unwrap();
        std::fs::rename(log.with_extension("old"), log).unwrap();
    }
    let start = |on_loss| {
        Supervisor::start(
            Path::new(PROGRAM),
            exchange.layout().clone(),
            &config,
            on_loss,
            &AtomicBool::new(false),
        )
    };
    let refused = start(OnLoss::Refuse).map(drop).unwrap_err().to_string();
    assert!(refused.contains("4 recorded positions") && refused.contains(": 1 to 4"), "{refused}");
    let mut supervisor = start(OnLoss::GiveUp).unwrap();
    let stat = exchange.pares("stat");
    assert_eq!(stat.status, Some(4));
    assert!(stat.complaint.contains("4 recorded positions were lost"), "{stat:?}");
    supervisor.stop().unwrap();
    drop(supervisor);
    start(OnLoss::Refuse).unwrap().stop().unwrap();
}

#[test]
fn new_orders_match_against_restored_ones() {
    // Checkpoints now and then, none, and after each request.
    for checkpoint_every in [4, 1_000_000, 1] {
        let mut exchange = Exchange::start(&SystemConfig { checkpoint_every, ..small(1) });
        let mut seller = exchange.client(0, 7);
        for name in 1..=10 {
            seller.submit_and_wait(&limit(name, 1, Side::Sell, name, 1_000_000)).unwrap();
        }
        exchange.stop();
        exchange.start_again();
        let filled = exchange.client(0, 8).submit_and_wait(&limit(1, 1, Side::Buy, 60, 1_000_000)).unwrap();
        assert_eq!((filled.executed.0, filled.events), (55, 10), "checkpoint_every {checkpoint_every}");
    }
}
