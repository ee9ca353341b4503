//! Replication between clusters (`pares-wice`) in one thread: virtual time, one seed, every fault at will.
//!
//! ```text
//!  clients --> sites --propose--> their cluster's log (one list; leaders come and go, what they had under way is lost or kept)
//!                |  \--messages--> other sites: late, lost, repeated, overtaken; clusters cut off
//!              stores: stable prefixes, that fall back to what was flushed
//!  operator --> declares clusters lost (also such as live), admits them, moves the certifier
//! ```
//! **Simulated**: crashes of sites, of delegates with proposals under way, of whole clusters, with and without their disks; deposed delegates that do not
//! know it; cut and lossy links; false suspicion; certifiers moved; clusters that return with versions nobody else has; clients that
//! repeat a transaction at another site while the first attempt is under way; interactive transactions, hot items, additions.
//!
//! **Checked**: each stable version is the same at every site for ever; every committed attempt saw the last writers of what it
//! wrote, and read exactly what its snapshot holds; nothing commits twice; a reported abort never commits; what was answered is in the logs of all
//! clusters that live, at that moment and in the end; stores are prefixes; money is conserved; and when faults have stopped, everything has an
//! outcome and all sites are equal. The checkers are checked by defects put into the wiring ([`Defect`]).

mod bank;
mod check;
mod clients;
mod cluster;
mod faults;
mod node;
mod world;

pub use world::{run, run_traced};

/// A run's size and faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Names it.
    pub name: &'static str,
    /// Clusters, 2 or 3.
    pub clusters: u8,
    /// Sites of each cluster.
    pub sites: u8,
    /// Clients, spread over all sites.
    pub clients: usize,
    /// Virtual time with faults, microseconds.
    pub faulty_us: u64,
    /// Mean time between faults, microseconds; 0 for none.
    pub fault_every_us: u64,
    /// Of 1,000 messages between sites, how many are lost, and how many come twice.
    pub loss_permille: u64,
    /// A broken wiring.
    pub defect: Option<Defect>,
}

impl Plan {
    /// Two clusters of three sites, no faults.
    pub const CALM: Self = Self {
        name: "sites-calm",
        clusters: 2,
        sites: 3,
        clients: 12,
        faulty_us: 3_000_000,
        fault_every_us: 0,
        loss_permille: 0,
        defect: None,
    };
    /// Two clusters of three sites, everything fails.
    pub const TWO: Self =
        Self { name: "sites-two", fault_every_us: 150_000, loss_permille: 10, ..Self::CALM };
    /// Three clusters of two and more.
    pub const THREE: Self = Self { name: "sites-three", clusters: 3, ..Self::TWO };
    /// Two clusters of one site.
    pub const LONE: Self = Self { name: "sites-lone", sites: 1, clients: 6, ..Self::TWO };
    /// All of them.
    pub const ALL: [Self; 4] = [Self::CALM, Self::TWO, Self::THREE, Self::LONE];
}

/// A defect put into the wiring, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Entries of earlier eras are taken after a promise.
    NoFence,
    /// A delegate says it has delivered what it has only received.
    AcknowledgesTooEarly,
    /// The stream leaves a cluster before its log has committed it.
    StreamsTooEarly,
    /// A cluster that returns keeps what it alone has.
    KeepsItsOwn,
    /// The store gets versions that are not stable.
    StoresTooEarly,
    /// Transactions claim to have read a later version than they did.
    ClaimsLaterSnapshot,
}

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Stable versions.
    pub versions: u64,
    /// Transactions answered as committed.
    pub committed: u64,
    /// Attempts aborted.
    pub aborted: u64,
    /// Faults that happened, operator's decisions among them.
    pub faults: u64,
    /// Eras begun.
    pub eras: u64,
    /// Virtual time, microseconds.
    pub took_us: u64,
    /// A digest of all that was stable: equal runs have equal ones.
    pub digest: u64,
}

/// A seed that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// When, microseconds of virtual time.
    pub at_us: u64,
    /// What was found.
    pub what: String,
}
