//! What a site needs from its cluster's log.

use crate::error::{LogError, MessageError, ProposeError, SnapshotError};

/// Longest state that [`ClusterLog::provide_snapshot`] takes, in bytes: it travels in one message and lies in memory at
/// both ends. A larger state is described instead (where to fetch which version), and fetched by other means.
pub const SNAPSHOT_BYTES_MAX: usize = 256 << 20;

/// A member's part in its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// The delegate's time in office, counted up. At most one member is delegate in one term.
    pub term: u64,
    /// Who is delegate, as far as this member knows.
    pub delegate: Option<u8>,
    /// Whether this member is it *and* has handed out all that earlier delegates committed, so that nothing it does
    /// not know of can precede what it proposes. While this is true, all that is handed out was proposed here.
    pub leads: bool,
}

/// Where a cycle's effects go. The methods are called in the order in which things happen.
pub trait Sink {
    /// A message for member `to`. May be lost, delayed, repeated and overtaken.
    fn send(&mut self, to: u8, message: Vec<u8>);

    /// `payload` is committed at place `index`: durable at a majority, and handed out there by every member that lives. Indices
    /// go up; some are skipped (the log's own entries). `term` is that of the delegate that proposed it.
    fn committed(&mut self, index: u64, term: u64, payload: &[u8]);

    /// This member's role has changed.
    fn role(&mut self, role: Role);

    /// A member is so far behind that its entries are compacted: call [`ClusterLog::provide_snapshot`] with the state at
    /// `at_least` or later. Repeated until it was. Only the delegate hears it.
    fn snapshot_wanted(&mut self, at_least: u64);

    /// Replace all state by `state`, which is the delegate's at place `index`; committed entries go on behind it. The log
    /// holds it durably, and hands it out again at the next opening if [`ReplicaConfig::applied`](crate::ReplicaConfig::applied) is below
    /// `index` then.
    fn restore(&mut self, index: u64, state: &[u8]);
}

/// One member's end of its cluster's log. Calls change memory only; [`cycle`](ClusterLog::cycle) has the effects.
pub trait ClusterLog {
    /// One unit of time has passed.
    fn tick(&mut self);

    /// A message of member `from`, as its [`Sink::send`] gave it.
    ///
    /// # Errors
    /// [`MessageError`]: it was ignored.
    fn receive(&mut self, from: u8, message: &[u8]) -> Result<(), MessageError>;

    /// Asks for `payload` to be the next entry. It is committed, in the order of the calls, if this member stays delegate
    /// for long enough; once [`Sink::role`] has said that it is not any more, it may be committed or lost, and only
    /// [`Sink::committed`] tells.
    ///
    /// # Errors
    /// [`ProposeError`]: it will not be committed.
    fn propose(&mut self, payload: &[u8]) -> Result<(), ProposeError>;

    /// Does all that is pending once: makes durable what has to be, with one sync however much it is; sends
    /// messages, each only after what it promises is durable; hands out what is committed.
    ///
    /// # Errors
    /// [`LogError`]: what is durable is not known any more. Every later call returns the same; end the process, and
    /// open the log again.
    fn cycle(&mut self, out: &mut (impl Sink + ?Sized)) -> Result<(), LogError>;

    /// Whether a cycle would do anything.
    fn pending(&self) -> bool;

    /// The role last handed out.
    fn role(&self) -> Role;

    /// Lets go of all entries up to place `up_to` (what is not handed out yet excepted): the caller's own state at `up_to` is
    /// durable. Members that lack them get the state instead ([`Sink::snapshot_wanted`]), so keep a few thousand.
    fn compact(&mut self, up_to: u64);

    /// The state of the cluster's site at place `index`, for members that lack what is compacted. Kept in memory until a later
    /// one, or until compaction passes it.
    ///
    /// # Errors
    /// [`SnapshotError`]: it was not taken.
    fn provide_snapshot(&mut self, index: u64, state: &[u8]) -> Result<(), SnapshotError>;

    /// Hands the delegate's office to the member that was heard of and has most of the log, before a planned stop.
    /// Returns whom it asked; none if this is not the delegate, or is alone. The role changes when the other has taken
    /// over; if it has not within an election timeout this member goes on as delegate. Meanwhile nothing can be proposed.
    fn resign(&mut self) -> Option<u8>;
}
