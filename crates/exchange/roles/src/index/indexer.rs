//! Making runs, beside a recorder's duty cycle.
//!
//! It reads the recorder's log again, a little behind the recorder, wherever a stretch has no run: at the end while the log grows, and
//! in between what was lost. A disk that fails costs the index and nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use pares_config::NodeId;
use pares_log::{LogReader, Offset, ReadError};
use pares_types::{Position, RecorderId, ShardId};
use pares_wire::record::{self, ResultRecord};

use super::counting::Counting;
use super::run::{self, Run};
use super::{Kind, Row, dir_of, row_of_name, stretches};
use crate::NodeError;
use crate::recorder::beginnings;
use crate::world::{Next, World};

/// Records read at once.
const BATCH_MAX: usize = 16_384;
/// Between two batches, so that the processor is left to others.
const BREATH: Duration = Duration::from_millis(10);
/// With nothing to read.
const PAUSE: Duration = Duration::from_millis(250);
/// After the disk failed.
const FAILED_PAUSE: Duration = Duration::from_secs(1);

/// What makes runs of a recorder's log.
pub(crate) struct Indexer<W: World> {
    world: W,
    id: RecorderId,
    shards: Vec<ShardId>,
    dir: PathBuf,
    sync: bool,
    /// Rows of a run, up to a record's and those that end one.
    rows_max: usize,
    /// Where the log ended when the recorder opened it: what a run has beyond that is of a future that did not happen.
    end: u64,
    /// Stretches that have a run, by their beginning; `None` until the files were looked at.
    runs: Option<BTreeMap<u64, u64>>,
    /// Runs that are to be read through once.
    unchecked: Vec<(u64, u64)>,
    stretch: Option<Stretch<W>>,
    alive: Weak<()>,
    told: bool,
}

/// A stretch that is being read.
struct Stretch<W: World> {
    reader: W::Reader,
    from: u64,
    /// Where the next run begins.
    limit: u64,
    /// Its segment of the log is read to the end: what is dropped of a log ends with a segment.
    is_cut: bool,
    names: Vec<Row>,
    streams: Vec<Row>,
    counting: Counting,
}

impl<W: World> Indexer<W> {
    /// Starts it for a recorder whose log ends at `end`; it continues for as long as what is returned is kept.
    pub(crate) fn start(
        world: &W,
        (id, shards): (RecorderId, Vec<ShardId>),
        (rows_max, sync): (usize, bool),
        end: Offset,
    ) -> Result<Arc<()>, NodeError> {
        let life = Arc::new(());
        let mut indexer = Self {
            world: world.clone(),
            id,
            shards,
            dir: dir_of(id),
            sync,
            rows_max,
            end: end.0,
            runs: None,
            unchecked: Vec::new(),
            stretch: None,
            alive: Arc::downgrade(&life),
            told: false,
        };
        // It comes back by itself.
        let _waker = world
            .spawn("index", Box::new(move || indexer.turn()))
            .map_err(NodeError::io("starting a thread"))?;
        Ok(life)
    }

    fn turn(&mut self) -> Next {
        if self.alive.strong_count() == 0 {
            return Next::Done;
        }
        match self.work() {
            Ok(0) => Next::After(PAUSE),
            Ok(_) => Next::After(BREATH),
            Err(error) => {
                if !std::mem::replace(&mut self.told, true) {
                    let log = NodeId::Recorder(self.id);
                    self.world.complain(&format_args!("the index of {log} is not made for now: {error}"));
                }
                // All of it is rebuilt from what the files say.
                (self.runs, self.stretch) = (None, None);
                Next::After(FAILED_PAUSE)
            }
        }
    }

    /// Says how much there was to do.
    fn work(&mut self) -> Result<usize, NodeError> {
        if self.runs.is_none() {
            self.look_at_files()?;
        }
        self.check_next()?;
        if self.stretch.is_none() && !self.begin_stretch()? {
            return Ok(0);
        }
        self.read_on()
    }

    /// Which runs there are. Those that are none, or overlap others, or reach beyond the log, go.
    fn look_at_files(&mut self) -> Result<(), NodeError> {
        let mut runs = BTreeMap::new();
        let mut to_last = 0;
        let mut found = BTreeSet::new();
        for kind in Kind::ALL {
            let of_kind = stretches(&self.world, &self.dir, kind);
            found.extend(of_kind.map_err(NodeError::io("listing an index"))?);
        }
        for (from, to) in found {
            let is_run = |kind| Run::open(&self.world, (&self.dir, kind), (from, to)).is_some();
            if from >= to_last && to > from && to <= self.end && Kind::ALL.into_iter().all(is_run) {
                runs.insert(from, to);
                to_last = to;
            } else {
                self.remove((from, to));
            }
        }
        self.unchecked = runs.iter().map(|(from, to)| (*from, *to)).collect();
        // From now on the log only grows.
        self.end = u64::MAX;
        self.runs = Some(runs);
        Ok(())
    }

    /// Reads one run through that this process has not yet; one that is damaged is rebuilt.
    fn check_next(&mut self) -> Result<(), NodeError> {
        let Some(stretch) = self.unchecked.pop() else { return Ok(()) };
        let is_whole = |kind| {
            let opened = Run::open(&self.world, (&self.dir, kind), stretch);
            opened.is_some_and(|(run, file)| run.is_whole(&file))
        };
        if !Kind::ALL.into_iter().all(is_whole) {
            self.forget(stretch);
        }
        Ok(())
    }

    /// What cannot be read is rebuilt.
    fn forget(&mut self, stretch: (u64, u64)) {
        self.remove(stretch);
        self.stretch = None;
        self.runs.as_mut().map(|runs| runs.remove(&stretch.0));
    }

    fn remove(&self, stretch: (u64, u64)) {
        for kind in Kind::ALL {
            // One that stays is tried again, and nobody believes it.
            let _ = self.world.remove_file(&super::file_of(&self.dir, kind, stretch));
        }
    }

    /// Goes to the first place of the log that has no run. Says whether there is a log.
    fn begin_stretch(&mut self) -> Result<bool, NodeError> {
        let mut reader = match self.world.read_log_from_start(NodeId::Recorder(self.id)) {
            Err(ReadError::NotYet { .. }) => return Ok(false),
            opened => opened?,
        };
        let runs = self.runs.as_mut().expect("looked at");
        let released = reader.released().0;
        // The one that ends there says which numbers come next.
        let dropped: Vec<_> = runs.extract_if(.., |_, to| *to < released).collect();
        let (mut from, mut before) = (released, None);
        for (&start, &to) in runs.iter() {
            if start > from {
                break;
            }
            from = from.max(to);
            before = Some((start, to));
        }
        let limit = runs.range(from..).next().map_or(u64::MAX, |(start, _)| *start);
        assert!(from < limit, "a stretch without a run is not empty");
        dropped.into_iter().for_each(|stretch| self.remove(stretch));
        if from > released {
            reader.seek(Offset(from))?;
        }
        let Some(counting) = self.counting(from, before) else { return Ok(false) };
        let (names, streams) = (Vec::with_capacity(self.rows_max), Vec::with_capacity(self.rows_max));
        self.stretch = Some(Stretch { reader, from, limit, is_cut: false, names, streams, counting });
        Ok(true)
    }

    /// The numbers at a place of the log, `before` being the run that ends there; if that cannot be read it is rebuilt first. In a log
    /// that begins later than its shards they are not known before all shards have checkpoints.
    fn counting(&mut self, from: u64, before: Option<(u64, u64)>) -> Option<Counting> {
        let Some(stretch) = before else {
            // With nothing in the log there is nothing to do.
            let first = beginnings(&self.world, NodeId::Recorder(self.id), 1).into_values().next()?;
            return match first > Position(0) {
                true => Counting::from_checkpoints(&self.world, self.id, &self.shards),
                false => Some(Counting::default()),
            };
        };
        let opened = Run::open(&self.world, (&self.dir, Kind::Streams), stretch);
        let rows = opened.and_then(|(run, file)| run.rows(&file).ok());
        let counting = rows.and_then(|rows| Counting::from_run(&rows, from));
        if counting.is_none() {
            self.forget(stretch);
        }
        counting
    }

    /// Reads a batch; with a run full, or up to the next one, writes it.
    fn read_on(&mut self) -> Result<usize, NodeError> {
        let stretch = self.stretch.as_mut().expect("just begun");
        let read = stretch.read(self.rows_max)?;
        let to = stretch.reader.offset().0;
        if !stretch.is_over(self.rows_max) && to < stretch.limit {
            return Ok(read);
        }
        assert!(stretch.from < to, "a run is of a stretch of the log");
        let Stretch { from, limit, is_cut, names, streams, counting, .. } = stretch;
        streams.extend(counting.ends(to));
        for (kind, rows) in Kind::ALL.into_iter().zip([&mut *names, &mut *streams]) {
            let how = (&*self.dir, kind, self.sync);
            let written = run::write(&self.world, how, (*from, to), rows);
            written.map_err(NodeError::io("writing an index"))?;
        }
        let before = self.runs.as_mut().expect("looked at").insert(*from, to);
        assert!(before.is_none(), "a stretch has one run");
        if to < *limit {
            (*from, *is_cut, _, _) = (to, false, names.clear(), streams.clear());
        } else {
            self.stretch = None;
        }
        self.told = false;
        Ok(read.max(1))
    }
}

impl<W: World> Stretch<W> {
    fn is_over(&self, rows_max: usize) -> bool {
        self.is_cut || self.names.len().max(self.streams.len()) >= rows_max
    }

    /// Reads what is durable, at most a batch, up to the next run or the next segment, or until there are so many rows. Says how many records
    /// that were.
    fn read(&mut self, rows_max: usize) -> Result<usize, NodeError> {
        for read in 0..BATCH_MAX {
            let at = self.reader.offset();
            assert!(at.0 >= self.from, "a stretch is read from where it begins");
            if at >= self.reader.durable() || at.0 >= self.limit || self.is_over(rows_max) {
                return Ok(read);
            }
            let segment_bytes = self.reader.segment_bytes();
            let Some(entry) = self.reader.next()? else { return Ok(read) };
            let segment = entry.offset.0 - entry.offset.0 % segment_bytes;
            if segment > self.from && !(self.names.is_empty() && self.streams.is_empty()) {
                self.is_cut = true;
                self.reader.seek(Offset(segment))?;
                return Ok(read);
            }
            if record::schema(entry.payload) == Some(record::RESULT) {
                let record = ResultRecord::read(entry.payload)?;
                self.names.extend(row_of_name(&record, entry.offset)?);
                self.counting.count(&record, entry.offset, &mut self.streams)?;
            }
        }
        Ok(BATCH_MAX)
    }
}
