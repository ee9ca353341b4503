//! Looking for the records of names, beside a gateway's duty cycle.
//!
//! Any recorder's runs will do, and what is not indexed yet is read from its log. Many names are looked for at once, so that the log's
//! end is read once for all of them. A recorder whose log or index cannot be read is skipped; what is not found at any is not
//! known to be there, which is no more than it says: its shard decides.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use pares_config::{NodeId, SystemConfig};
use pares_gateway::{FoundRecord, LookUp, Place};
use pares_log::{LogReader, Offset};
use pares_types::{ClientOrderId, InstrumentId, MemberId, RecorderId};
use pares_wire::record::{self, ResultRecord};

use super::run::Run;
use super::{Key, Kind, dir_of, key_of_name, row_of_name, stretches};
use crate::world::{Next, Ring, Waker, World};
use crate::{NodeError, left_out};

/// Names looked for at once.
const NAMES_MAX: usize = 256;
/// Records of a log's end read at once.
const BATCH_MAX: usize = 4_096;
/// Bytes of a log without an index that are read through for a name. Beyond that its index is just being rebuilt.
const UNINDEXED_MAX: u64 = 256 << 20;
/// Names on their way.
const SOUGHT_MAX: usize = 16_384;

/// A name, and what was found of it.
pub struct Sought {
    /// The name.
    pub look_up: LookUp,
    /// Its records, one of each shard at most.
    pub found: Vec<FoundRecord>,
}

impl Sought {
    fn key(&self) -> Key {
        key_of_name(self.look_up.member, self.look_up.client_order_id)
    }

    /// Whether all is found: of a request to all shards there is a record in each.
    fn is_over(&self, shards: usize) -> bool {
        let all = |one: &FoundRecord| one.request.instrument == InstrumentId(0);
        self.found.first().is_some_and(|first| !all(first) || self.found.len() == shards)
    }

    fn add(&mut self, found: FoundRecord) {
        let shard = found.request.shard;
        if self.found.iter().all(|one| one.request.shard != shard) {
            self.found.push(found);
        }
    }
}

/// The way to the task that looks for names.
pub struct Search {
    to_task: Sender<LookUp>,
    from_task: Receiver<Sought>,
    waker: Waker,
    under_way: usize,
}

impl Search {
    /// Starts the task, for the gateway `bell`.
    ///
    /// # Errors
    /// If there is no room for its thread, or the settings make no shards.
    pub fn start<W: World>(world: &W, config: &SystemConfig, bell: NodeId) -> Result<Self, NodeError> {
        let (to_task, asked) = channel();
        let (done, from_task) = channel();
        let mut task = SearchTask::new(world, config, (asked, done), bell)?;
        let waker = world.spawn("search", Box::new(move || task.turn()));
        let waker = waker.map_err(NodeError::io("starting a thread"))?;
        Ok(Self { to_task, from_task, waker, under_way: 0 })
    }

    /// Has as many looked for as there is room for.
    pub fn begin(&mut self, next: impl FnMut() -> Option<LookUp>) {
        let before = self.under_way;
        assert!(before <= SOUGHT_MAX, "no more names are on their way than may be");
        for look_up in std::iter::from_fn(next).take(SOUGHT_MAX - before) {
            // A task that is gone has taken its process with it.
            let _ = self.to_task.send(look_up);
            self.under_way += 1;
        }
        if self.under_way > before {
            (self.waker)();
        }
    }

    /// The next one that was looked for.
    pub fn take_found(&mut self) -> Option<Sought> {
        let sought = self.from_task.try_recv().ok()?;
        assert!(self.under_way > 0, "what was found was looked for");
        self.under_way -= 1;
        Some(sought)
    }
}

struct SearchTask<W: World> {
    world: W,
    recorders: Vec<Recorder<W>>,
    shards: usize,
    asked: Receiver<LookUp>,
    done: Sender<Sought>,
    ringer: W::Ringer,
    bell: NodeId,
    pass: Option<Pass>,
}

/// Names that are being looked for at a recorder.
struct Pass {
    sought: Vec<Sought>,
    recorder: usize,
    /// Runs not looked into yet, the newest last.
    runs: Vec<(u64, u64)>,
    /// Where the log's end begins that no run covers; later, how far it is read.
    tail: Offset,
    by_key: BTreeMap<Key, Vec<usize>>,
}

impl<W: World> SearchTask<W> {
    fn new(
        world: &W,
        config: &SystemConfig,
        (asked, done): (Receiver<LookUp>, Sender<Sought>),
        bell: NodeId,
    ) -> Result<Self, NodeError> {
        let recorders = config.recorder_ids().map(Recorder::new).collect();
        let (shards, ringer) = (config.shards()?.len(), world.ringer());
        Ok(Self { world: world.clone(), recorders, shards, asked, done, ringer, bell, pass: None })
    }

    fn turn(&mut self) -> Next {
        let Some(mut pass) = self.pass.take() else { return self.begin() };
        let recorder = &mut self.recorders[pass.recorder];
        let goes_on = match pass.runs.pop() {
            Some(stretch) => {
                recorder.look_into(&self.world, stretch, &mut pass.sought, self.shards);
                true
            }
            None => recorder.read_tail(&mut pass, self.shards),
        };
        let is_over = pass.sought.iter().all(|one| one.is_over(self.shards));
        if goes_on && !is_over {
            self.pass = Some(pass);
        } else if is_over || pass.recorder + 1 == self.recorders.len() {
            self.end(pass);
        } else {
            pass.recorder += 1;
            self.enter(pass);
        }
        Next::Again
    }

    /// Takes what is asked, up to a bound.
    fn begin(&mut self) -> Next {
        let mut sought = Vec::new();
        while sought.len() < NAMES_MAX {
            match self.asked.try_recv() {
                Ok(look_up) => sought.push(Sought { look_up, found: Vec::new() }),
                Err(TryRecvError::Disconnected) => return Next::Done,
                Err(TryRecvError::Empty) if sought.is_empty() => return Next::Sleep,
                Err(TryRecvError::Empty) => break,
            }
        }
        assert!(!sought.is_empty(), "a pass looks for something");
        let mut by_key: BTreeMap<Key, Vec<usize>> = BTreeMap::new();
        for (at, one) in sought.iter().enumerate() {
            by_key.entry(one.key()).or_default().push(at);
        }
        self.enter(Pass { sought, recorder: 0, runs: Vec::new(), tail: Offset::START, by_key });
        Next::Again
    }

    /// Begins with the pass's recorder.
    fn enter(&mut self, mut pass: Pass) {
        assert!(pass.recorder < self.recorders.len(), "a pass ends with the last recorder");
        assert!(pass.runs.is_empty(), "a recorder is left once all its runs were looked into");
        (pass.runs, pass.tail) = self.recorders[pass.recorder].open(&self.world);
        self.pass = Some(pass);
    }

    fn end(&mut self, pass: Pass) {
        // A gateway that is gone asks for nothing.
        pass.sought.into_iter().for_each(|one| _ = self.done.send(one));
        self.ringer.ring(self.bell);
    }
}

/// A recorder's log and runs, as far as they were opened.
struct Recorder<W: World> {
    id: RecorderId,
    dir: PathBuf,
    reader: Option<W::Reader>,
}

impl<W: World> Recorder<W> {
    fn new(id: RecorderId) -> Self {
        Self { id, dir: dir_of(id), reader: None }
    }

    /// The runs there are, and where the log's end begins that none covers.
    ///
    /// None of a recorder that everything was started without: what the start gave up is in its log.
    fn open(&mut self, world: &W) -> (Vec<(u64, u64)>, Offset) {
        if self.reader.as_ref().is_some_and(LogReader::is_replaced) || left_out::is_noted(world, self.id) {
            self.reader = None;
        }
        if self.reader.is_none() && !left_out::is_noted(world, self.id) {
            self.reader = world.read_log_from_start(NodeId::Recorder(self.id)).ok();
        }
        let Some(reader) = &self.reader else { return (Vec::new(), Offset(u64::MAX)) };
        let stretches = stretches(world, &self.dir, Kind::Names).unwrap_or_default();
        let tail = stretches.last().map_or(reader.released().0, |(_, to)| *to).max(reader.released().0);
        (stretches, Offset(tail))
    }

    /// A run that cannot be read says nothing.
    fn look_into(&mut self, world: &W, stretch: (u64, u64), sought: &mut [Sought], shards: usize) {
        let Some((run, file)) = Run::open(world, (&self.dir, Kind::Names), stretch) else { return };
        for one in sought.iter_mut().filter(|one| !one.is_over(shards)) {
            for offset in run.find(&file, one.key()).unwrap_or_default() {
                let name = (one.look_up.member, one.look_up.client_order_id);
                if let Some(found) = self.record(Offset(offset), name) {
                    one.add(found);
                }
            }
        }
    }

    fn record(&mut self, at: Offset, name: (MemberId, ClientOrderId)) -> Option<FoundRecord> {
        let entry = self.reader.as_mut()?.read_at(at).ok()?;
        let found = found(&ResultRecord::read(entry.payload).ok()?, self.id, at)?;
        ((found.request.member, found.request.client_order_id) == name).then_some(found)
    }

    /// Reads on behind the last run. Says whether there is more.
    fn read_tail(&mut self, pass: &mut Pass, shards: usize) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let end = reader.durable();
        if end.0.saturating_sub(pass.tail.0) > UNINDEXED_MAX || reader.seek(pass.tail).is_err() {
            return false;
        }
        for _ in 0..BATCH_MAX {
            if reader.offset() >= end {
                return false;
            }
            let Ok(Some(entry)) = reader.next() else { return false };
            note(pass, self.id, entry.offset, entry.payload, shards);
        }
        assert!(reader.offset() >= pass.tail, "a log's end is read forwards only");
        pass.tail = reader.offset();
        true
    }
}

/// A record of the log's end, if its name is looked for.
fn note(pass: &mut Pass, recorder: RecorderId, at: Offset, payload: &[u8], shards: usize) {
    if record::schema(payload) != Some(record::RESULT) {
        return;
    }
    let Ok(record) = ResultRecord::read(payload) else { return };
    let Ok(Some(row)) = row_of_name(&record, at) else { return };
    for &one in pass.by_key.get(&row.key).into_iter().flatten() {
        let one = &mut pass.sought[one];
        if let Some(found) = found(&record, recorder, at).filter(|_| !one.is_over(shards)) {
            one.add(found);
        }
    }
}

fn found(record: &ResultRecord<'_>, recorder: RecorderId, at: Offset) -> Option<FoundRecord> {
    let (request, outcome) = (record.request().ok()?, record.outcome().ok()?);
    let place = Place { recorder, offset: at.0 };
    Some(FoundRecord { position: record.position(), request, outcome, events: record.events().len(), place })
}
