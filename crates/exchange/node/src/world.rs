//! The world of a process as it ships: mapped logs and windows, counters, bells, clocks, files, threads.
//!
//! Nothing is decided here. Whatever a role does with these things lies in `pares-roles`, and runs in the simulator too.

use std::fmt::Display;
use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pares_config::{Layout, bells};
use pares_log::{Config, Mirror, Offset, OpenError, ReadError, Reader, Replacement, Salvage, Writer};
use pares_os::scheduling::{self, Background};
use pares_os::{Bells, CountersReader, CountersWriter, clock, open_file};
use pares_roles::world::{Counters, MarketFeed, Next, Ring, Task, Waker, World};
use pares_types::{Epoch, GatewayId, Position, ShardId};
use pares_window::{SharedWindow, WindowError};

use crate::{NodeError, NodeId};

/// What one host gives a process of a system.
#[derive(Clone, Debug)]
pub struct HostWorld(Arc<Host>);

#[derive(Debug)]
struct Host {
    layout: Layout,
    bells: Bells,
    market: Option<Arc<dyn MarketFeed>>,
}

impl HostWorld {
    /// The world in which that system lies.
    ///
    /// # Errors
    /// If its directory cannot be made, or its bells.
    pub fn new(layout: &Layout) -> Result<Self, NodeError> {
        fs::create_dir_all(layout.run()).map_err(NodeError::io("creating the system's directory"))?;
        let bells = Bells::create(&layout.run()).map_err(io::Error::other);
        let bells = bells.map_err(NodeError::io("opening the bells"))?;
        Ok(Self(Arc::new(Host { layout: layout.clone(), bells, market: None })))
    }

    /// The same, in which the market can be followed.
    #[must_use]
    pub fn with_market(self, market: Arc<dyn MarketFeed>) -> Self {
        let Host { layout, bells, .. } = &*self.0;
        Self(Arc::new(Host { layout: layout.clone(), bells: bells.clone(), market: Some(market) }))
    }

    /// Where everything lies.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    fn log(&self, log: NodeId) -> std::path::PathBuf {
        self.0.layout.log(log)
    }

    fn path(&self, path: &Path) -> std::path::PathBuf {
        self.0.layout.root().join(path)
    }
}

impl World for HostWorld {
    type Writer = Writer;
    type Reader = Reader;
    type Salvage = Salvage;
    type Replacement = Replacement;
    type Mirror = Mirror;
    type Window = SharedWindow;
    type Counters = HostCounters;
    type Ringer = HostRinger;
    type File = fs::File;

    fn write_log(&self, log: NodeId, config: Config) -> Result<Writer, OpenError> {
        Writer::open(&self.log(log), config).map(|(writer, _)| writer)
    }

    fn write_tap(&self, gateway: GatewayId, config: Config) -> Result<Writer, OpenError> {
        Writer::open(&self.0.layout.tap(gateway), config).map(|(writer, _)| writer)
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

    fn open_window(&self, shard: ShardId) -> io::Result<Option<SharedWindow>> {
        match SharedWindow::open(&self.0.layout.window(shard)) {
            Ok(window) => Ok(Some(window)),
            Err(WindowError::Map(error)) if error.is_not_yet() => Ok(None),
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn create_window(
        &self,
        shard: ShardId,
        capacity: usize,
        epoch: Epoch,
        first: Position,
    ) -> io::Result<()> {
        let made = SharedWindow::create(&self.0.layout.window(shard), shard, capacity, epoch, first);
        made.map(drop).map_err(io::Error::other)
    }

    fn create_counters(&self, name: &str, counters: &[&str]) -> io::Result<HostCounters> {
        let made = CountersWriter::create(&self.0.layout.counters(name), counters);
        made.map(HostCounters).map_err(io::Error::other)
    }

    fn counter(&self, name: &str, counter: &str) -> Option<u64> {
        CountersReader::open(&self.0.layout.counters(name)).ok()?.get(counter)
    }

    fn ringer(&self) -> HostRinger {
        HostRinger(self.0.bells.ringer())
    }

    fn market(&self) -> Option<Arc<dyn MarketFeed>> {
        self.0.market.clone()
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn random(&self) -> [u8; 32] {
        pares_keys::random()
    }

    fn boot_id(&self) -> u128 {
        clock::boot_id()
    }

    fn mono_ns(&self) -> u64 {
        clock::mono_ns()
    }

    fn create_file(&self, path: &Path) -> io::Result<fs::File> {
        let path = self.path(path);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut options = fs::File::options();
        open_file(options.read(true).write(true).create(true).truncate(true), &path)
    }

    fn open_file(&self, path: &Path) -> io::Result<fs::File> {
        open_file(fs::File::options().read(true), &self.path(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.path(path))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.path(dir)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let name = |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let mut names = entries.map(name).collect::<io::Result<Vec<String>>>()?;
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        fs::File::open(self.path(dir))?.sync_all()
    }

    fn spawn(&self, name: &'static str, mut task: Task) -> io::Result<Waker> {
        let go_on = move || {
            scheduling::ordinary();
            loop {
                match task() {
                    Next::Again => std::thread::yield_now(),
                    Next::After(pause) => std::thread::park_timeout(pause),
                    Next::Sleep => std::thread::park(),
                    Next::Done => return,
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(go_on)?.thread().clone();
        Ok(Box::new(move || thread.unpark()))
    }

    fn attempt<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        catch_unwind(AssertUnwindSafe(step)).ok()
    }

    fn give_way(&self) {
        std::thread::yield_now();
    }

    fn leave_background(&self) {
        drop(background().take());
        scheduling::short_slices();
    }

    fn complain(&self, what: &dyn Display) {
        complain(what);
    }
}

/// Says something to the operator: a node's standard error is its log.
/// On a full disk it is lost, and nothing else (`eprintln!` would panic).
pub fn complain(what: &dyn Display) {
    let _ = writeln!(io::stderr(), "{what}");
}

/// The background in which this process starts, until it leaves it. A process runs one node.
static STARTING: Mutex<Option<Background>> = Mutex::new(None);

fn background() -> std::sync::MutexGuard<'static, Option<Background>> {
    STARTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calling thread leaves the processor to others, until this process [leaves the background](World::leave_background) or
/// `patience` is over.
pub(crate) fn enter_background(patience: Duration) {
    *background() = Background::enter(patience);
}

/// A node's counters.
#[derive(Debug)]
pub struct HostCounters(CountersWriter);

impl Counters for HostCounters {
    #[inline]
    fn set(&self, counter: impl Into<usize>, value: u64) {
        self.0.set(counter.into(), value);
    }

    #[inline]
    fn add(&self, counter: impl Into<usize>, increment: u64) {
        self.0.add(counter.into(), increment);
    }

    #[inline]
    fn get(&self, counter: impl Into<usize>) -> u64 {
        self.0.get(counter.into())
    }
}

/// Rings the bells of nodes.
#[derive(Debug)]
pub struct HostRinger(pares_os::Ringer);

impl Ring for HostRinger {
    #[inline]
    fn ring(&mut self, node: NodeId) {
        self.0.ring(bells::of(node));
        self.0.ring_too(bells::MIRROR);
    }
}
