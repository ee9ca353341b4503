//! A site from the first moment of its directory on: apart from its cluster, or a part of it.

use std::time::Duration;

use pares_wice::{Notice, Site, TransactionId};

use crate::application::Application;
use crate::cycle::Cycle;
use crate::error::ProcessError;
use crate::place::apart::Apart;
use crate::place::standing::Lack;
use crate::place::{self, Part, Place};
use crate::report::SiteReport;
use crate::requests::Answered;
use crate::setup::Setup;
use crate::world::World;

/// What it does now.
enum Doing<W: World, A> {
    Waits(Box<Apart<W>>),
    Serves(Box<Cycle<W, A>>),
    /// It has ended with an error.
    Nothing,
}

/// A site: begun again by itself whenever its part changes.
pub struct SiteNode<W: World, A> {
    doing: Doing<W, A>,
    setup: Setup,
    application: A,
}

impl<W: World, A: Application + Clone> SiteNode<W, A> {
    /// Begins with what `world` has of an earlier life.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn begin(world: W, setup: Setup, application: A) -> Result<Self, ProcessError> {
        let doing = begin(world, &setup, &application)?;
        Ok(Self { doing, setup, application })
    }

    /// Does what is to be done, after waiting for something at most for `patience`.
    ///
    /// # Errors
    /// [`ProcessError`]: end the process, and start it again.
    pub fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        let turned = match &mut self.doing {
            Doing::Waits(apart) => apart.turn(patience),
            Doing::Serves(cycle) => cycle.turn(patience),
            Doing::Nothing => Ok(()),
        };
        match turned {
            Err(ProcessError::Again) => self.begin_again(),
            turned => turned,
        }
    }

    fn begin_again(&mut self) -> Result<(), ProcessError> {
        // Everything of the life before is closed, its connections and its store among it.
        let world = match std::mem::replace(&mut self.doing, Doing::Nothing) {
            Doing::Waits(apart) => apart.into_world(),
            Doing::Serves(cycle) => cycle.into_world(),
            Doing::Nothing => return Ok(()),
        };
        self.doing = begin(world, &self.setup, &self.application)?;
        Ok(())
    }

    /// Executes a request of this process's driver; [`SiteNode::answered`] has the answer. The id's client must be nobody else's. Lost while the site
    /// takes no part: it is asked again, as a client would.
    pub fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        if let Some(cycle) = self.serving() {
            cycle.submit(id, request);
        }
    }

    /// Answers to [`SiteNode::submit`] since it was asked last.
    pub fn answered(&mut self) -> impl Iterator<Item = Answered> {
        self.serving().into_iter().flat_map(Cycle::answered)
    }

    /// What an operator would want to know, since it was asked last.
    pub fn notices(&mut self) -> impl Iterator<Item = Notice> {
        self.serving().into_iter().flat_map(Cycle::notices)
    }

    /// Who was refused and why, each once, since it was asked last.
    pub fn refusals(&mut self) -> impl Iterator<Item = String> {
        match &mut self.doing {
            Doing::Waits(apart) => Some(apart.turned_away.take_new()),
            Doing::Serves(cycle) => Some(cycle.turned_away.take_new()),
            Doing::Nothing => None,
        }
        .into_iter()
        .flatten()
    }

    /// The rules' state, to be looked at; none while the site takes no part.
    pub fn rules(&self) -> Option<&Site> {
        match &self.doing {
            Doing::Serves(cycle) => Some(cycle.rules()),
            _ => None,
        }
    }

    /// Its duty cycle, which participates.
    #[cfg(test)]
    pub(crate) fn cycle(&mut self) -> &mut Cycle<W, A> {
        self.serving().expect("it takes part")
    }

    /// The same, if it does.
    fn serving(&mut self) -> Option<&mut Cycle<W, A>> {
        match &mut self.doing {
            Doing::Serves(cycle) => Some(cycle),
            _ => None,
        }
    }

    /// How it is.
    #[must_use]
    pub fn report(&self) -> SiteReport {
        match &self.doing {
            Doing::Waits(apart) => apart.report(),
            Doing::Serves(cycle) => cycle.report(),
            Doing::Nothing => SiteReport::default(),
        }
    }

    /// Why it takes no part, or executes nothing.
    #[must_use]
    pub fn apart(&self) -> Option<String> {
        match &self.doing {
            Doing::Waits(apart) => Some(apart.waits_for()),
            Doing::Serves(cycle) => cycle.apart(),
            Doing::Nothing => None,
        }
    }

    /// Whether it is still reading its log, or has none.
    #[must_use]
    pub fn is_recalling(&self) -> bool {
        self.rules().is_none_or(Site::is_recalling)
    }

    /// Its connections.
    ///
    /// # Panics
    /// After an error.
    pub(crate) fn links(&self) -> &W::Links {
        match &self.doing {
            Doing::Waits(apart) => &apart.links,
            Doing::Serves(cycle) => &cycle.links,
            Doing::Nothing => unreachable!("a site that has ended is asked nothing"),
        }
    }
}

fn begin<W: World, A: Application + Clone>(
    mut world: W,
    setup: &Setup,
    application: &A,
) -> Result<Doing<W, A>, ProcessError> {
    let place = Place::open(&mut world, &setup.identity)?;
    if let Some(version) = place::differs(world.notes())? {
        return Err(ProcessError::Differs { version });
    }
    let lack = place::lack(world.notes())?;
    let waits = place.part == Part::None || matches!(lack, Some(Lack::Log(_)));
    Ok(if waits {
        Doing::Waits(Box::new(Apart::begin(world, setup.clone(), place, lack)?))
    } else {
        Doing::Serves(Box::new(Cycle::begin(world, setup.clone(), application.clone(), place, lack)?))
    })
}
