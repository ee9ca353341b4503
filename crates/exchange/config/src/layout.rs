//! Where everything of one system lies, and which bell is whose.
//!
//! ```text
//! DIR/pares.toml                    the configuration
//! DIR/gateway-G/                    log: requests of gateway G (journal and request stream)
//! DIR/tap/gateway-G/                log: what the connections of gateway G said
//! DIR/orderer-H/                    log: what host H orders, of a system of several; orderer-H/journal/ what its orderer must not forget
//! DIR/venue-V/                      log: results of venue V
//! DIR/recorder-R/                   log: what recorder R recorded (history and committed stream)
//! DIR/recorder-R/checkpoints/       checkpoint files
//! DIR/publisher-P/                  log: what publisher P sent, and from where it continues
//! DIR/shut-out/                     notes about venues that are shut out (see `pares_roles::shut_out`)
//! DIR/left-out/                     notes about recorders without which everything was started
//! DIR/epoch                         the number of the last start
//! DIR/host                          which host of several this is
//! DIR/lanes                         which venue executes which shards, once one was moved
//! DIR/run/                          what only lives while the system does: windows, bells, counters
//! DIR/keys/operator.key             the secret of the first operator
//! DIR/lock                          held by the supervisor
//! DIR/keys/                         with TLS: the authority, the gateways' certificates and the operator's
//! ```

use std::path::{Path, PathBuf};

use pares_types::{GatewayId, HostId, RecorderId, ReplayerId, ShardId, VenueId};

/// Where everything of a system lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The system in that directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A recorder's checkpoints.
    #[must_use]
    pub fn checkpoints(&self, id: RecorderId) -> PathBuf {
        self.recorder_log(id).join("checkpoints")
    }
}

/// Paths of a [`Layout`]: name, what it is of, the folder it lies in, and its name there.
macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident($($of:ident: $type:ty)?) = $folder:ident, $file:literal;)*) => {
        impl Layout {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(&self $(, $of: $type)?) -> PathBuf {
                    self.$folder().join(format_args!($file).to_string())
                }
            )*
        }
    };
}

paths! {
    /// The configuration file.
    config() = root, "pares.toml";
    /// The supervisor's lock.
    lock() = root, "lock";
    /// The secret of the first operator.
    operator_key() = keys, "operator.key";
    /// Notes about venues that are shut out.
    shut_out() = root, "shut-out";
    /// Notes about recorders without which everything was started.
    left_out() = root, "left-out";
    /// The number of the last start.
    epoch() = root, "epoch";
    /// Which host of several this directory belongs to.
    host() = root, "host";
    /// Which venue executes which shards.
    lanes() = root, "lanes";
    /// Where keys lie: the authority's, gateways' certificates, operators' and those of members that were made here.
    keys() = root, "keys";
    /// What only lives while the system does.
    run() = root, "run";
    /// Says that a receiver of mirrors wrote what is in the directory.
    mirrored() = root, "mirrored";
    /// What each receiver of mirrors has not stored yet: names and bytes, while they are connected.
    mirror_lags() = run, "mirror.lags";
    /// The process that sends mirrors, while `pares up` keeps one.
    mirror_pid() = run, "mirror.pid";
    /// The process that serves HTTP, while `pares up` keeps one.
    web_pid() = run, "web.pid";
    /// A gateway's log.
    gateway_log(id: GatewayId) = root, "gateway-{id}";
    /// Where the taps lie.
    taps() = root, "tap";
    /// The log of a gateway's tap.
    tap(id: GatewayId) = taps, "gateway-{id}";
    /// A venue's log.
    venue_log(id: VenueId) = root, "venue-{id}";
    /// A recorder's log.
    recorder_log(id: RecorderId) = root, "recorder-{id}";
    /// A shard's window.
    window(shard: ShardId) = run, "window-{shard}";
    /// A node's counters: `node` is its role and number, such as `venue-0`.
    counters(node: &str) = run, "{node}.counters";
    /// What an orderer must not forget: its end of the replicated log.
    orders_journal(id: HostId) = root, "orderer-{id}/journal";
    /// The log that a node writes.
    log(node: crate::NodeId) = root, "{node}";
    /// The process id of a node that is up.
    pid(node: crate::NodeId) = run, "{node}.pid";
    /// Locked by the process that runs a node.
    claim(node: crate::NodeId) = run, "{node}.lock";
    /// What a node has to complain about: its standard error.
    complaints(node: crate::NodeId) = run, "{node}.log";
    /// The address a gateway listens on.
    gateway_address(id: GatewayId) = run, "gateway-{id}.addr";
    /// The socket of a gateway that only operators on this machine can connect to.
    operators_socket(id: GatewayId) = run, "gateway-{id}.operators";
    /// The address a gateway listens for FIX on.
    fix_address(id: GatewayId) = run, "gateway-{id}.fix";
    /// The address a gateway listens for OUCH on.
    ouch_address(id: GatewayId) = run, "gateway-{id}.ouch";
    /// The address a replayer listens on, by UDP and TCP.
    replayer_address(id: ReplayerId) = run, "replayer-{id}.addr";
}

/// The bell of each node (see `pares_os::bell`): gateways, venues, recorders, 16 each; publishers and replayers, 8 each; the source of mirrors; orderers.
pub mod bells {
    use crate::{FEED_ROLE_MAX, NodeId, ROLE_MAX};

    /// The bell of the process that sends the logs to other hosts: rung with every other one.
    pub const MIRROR: usize = 3 * ROLE_MAX + 2 * FEED_ROLE_MAX;

    const ORDERERS: usize = MIRROR + 1;

    /// A node's bell.
    #[must_use]
    pub fn of(node: NodeId) -> usize {
        match node {
            NodeId::Gateway(id) => usize::from(id.0),
            NodeId::Venue(id) => ROLE_MAX + usize::from(id.0),
            NodeId::Recorder(id) => 2 * ROLE_MAX + usize::from(id.0),
            NodeId::Mirror(_) => MIRROR,
            NodeId::Orderer(id) => ORDERERS + usize::from(id.0),
            NodeId::Publisher(id) => 3 * ROLE_MAX + usize::from(id.0),
            NodeId::Replayer(id) => 3 * ROLE_MAX + FEED_ROLE_MAX + usize::from(id.0),
        }
    }
}
