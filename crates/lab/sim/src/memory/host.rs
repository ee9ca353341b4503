//! One process's handle on the machine.
//!
//! Every call is a place at which the process may be killed: the call unwinds with [`Killed`] and does nothing. What is left of the
//! process then only drops what it holds; handles of a life that is over do nothing any more.

use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;

use pares_config::NodeId;
use pares_log::ReadError;
use pares_types::GatewayId;

use super::lens::Lens;
use super::log::Log;
use super::machine::{Effect, Machine};
use super::net::Net;
use super::seam::Seam;
use crate::bug::Bug;

/// The process was killed in the middle of a call.
#[derive(Debug)]
pub(crate) struct Killed;

/// A process: a node in one of its lives.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(super) machine: Machine,
    pub(super) node: NodeId,
    life: u32,
}

impl Host {
    /// A handle for the node's present life.
    pub(crate) fn new(machine: &Machine, node: NodeId) -> Self {
        let life = machine.lock().fate(node).life;
        Self { machine: machine.clone(), node, life }
    }

    /// A handle for the supervisor, which nobody kills: it speaks in the name of no node.
    pub(crate) fn supervisor(machine: &Machine) -> Self {
        Self::new(machine, NodeId::Gateway(GatewayId(u16::MAX)))
    }

    pub(super) fn life(&self) -> u32 {
        self.life
    }

    pub(crate) fn node(&self) -> NodeId {
        self.node
    }

    pub(super) fn is_current(&self) -> bool {
        self.machine.lock().fate(self.node).life == self.life
    }

    pub(super) fn is_full(&self) -> bool {
        self.machine.lock().fate(self.node).is_full
    }

    pub(super) fn syncs_take_time(&self) -> bool {
        self.machine.lock().syncs_take_time
    }

    /// A call into the world: the process may be killed here. Says whether it lives.
    pub(super) fn passes(&self) -> bool {
        let mut state = self.machine.lock();
        let fate = state.fate(self.node);
        if fate.life != self.life {
            return false;
        }
        let Some(left) = fate.killed_in else { return true };
        fate.killed_in = left.checked_sub(1);
        if left > 0 || std::thread::panicking() {
            return true;
        }
        fate.life += 1;
        drop(state);
        resume_unwind(Box::new(Killed))
    }

    pub(super) fn must_live(&self) -> io::Result<()> {
        if self.passes() { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    }

    /// A write to the disk.
    pub(super) fn writes(&self) -> io::Result<()> {
        self.must_live()?;
        if self.is_full() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    pub(super) fn tell(&self, effect: Effect) {
        self.machine.lock().effects.push(effect);
    }

    pub(super) fn with_net<T>(&self, act: impl FnOnce(&mut Net) -> T) -> T {
        act(self.machine.lock().net_of(self.node))
    }

    /// In which of its lives a node takes connections; none if it is down.
    pub(super) fn listening(&self, node: NodeId) -> Option<u32> {
        let mut state = self.machine.lock();
        let fate = state.fate(node);
        fate.listens.then_some(fate.life)
    }

    /// The next request that has come to this replayer.
    pub(super) fn take_request(&self) -> Option<(SocketAddr, Vec<u8>)> {
        self.machine.lock().requests.get_mut(&self.node)?.pop_front()
    }

    pub(super) fn with_seam<T>(&self, act: impl FnOnce(&mut Seam, NodeId) -> T) -> T {
        act(&mut self.machine.lock().seam, self.node)
    }

    /// How far this process sees of a node's log that is written up to there.
    pub(super) fn seen(&self, of: NodeId, written: u64) -> u64 {
        let state = self.machine.lock();
        state.cut.get(&(self.node, of)).map_or(written, |&cut| cut.min(written))
    }

    pub(super) fn identity_of(&self, of: NodeId) -> Option<u64> {
        self.machine.log(of).map(|log| log.lock().identity)
    }

    /// What is wrong with how this process reads that node's log.
    pub(super) fn lens(&self, of: NodeId) -> Lens {
        self.machine.lock().seam.lens(self.node, of)
    }

    pub(super) fn find(&self, log: NodeId) -> Result<Log, ReadError> {
        let (hidden, own) = {
            let state = self.machine.lock();
            (
                state.seam.hides(self.node, log),
                state.seam.has(Bug::CountOwnTwice).then(|| state.own_recorder()),
            )
        };
        let found = self.machine.log(log).filter(|_| !hidden);
        let is_another = |found: &Log| matches!(log, NodeId::Recorder(_)) && found.lock().is_mirror;
        let found = found.map(|found| own.flatten().filter(|_| is_another(&found)).unwrap_or(found));
        found.ok_or_else(|| ReadError::NotYet { dir: log.to_string().into() })
    }
}
