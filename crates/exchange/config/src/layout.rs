//! Where everything of one system lies, and which bell is whose.
//!
//! ```text
//! DIR/pares.toml                    the configuration
//! DIR/gateway-G/                    log: requests of gateway G (journal and request stream)
//! DIR/tap/gateway-G/                log: what the connections of gateway G said
//! DIR/venue-V/                      log: results of venue V
//! DIR/recorder-R/                   log: what recorder R recorded (history and committed stream)
//! DIR/recorder-R/checkpoints/       checkpoint files
//! DIR/publisher-P/                  log: what publisher P sent, and from where it goes on
//! DIR/shut-out/                     notes about venues that are shut out (see `pares_roles::shut_out`)
//! DIR/left-out/                     notes about recorders without which everything was started
//! DIR/epoch                         the number of the last start
//! DIR/run/                          what only lives while the system does: windows, bells, counters
//! DIR/keys/operator.key             the secret of the first operator
//! DIR/lock                          held by the supervisor
//! DIR/keys/                         with TLS: the authority, the gateways' certificates and the operator's
//! ```

use std::path::{Path, PathBuf};

use pares_types::{GatewayId, RecorderId, ReplayerId, ShardId, VenueId};

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

    /// The configuration file.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.root.join("pares.toml")
    }

    /// The supervisor's lock.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// The secret of the first operator.
    #[must_use]
    pub fn operator_key(&self) -> PathBuf {
        self.keys().join("operator.key")
    }

    /// Notes about venues that are shut out.
    #[must_use]
    pub fn shut_out(&self) -> PathBuf {
        self.root.join("shut-out")
    }

    /// Notes about recorders without which everything was started.
    #[must_use]
    pub fn left_out(&self) -> PathBuf {
        self.root.join("left-out")
    }

    /// The number of the last start.
    #[must_use]
    pub fn epoch(&self) -> PathBuf {
        self.root.join("epoch")
    }

    /// Where keys lie: the authority's, gateways' certificates, operators' and those of members that were made here.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    /// What only lives while the system does.
    #[must_use]
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }

    /// The process that serves HTTP, while `pares up` keeps one.
    #[must_use]
    pub fn web_pid(&self) -> PathBuf {
        self.run().join("web.pid")
    }

    /// A gateway's log.
    #[must_use]
    pub fn gateway_log(&self, id: GatewayId) -> PathBuf {
        self.root.join(format!("gateway-{id}"))
    }

    /// Where the taps lie.
    #[must_use]
    pub fn taps(&self) -> PathBuf {
        self.root.join("tap")
    }

    /// The log of a gateway's tap.
    #[must_use]
    pub fn tap(&self, id: GatewayId) -> PathBuf {
        self.taps().join(format!("gateway-{id}"))
    }

    /// A venue's log.
    #[must_use]
    pub fn venue_log(&self, id: VenueId) -> PathBuf {
        self.root.join(format!("venue-{id}"))
    }

    /// A recorder's log.
    #[must_use]
    pub fn recorder_log(&self, id: RecorderId) -> PathBuf {
        self.root.join(format!("recorder-{id}"))
    }

    /// A recorder's checkpoints.
    #[must_use]
    pub fn checkpoints(&self, id: RecorderId) -> PathBuf {
        self.recorder_log(id).join("checkpoints")
    }

    /// A shard's window.
    #[must_use]
    pub fn window(&self, shard: ShardId) -> PathBuf {
        self.run().join(format!("window-{shard}"))
    }

    /// A node's counters: `node` is its role and number, such as `venue-0`.
    #[must_use]
    pub fn counters(&self, node: &str) -> PathBuf {
        self.run().join(format!("{node}.counters"))
    }

    /// The log that a node writes.
    #[must_use]
    pub fn log(&self, node: crate::NodeId) -> PathBuf {
        self.root.join(node.to_string())
    }

    /// The process id of a node that is up.
    #[must_use]
    pub fn pid(&self, node: crate::NodeId) -> PathBuf {
        self.run().join(format!("{node}.pid"))
    }

    /// What a node has to complain about: its standard error.
    #[must_use]
    pub fn complaints(&self, node: crate::NodeId) -> PathBuf {
        self.run().join(format!("{node}.log"))
    }

    /// The address a gateway listens on.
    #[must_use]
    pub fn gateway_address(&self, id: GatewayId) -> PathBuf {
        self.run().join(format!("gateway-{id}.addr"))
    }

    /// The address a gateway listens for FIX on.
    #[must_use]
    pub fn fix_address(&self, id: GatewayId) -> PathBuf {
        self.run().join(format!("gateway-{id}.fix"))
    }

    /// The address a gateway listens for OUCH on.
    #[must_use]
    pub fn ouch_address(&self, id: GatewayId) -> PathBuf {
        self.run().join(format!("gateway-{id}.ouch"))
    }

    /// The address a replayer listens on, by UDP and TCP.
    #[must_use]
    pub fn replayer_address(&self, id: ReplayerId) -> PathBuf {
        self.run().join(format!("replayer-{id}.addr"))
    }
}

/// The bell of each node (see `pares_os::bell`): gateways, venues, recorders, 16 each; publishers and replayers, 8 each.
pub mod bells {
    use crate::{FEED_ROLE_MAX, NodeId, ROLE_MAX};

    /// A node's bell.
    #[must_use]
    pub fn of(node: NodeId) -> usize {
        match node {
            NodeId::Gateway(id) => usize::from(id.0),
            NodeId::Venue(id) => ROLE_MAX + usize::from(id.0),
            NodeId::Recorder(id) => 2 * ROLE_MAX + usize::from(id.0),
            NodeId::Publisher(id) => 3 * ROLE_MAX + usize::from(id.0),
            NodeId::Replayer(id) => 3 * ROLE_MAX + FEED_ROLE_MAX + usize::from(id.0),
        }
    }
}
