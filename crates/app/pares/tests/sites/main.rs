//! `pares site` as an operator runs it: real processes, killed with SIGKILL.
#![allow(clippy::unwrap_used)] // a test fails by panicking

#[allow(dead_code)] // the tests of a system use all of it
#[path = "../system/common/mod.rs"]
mod common;
mod witness;

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use pares_site::SitesConfig;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;
use serde_json::Value;

use crate::common::eventually;
use crate::common::process::{Ran, Running, damage_store, run};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_pares");

/// What `pares site` prints; its complaint if it fails.
fn site(arguments: &str, dir: &Path) -> Result<String, String> {
    let ran = output(arguments, dir);
    if ran.is_ok() { Ok(ran.out.trim().to_owned()) } else { Err(ran.complaint) }
}

#[allow(clippy::print_stderr)] // whenever it changes: of a wait that ends without success it shows why
fn output(arguments: &str, dir: &Path) -> Ran {
    thread_local! { static SAID: RefCell<String> = const { RefCell::new(String::new()) } }
    let ran = run(&format!("site --dir {} {arguments}", dir.display()));
    let said = format!("{arguments}: {ran:?}");
    if SAID.replace(said.clone()) != said {
        eprintln!("{said}");
    }
    ran
}

/// A process of `pares site`, as it runs after a command of the shell.
fn start_after(first: &str, arguments: &str, dir: &Path) -> Running {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{first}\nexec \"$0\" \"$@\""), PROGRAM]);
    command.args(["site", "--dir"]).arg(dir).args(arguments.split_whitespace());
    Running(command.stdout(Stdio::null()).spawn().unwrap())
}

/// One site, which is killed at the end.
fn start(site: &str, dir: &Path) -> Running {
    start_after("", &format!("run --site {site}"), dir)
}

/// The figures of all sites that answer.
fn status(dir: &Path) -> Vec<Value> {
    serde_json::from_str(&output("status --json", dir).out).unwrap()
}

/// A directory, and one site of its own that is made in it, as `more` says.
fn one_site(more: &str) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("sites");
    site(&format!("init --clusters 1 --sites 1 --durability os{more}"), &dir).unwrap();
    (scratch, dir)
}

#[test]
fn a_cluster_is_killed_declared_lost_and_comes_back() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("sites");
    assert!(site("status", &dir).unwrap_err().contains("pares site init"));
    site("init --sites 1 --durability os", &dir).unwrap();
    assert!(site("init", &dir).unwrap_err().contains("already"));
    let said = site("lost 0 --yes --patience 1", &dir).unwrap_err();
    assert!(said.contains("waiting, 1 s in all: no site reports"), "{said}");
    let here = start("0.0", &dir);
    eventually("0.0 answers", || status(&dir).len() == 1);
    let said = site("lost 1 --yes --patience 1", &dir).unwrap_err();
    assert!(
        said.contains("not within 1s") && said.contains("0.0 does not participate"),
        "not founded: {said}"
    );
    let _there = start("1.0", &dir);
    assert_eq!(site("execute add alice 100", &dir).unwrap(), "100 added to alice");
    assert_eq!(site("execute put carol x", &dir).unwrap(), "carol is x");
    for (request, why) in [
        ("transfer alice bob 300", "refused: insufficient balance: alice has 100"),
        ("transfer alice carol 1", "refused: carol is text, not a number"),
        ("give alice 1", "refused: `give alice 1` is not one of get NAME, put NAME VALUE"),
        ("get dora", "refused: there is no item dora"),
        ("together expect alice 99; put carol y", "refused: changed: alice is 100, not 99"),
    ] {
        let said = site(&format!("execute {request}"), &dir).unwrap_err();
        assert!(said.contains(why), "{said}");
    }
    assert_eq!(site("execute --site 1.0 transfer alice bob 30", &dir).unwrap(), "alice has 70 left");
    assert_eq!(site("read --site 0.0 --latest get alice", &dir).unwrap(), "70");
    eventually("all is well", || output("status", &dir).is_ok());
    drop(here);
    let missing = output("status", &dir);
    assert_eq!(missing.status, Some(4), "{missing:?}");
    let open = output("execute add alice 0", &dir);
    assert_eq!(open.status, Some(5), "{open:?}");
    let said = open.complaint;
    assert!(said.contains("no answer yet"), "{said}");
    assert!(said.contains("no answer in 30s. The request may still be executed: check"), "{said}");
    assert!(site("lost 0", &dir).unwrap_err().contains("--yes"));
    site("lost 0 --yes", &dir).unwrap();
    assert_eq!(site("execute transfer alice bob 30", &dir).unwrap(), "alice has 40 left");
    let _here = start("0.0", &dir);
    site("admit 0", &dir).unwrap();
    site("migrate 0", &dir).unwrap();
    assert_eq!(site("execute --site 0.0 transfer alice bob 30", &dir).unwrap(), "alice has 10 left");
    eventually("both show the same", || {
        let all = status(&dir);
        all.len() == 2 && all[0]["stable"] == all[1]["stable"] && all[0]["certifies"] == true
    });
    let digest = site("read --site 0.0 digest", &dir).unwrap();
    assert_eq!(site("read --site 1.0 digest", &dir).unwrap(), digest);
    assert_eq!(site("read list - - 9", &dir).unwrap(), "alice 10\nbob 90\ncarol x");
}

#[test]
fn site_with_lost_disk_waits_and_says_for_what() {
    let (_scratch, dir) = &one_site(" --no-tls");
    let running = start("0.0", dir);
    site("execute put a 1", dir).unwrap();
    drop(running);
    std::fs::rename(dir.join("site-0-0"), dir.join("elsewhere")).unwrap();
    let running = start("0.0", dir);
    eventually("it says so", || {
        let said = output("status", dir).complaint;
        said.contains("is new: its disk is empty")
    });
    assert_eq!(output("status", dir).status, Some(4));
    assert!(site("read get a", dir).unwrap_err().contains("does not participate"));
    drop(running);
    std::fs::remove_dir_all(dir.join("site-0-0")).unwrap();
    std::fs::rename(dir.join("elsewhere"), dir.join("site-0-0")).unwrap();
    let _running = start("0.0", dir);
    eventually("it is as it was", || site("read get a", dir).is_ok_and(|value| value == "1"));
}

/// `pares site up` over everything in `dir`, in a terminal that may close, whatever this test was started to ignore: a signal that is
/// handled here has its ordinary effect there.
fn up(dir: &Path) -> Running {
    signal_hook::flag::register(Signal::HUP.as_raw(), Arc::default()).unwrap();
    Running::start(Command::new(PROGRAM).args(["site", "up", "--dir"]).arg(dir).stderr(Stdio::piped()))
}

#[test]
fn one_process_runs_all_sites_until_its_terminal_closes() {
    let (_scratch, dir) = &one_site(" --no-tls");
    let mut first = up(dir);
    eventually("it runs", || output("status", dir).is_ok());
    let mut second = up(dir);
    assert_eq!(second.ended().code(), Some(1));
    let said = std::io::read_to_string(second.0.stderr.take().unwrap()).unwrap();
    assert!(said.contains("another `pares site up` is running the sites in"), "{said}");
    first.signal(Signal::HUP);
    let status = first.ended();
    let said = std::io::read_to_string(first.0.stdout.take().unwrap()).unwrap();
    assert!(status.success() && said.ends_with("0.0: stopped\nstopped\n"), "{status}: {said}");
    assert_eq!(output("status", dir).status, Some(3));
}

/// All sites answer, participate and vote, and there are so many.
fn all_vote(dir: &Path, sites: usize) -> bool {
    let votes = |site: &Value| site["votes"] == true && site["apart"] == Value::Null;
    output("status", dir).is_ok()
        && Some(status(dir)).is_some_and(|all| all.len() == sites && all.iter().all(votes))
}

/// Takes a site out of `sites.toml`.
fn unname(dir: &Path, cluster: u8, number: u8) {
    let mut config = SitesConfig::load(dir).unwrap();
    config.sites.retain(|place| (place.cluster, place.number) != (cluster, number));
    std::fs::write(dir.join("sites.toml"), config.to_text()).unwrap();
}

#[test]
fn sites_and_cluster_join_running_database_site_leaves() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = &scratch.path().join("sites");
    site("init --clusters 1 --sites 3 --durability os", dir).unwrap();
    assert_eq!(output("remove 0.2 --yes", dir).status, Some(3), "no site is up");
    let _running = up(dir);
    assert_eq!(site("execute put a 1", dir).unwrap(), "a is 1");
    assert!(site("add 0.2", dir).unwrap_err().contains("already in sites.toml"));
    assert!(site("add 0.9", dir).unwrap_err().contains("numbers from 0 to 8"));
    site("add 0.3", dir).unwrap();
    eventually("the fourth votes", || all_vote(dir, 4));
    // A site that is there goes, and comes again.
    eventually("its vote is taken away", || site("remove 0.2 --yes", dir).is_ok());
    unname(dir, 0, 2);
    eventually("three are left", || all_vote(dir, 3));
    std::fs::remove_dir_all(dir.join("site-0-2")).unwrap();
    site("add 0.2", dir).unwrap();
    eventually("it votes again", || all_vote(dir, 4));
    assert_eq!(site("read --site 0.3 get a", dir).unwrap(), "1");
    // The delegate goes, named no more when its mates are asked for its vote.
    let leads = |site: &Value| (site["delegate"] == true).then(|| site["site"].as_str().unwrap().to_owned());
    let mut delegate = None;
    eventually("one leads", || {
        delegate = status(dir).iter().find_map(leads);
        delegate.is_some()
    });
    let delegate = delegate.unwrap();
    assert!(site(&format!("remove {delegate}"), dir).unwrap_err().contains("--yes"));
    unname(dir, 0, delegate[2..].parse().unwrap());
    let remove = format!("`pares site remove {delegate}`");
    eventually("its vote is asked for", || output("status", dir).complaint.contains(&remove));
    eventually("its vote is taken away", || site(&format!("remove {delegate} --yes"), dir).is_ok());
    eventually("three are left", || all_vote(dir, 3));
    assert_eq!(site("execute put a 2", dir).unwrap(), "a is 2");
    site("add 1.0", dir).unwrap();
    eventually("another cluster is there", || status(dir).len() == 4);
    site("admit 1", dir).unwrap();
    eventually("all vote", || all_vote(dir, 4));
    assert_eq!(site("execute --site 1.0 put a 3", dir).unwrap(), "a is 3");
    let left = if delegate == "0.3" { "0.0" } else { "0.3" };
    assert_eq!(site(&format!("read --site {left} get a"), dir).unwrap(), "3");
    let digest = site(&format!("read --site {left} digest"), dir).unwrap();
    assert_eq!(site("read --site 1.0 digest", dir).unwrap(), digest);
}

/// Its descriptors.
fn open_files(running: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", running.0.id())).unwrap().count()
}

fn is_closed(connection: &TcpStream) -> bool {
    match connection.peek(&mut [0]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() != ErrorKind::WouldBlock,
    }
}

#[test]
fn idle_clients_leave_a_site_descriptors_for_its_own_files() {
    let (_scratch, dir) = &one_site(" --no-tls");
    let running = start_after("ulimit -Sn 64; ulimit -Hn 256", "run --site 0.0", dir);
    assert_eq!(site("execute put a 1", dir).unwrap(), "a is 1");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.0.id())).unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(limit.split_whitespace().nth(3), Some("256"), "{limit}");
    let address = SitesConfig::load(dir).unwrap().sites[0].clients;
    let idle: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    idle.iter().for_each(|connection| connection.set_nonblocking(true).unwrap());
    eventually("what does not fit is closed", || {
        idle.iter().filter(|idle| is_closed(idle)).count() >= 300 - 128
    });
    assert!(open_files(&running) <= 192, "{} of 256", open_files(&running));
    drop(idle);
    eventually("there is room again", || site("execute put a 2", dir).is_ok());
}

#[test]
fn damaged_store_ends_site_with_own_status_and_advice() {
    let (_scratch, dir) = one_site("");
    let running = start("0.0", &dir);
    assert_eq!(site("execute add alice 100", &dir).unwrap(), "100 added to alice");
    drop(running);
    damage_store(&dir.join("site-0-0"));
    let ended = output("run --site 0.0", &dir);
    let said = ended.complaint;
    assert_eq!(ended.status, Some(6), "{said}");
    assert!(said.contains("site-0-0") && said.contains("move the whole directory"), "{said}");
}

#[test]
fn wrong_file_in_place_of_note_or_log_ends_site_by_name() {
    let (scratch, dir) = one_site("");
    let running = start("0.0", &dir);
    assert_eq!(site("execute put a 1", &dir).unwrap(), "a is 1");
    drop(running);
    let own = dir.join("site-0-0");
    let ends_and_names = |name: &str| {
        let ended = output("run --site 0.0", &dir);
        let said = ended.complaint;
        assert_eq!(ended.status, Some(6), "{name}: {said}");
        assert!(said.contains(name), "{name}: {said}");
    };
    for name in ["place", "life", "log/lock", "log/marks"] {
        let (note, aside) = (own.join(name), scratch.path().join("aside"));
        std::fs::rename(&note, &aside).unwrap();
        mkfifoat(CWD, &note, Mode::RUSR).unwrap();
        ends_and_names(name);
        std::fs::remove_file(&note).unwrap();
        std::fs::create_dir(&note).unwrap();
        ends_and_names(name);
        std::fs::remove_dir(&note).unwrap();
        std::fs::rename(&aside, &note).unwrap();
    }
    for name in ["log", "store"] {
        let (folder, aside) = (own.join(name), scratch.path().join("aside"));
        std::fs::rename(&folder, &aside).unwrap();
        mkfifoat(CWD, &folder, Mode::RUSR).unwrap();
        ends_and_names(&format!("site-0-0/{name} is not a directory"));
        std::fs::remove_file(&folder).unwrap();
        std::fs::rename(&aside, &folder).unwrap();
    }
    std::fs::rename(own.join("place"), scratch.path().join("aside")).unwrap();
    ends_and_names("the file `place` is missing");
    assert!(!own.join("place").exists(), "it gets no name that it would have to take away");
    std::fs::rename(scratch.path().join("aside"), own.join("place")).unwrap();
    let elsewhere = scratch.path().join("elsewhere");
    site("init --clusters 1 --sites 1 --durability os", &elsewhere).unwrap();
    let running = start("0.0", &elsewhere);
    assert_eq!(site("execute put a 1", &elsewhere).unwrap(), "a is 1");
    drop(running);
    std::fs::remove_dir_all(own.join("log")).unwrap();
    std::fs::rename(elsewhere.join("site-0-0/log"), own.join("log")).unwrap();
    ends_and_names("this log belongs to member 0");
}

#[test]
fn who_may_do_what_is_issued_shown_and_revoked_by_commands() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("sites");
    site("init --clusters 2 --sites 1 --durability os", &dir).unwrap();
    let _running = ["0.0", "1.0"].map(|site| start(site, &dir));
    assert_eq!(site("execute put a 1", &dir).unwrap(), "a is 1");
    let shown = |name: &str| format!("--identity {}", dir.join("tls").join(format!("{name}.pem")).display());
    site("issue --reader auditor", &dir).unwrap();
    assert!(site("issue --reader auditor", &dir).unwrap_err().contains("revoke the old one first"));
    assert!(site("issue --reader ../x", &dir).unwrap_err().contains("lower-case letters"));
    assert!(site("issue", &dir).is_err());
    let reader = shown("reader-auditor");
    assert_eq!(site(&format!("read {reader} get a"), &dir).unwrap(), "1");
    let denied = output(&format!("execute {reader} put a 2"), &dir);
    assert_eq!(denied.status, Some(1), "{denied:?}");
    let said = denied.complaint;
    assert!(said.contains("denied: that takes the certificate of a client"), "{said}");
    let said = site(&format!("migrate {} 1", shown("client-app")), &dir).unwrap_err();
    assert!(said.contains("the certificate of an operator"), "{said}");
    let holder = scratch.path().join("holder");
    std::fs::create_dir(&holder).unwrap();
    for file in ["reader-auditor.pem", "reader-auditor.key.pem", "ca.pem"] {
        std::fs::copy(dir.join("tls").join(file), holder.join(file)).unwrap();
    }
    site("revoke --reader auditor", &dir).unwrap();
    let copy = format!("read --identity {} get a", holder.join("reader-auditor.pem").display());
    eventually("the holder of a copy reads that it is revoked", || {
        site(&copy, &dir).is_err_and(|said| said.contains("This certificate was revoked: ask for another"))
    });
    assert!(site(&format!("read {reader} get a"), &dir).unwrap_err().contains("reader-auditor.pem"));
    site("issue --reader auditor", &dir).unwrap();
    eventually("the new one is believed", || site(&format!("read {reader} get a"), &dir).is_ok());
    // Without the authority's key nobody is added.
    std::fs::remove_file(dir.join("tls/ca.key.pem")).unwrap();
    assert!(site("issue --client another", &dir).unwrap_err().contains("ca.key.pem is missing"));
    let config = std::fs::read_to_string(dir.join("sites.toml")).unwrap();
    let open = config.replace("tls = \"tls\"\n", "").replace("127.0.0.1", "192.0.2.7");
    std::fs::write(dir.join("sites.toml"), open).unwrap();
    assert!(site("run --site 0.0", &dir).unwrap_err().contains("`plain = true` if that network is trusted"));
}

/// `pares site backup --follow` until a signal stops it.
fn follow(dir: &Path, to: &Path) -> Running {
    start_after("", &format!("backup --follow --to {}", to.display()), dir)
}

fn stop(mut follower: Running) {
    follower.signal(Signal::INT);
    assert!(follower.ended().success());
}

/// What `backup verify` says of that directory.
fn verified(backups: &Path) -> Value {
    let said = site(&format!("backup verify --json {}", backups.display()), backups).unwrap();
    serde_json::from_str(&said).unwrap()
}

/// The last version that is kept there.
fn kept(backups: &Path) -> u64 {
    verified(backups)["logs"].as_array().unwrap().last().map_or(0, |log| log["last"].as_u64().unwrap())
}

#[test]
fn backup_restores_spoiled_database_at_a_version() {
    let scratch = tempfile::tempdir().unwrap();
    let [dir, to, other] = ["sites", "backups", "restored"].map(|name| scratch.path().join(name));
    site("init --sites 1 --durability os", &dir).unwrap();
    let running = ["0.0", "1.0"].map(|site| start(site, &dir));
    site("execute add alice 100", &dir).unwrap();
    let follower = follow(&dir, &to);
    eventually("a base", || to.is_dir() && site(&format!("backup verify {}", to.display()), &dir).is_ok());
    site("execute transfer alice bob 30", &dir).unwrap();
    let good = site("read list - - 9", &dir).unwrap();
    eventually(
        "both show it",
        || matches!(&status(&dir)[..], [one, other] if one["stable"] == other["stable"]),
    );
    let version = status(&dir)[0]["stable"].as_u64().unwrap();
    site("execute delete alice", &dir).unwrap();
    eventually("the spoiled version is kept too", || kept(&to) > version);
    stop(follower);
    let begun_again = follow(&dir, &to);
    site("execute delete bob", &dir).unwrap();
    eventually("it goes on where it was", || kept(&to) > version + 1);
    stop(begun_again);
    assert_eq!(verified(&to)["bases"].as_array().unwrap().len(), 1, "no other base was needed");
    let restore = |until: &str, dir: &Path| {
        site(&format!("restore --from {} {until} --clusters 1 --sites 3 --durability os", to.display()), dir)
    };
    assert!(restore("", &dir).unwrap_err().contains("running there now: 0.0 and 1.0"));
    drop(running);
    assert!(restore("", &dir).unwrap_err().contains("its sites are stopped"));
    assert!(restore("--until 2499-01-01", &other).unwrap_err().contains("is in the future"));
    assert!(restore("--until 999", &other).unwrap_err().contains("ends at version"));
    assert!(!other.exists(), "it was known before anything was written");
    let said = restore(&format!("--until {version}"), &other).unwrap();
    assert!(said.starts_with(&format!("version {version}, stored at 20")), "{said}");
    assert!(restore("", &other).unwrap_err().contains("name a new directory"));
    let _running = ["0.0", "0.1", "0.2"].map(|site| start(site, &other));
    eventually("it lives", || output("status", &other).is_ok());
    for at in ["0.0", "0.1", "0.2"] {
        assert_eq!(site(&format!("read --site {at} list - - 9"), &other).unwrap(), good);
    }
    assert_eq!(site("execute transfer alice bob 70", &other).unwrap(), "alice has 0 left");
    let crossed = site(&format!("backup --to {}", to.display()), &other).unwrap_err();
    assert!(crossed.contains("use one backup directory per database"), "{crossed}");
    std::fs::remove_file(to.join("system.toml")).unwrap();
    let said = site(&format!("backup verify {}", to.display()), &dir).unwrap_err();
    assert!(said.contains("system.toml is missing"), "{said}");
}

#[test]
fn site_counters_readable_from_outside_after_death() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("sites");
    site("init --clusters 1 --sites 1", &dir).unwrap();
    assert!(site("stat", &dir).unwrap_err().contains("no site has run"));
    let figures = || -> Value { output("stat --json", &dir).json() };
    let of = |name: &str| figures()["sites"][0]["counters"][name].as_u64().unwrap();
    let running = start("0.0", &dir);
    for _ in 0..3 {
        site("execute add alice 1", &dir).unwrap();
    }
    site("execute give alice 1", &dir).unwrap_err();
    eventually("they are shown", || {
        of("done") == 3 && of("told_refused") == 1 && of("stored") == of("stable")
    });
    assert_eq!((of("takes_part"), of("certifies"), of("executed")), (1, 1, 4));
    assert!(figures()["sites"][0]["log"]["sync_ns"]["count"].as_u64().unwrap() >= 4);
    assert_eq!(output("stat", &dir).status, Some(0));
    let table = site("stat", &dir).unwrap();
    assert!(table.contains("certifies") && table.contains("sync p50"), "{table}");
    drop(running);
    assert_eq!(output("stat", &dir).status, Some(3));
    assert_eq!((of("done"), figures()["sites"][0]["state"].as_str()), (3, Some("down")));
    std::fs::write(dir.join("site-0-0/counters"), b"none").unwrap();
    assert_eq!(output("stat", &dir).status, Some(4), "one whose figures are damaged is not left out");
    assert_eq!(figures()["sites"][0]["state"].as_str(), Some("unknown"));
    std::fs::remove_file(dir.join("site-0-0/counters")).unwrap();
    std::fs::create_dir(dir.join("site-0-0/counters")).unwrap();
    let _running = start("0.0", &dir);
    let complaint = || output("status", &dir).complaint;
    eventually("it goes on without figures, and says so", || {
        complaint().contains("its counters are not available")
    });
    assert!(output("stat", &dir).complaint.contains("its counters cannot be read"));
}
