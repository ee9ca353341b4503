//! The world that fails, call by call.

use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use pares_config::NodeId;
use pares_log::{Config, Offset, OpenError, ReadError};
use pares_roles::World;
use pares_roles::world::{Task, Waker};
use pares_types::{Epoch, GatewayId, Position, Request, ShardId};

use crate::crash::Point;
use crate::{Faulty, FaultyFile, FaultyReader, FaultyWindow, FaultyWriter};

impl<W: World> Faulty<W> {
    fn reader(&self, inner: W::Reader, log: NodeId) -> FaultyReader<W::Reader> {
        FaultyReader::new(inner, log, Arc::clone(&self.faults))
    }

    fn file(&self, inner: W::File, path: &Path) -> FaultyFile<W::File> {
        let is_checkpoint = path.extension().is_some_and(|extension| extension == "new");
        FaultyFile { inner, faults: is_checkpoint.then(|| Arc::clone(&self.faults)) }
    }
}

impl<W: World> World for Faulty<W> {
    type Writer = FaultyWriter<W::Writer>;
    type Reader = FaultyReader<W::Reader>;
    type Salvage = W::Salvage;
    type Replacement = W::Replacement;
    type Mirror = W::Mirror;
    type Window = FaultyWindow<W::Window>;
    type Counters = W::Counters;
    type Ringer = W::Ringer;
    type File = FaultyFile<W::File>;
    const SHARD_NAMES_MAX: usize = W::SHARD_NAMES_MAX;

    fn write_log(&self, log: NodeId, config: Config) -> Result<Self::Writer, OpenError> {
        let config = match &self.faults.sick {
            Some(sick) => config.device(sick.clone()),
            None => config,
        };
        let inner = self.inner.write_log(log, config)?;
        Ok(FaultyWriter::new(inner, Arc::clone(&self.faults)))
    }

    fn write_tap(&self, gateway: GatewayId, config: Config) -> Result<Self::Writer, OpenError> {
        Ok(FaultyWriter::new(self.inner.write_tap(gateway, config)?, Arc::clone(&self.faults)))
    }

    fn read_log(&self, log: NodeId, from: Offset) -> Result<Self::Reader, ReadError> {
        Ok(self.reader(self.inner.read_log(log, from)?, log))
    }

    fn read_log_from_start(&self, log: NodeId) -> Result<Self::Reader, ReadError> {
        Ok(self.reader(self.inner.read_log_from_start(log)?, log))
    }

    fn mirror_log(&self, log: NodeId, config: Config, afresh: bool) -> Result<Self::Mirror, OpenError> {
        self.inner.mirror_log(log, config, afresh)
    }

    fn open_window(&self, shard: ShardId) -> io::Result<Option<Self::Window>> {
        let window = self.inner.open_window(shard)?;
        Ok(window.map(|inner| FaultyWindow::new(inner, Arc::clone(&self.faults))))
    }

    /// A venue and a recorder make theirs once they have read what is theirs.
    fn create_counters(&self, name: &str, counters: &[&str]) -> io::Result<W::Counters> {
        self.faults.crash.at(Point::VenueRestored);
        self.faults.crash.at(Point::RecorderRecovered);
        self.inner.create_counters(name, counters)
    }

    fn create_file(&self, path: &Path) -> io::Result<Self::File> {
        Ok(self.file(self.inner.create_file(path)?, path))
    }

    fn open_file(&self, path: &Path) -> io::Result<Self::File> {
        Ok(self.file(self.inner.open_file(path)?, path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if to.extension().is_none_or(|extension| extension != "ckpt") {
            return self.inner.rename(from, to);
        }
        self.faults.crash.at(Point::RecorderStored);
        self.inner.rename(from, to)?;
        self.faults.crash.at(Point::RecorderNamed);
        Ok(())
    }

    fn attempt<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        self.inner.attempt(step)
    }

    #[inline]
    fn executing(&self, shard: ShardId, position: Position, request: &Request) {
        let crash = &self.faults.crash;
        if crash.is_armed() && !crash.is_open() {
            crash.at(Point::VenueReplaying);
        }
        self.faults.poison.meet(request);
        self.inner.executing(shard, position, request);
    }

    /// A gateway leaves it once it is open, a venue once it has caught up.
    fn leave_background(&self) {
        self.faults.crash.at(Point::GatewayRecovered);
        self.faults.crash.opened();
        self.inner.leave_background();
    }

    passed_on! {
        fn salvage_log(&self, log: NodeId) -> Result<W::Salvage, ReadError>;
        fn replace_log(&self, log: NodeId, config: Config) -> Result<W::Replacement, OpenError>;
        fn create_window(&self, shard: ShardId, capacity: usize, epoch: Epoch, first: Position) -> io::Result<()>;
        fn counter(&self, name: &str, counter: &str) -> Option<u64>;
        fn ringer(&self) -> W::Ringer;
        fn now_ns(&self) -> u64;
        fn boot_id(&self) -> u128;
        fn random(&self) -> [u8; 32];
        fn mono_ns(&self) -> u64;
        fn remove_file(&self, path: &Path) -> io::Result<()>;
        fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
        fn sync_dir(&self, dir: &Path) -> io::Result<()>;
        fn spawn(&self, name: &'static str, task: Task) -> io::Result<Waker>;
        fn give_way(&self);
        fn complain(&self, what: &dyn Display);
    }
}
