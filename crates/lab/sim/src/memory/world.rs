//! What a role sees of the machine: the world of its process.

use std::fmt::Display;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pares_config::NodeId;
use pares_log::{Config, Offset, OpenError, ReadError};
use pares_roles::world::{Counters, Ring, Task, Waker, World};
use pares_sequencer::Sequencer;
use pares_types::{Epoch, GatewayId, Position, Request, ShardId};

use super::file::File;
use super::host::{Host, Killed};
use super::lens::Lens;
use super::machine::{Block, Effect};
use super::mirror::Mirror;
use super::reader::{Reader, Salvage};
use super::replace::Replacement;
use super::seam::Failed;
use super::window::Window;
use super::writer::Writer;
use crate::engine::Harm;

/// How long hosts that publish market data have been up at the start.
const BOOTED_NS: u64 = 3_600_000_000_000;

#[derive(Debug)]
pub(crate) struct MemoryCounters(Arc<Block>);

impl Counters for MemoryCounters {
    fn set(&self, counter: impl Into<usize>, value: u64) {
        self.0.values[counter.into()].store(value, Ordering::Relaxed);
    }

    fn add(&self, counter: impl Into<usize>, increment: u64) {
        self.0.values[counter.into()].fetch_add(increment, Ordering::Relaxed);
    }

    fn get(&self, counter: impl Into<usize>) -> u64 {
        self.0.values[counter.into()].load(Ordering::Relaxed)
    }
}

/// Rings bells in memory.
#[derive(Debug)]
pub(crate) struct Ringer(Host);

impl Ring for Ringer {
    fn ring(&mut self, node: NodeId) {
        if self.0.passes() {
            self.0.tell(Effect::Ring(node));
        }
    }
}

impl World for Host {
    type Writer = Writer;
    type Reader = Reader;
    type Salvage = Salvage;
    type Replacement = Replacement;
    type Mirror = Mirror;
    type Window = Window;
    type Counters = MemoryCounters;
    type Ringer = Ringer;
    type File = File;
    const SHARD_NAMES_MAX: usize = crate::oracle::NAMES_MAX;

    fn write_log(&self, node: NodeId, config: Config) -> Result<Writer, OpenError> {
        self.passes();
        let durability = config.promises();
        let log = {
            let mut state = self.machine.lock();
            match state.logs.get(&node) {
                Some(log) => log.clone(),
                None if config.wants_existing() => {
                    return Err(OpenError::Absent { dir: node.to_string().into() });
                }
                None => {
                    let log = state.new_log(node, durability);
                    state.logs.insert(node, log.clone());
                    log
                }
            }
        };
        if log.lock().is_mirror {
            return Err(OpenError::Mirror { dir: node.to_string().into() });
        }
        log.lock().open(durability)?;
        let lens = self.lens(node);
        Ok(Writer { host: self.clone(), log, lens, is_tap: false })
    }

    fn write_tap(&self, gateway: GatewayId, config: Config) -> Result<Writer, OpenError> {
        self.passes();
        let durability = config.promises();
        let log = {
            let mut state = self.machine.lock();
            let made = state.new_log(NodeId::Gateway(gateway), durability);
            state.taps.entry(gateway).or_insert(made).clone()
        };
        log.lock().open(durability)?;
        Ok(Writer { host: self.clone(), log, lens: Lens::default(), is_tap: true })
    }

    fn read_log(&self, log: NodeId, from: Offset) -> Result<Reader, ReadError> {
        self.passes();
        Reader::open(self, log, self.find(log)?, Some(from))
    }

    fn read_log_from_start(&self, log: NodeId) -> Result<Reader, ReadError> {
        self.passes();
        Reader::open(self, log, self.find(log)?, None)
    }

    fn salvage_log(&self, log: NodeId) -> Result<Salvage, ReadError> {
        self.passes();
        let found = self.find(log)?;
        let limit = found.lock().written;
        Ok(Salvage::below(found, limit))
    }

    fn replace_log(&self, log: NodeId, config: Config) -> Result<Replacement, OpenError> {
        self.passes();
        Replacement::begin(self, &self.machine, log, config.promises())
    }

    fn mirror_log(&self, log: NodeId, config: Config, afresh: bool) -> Result<Mirror, OpenError> {
        self.passes();
        Mirror::open(self, &self.machine, log, &config, afresh)
    }

    fn open_window(&self, shard: ShardId) -> io::Result<Option<Window>> {
        self.must_live()?;
        let found = self.machine.window(shard);
        let defect = self.machine.lock().seam.window(self.node);
        Ok(found.map(|window| Window::new(self, shard, window, defect)))
    }

    fn create_window(
        &self,
        shard: ShardId,
        capacity: usize,
        epoch: Epoch,
        first: Position,
    ) -> io::Result<()> {
        self.must_live()?;
        let mut state = self.machine.lock();
        let current = state.windows.get(&shard).map(Sequencer::epoch);
        if current.is_some_and(|current| current >= epoch) {
            return Err(io::Error::other(format!("the window is of epoch {current:?} already")));
        }
        state.begin_window(shard, capacity, epoch, first);
        Ok(())
    }

    fn create_counters(&self, name: &str, counters: &[&str]) -> io::Result<MemoryCounters> {
        self.writes()?;
        let names = counters.iter().map(|&name| name.to_owned()).collect();
        let values = counters.iter().map(|_| AtomicU64::new(0)).collect();
        let block = Arc::new(Block { names, values });
        self.machine.lock().counters.insert(name.to_owned(), Arc::clone(&block));
        Ok(MemoryCounters(block))
    }

    fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        self.passes();
        let state = self.machine.lock();
        let pretended = state.seam.follows(counter, || state.files.bytes(Path::new("lanes")));
        drop(state);
        self.machine.counter(name, counter).map(|value| pretended.unwrap_or(value))
    }

    fn ringer(&self) -> Ringer {
        Ringer(self.clone())
    }

    fn now_ns(&self) -> u64 {
        let mut state = self.machine.lock();
        let now_ns = state.now_ns;
        now_ns.saturating_add_signed(state.fate(self.node).clock_off_ns)
    }

    /// Others each time, and the same from the same seed.
    fn random(&self) -> [u8; 32] {
        let mut state = self.machine.lock();
        state.randoms += 1;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&state.randoms.to_le_bytes());
        bytes
    }

    fn boot_id(&self) -> u128 {
        1 + self.machine.lock().files.power_failures
    }

    fn mono_ns(&self) -> u64 {
        // Hosts that tell market data have been up for long: nothing is as it was just now because it was never.
        self.machine.lock().now_ns + if self.node.only_tells() { BOOTED_NS } else { 0 }
    }

    fn create_file(&self, path: &Path) -> io::Result<File> {
        self.writes()?;
        let content = self.machine.lock().files.create(path);
        Ok(File::new(self, content))
    }

    fn open_file(&self, path: &Path) -> io::Result<File> {
        self.must_live()?;
        let state = self.machine.lock();
        let content = state.files.open(path)?;
        Ok(File::new(self, state.seam.read_lanes(self.node, path, &content).unwrap_or(content)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.must_live()?;
        let mut state = self.machine.lock();
        if state.seam.forgets(to) && state.files.bytes(to).is_some() {
            return state.files.remove(from);
        }
        if to.extension().is_some_and(|extension| extension == "ckpt")
            && let Some(spoilt) = state.files.bytes(from).and_then(|bytes| state.seam.name_checkpoint(&bytes))
        {
            state.files.overwrite(from, spoilt);
        }
        state.files.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.must_live()?;
        self.machine.lock().files.remove(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.must_live()?;
        Ok(self.machine.lock().files.list(dir))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.must_live()?;
        self.machine.lock().files.sync_dir(dir);
        Ok(())
    }

    fn spawn(&self, name: &'static str, task: Task) -> io::Result<Waker> {
        self.must_live()?;
        let mut state = self.machine.lock();
        if state.fate(self.node).cannot_spawn {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.tasks_made += 1;
        let number = state.tasks_made;
        state.effects.push(Effect::Spawn(self.node, number, name, task));
        drop(state);
        let machine = self.machine.clone();
        Ok(Box::new(move || machine.lock().effects.push(Effect::Wake(number))))
    }

    fn attempt<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(done) => Some(done),
            Err(payload) if payload.is::<Failed>() => None,
            // Killed, or an assertion of the rules.
            Err(payload) => resume_unwind(payload),
        }
    }

    fn executing(&self, shard: ShardId, position: Position, request: &Request) {
        let mut state = self.machine.lock();
        let fails = state.seam.executing(self.node, shard, position, request);
        if fails == Some(Harm::Ends) {
            state.fate(self.node).life += 1;
        }
        drop(state);
        match fails {
            Some(Harm::Panics) => resume_unwind(Box::new(Failed)),
            Some(Harm::Ends) => resume_unwind(Box::new(Killed)),
            None => {}
        }
    }

    fn give_way(&self) {}

    fn leave_background(&self) {}

    fn complain(&self, what: &dyn Display) {
        self.tell(Effect::Told(self.node, what.to_string()));
    }
}
