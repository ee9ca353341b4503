//! The whole demonstration, with real processes: traders continue when a gateway is killed, and nothing is left behind.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stdout)] // a test that skips says why

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// Ends it also when a test fails, as Ctrl-C does.
struct Market(Child);

impl Market {
    fn interrupt(&self) {
        let _ended_by_itself = kill_process(Pid::from_child(&self.0), Signal::INT);
    }
}

impl Drop for Market {
    fn drop(&mut self) {
        self.interrupt();
        let _reaped = self.0.wait();
    }
}

/// Reads on until a line is as wanted.
fn until(lines: &mut Lines<BufReader<ChildStdout>>, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut seen = Vec::new();
    for line in lines.map_while(Result::ok) {
        if is_wanted(&line) {
            return line;
        }
        seen.push(line);
    }
    panic!("the program ended; it said\n{}", seen.join("\n"));
}

fn shows_trading(line: &str) -> bool {
    let trades = line.split("orders/s").nth(1).and_then(|rest| rest.split_whitespace().next());
    trades.is_some_and(|trades| trades.parse::<u32>().unwrap() > 0)
}

// A few seconds: the exchange starts and stops, and tells of its trading every two.
#[test]
fn traders_change_gateways_and_ctrl_c_cleans_up() {
    let program = Path::new(env!("CARGO_BIN_EXE_market"));
    if !program.with_file_name("pares").exists() {
        println!("skipped: `pares` is not built");
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(program);
    command.env("TMPDIR", temporary.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut market = Market(command.spawn().unwrap());
    let mut lines = BufReader::new(market.0.stdout.take().unwrap()).lines();
    let hint = until(&mut lines, |line| line.contains("gateway-0.pid"));
    until(&mut lines, shows_trading);
    let pid = hint.split("$(cat ").nth(1).unwrap().trim_end_matches(')');
    let gateway: i32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(gateway).unwrap(), Signal::KILL).unwrap();
    until(&mut lines, |line| line.contains("goes on at gateway-1"));
    until(&mut lines, shows_trading);
    market.interrupt();
    until(&mut lines, |line| line.starts_with("stopped"));
    assert!(market.0.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0, "files are left behind");
}
