//! Looking for the place from which a member's stream is read, beside a gateway's duty cycle.
//!
//! Any recorder's runs will do, the newest first. Where no run says anything, the stream is read from a checkpoint, or from a log's
//! beginning, if that is the shard's.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};

use pares_config::{NodeId, SystemConfig};
use pares_gateway::SessionId;
use pares_log::{LogReader, Offset};
use pares_types::{MemberId, Position, RecorderId, ShardId};
use pares_venue::checkpoint;
use pares_wire::record::ResultRecord;

use super::counting::{positions, stream};
use super::run::Run;
use super::{Kind, Row, dir_of, stretches};
use crate::world::{Next, Ring, Waker, World};
use crate::{NodeError, checkpoints, left_out};

/// What a session missed of a shard, to be found.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Who asks.
    pub session: SessionId,
    /// Whose stream it is.
    pub member: MemberId,
    /// Of which shard.
    pub shard: ShardId,
    /// The number of the next message to tell.
    pub next: u64,
    /// Whose runs are looked into first.
    pub recorder: RecorderId,
    /// Whether others' are looked into, too.
    pub elsewhere: bool,
    /// How many recorders' logs begin behind it, as far as is known.
    pub later: u16,
}

/// A place of a recorder's log that is not behind the wanted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamStart {
    /// Whose log it is.
    pub recorder: RecorderId,
    /// Where in it.
    pub offset: Offset,
    /// The next position of the shard.
    pub position: Position,
    /// How many messages of the member lie below it.
    pub counted: u64,
}

impl StreamStart {
    /// Where a recorder's log begins.
    pub(super) fn beginning(recorder: RecorderId) -> Self {
        Self { recorder, offset: Offset::START, position: Position(0), counted: 0 }
    }
}

/// The way to the task that looks.
pub struct Starts {
    to_task: Sender<Wanted>,
    from_task: Receiver<(Wanted, Result<StreamStart, u64>)>,
    waker: Waker,
}

impl Starts {
    /// Starts the task, for the gateway `bell`.
    ///
    /// # Errors
    /// If there is no room for its thread.
    pub fn start<W: World>(world: &W, config: &SystemConfig, bell: NodeId) -> Result<Self, NodeError> {
        let (to_task, asked) = channel();
        let (done, from_task) = channel();
        let (own, recorders, mut ringer) = (world.clone(), config.recorders, world.ringer());
        let task = move || match asked.try_recv() {
            Ok(wanted) => {
                // A gateway that is gone asks for nothing.
                let _ = done.send((wanted, start(&own, recorders, &wanted)));
                ringer.ring(bell);
                Next::Again
            }
            Err(TryRecvError::Empty) => Next::Sleep,
            Err(TryRecvError::Disconnected) => Next::Done,
        };
        let waker = world.spawn("starts", Box::new(task)).map_err(NodeError::io("starting a thread"))?;
        Ok(Self { to_task, from_task, waker })
    }

    /// Has the place looked for.
    pub fn begin(&self, wanted: Wanted) {
        // A task that is gone has taken its process with it.
        let _ = self.to_task.send(wanted);
        (self.waker)();
    }

    /// The next one that was looked for; without a place, the number of the oldest message that is kept, 0 if none is known.
    #[must_use]
    pub fn next(&self) -> Option<(Wanted, Result<StreamStart, u64>)> {
        self.from_task.try_recv().ok()
    }
}

/// The best place that any run says, or any checkpoint, or the beginning of a whole log; without one the number of the oldest message
/// that is kept, 0 if none is known.
pub(super) fn start(world: &impl World, recorders: u16, wanted: &Wanted) -> Result<StreamStart, u64> {
    assert!(wanted.recorder.0 < recorders, "it is looked for at a recorder of this system first");
    let from = |others: u16| (0..others).map(|at| RecorderId((wanted.recorder.0 + at) % recorders));
    let asked = if wanted.elsewhere { recorders } else { 1 };
    // A checkpoint is read as a whole: not for what a run says is gone.
    let by_checkpoint = || match from(recorders).filter_map(|id| oldest_at(world, id, wanted)).min() {
        Some(oldest) if wanted.next < oldest => Err(oldest),
        oldest => {
            let mut found = from(recorders).filter_map(|id| start_at_checkpoint(world, id, wanted));
            found.next().ok_or(oldest.unwrap_or(0))
        }
    };
    // Every log begins behind it.
    if wanted.later >= recorders {
        return by_checkpoint();
    }
    if let Some(start) = from(asked).find_map(|recorder| start_at(world, recorder, wanted)) {
        return Ok(start);
    }
    let begins = |recorder| Some((released(world, recorder)?, recorder));
    match from(recorders).filter_map(begins).min_by_key(|(released, _)| *released) {
        Some((Offset::START, recorder)) => Ok(StreamStart::beginning(recorder)),
        Some(_) => by_checkpoint(),
        // None can be read now.
        None => Ok(StreamStart::beginning(wanted.recorder)),
    }
}

/// Where a recorder's log begins, if it can be read; none of one that everything was started without.
fn released(world: &impl World, recorder: RecorderId) -> Option<Offset> {
    let log = || world.read_log_from_start(NodeId::Recorder(recorder));
    if left_out::is_noted(world, recorder) { None } else { Some(log().ok()?.released()) }
}

/// By the newest checkpoint of the shard that is not behind the wanted message.
fn start_at_checkpoint<W: World>(world: &W, recorder: RecorderId, wanted: &Wanted) -> Option<StreamStart> {
    let released = released(world, recorder)?;
    let stored = checkpoints::stored_by(world, recorder, wanted.shard).ok()?;
    stored.iter().filter(|stored| stored.replay_from() >= released).find_map(|stored| {
        let (view, ..) = checkpoint::view(wanted.shard, &stored.read(world, || {})?).ok()?;
        let told = view.told.iter().find(|(member, _)| *member == wanted.member);
        let counted = told.map_or(0, |(_, number)| *number);
        let start = StreamStart { recorder, offset: stored.replay_from(), position: view.position, counted };
        (counted < wanted.next).then_some(start)
    })
}

/// The first message of the stream that a recorder's runs know of and its log has.
fn oldest_at<W: World>(world: &W, recorder: RecorderId, wanted: &Wanted) -> Option<u64> {
    let released = released(world, recorder)?.0;
    let (dir, stream) = (dir_of(recorder), stream(wanted.member, wanted.shard));
    let runs = stretches(world, &dir, Kind::Streams).ok()?;
    runs.into_iter().filter(|(_, to)| *to >= released).find_map(|stretch| {
        let (run, file) = Run::open(world, (&dir, Kind::Streams), stretch)?;
        let mut rows = run.rows(&file).ok()?.into_iter();
        rows.find(|row| row.key[0] == stream && row.offset >= released).map(|row| row.key[1])
    })
}

/// None at a recorder that everything was started without: what the start gave up is in its log.
fn start_at<W: World>(world: &W, recorder: RecorderId, wanted: &Wanted) -> Option<StreamStart> {
    if left_out::is_noted(world, recorder) {
        return None;
    }
    let mut reader = world.read_log_from_start(NodeId::Recorder(recorder)).ok()?;
    let (dir, end) = (dir_of(recorder), reader.durable().0);
    let runs = stretches(world, &dir, Kind::Streams).ok()?.into_iter().rev();
    for stretch in runs.filter(|(_, to)| *to <= end) {
        let Some((run, file)) = Run::open(world, (&dir, Kind::Streams), stretch) else { continue };
        // A run that cannot be read says nothing.
        let Some(row) = row(&run, &file, stretch.1, wanted) else { continue };
        let position = match row.offset == stretch.1 {
            true => run.last(&file, positions(wanted.shard)).ok()?.map(|row| Position(row.key[1])),
            false => position_at(&mut reader, Offset(row.offset), wanted.shard),
        };
        let (offset, counted) = (Offset(row.offset), row.key[1].checked_sub(1)?);
        let is_kept = offset >= reader.released();
        return position.filter(|_| is_kept).map(|position| StreamStart {
            recorder,
            offset,
            position,
            counted,
        });
    }
    None
}

/// The run's last row that is not behind the wanted message.
fn row<F: crate::world::File>(run: &Run, file: &F, to: u64, wanted: &Wanted) -> Option<Row> {
    let stream = stream(wanted.member, wanted.shard);
    let found = run.last_to(file, [stream, wanted.next]).ok()?;
    if let Some(row) = found.filter(|row| row.key[0] == stream) {
        return Some(row);
    }
    // A member that received nothing up to the run's end receives number 1 later.
    let is_counted = run.last(file, positions(wanted.shard)).ok()?.is_some();
    let is_told = run.last(file, stream).ok()?.is_some();
    (is_counted && !is_told).then_some(Row { key: [stream, 1], offset: to })
}

fn position_at(reader: &mut impl LogReader, at: Offset, shard: ShardId) -> Option<Position> {
    let entry = reader.read_at(at).ok()?;
    let record = ResultRecord::read(entry.payload).ok()?;
    (record.shard() == shard).then(|| record.position())
}
