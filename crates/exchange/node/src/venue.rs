//! The threads of a venue: one takes its turns, the first of the process watches it, and has the turns taken over when it
//! does not come back (see `watcher`).
//!
//! ```text
//!   watched ---- a request keeps the processor ----> taken over: the node gets the next number, a new thread its turns
//!                                                        |
//!   the old thread: whenever it comes back, its number is over and it ends;
//!   if it never does, the process ends after a while to be rid of it, not at the same time as its peers
//! ```

mod watcher;

use std::ops::DerefMut;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pares_config::{Layout, SystemConfig};
use pares_os::{BellKind, scheduling};
use pares_roles::duty::{Duty, SLEEP_MAX};
use pares_roles::venue::{Hold, Place, VenueNode, Watch, time_to_load, turn};
use pares_roles::world::World;
use pares_types::VenueId;

use crate::process::BACKGROUND;
use crate::{NodeError, NodeId, duty, epoch, process, world};
use watcher::Watcher;

struct Venue<W: World> {
    id: VenueId,
    config: SystemConfig,
    layout: Layout,
    world: W,
    stop: Arc<AtomicBool>,
    watch: Arc<Watch<W>>,
    /// The kernel's id of the thread that takes the turns.
    thread: AtomicI32,
    /// Set once it is open.
    node: OnceLock<Mutex<VenueNode<W>>>,
}

/// Runs a venue until `stop` is set.
pub(crate) fn run<W: World>(
    id: VenueId,
    config: &SystemConfig,
    layout: &Layout,
    world: W,
    stop: &Arc<AtomicBool>,
) -> Result<(), NodeError> {
    // A back-trace takes tens of milliseconds, in which the other shards would stand still.
    std::panic::set_hook(Box::new(|panic| world::complain(panic)));
    let (watch, suspect) = Watch::open(&world, id, epoch::current(&world, config)?)?;
    let venue = Arc::new(Venue {
        id,
        config: config.clone(),
        layout: layout.clone(),
        world,
        stop: Arc::clone(stop),
        watch: Arc::new(watch),
        thread: AtomicI32::new(0),
        node: OnceLock::new(),
    });
    let (ended, end) = channel();
    let first = Arc::clone(&venue);
    start_turns(&ended, 0, move || {
        first.open(suspect)?;
        first.take_turns(0)
    })?;
    // The process was started in the background, which only the thread that opens the venue leaves by itself; who looks on
    // must not have to wait for a processor.
    scheduling::short_slices();
    let (mut watcher, mut number) = (Watcher::new(config.engine_budget()), 0);
    loop {
        match end.recv_timeout(watcher.pause()) {
            Ok((of, result)) if of == number => return result,
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(NodeError::Panicked),
        }
        let thread = venue.thread.load(Ordering::Acquire);
        if let Some(place) = watcher.look(&venue.watch, thread) {
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

impl<W: World> Venue<W> {
    fn open(&self, suspect: Option<Place>) -> Result<(), NodeError> {
        world::enter_background(BACKGROUND + time_to_load(&self.world, &self.config, self.id)?);
        let node = VenueNode::open(self.id, &self.config, self.world.clone(), &self.watch, suspect)?;
        process::announce(NodeId::Venue(self.id), &self.layout)?;
        self.node.get_or_init(|| Mutex::new(node));
        Ok(())
    }

    fn take_turns(&self, number: u64) -> Result<(), NodeError> {
        self.watch.end();
        self.thread.store(rustix::thread::gettid().as_raw_pid(), Ordering::Release);
        if number > 0 {
            scheduling::short_slices();
        }
        let mut bell = process::listen(NodeId::Venue(self.id), &self.layout, BellKind::Futex)?;
        let node = self.node.get().expect("opened before its first turn");
        let mut turns = Turns { node, number };
        duty::run(&mut turns, &mut bell, &self.stop, duty::on_bell)
    }

    /// Takes the venue over from a thread that does not come back from the matching engine.
    fn take_over(&self, place: Place, number: u64) -> Result<(), NodeError> {
        let node = self.node.get().and_then(|node| node.try_lock().ok());
        let Some(mut node) = node else {
            // It fails while it follows the record, with everything in its hands. The mark it leaves tells the next process.
            world::complain(&"the matching engine is stuck on a recorded request: this process ends");
            std::process::abort();
        };
        let (shard, position) = place;
        world::complain(&format_args!(
            "the matching engine is stuck at position {position} of shard {shard}"
        ));
        node.take_over(place, number)?;
        // What the old thread is at is known; the next look is for the new one's.
        self.watch.end();
        Ok(())
    }
}

/// One thread's turns.
struct Turns<'a, W: World> {
    node: &'a Mutex<VenueNode<W>>,
    number: u64,
}

impl<'a, W: World> Turns<'a, W> {
    /// The venue, unless another thread has taken its turns over.
    fn node(&self) -> Result<MutexGuard<'a, VenueNode<W>>, NodeError> {
        let node = self.node.lock().unwrap_or_else(PoisonError::into_inner);
        if node.turns() == self.number { Ok(node) } else { Err(NodeError::TakenOver) }
    }
}

impl<W: World> Hold<W> for Turns<'_, W> {
    fn hold(&mut self) -> Result<impl DerefMut<Target = VenueNode<W>>, NodeError> {
        self.node()
    }
}

impl<W: World> Duty for Turns<'_, W> {
    fn work(&mut self) -> Result<usize, NodeError> {
        turn(self)
    }

    fn look_everywhere(&mut self) {
        if let Ok(mut node) = self.node() {
            node.look_everywhere();
        }
    }

    fn sleep_max(&self) -> Duration {
        self.node().map_or(SLEEP_MAX, |node| node.sleep_max())
    }
}
