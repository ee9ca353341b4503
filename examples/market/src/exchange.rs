//! `pares up` in a temporary folder: a system of its own, which other systems on this machine do not disturb.

use std::fs::File;
use std::io::{Read, Seek};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::board::INSTRUMENTS;

/// Where the pages are, unless another program listens there.
const PAGE: &str = "127.0.0.1:8420";
/// A system that starts says within a second or two where its pages are; on a machine that is busy much later.
const START_MAX: Duration = Duration::from_secs(180);
/// An exchange that receives a request to stop ends within this time: each of its processes has five seconds.
const STOP_MAX: Duration = Duration::from_secs(20);
/// So that members of one that dies have another.
const GATEWAYS: usize = 2;
const PAUSE: Duration = Duration::from_millis(50);

/// A running system. When this is dropped it ends, and then its folder is deleted.
pub struct Exchange {
    program: PathBuf,
    up: Up,
    /// What `pares up` says, and how much of it has been read.
    log: File,
    dir: TempDir,
}

/// The process `pares up`, which has started all others and ends them when it ends.
struct Up(Child);

impl Exchange {
    /// Starts `pares up`, the program beside this one.
    ///
    /// # Errors
    /// If that is not there, or has no room.
    pub fn start() -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
        let program = own.with_file_name("pares");
        let dir = tempfile::Builder::new().prefix("pares-demo-").tempdir();
        let dir = dir.map_err(|error| format!("making a temporary folder: {error}"))?;
        let failed = |doing: &'static str| move |error| format!("{doing}: {error}");
        let config = dir.path().join("pares.toml");
        std::fs::write(config, settings()).map_err(failed("writing pares.toml"))?;
        let path = dir.path().join("up.log");
        let log = File::create_new(&path).map_err(failed("making up.log"))?;
        let errors = log.try_clone().map_err(failed("up.log"))?;
        let mut command = Command::new(&program);
        command.arg("up").arg("--dir").arg(dir.path()).args(["--web", page()]);
        let child = command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn();
        let child = child.map_err(|error| {
            format!("{}: {error}; `cargo build -p pares -p market` builds both programs", program.display())
        })?;
        let log = File::open(path).map_err(failed("up.log"))?;
        Ok(Self { program, up: Up(child), log, dir })
    }

    /// The program `pares`.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The system's folder.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The files in which its gateways say where they listen: a gateway that is started again may listen elsewhere.
    pub fn gateways(&self) -> Vec<PathBuf> {
        (0..GATEWAYS).map(|gateway| self.dir().join(format!("run/gateway-{gateway}.addr"))).collect()
    }

    /// Waits until its pages are served, and says where; nothing if `stop` is set before.
    ///
    /// # Errors
    /// If it does not come up.
    pub fn wait_until_up(&mut self, stop: &AtomicBool) -> Result<Option<String>, String> {
        let begun = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            if let Ok(page) = std::fs::read_to_string(self.dir().join("run/web.addr")) {
                return Ok(Some(page.trim().to_owned()));
            }
            self.news()?;
            if begun.elapsed() > START_MAX {
                return Err(format!("the exchange has no pages after {} s", START_MAX.as_secs()));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// What `pares up` has said since about processes that ended.
    ///
    /// # Errors
    /// If it has ended itself: all that it said.
    pub fn news(&mut self) -> Result<Vec<String>, String> {
        let broken = |error: std::io::Error| format!("up.log: {error}");
        let status = self.up.0.try_wait().map_err(|error| format!("pares up: {error}"))?;
        let mut text = String::new();
        if let Some(status) = status {
            self.log.rewind().and_then(|()| self.log.read_to_string(&mut text)).map_err(broken)?;
            return Err(format!("pares up ended with {status}:\n{text}"));
        }
        self.log.read_to_string(&mut text).map_err(broken)?;
        Ok(text.lines().filter(|line| line.contains(" ended (")).map(str::to_owned).collect())
    }

    /// Stops it as Ctrl-C does, and deletes its folder.
    ///
    /// # Errors
    /// If it does not end in time, and is killed; or if the folder cannot be deleted: where that is.
    pub fn stop(self) -> Result<(), String> {
        let Self { mut up, dir, .. } = self;
        up.end()?;
        let path = dir.path().to_owned();
        dir.close().map_err(|error| format!("{} is left behind: {error}", path.display()))
    }
}

impl Up {
    /// Ends it. After Ctrl-C in a terminal it has had that signal already.
    fn end(&mut self) -> Result<(), String> {
        let is_over = |child: &mut Child| child.try_wait().is_ok_and(|status| status.is_some());
        if is_over(&mut self.0) {
            return Ok(());
        }
        let _ended_meanwhile = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let begun = Instant::now();
        while !is_over(&mut self.0) {
            if begun.elapsed() > STOP_MAX {
                let _ended_meanwhile = self.0.kill();
                let _reaped = self.0.wait();
                return Err("the exchange did not stop in time and was killed".into());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if let Err(why) = self.end() {
            eprintln!("market: {why}");
        }
    }
}

/// A configuration for this machine alone: who trades needs no key, and the lines are no other system's.
fn settings() -> String {
    let gateways = ["\"127.0.0.1:0\""; GATEWAYS].join(", ");
    let head = format!(
        "sign_on = \"open\"\ngateways = [{gateways}]\n\n[feed]\nline_a = \"127.0.0.1:18410\"\n\
         line_b = \"127.0.0.1:18430\"\nreplayers = [\"127.0.0.1:0\", \"127.0.0.1:0\"]\n"
    );
    let instrument = |((symbol, _), id): (&(&str, i64), u32)| {
        format!("\n[[instruments]]\nid = {id}\nsymbol = \"{symbol}\"\n")
    };
    let instruments: String = INSTRUMENTS.iter().zip(1..).map(instrument).collect();
    head + &instruments
}

/// Where the pages go: a free port if the usual one is taken.
fn page() -> &'static str {
    if TcpListener::bind(PAGE).is_ok() { PAGE } else { "127.0.0.1:0" }
}
