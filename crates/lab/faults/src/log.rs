//! Logs whose writer may die between any two steps, and that a wrong venue reads and writes wrongly.

use std::sync::Arc;

use pares_config::NodeId;
use pares_log::{AppendError, LogReader, LogWriter, Offset, RawStretch, ReadError, Record};
use pares_wire::record::{self, CheckpointChunk};

use crate::Faults;
use crate::crash::Point;

/// The points that a role passes as it writes its log.
struct Points {
    writing: Point,
    appended: Point,
    published: Point,
}

fn points(node: NodeId) -> Points {
    let (writing, appended, published) = match node {
        NodeId::Venue(_) => (Point::VenueWriting, Point::VenueAppended, Point::VenuePublished),
        NodeId::Recorder(_) => (Point::RecorderWriting, Point::RecorderAppended, Point::RecorderPublished),
        NodeId::Gateway(_) => (Point::GatewayWriting, Point::GatewayJournalled, Point::GatewayPublished),
        // No drill kills it at a place of its own: all that it promises is in the journal.
        NodeId::Orderer(_) | NodeId::Mirror(_) | NodeId::Publisher(_) | NodeId::Replayer(_) => {
            (Point::PublisherWriting, Point::PublisherAppended, Point::PublisherPublished)
        }
    };
    Points { writing, appended, published }
}

/// The writer of a node's log.
#[derive(Debug)]
pub struct FaultyWriter<L> {
    inner: L,
    faults: Arc<Faults>,
    /// Whether anything is appended and not published.
    appended: bool,
    /// Whether a piece of a checkpoint is, and not its last.
    chunk: bool,
}

/// What was appended, as far as it matters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// What the node is there for: a request, a result.
    Main,
    /// A piece of a checkpoint, not its last.
    Chunk,
    Other,
}

fn kind(payload: &[u8]) -> Kind {
    match record::schema(payload) {
        Some(record::REQUEST | record::RESULT) => Kind::Main,
        Some(record::CHECKPOINT_CHUNK) => match CheckpointChunk::read(payload) {
            Ok((chunk, _)) if chunk.total().is_none() => Kind::Chunk,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}

impl<L> FaultyWriter<L> {
    pub(crate) fn new(inner: L, faults: Arc<Faults>) -> Self {
        Self { inner, faults, appended: false, chunk: false }
    }
}

impl<L: LogWriter> LogWriter for FaultyWriter<L> {
    type Syncer = L::Syncer;

    #[inline]
    fn append_with(&mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Offset, AppendError> {
        let faults = &*self.faults;
        let mut appended = Kind::Other;
        let offset = self.inner.append_with(len, |out| {
            fill(out);
            if let Some(wrong) = faults.wrong {
                wrong.restore(out);
            }
            if faults.crash.is_armed() {
                appended = kind(out);
                if appended == Kind::Main {
                    faults.crash.torn(points(faults.node).writing, out);
                }
            }
        })?;
        self.appended = true;
        self.chunk |= appended == Kind::Chunk;
        if appended == Kind::Main {
            faults.crash.at(match faults.crash.is_from_peer() {
                true => Point::RecorderTookFromPeer,
                false => Point::RecorderTook,
            });
        }
        Ok(offset)
    }

    #[inline]
    fn publish(&mut self) -> Offset {
        let appended = std::mem::take(&mut self.appended);
        let crash = &self.faults.crash;
        if !(appended && crash.is_armed()) {
            return self.inner.publish();
        }
        let points = points(self.faults.node);
        crash.at(points.appended);
        let offset = self.inner.publish();
        crash.at(points.published);
        if std::mem::take(&mut self.chunk) {
            crash.at(Point::VenueCheckpoint);
        }
        offset
    }

    fn sync(&mut self) -> Result<Offset, AppendError> {
        self.faults.crash.at(Point::RecorderUnsynced);
        let synced = self.inner.sync()?;
        self.faults.crash.at(Point::RecorderSynced);
        Ok(synced)
    }

    passed_on! {
        fn reserve(&mut self, bytes: usize) -> Result<(), AppendError>;
        fn begin_segment(&mut self) -> Result<(), AppendError>;
        fn syncer(&self) -> L::Syncer;
        fn release_before(&mut self, offset: Offset) -> Offset;
        fn tail(&self) -> Offset;
        fn durable(&self) -> Offset;
    }
}

/// A reader of any node's log.
#[derive(Debug)]
pub struct FaultyReader<L> {
    inner: L,
    /// Whose log it is.
    log: NodeId,
    faults: Arc<Faults>,
    /// The last record, if it is read wrongly.
    changed: Vec<u8>,
}

impl<L> FaultyReader<L> {
    pub(crate) fn new(inner: L, log: NodeId, faults: Arc<Faults>) -> Self {
        Self { inner, log, faults, changed: Vec::new() }
    }
}

/// The node has read a record of a log and done nothing with it yet.
fn on_read(faults: &Faults, log: NodeId, payload: &[u8]) {
    let crash = &faults.crash;
    let is_result = record::schema(payload) == Some(record::RESULT);
    match (faults.node, log) {
        (node @ NodeId::Gateway(_), _) if node == log => crash.at(Point::GatewayRecovering),
        (NodeId::Gateway(_), NodeId::Recorder(_)) if is_result && crash.is_open() => {
            crash.at(Point::GatewayCommitted);
        }
        (NodeId::Recorder(_), NodeId::Venue(_)) if is_result => {
            crash.on_result(false);
            crash.at(Point::RecorderReceived);
        }
        (NodeId::Recorder(_), NodeId::Recorder(_)) if is_result => crash.on_result(true),
        _ => {}
    }
}

impl<L: LogReader> LogReader for FaultyReader<L> {
    #[inline]
    fn next_below(&mut self, end: Offset) -> Result<Option<Record<'_>>, ReadError> {
        let Some(record) = self.inner.next_below(end)? else { return Ok(None) };
        if self.faults.crash.is_armed() {
            on_read(&self.faults, self.log, record.payload);
        }
        let Some(wrong) = self.faults.wrong else { return Ok(Some(record)) };
        self.changed.clear();
        self.changed.extend_from_slice(record.payload);
        wrong.change(&mut self.changed);
        Ok(Some(Record { offset: record.offset, payload: &self.changed }))
    }

    #[inline]
    fn pass_if(&mut self, end: Offset, is_known: impl FnOnce(&[u8]) -> bool) -> bool {
        // A process that is to die at a record, or to read it wrongly, reads it.
        !self.faults.crash.is_armed() && self.faults.wrong.is_none() && self.inner.pass_if(end, is_known)
    }

    fn next_stretch(&mut self, end: Offset, bytes_max: usize) -> Result<Option<RawStretch<'_>>, ReadError> {
        self.inner.next_stretch(end, bytes_max)
    }

    fn read_at(&mut self, offset: Offset) -> Result<Record<'_>, ReadError> {
        let record = self.inner.read_at(offset)?;
        // Only a gateway looks records up, to repeat an answer.
        self.faults.crash.at(Point::GatewayRepeating);
        Ok(record)
    }

    passed_on! {
        fn seek(&mut self, from: Offset) -> Result<(), ReadError>;
        fn skip_damage(&mut self) -> Offset;
        fn is_replaced(&self) -> bool;
        fn offset(&self) -> Offset;
        fn written(&self) -> Offset;
        fn durable(&self) -> Offset;
        fn released(&self) -> Offset;
        fn segment_bytes(&self) -> u64;
    }
}
