//! A world for the unit tests of roles: a directory, mapped logs in it, and the rest in memory. Time passes and a task continues
//! when the test says so, and nobody dies.

#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::new_without_default)] // no test makes one by default

pub mod records;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use pares_config::NodeId;
use pares_log::{Config, Mirror, Offset, OpenError, ReadError, Reader, Replacement, Salvage, Writer};
use pares_sequencer::{LocalWindow, Sequencer};
use pares_types::{Epoch, GatewayId, Position, Request, RequestId, ShardId};

use crate::world::{Counters, Next, Ring, Task, Waker, World};

/// What all handles share.
struct Shared {
    dir: tempfile::TempDir,
    counters: Mutex<BTreeMap<String, Arc<TestCounters>>>,
    windows: Mutex<BTreeMap<ShardId, LocalWindow>>,
    tasks: Mutex<Vec<Task>>,
    complaints: Mutex<Vec<String>>,
    /// The request at which the matching engine panics.
    poison: Mutex<Option<RequestId>>,
    /// A file that cannot be removed.
    held: Mutex<Option<&'static str>>,
    /// Whether there is no room for another task.
    crowded: AtomicBool,
    /// The clock that never goes back.
    mono_ns: AtomicU64,
    /// How far the other one was set back.
    back_ns: AtomicU64,
    randoms: AtomicU8,
    boots: AtomicU8,
}

#[derive(Clone)]
pub struct TestWorld(Arc<Shared>);

impl TestWorld {
    pub fn new() -> Self {
        Self(Arc::new(Shared {
            dir: tempfile::tempdir().unwrap(),
            counters: Mutex::default(),
            windows: Mutex::default(),
            tasks: Mutex::default(),
            complaints: Mutex::default(),
            poison: Mutex::default(),
            held: Mutex::default(),
            crowded: AtomicBool::default(),
            mono_ns: AtomicU64::default(),
            back_ns: AtomicU64::default(),
            randoms: AtomicU8::default(),
            boots: AtomicU8::new(1),
        }))
    }

    /// Where a file of the world really lies.
    pub fn real(&self, path: &Path) -> PathBuf {
        self.0.dir.path().join(path)
    }

    /// All that was said to the operator.
    pub fn complaints(&self) -> String {
        self.0.complaints.lock().unwrap().join("\n")
    }

    /// The matching engine panics at that request from now on; or at none any more.
    pub fn poison(&self, request: Option<RequestId>) {
        *self.0.poison.lock().unwrap() = request;
    }

    /// That file cannot be removed from now on; or every file can.
    pub fn hold(&self, path: Option<&'static str>) {
        *self.0.held.lock().unwrap() = path;
    }

    /// Time passes.
    pub fn pass(&self, ns: u64) {
        self.0.mono_ns.fetch_add(ns, Ordering::Relaxed);
    }

    pub fn set_back(&self, ns: u64) {
        self.0.back_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Whether there is room for another task.
    pub fn crowd(&self, crowded: bool) {
        self.0.crowded.store(crowded, Ordering::Relaxed);
    }

    /// The system is started again after what only lives while it does was removed.
    pub fn lose_run(&self) {
        self.0.windows.lock().unwrap().clear();
        self.0.counters.lock().unwrap().clear();
    }

    /// Has every task do what there is to do.
    pub fn run_tasks(&self) {
        let mut tasks = std::mem::take(&mut *self.0.tasks.lock().unwrap());
        tasks.retain_mut(|task| {
            loop {
                match task() {
                    Next::Again => {}
                    Next::Done => return false,
                    Next::After(_) | Next::Sleep => return true,
                }
            }
        });
        self.0.tasks.lock().unwrap().extend(tasks);
    }

    /// The machine was started again; its power did not fail.
    pub fn boot(&self) {
        self.0.boots.fetch_add(1, Ordering::Relaxed);
    }

    /// A bit of the record at `offset` flips.
    pub fn flip(&self, log: NodeId, offset: Offset) {
        self.spoil(Path::new(&format!("{log}/{:020}.seg", 0)), offset.0 + 40);
    }

    /// A bit of a file's byte flips.
    pub fn spoil(&self, path: &Path, at: u64) {
        let file = fs::File::options().read(true).write(true).open(self.real(path)).unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ 1], at).unwrap();
    }

    /// A directory is gone with all that is in it.
    pub fn remove_dir(&self, path: impl AsRef<Path>) {
        fs::remove_dir_all(self.real(path.as_ref())).unwrap();
    }

    fn log(&self, log: NodeId) -> PathBuf {
        self.real(Path::new(&log.to_string()))
    }
}

impl World for TestWorld {
    type Writer = Writer;
    type Reader = Reader;
    type Salvage = Salvage;
    type Replacement = Replacement;
    type Mirror = Mirror;
    type Window = LocalWindow;
    type Counters = Arc<TestCounters>;
    type Ringer = Deaf;
    type File = fs::File;

    fn write_log(&self, log: NodeId, config: Config) -> Result<Writer, OpenError> {
        Writer::open(&self.log(log), config).map(|(writer, _)| writer)
    }

    fn write_tap(&self, gateway: GatewayId, config: Config) -> Result<Writer, OpenError> {
        Writer::open(&self.real(&Path::new("tap").join(NodeId::Gateway(gateway).to_string())), config)
            .map(|(writer, _)| writer)
    }

    fn read_log(&self, log: NodeId, from: Offset) -> Result<Reader, ReadError> {
        Reader::open(&self.log(log), from)
    }

    fn read_log_from_start(&self, log: NodeId) -> Result<Reader, ReadError> {
        Reader::at_start(&self.log(log))
    }

    fn salvage_log(&self, log: NodeId) -> Result<Salvage, ReadError> {
        Salvage::published(&self.log(log))
    }

    fn replace_log(&self, log: NodeId, config: Config) -> Result<Replacement, OpenError> {
        Replacement::begin(&self.log(log), config)
    }

    fn mirror_log(&self, log: NodeId, config: Config, afresh: bool) -> Result<Mirror, OpenError> {
        Mirror::open(&self.log(log), config, afresh)
    }

    fn open_window(&self, shard: ShardId) -> io::Result<Option<LocalWindow>> {
        Ok(self.0.windows.lock().unwrap().get(&shard).cloned())
    }

    fn create_window(
        &self,
        shard: ShardId,
        capacity: usize,
        epoch: Epoch,
        first: Position,
    ) -> io::Result<()> {
        let mut windows = self.0.windows.lock().unwrap();
        let new = match windows.get(&shard) {
            Some(old) if old.epoch() >= epoch => return Err(io::ErrorKind::AlreadyExists.into()),
            Some(old) => old.begin_epoch(epoch, first),
            None => LocalWindow::new(capacity, epoch, first),
        };
        windows.insert(shard, new);
        Ok(())
    }

    fn create_counters(&self, name: &str, counters: &[&str]) -> io::Result<Arc<TestCounters>> {
        let counter = |name: &&str| ((*name).to_owned(), AtomicU64::new(0));
        let numbers = Arc::new(TestCounters(counters.iter().map(counter).collect()));
        self.0.counters.lock().unwrap().insert(name.into(), Arc::clone(&numbers));
        Ok(numbers)
    }

    fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        let counters = self.0.counters.lock().unwrap();
        let (_, value) = counters.get(name)?.0.iter().find(|(name, _)| name == counter)?;
        Some(value.load(Ordering::Relaxed))
    }

    fn ringer(&self) -> Deaf {
        Deaf
    }

    fn now_ns(&self) -> u64 {
        self.mono_ns() - self.0.back_ns.load(Ordering::Relaxed)
    }

    fn random(&self) -> [u8; 32] {
        [self.0.randoms.fetch_add(1, Ordering::Relaxed); 32]
    }

    fn boot_id(&self) -> u128 {
        self.0.boots.load(Ordering::Relaxed).into()
    }

    fn mono_ns(&self) -> u64 {
        self.0.mono_ns.load(Ordering::Relaxed)
    }

    fn create_file(&self, path: &Path) -> io::Result<fs::File> {
        let path = self.real(path);
        fs::create_dir_all(path.parent().expect("below the directory"))?;
        fs::File::options().read(true).write(true).create(true).truncate(true).open(path)
    }

    fn open_file(&self, path: &Path) -> io::Result<fs::File> {
        fs::File::open(self.real(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.real(from), self.real(to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        if self.0.held.lock().unwrap().is_some_and(|held| Path::new(held) == path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        fs::remove_file(self.real(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.real(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names: Vec<_> = entries
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<_>>()?;
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn spawn(&self, _name: &'static str, task: Task) -> io::Result<Waker> {
        if self.0.crowded.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.0.tasks.lock().unwrap().push(task);
        Ok(Box::new(|| {}))
    }

    fn attempt<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(step)).ok()
    }

    fn executing(&self, _shard: ShardId, _position: Position, request: &Request) {
        let poison = *self.0.poison.lock().unwrap();
        assert!(poison != Some(request.id), "the matching engine met a poisonous request");
    }

    fn give_way(&self) {}

    fn leave_background(&self) {}

    fn complain(&self, what: &dyn Display) {
        self.0.complaints.lock().unwrap().push(what.to_string());
    }
}

pub struct TestCounters(Vec<(String, AtomicU64)>);

impl Counters for Arc<TestCounters> {
    fn set(&self, counter: impl Into<usize>, value: u64) {
        self.0[counter.into()].1.store(value, Ordering::Relaxed);
    }

    fn add(&self, counter: impl Into<usize>, increment: u64) {
        self.0[counter.into()].1.fetch_add(increment, Ordering::Relaxed);
    }

    fn get(&self, counter: impl Into<usize>) -> u64 {
        self.0[counter.into()].1.load(Ordering::Relaxed)
    }
}

/// Wakes nobody: the test takes every turn itself.
pub struct Deaf;

impl Ring for Deaf {
    fn ring(&mut self, _node: NodeId) {}
}
