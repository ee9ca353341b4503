//! Starting the window's next life (design section 5).
//!
//! When everything restarts together, decisions that no recorder has are void: nobody was answered
//! because of them, and after a power failure nobody could tell what they were. So the windows begin anew after
//! the last recorded position, under a new epoch that no record and no window of the past carries. The
//! requests behind the void decisions lie in the gateways' logs and are ordered again.
//!
//! Only the supervisor does this, holding the system's lock, before any node runs.

use pares_log::Writer;
use pares_shm::SharedWindow;
use pares_types::{Epoch, Position};

use crate::config::{Layout, SystemConfig};
use crate::{NodeError, recorder};

/// Creates every shard's window for the next epoch. Says which that is.
///
/// # Errors
/// If a recorder's log is beyond repair or a window cannot be created.
pub fn begin(config: &SystemConfig, layout: &Layout) -> Result<Epoch, NodeError> {
    let mut epoch = Epoch(0);
    let mut first: std::collections::BTreeMap<_, _> =
        config.shards()?.into_keys().map(|shard| (shard, Position(0))).collect();
    // Opening for writing keeps whole records that were not published yet; what the recorder will find when it starts
    // must be counted here. All are opened before any is repaired, which takes from the others what they publish.
    let open = |id| Writer::open(&layout.recorder_log(id), recorder::log_config(config)).map(drop);
    for id in config.recorder_ids() {
        // Refused is met again below.
        let _ = open(id);
    }
    for id in config.recorder_ids() {
        let (next, met) = recorder::repair::whole(id, config, layout, || {
            open(id)?;
            recorder::recorded(id, config, layout)
        })?;
        epoch = epoch.max(met);
        for (shard, position) in next {
            first.entry(shard).and_modify(|first| *first = (*first).max(position));
        }
    }
    for &shard in first.keys() {
        // A window that is there may be of an epoch in which nothing was recorded.
        if let Ok(window) = SharedWindow::open(&layout.window(shard)) {
            epoch = epoch.max(pares_sequencer::Sequencer::epoch(&window));
        }
    }
    let epoch = Epoch(epoch.0 + 1);
    for (shard, position) in first {
        SharedWindow::create(&layout.window(shard), shard, config.window as usize, epoch, position)?;
    }
    Ok(epoch)
}

/// The epoch in force.
///
/// # Errors
/// If no window exists: the system was not started.
pub fn current(config: &SystemConfig, layout: &Layout) -> Result<Epoch, NodeError> {
    let shards = config.shards()?;
    let (&shard, _) = shards.first_key_value().expect("a system has a shard");
    Ok(pares_sequencer::Sequencer::epoch(&SharedWindow::open(&layout.window(shard))?))
}
