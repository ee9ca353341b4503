//! A world in which nodes fail on purpose: for tests and drills only.
//!
//! Equipment that lets a node die, lie or fall sick could be built into the node. Then it would ship, and what is tested would
//! still not be what ships: the calls would be in the way. But a role touches everything through its [`World`], so faults can be
//! put there: [`Faulty`] wraps any world, passes every call on, and fails where the environment says.
//!
//! ```text
//!   role --> Faulty --> HostWorld          pares-lab node     armed from its environment
//!   role -------------> HostWorld          pares node         knows nothing of this crate
//! ```
//! | module | what | armed by |
//! |---|---|---|
//! | [`crash`] | the process dies at a named point | `PARES_CRASH_AT` |
//! | [`wrong`] | a venue executes other orders than were entered | `PARES_WRONG` |
//! | [`device`] | a recorder's device is slow, or fails | `PARES_SLOW_SYNC_MS`, `PARES_FAIL_SYNC_AT` |
//! | [`poison`] | a request brings the matching engine down | `PARES_POISON` |
//!
//! The variables are read once, when the node starts. What is armed is said on standard error. What is not armed costs a
//! branch.

/// Methods in which nothing fails: what is wrapped does them.
macro_rules! passed_on {
    () => {};
    (fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $returned:ty)?; $($more:tt)*) => {
        #[inline]
        fn $name(&self $(, $argument: $kind)*) $(-> $returned)? {
            self.inner.$name($($argument),*)
        }
        passed_on! { $($more)* }
    };
    (fn $name:ident(&mut self $(, $argument:ident: $kind:ty)*) $(-> $returned:ty)?; $($more:tt)*) => {
        #[inline]
        fn $name(&mut self $(, $argument: $kind)*) $(-> $returned)? {
            self.inner.$name($($argument),*)
        }
        passed_on! { $($more)* }
    };
}

pub mod crash;
pub mod device;
mod file;
mod log;
pub mod poison;
mod sockets;
mod window;
mod world;
pub mod wrong;

use std::fmt::Display;
use std::io::Write as _;
use std::sync::Arc;

use pares_config::NodeId;
use pares_roles::{NodeError, World};

use crash::Crash;
use device::Sick;
use poison::Poison;
use wrong::Wrong;

pub use file::FaultyFile;
pub use log::{FaultyReader, FaultyWriter};
pub use sockets::{FaultySockets, FaultyStream};
pub use window::FaultyWindow;

/// A world that fails where the environment says.
#[derive(Clone, Debug)]
pub struct Faulty<W> {
    inner: W,
    faults: Arc<Faults>,
}

/// What is wrong with one node.
#[derive(Debug)]
pub(crate) struct Faults {
    node: NodeId,
    crash: Crash,
    wrong: Option<Wrong>,
    sick: Option<Arc<Sick>>,
    poison: Poison,
}

impl<W: World> Faulty<W> {
    /// Wraps the world of `node`, which fails as the environment says.
    ///
    /// # Errors
    /// If the environment says what makes no sense, or is not for this node: a test that means another node would wait for ever.
    pub fn from_environment(node: NodeId, inner: W) -> Result<Self, NodeError> {
        let faults = Faults::read(node, |name| std::env::var(name).ok()).map_err(NodeError::Config)?;
        faults.warn();
        Ok(Self { inner, faults: Arc::new(faults) })
    }

    /// Wraps the sockets of a gateway, which fail with it.
    pub fn sockets<S>(&self, inner: S) -> FaultySockets<S> {
        FaultySockets { inner, faults: Arc::clone(&self.faults) }
    }
}

impl Faults {
    /// What the variables say.
    fn read(node: NodeId, variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        Ok(Self {
            node,
            crash: Crash::read(node, &variable)?,
            wrong: wrong::read(node, &variable)?,
            sick: device::read(node, &variable)?.map(Arc::new),
            poison: Poison::read(&variable)?,
        })
    }

    fn warn(&self) {
        let node = self.node;
        if let Some(doom) = self.crash.doom() {
            say(&format_args!(
                "warning: {}={doom} is set: {node} will kill itself at that point",
                crash::VARIABLE
            ));
        }
        if let Some(wrong) = self.wrong {
            let variable = wrong::VARIABLE;
            say(&format_args!("warning: {variable}={wrong} is set: {node} will execute orders incorrectly"));
        }
        if let Some(sick) = &self.sick {
            say(&format_args!("warning: {node} has a simulated device fault: {sick}"));
        }
        if let Some(member) = self.poison.member() {
            say(&format_args!(
                "warning: {}: orders of member {member} crash the matching engine",
                poison::VARIABLE
            ));
        }
    }
}

/// Says something to the operator: a node's standard error is its log.
pub(crate) fn say(what: &dyn Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}
