//! How a site begins: from its notes, its log and its store.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use pares_cluster::ClusterLog;
use pares_wice::{Base, ClusterId, Configuration, Era, Site};

use super::Cycle;
use super::inbox::{Inbox, LogEvents, Wanted};
use crate::application::Application;
use crate::applier::Applier;
use crate::checkpoint::{Bases, stored_of, take_state};
use crate::error::ProcessError;
use crate::reads::Readers;
use crate::report::Worked;
use crate::requests::Requests;
use crate::setup::Setup;
use crate::world::{Notes, World};

/// The note that a cluster has lost its disks: the era of those who went on, as three numbers.
pub const RETURNING: &str = "returning";
/// The note that counts a site's starts.
const LIFE: &str = "life";

impl<W: World, A: Application> Cycle<W, A> {
    /// Begins with what `world` has of an earlier life.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn begin(mut world: W, setup: Setup, application: A) -> Result<Self, ProcessError> {
        let links = world.open_links()?;
        let mut bases = Bases::open(&world, setup.bounds.base_every_bytes)?;
        let applied = bases.written().map_or(0, |(index, _)| *index);
        let mut log = world.open_log(&pares_cluster::ReplicaConfig { applied, ..setup.log.clone() })?;
        let mut log_events = LogEvents::default();
        log.cycle(&mut log_events)?;
        if let Some((index, state)) = log_events.state.take() {
            let (base, _) = take_state(&state, &mut world)?;
            bases.taken((index, base), &world)?;
        }
        let store = world.open_store()?;
        let stored = stored_of(&store.meta())?;
        let base = base_of(&bases, &world, &setup)?;
        if stored.version < base.delivered {
            return Err(ProcessError::Gap { stored: stored.version, base: base.delivered });
        }
        let (applier, writer) = Applier::new(Arc::clone(&store), setup.bounds.flush_every);
        let applier = applier.run_by(world.start(writer, &links)?);
        let application = Arc::new(application);
        let (readers, ends) = Readers::new(Arc::clone(&application) as _, &store, &setup.bounds);
        let ends = ends.into_iter().map(|end| world.start_reader(end, &links));
        let readers = readers.run_by(ends.collect::<Result<_, _>>()?);
        Ok(Self {
            bounds: setup.bounds,
            site: Site::restore(setup.settings, base, stored),
            log,
            base: store.snapshot()?,
            store,
            applier,
            readers,
            links,
            application,
            requests: Requests::default(),
            waiting: BTreeMap::new(),
            wanted: Wanted::default(),
            inbox: Inbox::default(),
            log_events,
            bases,
            answered: Vec::new(),
            notices: Vec::new(),
            turned_away: BTreeMap::new(),
            turned_away_new: Vec::new(),
            work: Worked::default(),
            ticked: world.now(),
            ticks: 0,
            life: next_life(&world)?,
            refused: None,
            proposed: VecDeque::new(),
            world,
        })
    }
}

/// Where the log is to be read from.
fn base_of(bases: &Bases, notes: &impl Notes, setup: &Setup) -> Result<Base, ProcessError> {
    if let Some((_, base)) = bases.written() {
        return Ok(base.clone());
    }
    if let Some(era) = returning_to(notes)? {
        return Ok(Base::returning(&setup.settings, era));
    }
    let clusters = setup.settings.sites.iter().map(|site| site.cluster).collect();
    Ok(Base::first(Configuration::first(clusters, setup.certifier)))
}

/// Counts the starts of a site from 1, and begins again after many. A count begun too early would number executions as others
/// that may still be on their way.
fn next_life(notes: &impl Notes) -> Result<u16, ProcessError> {
    let last = match notes.read_note(LIFE)? {
        None => 0,
        Some(text) => {
            let text = String::from_utf8_lossy(&text);
            text.trim().parse::<u16>().map_err(|_| ProcessError::Life(text.into_owned()))?
        }
    };
    let life = last.wrapping_add(1);
    notes.write_note(LIFE, format!("{life}\n").as_bytes())?;
    Ok(life)
}

fn returning_to(notes: &impl Notes) -> Result<Option<Era>, ProcessError> {
    let Some(text) = notes.read_note(RETURNING)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&text).into_owned();
    let numbers: Vec<u32> = text.split_whitespace().filter_map(|number| number.parse().ok()).collect();
    match numbers[..] {
        [takeovers, number, by @ 0..64] => Ok(Some(Era { takeovers, number, by: ClusterId(by as u8) })),
        _ => Err(ProcessError::Returning(text)),
    }
}
