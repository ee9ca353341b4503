//! How a site begins: from its notes, its log and its store.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use pares_cluster::{ClusterLog, MemberId, ReplicaConfig};
use pares_store::{Memory, Store};
use pares_wice::{Site, Stored, Wanted};

use super::Cycle;
use super::effects::LogEvents;
use super::members::Heard;
use super::membership_messages::Holds;
use super::proposing::Proposals;
use super::transactions::Transactions;
use crate::application::Application;
use crate::applier::{Applier, stored_of};
use crate::checkpoint::Bases;
use crate::comparison::Comparison;
use crate::error::ProcessError;
use crate::inbox::Inbox;
use crate::moments::Moments;
use crate::place::filling::Filling;
use crate::place::giving::Giving;
use crate::place::standing::Lack;
use crate::place::{Part, Place, copied, has_begun_anew, note, write_bytes};
use crate::protocol::database_of;
use crate::reads::Readers;
use crate::report::{ToldNo, Worked};
use crate::requests::Requests;
use crate::setup::{Bounds, Setup};
use crate::turned_away::RejectedConnections;
use crate::world::{Notes, World};

/// The note that counts a site's starts.
const LIFE: &str = "life";

impl<W: World, A: Application> Cycle<W, A> {
    /// Begins with what `world` has of an earlier life. While the site lacks its items its log continues, and it executes nothing.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub(crate) fn begin(
        mut world: W,
        setup: Setup,
        application: A,
        place: Place,
        lack: Option<Lack>,
    ) -> Result<Self, ProcessError> {
        assert!(place.part != Part::None, "a site without a place takes no part");
        assert!(!matches!(lack, Some(Lack::Log(_))), "a site that lacks its log takes no part");
        let links = world.open_links()?;
        let mut bases = Bases::open(world.notes(), setup.bounds.base_every_bytes)?;
        let (applied, base) = bases.written.clone();
        let mut log = open_log(&mut world, &setup, &place, applied)?;
        let mut log_events = LogEvents::default();
        log.cycle(&mut log_events)?;
        let (store, stored) = open_store(&mut world, lack.is_some())?;
        if lack.is_none() {
            if stored.version < base.delivered {
                return Err(ProcessError::Gap { stored: stored.version, base: base.delivered });
            }
            bases.flushed(stored.version);
        }
        let application = Arc::new(application);
        let applier = start_applier(&mut world, &links, &setup.bounds, &store)?;
        let readers = start_readers(&mut world, &links, &setup.bounds, &store, &application)?;
        let own = setup.settings.site;
        Ok(Self {
            database: database_of(&setup.identity),
            bounds: setup.bounds,
            sites: setup.settings.sites.clone(),
            begins: setup.begins,
            heard: Heard::default(),
            site: Site::restore(setup.settings, base, stored),
            place,
            log,
            base: store.snapshot()?,
            store,
            applier,
            readers,
            barrier: None,
            links,
            application,
            requests: Requests::default(),
            waiting: BTreeMap::new(),
            transactions: Transactions::numbered_behind(world.draw()),
            wanted: Wanted::default(),
            inbox: Inbox::default(),
            log_events,
            bases,
            answered: Vec::new(),
            notices: Vec::new(),
            turned_away: RejectedConnections::default(),
            giving: Giving::default(),
            shows_all: false,
            shows_from: world.now() + setup.bounds.catch_up_patience,
            holds: Holds::default(),
            comparison: Comparison::new(stored),
            moments: Moments::new(stored.version, world.now()),
            filling: lack.map(|lack| Filling::new(own, lack)),
            work: Worked::default(),
            told: ToldNo::default(),
            ticked: world.now(),
            ticks: 0,
            unled_ticks: 0,
            was_member: false,
            life: next_life(world.notes())?,
            proposals: Proposals::default(),
            world,
        })
    }
}

/// What writes the store beside the duty cycle.
fn start_applier<W: World>(
    world: &mut W,
    links: &W::Links,
    bounds: &Bounds,
    store: &Arc<dyn Store>,
) -> io::Result<Applier<W::Task>> {
    assert!(bounds.applied_max > 0 && bounds.applied_bytes_max > 0, "a batch has room for a version");
    let (applier, writer) = Applier::new(Arc::clone(store), bounds.flush_every);
    Ok(applier.run_by(world.start(writer, links)?))
}

/// What answers reads beside it.
fn start_readers<W: World, A: Application>(
    world: &mut W,
    links: &W::Links,
    bounds: &Bounds,
    store: &Arc<dyn Store>,
    application: &Arc<A>,
) -> io::Result<Readers<W::Task>> {
    let (readers, ends) = Readers::new(Arc::clone(application) as _, store, bounds);
    let ends = ends.into_iter().map(|end| world.start_reader(end, links));
    Ok(readers.run_by(ends.collect::<Result<_, _>>()?))
}

/// The site's end of its cluster's log, begun again if it has taken a copy.
fn open_log<W: World>(
    world: &mut W,
    setup: &Setup,
    place: &Place,
    applied: u64,
) -> Result<W::Log, ProcessError> {
    let anew = copied(world.notes())?;
    let id = MemberId { number: setup.settings.site.number, incarnation: place.incarnation };
    let config = ReplicaConfig {
        database: setup.identity.clone(),
        id,
        applied,
        anew: anew.is_some(),
        beginning: anew.clone().unwrap_or_default(),
        ..setup.log.clone()
    };
    let log = world.open_log(&config)?;
    if anew.is_some() {
        has_begun_anew(world.notes())?;
    }
    if log.members().all().next().is_none() {
        return Err(ProcessError::NoLog);
    }
    Ok(log)
}

/// The store, and what it says of itself; while it is being filled, another that is empty, and that says to be written behind all of the log.
fn open_store(world: &mut impl World, is_filling: bool) -> Result<(Arc<dyn Store>, Stored), ProcessError> {
    if is_filling {
        return Ok((Arc::new(Memory::default()), Stored::ENDLESS));
    }
    let store = world.open_store()?;
    let stored = stored_of(&store.meta())?;
    Ok((store, stored))
}

/// Counts the starts of a site from 1, and begins again after many. A count begun too early would number executions as others
/// that may still be on their way.
fn next_life(notes: &impl Notes) -> Result<u16, ProcessError> {
    let last = match note(notes, LIFE)? {
        None => 0,
        Some(text) => {
            let text = String::from_utf8_lossy(&text);
            text.trim().parse::<u16>().map_err(|_| ProcessError::Life(text.into_owned()))?
        }
    };
    let life = last.wrapping_add(1);
    write_bytes(notes, LIFE, format!("{life}\n").as_bytes())?;
    Ok(life)
}
