//! What waits in a front, and for what.

use crate::front::BrokerFront;
use crate::user::Cause;

/// Commands without a reply, by what they wait for; and users without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrontBacklog {
    /// The next of their user's, without the quote that they need.
    pub for_quotes: usize,
    /// Behind others of their user's; a dump of everything, behind all.
    pub for_users: usize,
    /// Handed to the accounts.
    pub under_way: usize,
    /// Users who have given commands, all of which have their replies; those whom the front has forgotten are not counted.
    pub idle_users: usize,
}

impl BrokerFront {
    /// What waits, counted now: it takes a look at each user.
    #[must_use]
    pub fn backlog(&self) -> FrontBacklog {
        let mut all = FrontBacklog::default();
        for part in &self.parts {
            let waits = usize::from(part.waits_for.is_some());
            let is_command = |cause: &Cause| matches!(cause, Cause::Command(_));
            let under_way = part.under_way.iter().filter(|request| is_command(&request.cause)).count();
            all.for_quotes += waits;
            all.for_users += part.commands.len().saturating_sub(waits);
            all.under_way += under_way;
            let is_idle = part.user.is_some() && part.commands.is_empty() && under_way == 0;
            all.idle_users += usize::from(is_idle);
        }
        all
    }
}
