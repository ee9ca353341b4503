//! `pares broker up` whose processes, supervisor and files are not what they should be.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::{children, kill, pares_broker, program, refusal};
use crate::PROGRAM;
use crate::common::eventually;
use crate::common::process::{Running, allow, damage_store};

/// A broker that runs in `dir`; it ends with this.
struct Broker {
    dir: PathBuf,
    up: Running,
}

impl Broker {
    fn up(dir: &Path, options: &str) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["broker", "up", "--instant", "--dir"]).arg(dir).args(options.split_whitespace());
        let said = std::fs::File::create(dir.with_extension("said")).unwrap();
        let up = Running(command.stdout(said.try_clone().unwrap()).stderr(said).spawn().unwrap());
        Self { dir: dir.to_owned(), up }
    }

    /// What the supervisor has said.
    fn said(&self) -> String {
        std::fs::read_to_string(self.dir.with_extension("said")).unwrap()
    }

    fn stop(mut self) {
        self.up.signal(Signal::TERM);
        assert!(self.up.ended().success(), "{}", self.said());
    }

    fn fronts(&self) -> Vec<SocketAddr> {
        eventually("it is written where fronts are", || self.dir.join("broker.toml").exists());
        let text = std::fs::read_to_string(self.dir.join("broker.toml")).unwrap();
        let line = text.lines().find(|line| line.starts_with("fronts")).unwrap_or_default().to_owned();
        line.split('"').filter_map(|part| part.parse().ok()).collect()
    }

    /// Kills a process of it, and waits until there is another.
    fn kill(&self, word: &str) {
        let before = children(self.up.0.id(), word);
        assert!(kill(before[0]));
        eventually("there is another", || {
            let now = children(self.up.0.id(), word);
            now.len() == before.len() && !now.contains(&before[0])
        });
    }
}

/// Two free ports that follow each other: pages are at the first.
fn http() -> String {
    format!("--http {}", pares_testbed::ports::free_address())
}

/// A user of the loaders' port: what has no answer is said again, at the next front.
struct User {
    fronts: Vec<SocketAddr>,
    session: Option<String>,
    count: u64,
}

impl User {
    fn of(fronts: Vec<SocketAddr>) -> Self {
        Self { fronts, session: None, count: 0 }
    }

    fn says(&mut self, command: &str) -> String {
        self.count += 1;
        let mut answer = None;
        eventually(command, || {
            self.fronts.rotate_left(1);
            answer = self.tries(command);
            answer.is_some()
        });
        answer.unwrap()
    }

    fn tries(&mut self, command: &str) -> Option<String> {
        let mut stream = TcpStream::connect(self.fronts[0]).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        let greeting = lines.next()?.ok()?;
        let session = self.session.get_or_insert(greeting).clone();
        let (number, before) = (self.count, self.count - 1);
        stream.write_all(format!("{session}\n[{number}>{before}] {command}\n").as_bytes()).ok()?;
        lines.next()?.ok().filter(|answer| answer.starts_with(&format!("[{number}] ")))
    }
}

/// A broker of one front and one desk, its directory, and a user who has a dollar.
fn with_a_user() -> (tempfile::TempDir, PathBuf, Broker, User) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("broker");
    let broker = Broker::up(&dir, &format!("--fronts 1 --desks 1 --durability os {}", http()));
    let mut jo = User::of(broker.fronts());
    assert_eq!(jo.says("ADD,jo,1.00"), "[1] OK cash 1.00");
    (scratch, dir, broker, jo)
}

/// The sites of the broker in `dir` keep the head of a log, and not that of the same log with richer users.
fn forged_log_is_found_by_sites(dir: &Path, log: &Path, text: &str) {
    let verify = |log: &Path, by: &str| pares_broker(dir, &format!("audit verify {} {by}", log.display()));
    let proven = verify(log, "--dir broker").done();
    assert!(proven.contains("no element was changed, added or removed: the log of everything"), "{proven}");
    let forged = log.with_extension("forged");
    std::fs::write(&forged, text.replace(">1.00<", ">9.00<")).unwrap();
    verify(&forged, "").done();
    let refused = refusal(verify(&forged, "--dir broker"));
    assert!(refused.contains("no log with its head"), "{refused}");
}

#[test]
fn two_cluster_broker_survives_kills_of_parts_and_supervisor() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("broker");
    let broker = Broker::up(&dir, &format!("--sites 2x3 --fronts 2 --desks 2 --durability os {}", http()));
    let mut jo = User::of(broker.fronts());
    assert_eq!(jo.says("ADD,jo,1.00"), "[1] OK cash 1.00");
    for (count, word) in (2..).zip(["site", "front", "desk"]) {
        broker.kill(word);
        assert_eq!(jo.says("ADD,jo,1.00"), format!("[{count}] OK cash {count}.00"), "{word}");
    }
    let parts = || ["site", "front", "desk"].map(|word| children(broker.up.0.id(), word)).concat();
    let all = parts();
    assert_eq!(all.len(), 10);
    broker.up.signal(Signal::KILL);
    let lives = |id: &u32| Path::new(&format!("/proc/{id}")).exists();
    eventually("they end with it", || !all.iter().any(lives));
    drop(broker);
    let broker = Broker::up(&dir, "");
    assert_eq!(jo.says("ADD,jo,1.00"), "[5] OK cash 5.00", "the same accounts");
    let mut al = User::of(vec![broker.fronts()[1]]);
    assert_eq!(al.says("ADD,al,1.00"), "[1] OK cash 1.00");
    pares_broker(scratch.path(), "audit dump all.xml --dir broker").done();
    let mut supervisor = User::of(vec![broker.fronts()[0]]);
    assert_eq!(supervisor.says("DUMPLOG,everything"), "[1] OK");
    let everything = dir.join("logs/everything");
    eventually("it is written", || everything.exists());
    for log in [scratch.path().join("all.xml"), everything] {
        let text = std::fs::read_to_string(&log).unwrap();
        assert_eq!(text.matches("<command>ADD</command>").count(), 6, "of both fronts: {text}");
        forged_log_is_found_by_sites(scratch.path(), &log, &text);
    }
    let latest = pares_broker(scratch.path(), "audit head --dir broker").done();
    let (head, of) = latest.split_once("  ").unwrap();
    assert!(of.starts_with("the log of everything"), "{latest}");
    pares_broker(scratch.path(), &format!("audit verify broker/logs/everything --head {head}")).done();
    let none = refusal(pares_broker(scratch.path(), "audit head --dir broker --user jo"));
    assert!(none.contains("no such log"), "{none}");
    broker.stop();
}

#[test]
fn damaged_or_missing_accounts_are_reported_not_recreated() {
    let (scratch, dir, broker, mut jo) = with_a_user();
    broker.stop();
    let (own, aside) = (dir.join("site-0-0"), scratch.path().join("aside"));
    std::fs::rename(&own, &aside).unwrap();
    let broker = Broker::up(&dir, "");
    eventually("it says so", || broker.said().contains("no site participates"));
    assert!(broker.said().contains("is new: its disk is empty"), "{}", broker.said());
    drop(broker);
    std::fs::remove_dir_all(&own).unwrap();
    std::fs::rename(&aside, &own).unwrap();
    let broker = Broker::up(&dir, "");
    assert_eq!(jo.says("ADD,jo,1.00"), "[2] OK cash 2.00");
    broker.stop();
    damage_store(&own);
    let mut broker = Broker::up(&dir, "");
    assert_eq!(broker.up.ended().code(), Some(6), "{}", broker.said());
    let said = broker.said();
    assert!(said.contains("needs repair") && said.contains("move the whole directory"), "{said}");
}

#[test]
fn failed_front_is_reported_and_last_one_ends_broker() {
    let (_scratch, dir, broker, _) = with_a_user();
    broker.stop();
    std::fs::remove_dir(dir.join("logs")).unwrap();
    std::fs::write(dir.join("logs"), "no folder").unwrap();
    let mut broker = Broker::up(&dir, "");
    assert_eq!(broker.up.ended().code(), Some(1), "{}", broker.said());
    let said = broker.said();
    assert!(said.contains("no front can run") && said.contains("making "), "{said}");
    let deaths = said.lines().filter(|line| line.starts_with("front 0 ended")).count();
    assert!((3..10).contains(&deaths), "it is tried less and less often: {said}");
}

#[test]
fn port_in_use_is_named_before_anything_is_announced() {
    let scratch = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let told = refusal(pares_broker(scratch.path(), &format!("up --fronts 1 --http {taken}")));
    assert!(told.contains(&taken) && told.contains("--http") && !told.contains("pages at"), "{told}");
    let dir = scratch.path().join("broker-data");
    assert!(!dir.join("sites.toml").exists(), "how many of each there are is not settled yet");
    let moved = http();
    let broker = Broker::up(&dir, &moved);
    eventually("pages are elsewhere", || {
        broker.said().contains(&moved.replace("--http ", "pages at http://"))
    });
    broker.stop();
    std::fs::write(scratch.path().join("log.xml"), "of before").unwrap();
    let overwritten = refusal(pares_broker(scratch.path(), "audit dump log.xml"));
    assert!(overwritten.contains("--force"), "{overwritten}");
    for stopped in [
        pares_broker(scratch.path(), "person ann"),
        pares_broker(scratch.path(), "audit dump log.xml --force"),
        program(scratch.path(), "site status --dir broker-data"),
    ] {
        let told = refusal(stopped);
        assert!(told.contains("pares broker up") && !told.contains("pares site up"), "{told}");
    }
    let nowhere = refusal(pares_broker(scratch.path(), "front --dir none --desk 127.0.0.1:1"));
    assert!(nowhere.contains("`pares broker up --dir none`") && !nowhere.contains("pares site"), "{nowhere}");
}

#[test]
fn broker_restores_from_backup_and_keeps_accounts_private() {
    let scratch = tempfile::tempdir().unwrap();
    let done = |arguments: &str| program(scratch.path(), arguments).done();
    let options = || format!("--fronts 1 --desks 1 --durability os {}", http());
    let broker = Broker::up(&scratch.path().join("one"), &options());
    assert_eq!(User::of(broker.fronts()).says("ADD,jo,10.00"), "[1] OK cash 10.00");
    done("broker audit dump log-one --dir one");
    for of_items in ["up", "run --site 0.0", "execute put bob 5", "read get bob"] {
        let told = refusal(program(scratch.path(), &format!("site --dir one {of_items}")));
        assert!(told.contains("broker"), "{told}");
    }
    done("site backup --dir one --to kept");
    broker.stop();
    let restored = done("site restore --from kept --dir two");
    assert!(restored.contains("`pares broker up --dir two`"), "{restored}");
    let broker = Broker::up(&scratch.path().join("two"), &options());
    assert_eq!(User::of(broker.fronts()).says("DISPLAY_SUMMARY,jo"), "[1] OK");
    done("broker audit dump log-two --dir two");
    let log = |name: &str| std::fs::read_to_string(scratch.path().join(name)).unwrap();
    let (one, two) = (log("log-one"), log("log-two"));
    let before = one.trim_end().strip_suffix("</log>").unwrap();
    assert!(two.starts_with(before) && two.len() > one.len(), "{two}");
    assert_eq!(User::of(broker.fronts()).says("ADD,jo,1.00"), "[1] OK cash 11.00");
    broker.stop();
}

#[test]
fn front_out_of_descriptors_reports_once_and_serves() {
    let (_scratch, dir, broker, _) = with_a_user();
    let fronts = broker.fronts();
    let id = children(broker.up.0.id(), "front")[0];
    let front = Pid::from_raw(id as i32).unwrap();
    let stream = TcpStream::connect(fronts[0]).unwrap();
    let mut lines = BufReader::new(&stream).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("SESSION "));
    allow(front, Some(3));
    let waiting: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(fronts[0]).unwrap()).collect();
    let log = || std::fs::read_to_string(dir.join("front-0.log")).unwrap();
    eventually("it says so", || log().contains("no file descriptor is left"));
    (&stream).write_all(b"[1] ADD,al,1.00\n[2] ADD,al,1.00\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "[1] OK cash 1.00");
    assert_eq!(lines.next().unwrap().unwrap(), "[2] OK cash 2.00");
    assert_eq!(log().matches("no file descriptor is left").count(), 1, "{}", log());
    allow(front, None);
    for stream in waiting {
        let greeting = BufReader::new(stream).lines().next().unwrap().unwrap();
        assert!(greeting.starts_with("SESSION "), "{greeting}");
    }
    broker.stop();
}
