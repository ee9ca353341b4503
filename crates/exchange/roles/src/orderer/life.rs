//! Which life of its disk an orderer is in, and what it opens.
//!
//! What an orderer promises to the others lies in its journal, but not on the device: nobody is answered because of it. A loss of power, a
//! directory that is removed or a damaged file may take promises that others count on, and the obvious way, to continue with what is left, votes twice in a
//! term. So a note beside the journal says whether all is there. If not, another *life* begins under a name that has promised nothing: behind a copy from
//! another host, without a vote until who leads has let it vote.
//!
//! ```text
//!   DIR/orderer-0/journal/life      7 8f2b1c55... 11aa22bb      incarnation, boot of the machine, checksum
//!
//!   boot       the last process ran in it and promised from memory: another boot has forgotten
//!   -          none has run since all was on the device: a new system, or an end in order
//! ```
//! The note lies in the journal's directory: who loses the journal loses the note. The first life of all hosts is noted where their directories are made
//! ([`first_life`]): a directory without a note is no first life.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use pares_cluster::{
    Incarnation, Journal, JournalError, LogError, MemberId, Replica, ReplicaConfig, ReplicaError,
};
use pares_config::{Layout, NodeId, SystemConfig};
use pares_log::{LogReader, LogReplacement, Offset, ReadError};
use pares_orderer::Ordered;
use pares_types::HostId;

use super::orders_log::{Behind, OrdersLog};
use crate::venue::log_config;
use crate::world::World;
use crate::{NodeError, whole_file};

/// The note of a host's first life, where its directory is made: its path there, and what it says.
#[must_use]
pub fn first_life(host: HostId) -> (PathBuf, String) {
    (path(host), text(Incarnation(0), None))
}

fn path(host: HostId) -> PathBuf {
    Layout::new("").orders_journal(host).join("life")
}

fn text(incarnation: Incarnation, boot: Option<u128>) -> String {
    let boot = boot.map_or_else(|| "-".to_owned(), |boot| format!("{boot:x}"));
    let said = format!("{} {boot}", incarnation.0);
    format!("{said} {:08x}\n", crc32c::crc32c(said.as_bytes()))
}

/// What [`text`] said.
fn parse(said: &str) -> Option<(Incarnation, Option<u128>)> {
    let mut words = said.split(' ');
    let incarnation = Incarnation(words.next()?.parse().ok().filter(|life| *life < Incarnation::END)?);
    let boot = match words.next()? {
        "-" => None,
        boot => Some(u128::from_str_radix(boot, 16).ok()?),
    };
    (text(incarnation, boot) == said).then_some((incarnation, boot))
}

/// One life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life(pub(super) MemberId);

impl Life {
    /// The one that the disk is in; or what may be lost of it.
    fn found(world: &impl World, host: HostId) -> Result<Result<Self, &'static str>, NodeError> {
        let said = match whole_file::read(world, &path(host)) {
            // Not text.
            Err(error) if error.kind() == ErrorKind::Other => String::new(),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Err("its journal is not there"));
            }
            said => said.map_err(|source| NodeError::Read { path: path(host), source })?,
        };
        let Some((incarnation, boot)) = parse(&said) else {
            return Ok(Err("the note about its journal is damaged"));
        };
        let now = world.boot_id();
        let life = Self(MemberId { number: host.0, incarnation });
        // A machine that does not tell its boots may have had another.
        match boot {
            Some(boot) if boot != now || now == 0 => {
                Ok(Err("this machine was started again, and what its journal had in memory may be lost"))
            }
            _ => Ok(Ok(life)),
        }
    }

    /// Sets aside what there is of an earlier life, and begins another.
    fn begin(
        world: &impl World,
        host: HostId,
        config: &SystemConfig,
        why: &dyn Display,
    ) -> Result<Self, NodeError> {
        let (node, journal) = (NodeId::Orderer(host), Layout::new("").orders_journal(host));
        let names =
            world.list(Path::new(&node.to_string())).map_err(NodeError::io("looking for a journal"))?;
        let before = names.iter().filter(|name| name.starts_with("journal-")).count();
        // The note goes along: a process that dies between here and the end lets the next begin here.
        match world.rename(&journal, &journal.with_file_name(format!("journal-{}", before + 1))) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(NodeError::io("setting a journal aside")(error));
            }
            _ => {}
        }
        if has_records(world, node) {
            world.replace_log(node, log_config(config))?.complete()?;
        }
        let random = u64::from_le_bytes(*world.random().first_chunk().expect("32 bytes"));
        let incarnation = Incarnation::drawn(random).max(Incarnation(1));
        assert_ne!(incarnation, Incarnation(0), "the name of the first life is never given again");
        let life = Self(MemberId { number: host.0, incarnation });
        life.note(world, Some(world.boot_id()))?;
        world.complain(&format_args!(
            "{node}: {why}. What is left of it is set aside in {node}; it takes a copy of what is ordered from another host, and votes once a majority of the \
             others has let it. If most hosts wait for this nothing is ordered, and there is no command for that: start those that have lost nothing"
        ));
        Ok(life)
    }

    /// What the node says when its log has failed. If the others know of promises that are not there, the note that they are is none.
    pub(super) fn ended_by(self, world: &impl World, error: LogError) -> NodeError {
        let LogError::Forgotten { commit, last } = error else {
            return NodeError::Refused(error.to_string());
        };
        match world.remove_file(&path(HostId(self.0.number))) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                NodeError::io("removing the note of an orderer's life")(error)
            }
            _ => NodeError::Refused(format!(
                "the other orderers know that this one had index {commit} of their log, and its journal ends at {last}: its disk is older than it was. It begins as \
                 another member when it starts again"
            )),
        }
    }

    /// Notes the boot in which it promises from memory; none once all is on the device.
    pub(super) fn note(self, world: &impl World, boot: Option<u128>) -> Result<(), NodeError> {
        let (host, incarnation) = (HostId(self.0.number), self.0.incarnation);
        let text = text(incarnation, boot);
        assert_eq!(parse(&text), Some((incarnation, boot)), "a note is read as it was written");
        let noted = whole_file::write(world, &path(host), &text);
        noted.map_err(NodeError::io("noting an orderer's life"))
    }
}

/// Whether there is a log that an operator may want to look at.
fn has_records(world: &impl World, log: NodeId) -> bool {
    match world.read_log_from_start(log) {
        Err(ReadError::NotYet { .. }) => false,
        Err(_) => true,
        Ok(mut reader) => reader.offset() != Offset::START || !matches!(reader.next(), Ok(None)),
    }
}

/// What an orderer continues with.
pub(super) struct Opened<W: World, J> {
    pub(super) life: Life,
    pub(super) log: OrdersLog<W>,
    pub(super) ordered: Ordered,
    pub(super) behind: Behind,
    pub(super) replica: Replica<J>,
}

/// Why it cannot.
enum Unopened {
    /// Another life has to begin.
    Lost(String),
    Failed(NodeError),
}

impl From<NodeError> for Unopened {
    fn from(error: NodeError) -> Self {
        let is_lost = match &error {
            NodeError::Open(error) => error.is_damage(),
            NodeError::Log(error) => error.is_damage(),
            _ => false,
        };
        if is_lost { Self::Lost(format!("its orders log is damaged ({error})")) } else { Self::Failed(error) }
    }
}

impl From<ReplicaError> for Unopened {
    fn from(error: ReplicaError) -> Self {
        match error {
            ReplicaError::Journal(JournalError::Damaged { what }) => {
                Self::Lost(format!("its journal is damaged ({what})"))
            }
            error if error.is_damage() => {
                Self::Lost("its journal and its orders log do not belong together".to_owned())
            }
            error => Self::Failed(NodeError::Refused(error.to_string())),
        }
    }
}

impl<W: World, J: Journal> Opened<W, J> {
    /// Opens an orderer's logs in the life that they are in, or empty ones in another. `journal` opens its journal; with `true` it is a new one.
    pub(super) fn open(
        world: &W,
        (host, config): (HostId, &SystemConfig),
        settings: impl Fn(&SystemConfig, MemberId, &OrdersLog<W>) -> ReplicaConfig,
        mut journal: impl FnMut(bool) -> Result<J, JournalError>,
    ) -> Result<Self, NodeError> {
        let why = match Life::found(world, host)? {
            Ok(life) => match Self::of(world, config, life, &settings, &mut || journal(false)) {
                Err(Unopened::Lost(why)) => why,
                Err(Unopened::Failed(error)) => return Err(error),
                Ok(opened) => return Ok(opened),
            },
            Err(why) => why.to_owned(),
        };
        let life = Life::begin(world, host, config, &why)?;
        assert_eq!(life.0.number, host.0, "a life is of the host that begins it");
        Self::of(world, config, life, &settings, &mut || journal(true)).map_err(|error| match error {
            Unopened::Lost(why) => NodeError::Refused(why),
            Unopened::Failed(error) => error,
        })
    }

    fn of(
        world: &W,
        config: &SystemConfig,
        life: Life,
        settings: &impl Fn(&SystemConfig, MemberId, &OrdersLog<W>) -> ReplicaConfig,
        journal: &mut dyn FnMut() -> Result<J, JournalError>,
    ) -> Result<Self, Unopened> {
        let node = NodeId::Orderer(HostId(life.0.number));
        let (log, ordered, behind) = OrdersLog::open(world, node, config)?;
        // Before anything is promised: from here on another boot has forgotten.
        life.note(world, Some(world.boot_id()))?;
        let replica = Replica::open(journal().map_err(ReplicaError::from)?, &settings(config, life.0, &log))?;
        assert!(log.applied().0 <= replica.handed_out().0, "what is ordered was handed out");
        Ok(Self { life, log, ordered, behind, replica })
    }
}
