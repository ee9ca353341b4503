//! The threads of a venue: one takes its turns, the first of the process watches it, and has the turns taken over when it
//! does not come back (see `watch`).
//!
//! ```text
//!   watched ---- a request keeps the processor ----> taken over: the node gets the next number, a new thread its turns
//!                                                        |
//!   the old thread: whenever it comes back, its number is over and it ends;
//!   if it never does, the process ends after a while to be rid of it, not at the same time as its peers
//! ```

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pares_shm::{BellKind, Bells, scheduling};
use pares_types::VenueId;

use super::VenueNode;
use super::poison::Poison;
use super::watch::{Watch, Watcher};
use crate::NodeError;
use crate::config::{Layout, SystemConfig, bells};
use crate::duty::{self, Duty};
use crate::error::complain;

/// A venue and its threads.
struct Venue {
    id: VenueId,
    config: SystemConfig,
    layout: Layout,
    stop: Arc<AtomicBool>,
    watch: Arc<Watch>,
    /// Set once it is open.
    node: OnceLock<Mutex<VenueNode>>,
}

/// Runs a venue until `stop` is set; `announce` is called once it is open.
///
/// # Errors
/// Whatever keeps it from starting or going on.
pub(crate) fn run(
    id: VenueId,
    config: &SystemConfig,
    layout: &Layout,
    stop: &Arc<AtomicBool>,
    announce: impl FnOnce() -> Result<(), NodeError> + Send + 'static,
) -> Result<(), NodeError> {
    let poison = Poison::from_environment()?;
    // A back-trace takes tens of milliseconds, in which the other shards would stand still.
    std::panic::set_hook(Box::new(|panic| complain(panic)));
    let (watch, suspect) = Watch::open(&layout.venue_marks(id))?;
    let venue = Arc::new(Venue {
        id,
        config: config.clone(),
        layout: layout.clone(),
        stop: Arc::clone(stop),
        watch: Arc::new(watch),
        node: OnceLock::new(),
    });
    let (ended, end) = channel();
    let first = Arc::clone(&venue);
    start_turns(&ended, 0, move || {
        let node = VenueNode::open(id, &first.config, &first.layout, &first.watch, poison, suspect)?;
        announce()?;
        first.node.get_or_init(|| Mutex::new(node));
        first.take_turns(0)
    })?;
    let (mut watcher, mut number) = (Watcher::new(config.engine_budget()), 0);
    loop {
        match end.recv_timeout(watcher.pause()) {
            Ok((of, result)) if of == number => return result,
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(NodeError::Panicked),
        }
        if let Some((thread, place)) = watcher.look(&venue.watch) {
            number += 1;
            scheduling::start_in_background(thread.unsigned_abs());
            venue.take_over(place, number)?;
            let next = Arc::clone(&venue);
            start_turns(&ended, number, move || next.take_turns(number))?;
        }
    }
}

type Ended = (u64, Result<(), NodeError>);

fn start_turns(
    ended: &Sender<Ended>,
    number: u64,
    turns: impl FnOnce() -> Result<(), NodeError> + Send + 'static,
) -> Result<(), NodeError> {
    let ended = ended.clone();
    let thread = move || {
        let turns = std::panic::AssertUnwindSafe(turns);
        let result = std::panic::catch_unwind(turns).unwrap_or(Err(NodeError::Panicked));
        // Nobody listens any more when the process is about to end.
        let _ = ended.send((number, result));
    };
    let builder = std::thread::Builder::new().name(format!("turns-{number}"));
    builder.spawn(thread).map(|_| ()).map_err(NodeError::io("starting a thread"))
}

impl Venue {
    fn take_turns(&self, number: u64) -> Result<(), NodeError> {
        self.watch.take_turns();
        if number > 0 {
            scheduling::short_slices();
        }
        let mut bell = Bells::create(&self.layout.run())?
            .listen(bells::venue(self.id), BellKind::Futex)
            .map_err(NodeError::io("listening to the bell"))?;
        let node = self.node.get().expect("opened before its first turn");
        duty::run(&mut Turns { node, watch: &self.watch, number }, &mut bell, &self.stop)
    }

    /// Takes the venue over from a thread that does not come back from the matching engine.
    fn take_over(&self, place: super::watch::Place, number: u64) -> Result<(), NodeError> {
        let node = self.node.get().and_then(|node| node.try_lock().ok());
        let Some(mut node) = node else {
            // It fails while it follows the record, with everything in its hands. The mark it leaves tells the next process.
            complain("the matching engine does not come back from a recorded request: the process ends");
            std::process::abort();
        };
        complain(format_args!(
            "the matching engine does not come back from position {} of shard {}",
            place.1, place.0
        ));
        node.take_over(place, number)?;
        // What the old thread is at is known; the next look is for the new one's.
        self.watch.end();
        Ok(())
    }
}

/// One thread's turns.
struct Turns<'a> {
    node: &'a Mutex<VenueNode>,
    watch: &'a Watch,
    number: u64,
}

impl<'a> Turns<'a> {
    /// The venue, unless another thread has taken its turns over.
    fn node(&self) -> Result<MutexGuard<'a, VenueNode>, NodeError> {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        if node.turns == self.number { Ok(node) } else { Err(NodeError::TakenOver) }
    }

    /// Lets each shard take a step. Nothing but the shard is in this thread's hands meanwhile.
    fn step_shards(&self, mut node: MutexGuard<'a, VenueNode>) -> Result<usize, NodeError> {
        let mut work = 0;
        for index in 0..node.seats.len() {
            let Some(mut bench) = node.begin_step(index) else { continue };
            drop(node);
            let stepped = bench.step_or_fail();
            let place = self.watch.place();
            self.watch.end();
            node = self.node()?;
            work += match stepped {
                Some(progress) => node.end_step(index, bench, progress)?,
                None => {
                    node.fail(index, place.map(|(_, position)| position), false)?;
                    1
                }
            };
        }
        node.out.failed.map_or(Ok(work), |error| Err(error.into()))
    }
}

impl Duty for Turns<'_> {
    fn work(&mut self) -> Result<usize, NodeError> {
        let mut node = self.node()?;
        let mut work = node.begin()?;
        work += self.step_shards(node)?;
        let mut node = self.node()?;
        work += node.end()?;
        self.watch.end();
        Ok(work)
    }

    fn sleep_max(&self) -> Duration {
        self.node().map_or(duty::SLEEP_MAX, |node| node.checkpointing.sleep_max(duty::SLEEP_MAX))
    }
}
