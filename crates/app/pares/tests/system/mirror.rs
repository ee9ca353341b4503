//! The logs at another host: whichever end is killed, the copy is the beginning of what it is a copy of, and can be started.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use pares_log::{MarksReader, Offset};
use pares_node::{NodeId, SystemConfig};
use rustix::process::{Signal, kill_process};

use crate::common::exchange::{Exchange, PROGRAM, small};
use crate::common::process::{Running, Up, pares};
use crate::common::{eventually, load};

fn is_mirrored(node: &NodeId) -> bool {
    matches!(node, NodeId::Gateway(_) | NodeId::Recorder(_))
}

/// An exchange that sends its logs, and a directory for them.
struct Hosts {
    config: SystemConfig,
    first: Arc<tempfile::TempDir>,
    second: Arc<tempfile::TempDir>,
}

impl Hosts {
    fn new() -> Self {
        let config = SystemConfig { mirror: Some(([127, 0, 0, 1], 0).into()), ..small(1) };
        let [first, second] = [0; 2].map(|_| Arc::new(tempfile::tempdir().unwrap()));
        Self { config, first, second }
    }

    fn source(&self) -> String {
        let path = self.first.path().join("run/mirror.addr");
        eventually("it listens", || path.exists());
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }

    fn receive(&self) -> Running {
        let mut command = Command::new(PROGRAM);
        command
            .args(["mirror", "receive", "--json", "--from", &self.source(), "--dir"])
            .arg(self.second.path());
        Running::start(command.stderr(Stdio::null()))
    }

    fn logs(&self) -> impl Iterator<Item = [PathBuf; 2]> + '_ {
        let nodes = NodeId::all(&self.config).into_iter().filter(is_mirrored);
        nodes.map(|node| [&self.first, &self.second].map(|host| host.path().join(node.to_string())))
    }

    /// Waits until the second host has what the first one has written now.
    fn catch_up(&self) {
        for [source, mirror] in self.logs() {
            let written = written(&source);
            eventually("the mirror has everything", || written <= self::written(&mirror));
        }
    }

    /// What is published of the mirrors is the beginning of the logs, byte for byte.
    fn check_bytes(&self) {
        for [source, mirror] in self.logs() {
            let marks = MarksReader::open(&mirror).unwrap().stats();
            assert!(
                marks.durable <= marks.written && marks.written <= written(&source),
                "{}",
                mirror.display()
            );
            for base in (0..marks.written.0).step_by(marks.segment_bytes as usize) {
                let len = (marks.written.0 - base).min(marks.segment_bytes) as usize;
                let [ours, theirs] = [&mirror, &source].map(|log| segment(log, base));
                assert!(ours[..len] == theirs[..len], "segment {base} of {}", mirror.display());
            }
        }
    }
}

fn written(log: &Path) -> Offset {
    MarksReader::open(log).map_or(Offset::START, |marks| marks.stats().written)
}

fn segment(log: &Path, base: u64) -> Vec<u8> {
    std::fs::read(log.join(format!("{base:020}.seg"))).unwrap()
}

fn kill_everything(up: &mut Up) {
    let nodes = up.nodes();
    up.signal(Signal::KILL);
    for (_, pid) in nodes {
        // The kernel may have been quicker.
        let _ = kill_process(pid, Signal::KILL);
    }
    up.wait();
}

#[test]
fn killed_mirrors_continue_and_the_copy_trades_on() {
    let hosts = Hosts::new();
    let mut up = Up::start(hosts.first.path(), &hosts.config);
    let mut exchange = Exchange::watch(Arc::clone(&hosts.first), &hosts.config);
    let mut traders = load::traders(&exchange, 4);
    for _ in 0..3 {
        let receiver = hosts.receive();
        load::trade(&mut exchange, &mut traders, 150);
        // The source in its turn; `pares up` starts another, at the same port.
        let path = hosts.first.path().join("run/mirror.pid");
        let pid: i32 = std::fs::read_to_string(path).unwrap().trim().parse().unwrap();
        let _ = kill_process(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL);
        load::trade(&mut exchange, &mut traders, 150);
        // kill -9.
        drop(receiver);
    }
    let mut receiver = hosts.receive();
    load::finish(&mut exchange, &mut traders);
    hosts.catch_up();
    eventually("pares stat tells what the receiver lacks", || {
        pares(hosts.first.path(), "stat").out.contains("loopback mirrors the logs, 0 B behind")
    });
    let said = pares(hosts.second.path(), "up").complaint;
    assert!(said.contains("pares mirror receive"), "it is still being written: {said}");
    hosts.check_bytes();
    kill_everything(&mut up);
    receiver.signal(Signal::TERM);
    assert!(receiver.ended().success());
    hosts.check_bytes();
    for [_, mirror] in hosts.logs() {
        assert!(
            Command::new(PROGRAM).args(["journal", "verify"]).arg(mirror).output().unwrap().status.success()
        );
    }
    let _up = Up::start(hosts.second.path(), &hosts.config);
    let mut second = Exchange::watch(Arc::clone(&hosts.second), &hosts.config);
    traders.iter_mut().for_each(|trader| trader.moved(&second.addresses()));
    load::trade(&mut second, &mut traders, 200);
    // Everything that was answered at the first host is in the record, once, and matching continues from it.
    load::finish_and_check(&mut second, &mut traders);
    let refused = pares(hosts.second.path(), &format!("mirror receive --from {}", second.addresses()[0]));
    assert!(refused.complaint.contains("another `pares up`"), "{refused:?}");
}
