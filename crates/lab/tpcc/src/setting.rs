//! What is simulated: the paper's table of section 4.1, and what the paper does not say as parameters.

use crate::queue::Nanos;
use crate::workload::Kind;

/// Servers (paper figure 4).
pub const SITES: usize = 6;
/// The first half of the servers is C_A, the other C_B, also where they stand together.
pub const SITES_PER_SIDE: usize = SITES / 2;
/// A millisecond, ns.
pub const MILLISECONDS: Nanos = crate::queue::MILLISECOND;
/// Terminals of a warehouse (TPC-C, clause 4.2.2).
pub const CLIENTS_PER_WAREHOUSE: u32 = 10;

/// Who replicates, and where the servers stand: a line of the paper's figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Uniform total order over all six servers, which stand on one local network: the paper's baseline.
    DbsmCluster,
    /// Three here and three there, ordered by logical clocks: 2·t_max for all servers, which is what the paper says DBSM takes.
    Dbsm,
    /// The same, ordered by a sequencer in C_A that collects acknowledgements: 2·t_max from C_A, 4·t_max from C_B.
    DbsmSequencer,
    /// The rules of `pares-wice`, certifier in C_A.
    Wice,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::DbsmCluster, Self::Dbsm, Self::DbsmSequencer, Self::Wice];

    /// As the paper's legend has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DbsmCluster => "DBSM CLUSTER",
            Self::Dbsm => "DBSM",
            Self::DbsmSequencer => "DBSM (sequencer)",
            Self::Wice => "WICE",
        }
    }
}

/// What becomes of who waits for a row when its holder commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiters {
    /// It has lost: PostgreSQL under snapshot isolation.
    #[default]
    Abort,
    /// It takes its snapshot only when it has its rows, so it continues: locks taken before the first statement.
    TakeTurns,
}

/// What becomes of a transaction that was aborted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resubmit {
    /// Nothing: the client thinks about its next one.
    Never,
    /// The client sends it again at once (paper section 4.2: "have to be resubmitted by the application").
    #[default]
    Client,
    /// Its site executes it again before the client hears of it (paper section 4.3).
    Site,
    /// The same, but from the second time on at a site of the certifier's cluster, and in turn: the request travels, not what it
    /// wrote.
    Certifier,
}

/// Until when a site that executed a transaction keeps its rows locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Release {
    /// Until it is installed there (WICE, paper section 4: the install interval).
    #[default]
    Installed,
    /// Until it is stable everywhere: what a protocol does that acknowledges and unlocks at once.
    Stable,
}

/// What a read-only transaction reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadsOf {
    /// The newest version installed; its answer waits until that is stable (paper section 3).
    #[default]
    Newest,
    /// The newest stable version; nothing waits.
    Stable,
}

/// Processor time of each kind of transaction, in the order of [`Kind::ALL`], ns: what `pares bench tpcc --costs` measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredCosts {
    /// Where it is executed.
    pub execute_ns: [Nanos; 5],
    /// At each other server.
    pub apply_ns: [Nanos; 5],
}

/// How the traffic of a day moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DayAndNight {
    /// When day moves from C_A to C_B, s after the beginning of the measurement; below its length. A third of what is left then is given
    /// to the clients to settle, and what comes after is measured apart.
    pub turns_seconds: u64,
    /// Clients of the cluster where it is night think this many times as long.
    pub night: u32,
    /// Whether the certifier follows.
    pub migrate: bool,
}

/// Everything a run depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Who replicates.
    pub protocol: Protocol,
    /// How many clients, at least 1.
    pub clients: u32,
    /// Where all chance comes from.
    pub seed: u64,
    /// Virtual time measured, s.
    pub seconds: u64,
    /// Virtual time before that, s.
    pub warmup_seconds: u64,
    /// Whether clients key their input in before (TPC-C, clause 5.2.5.2), or only think afterwards.
    pub keying: bool,
    /// Bytes a transaction has written, as they travel and go to the log.
    pub write_set_bytes: u32,
    /// Applying a transaction elsewhere costs this share of executing it, percent.
    pub apply_percent: u32,
    /// What transactions take of a processor; the paper's Table 1, and the share above, if not given.
    pub costs: Option<MeasuredCosts>,
    /// How many warehouses; one for every ten clients if not given.
    pub warehouses: Option<u32>,
    /// Whether the clients of a warehouse are at all servers, instead of at one.
    pub scattered: bool,
    /// What happens to who waits.
    pub waiters: Waiters,
    /// What happens to who was aborted.
    pub resubmit: Resubmit,
    /// When rows are given up.
    pub release: Release,
    /// What readers read.
    pub reads: ReadsOf,
    /// Whether a year's takings are items that are added to.
    pub deltas: bool,
    /// DBSM sends over the long link to every server there, instead of once for all of them.
    pub unicast: bool,
    /// How long a WICE site gathers what can wait before it sends it, ns.
    pub batch: Nanos,
    /// One way over the long link, ns.
    pub distance: Nanos,
    /// DayAndNight and night, if load moves.
    pub day: Option<DayAndNight>,
}

impl Setting {
    /// The paper's, with what it leaves open as `docs/results.md` says.
    #[must_use]
    pub fn new(protocol: Protocol, clients: u32, seed: u64) -> Self {
        Self {
            protocol,
            clients,
            seed,
            seconds: 120,
            warmup_seconds: 40,
            keying: false,
            write_set_bytes: 4_096,
            apply_percent: 2,
            costs: None,
            warehouses: None,
            scattered: false,
            waiters: Waiters::default(),
            resubmit: Resubmit::default(),
            release: Release::default(),
            reads: ReadsOf::default(),
            deltas: false,
            unicast: true,
            batch: 0,
            distance: 200_000_000,
            day: None,
        }
    }

    /// What a transaction that took `work` where it was executed takes each other server, ns.
    pub(crate) fn apply_work(&self, kind: Kind, work: Nanos) -> Nanos {
        match &self.costs {
            Some(measured) => measured.apply_ns[kind as usize],
            None => work * u64::from(self.apply_percent) / 100,
        }
    }

    /// Warehouses: at least one for each server.
    #[must_use]
    pub fn warehouse_count(&self) -> u32 {
        self.warehouses.unwrap_or(self.clients.div_ceil(CLIENTS_PER_WAREHOUSE)).max(SITES as u32)
    }
}
