//! Replication between clusters in one thread: the shipped sites (`pares-site`), virtual time, one seed, every fault at will.
//!
//! ```text
//!  clients ==frames== sites --frames of Raft and of the rules--> other sites: late, lost, repeated, overtaken; clusters cut off
//!                       |
//!                     machines: a journal and a store that forget as disks do, notes, wires
//!  keeper --> takes a backup and follows it, at any site; dies and continues; restores it in the end
//!  operator --> declares clusters lost (also such as live), admits them, moves the certifier
//!  or an operator on each side of a cut, and a witness --> each declares the other side lost
//! ```
//! **Simulated**: the shipped duty cycle, cluster log, codecs and checkpoints, on machines in memory ([`pares_site::world`]). Processes and
//! power fail, of sites, delegates and whole clusters, with and without their disks; logs whose writes and syncs fail; machines without descriptors;
//! delegates cut off on connections that seem to live; cut and lossy links; peers that sign on again and again; frames that mean nothing;
//! false suspicion; certifiers moved; sites and clusters that come and go, while others have another `sites.toml`; clusters that return with versions nobody else has; disks of single sites lost, which join again; members that get a copy because
//! the log was shortened, and clusters that lack what nobody keeps any more; clients that repeat a request at another site, or twice at one, while the first attempt is under way.
//!
//! **Not simulated**: files and sockets themselves (`pares-log`, `pares-link`, redb), and damage to what is stored, but for the wrong values of one store.
//!
//! **Checked**: each place of a cluster's log is the same for all members; each stable version is the same at every site for ever; every committed execution saw the last writers of what it wrote, and
//! read exactly what its snapshot holds; of serialisable sites each would read the same at its place in the order, and rules over several items hold; a cluster that went answers nobody; nothing commits
//! twice; what was aborted, or denied to a client that asked once, never commits; what was answered is in the logs of all clusters that live, at that moment and in the end; clients, who ask at another
//! site each time, are shown nothing older than what they received or have read, and a client that asks for the latest all that any client received before; stores and states are prefixes; money is
//! conserved at every version and for every reader; a backup has every version behind its copies once and in order, with the digests of the sites, and restores what the sites have; sites end only for a
//! fault of their machine; and when faults have stopped, everything has an outcome and all sites are equal. The checkers are checked by defects put at the seam between site and machine ([`Defect`]).

mod bank;
mod brokerage;
mod check;
mod clients;
mod comings;
mod desks;
mod faults;
mod fronts;
mod keeper;
mod machine;
mod people;
mod settings;
mod shelf;
mod sites;
mod tapped;
mod third_place;
mod turns;
mod wards;
mod wires;

pub use sites::{run, run_traced};

/// What is found, if anything.
type Verdict = Result<(), (Broken, String)>;

/// What a promise says, with what was found where it is broken.
fn must(holds: bool, promise: Broken, what: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err((promise, what())) }
}

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
    /// Whether there is a witness; then each side of a cut declares the other lost.
    pub witness: bool,
    /// Whether sites certify what was read, and clients ask for what needs that.
    pub serialisable: bool,
    /// Whether each start of a site may be of this build or of the one before.
    pub mixed: bool,
    /// Sites and clusters that come and go.
    pub changes: Changes,
    /// Whether a backup is taken and followed meanwhile, and restored in the end.
    pub keeps: bool,
    /// Whether the sites execute a broker's accounts, and its fronts are the clients.
    pub brokers: bool,
    /// What is broken at the seam between sites and machines.
    pub defect: Option<Defect>,
}

/// Sites and clusters that come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// None.
    None,
    /// Sites: one to the first cluster, one from it, and then the first of another cluster.
    Sites,
    /// A whole cluster, which goes, the certifier's too; and then the first site of another under its number.
    Cluster,
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
        witness: false,
        serialisable: false,
        mixed: false,
        changes: Changes::None,
        keeps: false,
        brokers: false,
        defect: None,
    };
    /// Two clusters of three sites, everything fails.
    pub const TWO: Self =
        Self { name: "sites-two", fault_every_us: 150_000, loss_permille: 10, ..Self::CALM };
    /// Three clusters of two and more.
    pub const THREE: Self = Self { name: "sites-three", clusters: 3, ..Self::TWO };
    /// Two clusters of one site.
    pub const LONE: Self = Self { name: "sites-lone", sites: 1, clients: 6, ..Self::TWO };
    /// Two clusters, to which sites come and from which they go.
    pub const CHANGED: Self = Self {
        name: "sites-changed",
        changes: Changes::Sites,
        faulty_us: 4_500_000,
        fault_every_us: 250_000,
        ..Self::TWO
    };
    /// Three clusters, one of which goes as a whole.
    pub const GONE: Self = Self { name: "sites-gone", changes: Changes::Cluster, ..Self::THREE };
    /// Two clusters and a witness.
    pub const WITNESSED: Self = Self { name: "sites-witnessed", witness: true, ..Self::TWO };
    /// Three clusters and a witness: of a cut two are on one side, and one is alone.
    pub const JUDGED: Self = Self { name: "sites-judged", clusters: 3, ..Self::WITNESSED };
    /// Two clusters of which each keeps rules over what it reads.
    pub const SERIALISABLE: Self = Self { name: "sites-serialisable", serialisable: true, ..Self::TWO };
    /// Two clusters, of builds of two neighbouring versions.
    pub const MIXED: Self = Self { name: "sites-mixed", mixed: true, ..Self::TWO };
    /// The same as two clusters of three, of which a backup is taken.
    pub const KEPT: Self = Self { name: "sites-kept", keeps: true, ..Self::TWO };
    /// Two clusters under the fronts and desks of a broker, which die too.
    pub const BROKER: Self = Self {
        name: "broker",
        clients: 0,
        faulty_us: 5_000_000,
        fault_every_us: 300_000,
        brokers: true,
        ..Self::TWO
    };
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::CALM,
        Self::TWO,
        Self::THREE,
        Self::LONE,
        Self::CHANGED,
        Self::GONE,
        Self::WITNESSED,
        Self::JUDGED,
        Self::SERIALISABLE,
        Self::MIXED,
        Self::KEPT,
        Self::BROKER,
    ];
}

/// A defect put at the seam between a site and its machine, to see that it is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Delegates vouch for the stream in an era that no promise forbids, and that never was.
    VouchesForLaterEra,
    /// A delegate says it has delivered what it has only received.
    AcknowledgesTooEarly,
    /// The stream leaves a cluster before its log has committed it.
    StreamsTooEarly,
    /// A cluster that returns keeps what it alone has.
    KeepsItsOwn,
    /// Other clusters are taken to have delivered everything, so stores get versions that are not stable.
    StoresTooEarly,
    /// Transactions claim to have read a later version than they did.
    ClaimsLaterSnapshot,
    /// Logs take no vote away.
    DismissesNobody,
    /// Logs say that they have synced, and have not.
    SyncsNothing,
    /// What clients have seen does not come to the sites that they ask.
    ForgetsSessions,
    /// Sites read the latest as they read everything.
    ReadsLatestAtOnce,
    /// The store of site 1.0 writes other values once. The sites find it themselves: the operator moves its directory away, and it is filled again.
    StoresWrongValues,
    /// The witness forgets whom it granted something, and begins as if it was new.
    WitnessForgets,
    /// A cluster that the witness refused continues, as if it did not answer.
    GoesOnRefused,
    /// Sites send what the older of two builds does not know.
    SpeaksTooNew,
    /// Sites of a cluster that went count on nobody that their `sites.toml` does not name.
    CountsOnlyNamed,
    /// Nothing that was read is certified.
    CertifiesNoReads,
    /// Sites give backups versions that change other items.
    GivesOtherVersions,
    /// The broker's accounts keep a trigger that has fired.
    KeepsTriggers,
    /// They give all fronts one number.
    ForgetsFronts,
    /// Fronts do not say which command comes before another.
    ForgetsOrder,
    /// Desks do not give another front the hits of one that has gone.
    ForgetsHits,
    /// They give them under another name.
    RenamesHits,
}

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A place of a log or a version is two things.
    Forked,
    /// An answer is not where it must be.
    Lost,
    /// A request was carried out twice.
    Twice,
    /// An execution was aborted and committed.
    Undead,
    /// A transaction has overwritten what it had not seen.
    Missed,
    /// A transaction is not what was executed, or did not read what was there.
    Misread,
    /// What a transaction decided by had been changed, or a rule over several items does not hold.
    Skewed,
    /// A site was sent what its build does not know.
    Misspoken,
    /// Money was made or destroyed.
    Money,
    /// A client was shown less than it had seen, or one that asked for the latest less than a client had received.
    WentBack,
    /// A site sees two histories that nothing can merge.
    Split,
    /// A site finds that another has applied something else, and no store has erred.
    Differs,
    /// A site ended though its machine was well.
    Ended,
    /// An assertion of the rules does not hold.
    Panicked,
    /// A user's log is not what he gave, each command once and in order, with the reply that he received.
    Disordered,
    /// What a backup restores is not what the database was.
    Unkept,
    /// Faults are over, and something has no outcome.
    Unsettled,
}

crate::seen::counters! {
    /// What a run did.
    Summary {
        /// Stable versions.
        versions,
        /// Transactions answered as committed.
        committed,
        /// Attempts aborted.
        aborted,
        /// Faults that happened, operator's decisions among them.
        faults,
        /// Changes of who there is.
        changes,
        /// Of the faults, disks lost by one site alone.
        disks,
        /// Directories moved away because their sites were alone with what they had applied.
        alone,
        /// Pasts adopted by clusters that lacked what nobody kept, other than those that lost it again with their disks.
        adopted,
        /// Declarations that a witness granted, repeats among them.
        granted,
        /// Declarations that it refused while it had its register.
        refused,
        /// Registers that a witness began after it had lost one.
        renewed,
        /// Versions that the backup was given.
        kept,
        /// Copies that it has.
        copies,
        /// Triggers that fired, and buys and sells that lapsed, in a broker's log.
        moments,
        /// Eras begun.
        eras,
        /// Virtual time, microseconds.
        took_us,
        /// A digest of all that was stable: equal runs have equal ones.
        digest,
    }
}

/// A seed that broke a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// When, microseconds of virtual time.
    pub at_us: u64,
    /// Which promise.
    pub broken: Broken,
    /// What was found.
    pub what: String,
}
