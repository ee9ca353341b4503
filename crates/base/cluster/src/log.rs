//! What a site needs from its cluster's log.

use crate::config::Beginning;
use crate::error::{EntryError, LogError, MessageError};
use crate::members::{MemberId, Members};

/// A member's part in its cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberRole {
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
    fn role(&mut self, role: MemberRole);

    /// This member lacks what all others have let go of, up to place `at_least` or later: nothing is handed out until its owner has taken
    /// a copy of the state there and opened the log [again](crate::ReplicaConfig) behind it. Repeated while it is so.
    fn lacks(&mut self, at_least: u64);
}

/// One member's end of its cluster's log. Calls change memory only; [`cycle`](ClusterLog::cycle) has the effects.
pub trait ClusterLog {
    /// One unit of time has passed.
    fn tick(&mut self);

    /// The connection to a member has ended at its end: most likely it is dead, and if it was the delegate, its place is to be taken. If it lives, nothing comes of it.
    fn lost(&mut self, member: u8);

    /// The owner's own work stalls: this member stands for election now, and gives others its vote as if it had waited for long. Who hears the delegate
    /// still says no, so alone it changes nothing; call it again until there is a delegate. Nothing comes of it at a delegate, which the owner
    /// that has just seen one change gives time first.
    fn impatient(&mut self);

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
    /// [`EntryError`]: it will not be committed.
    fn propose(&mut self, payload: &[u8]) -> Result<(), EntryError>;

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
    fn role(&self) -> MemberRole;

    /// Lets go of all entries up to place `up_to` (what is not handed out yet excepted): the caller's own state at `up_to` is
    /// durable. Members that lack them need a copy of the state instead ([`Sink::lacks`]), so keep a few thousand.
    fn compact(&mut self, up_to: u64);

    /// The members as of what is handed out.
    fn members(&self) -> &Members;

    /// Where a log that continues behind place `index` begins: for a site that takes a copy of the state there. None if that place is not in
    /// this log any more, or not handed out.
    fn beginning(&self, index: u64) -> Option<Beginning>;

    /// Lets a site participate whose disk begins a life under the name `id`: any other life of its disk is removed, then it learns, and when it has
    /// nearly everything it votes. One step a call, and only a delegate's, so it is to be repeated until [`members`](ClusterLog::members)
    /// says that it votes. What was removed must never have its name again.
    fn admit(&mut self, id: MemberId);

    /// Takes the votes of all lives of a site's disk away, one step a call, and only a delegate's, as in [`admit`](ClusterLog::admit). Not the own one: a
    /// delegate that is to go is stopped first. Most of the members that are left must be there, or nothing is committed any more.
    fn dismiss(&mut self, number: u8);

    /// Hands the delegate's office to the member that was heard of and has most of the log, before a planned stop.
    /// Returns whom it asked; none if this is not the delegate, or is alone. The role changes when the other has taken
    /// over; if it has not within an election timeout this member stays delegate. Meanwhile nothing can be proposed.
    fn resign(&mut self) -> Option<u8>;

    /// Asks the delegate to hand its office to this member. The request may be lost, and a member without a vote or an office to ask for has none
    /// granted: repeat it until the role changes.
    fn claim(&mut self);
}
