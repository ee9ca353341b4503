//! A witness: of two clusters that each declare the other lost, one continues.
//!
//! Two clusters that cannot hear each other cannot know which of them is gone, and two operators who each declare the other's cluster lost make two histories
//! (fault 20). A majority would decide it, and of two there is none. So a third place has a vote, and nothing else: no log, no store, no part in any commit.
//!
//! ```text
//!   takeovers of the era      0           1           2           a declaration of loss counts them up, or the promises of all that live
//!                          -------> A ---------> B ---------> ...
//!   granted                 0: A       1: B
//! ```
//! What the eras of a history count ([`Era::takeovers`](crate::Era)) is counted up by the cluster that was granted it; or, for a register that begins again, by the
//! certifier, once every living cluster has promised it ([`Command::Renew`](crate::site::Command)); and a cluster promises each count once. So of two clusters that continue from one
//! count one is refused, and stays there until it has the other's history. One grant is enough to remember, the last. Its cluster may add to those that it continues without:
//! it is one cluster that continues all the same.

use thiserror::Error;

use crate::ids::{ClusterId, ClusterSet};

/// That clusters are lost, as one of those that live has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Declaration {
    /// The takeovers of the era that it ends.
    pub takeovers: u32,
    /// The cluster that continues without them, with all others that live.
    pub by: ClusterId,
    /// Those that are lost.
    pub lost: ClusterSet,
}

/// Why a declaration was not granted. Nothing has changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum NotGranted {
    /// Another was, from the same count on or a later one.
    #[error(
        "the witness has granted {} to continue without {}. Declare that there if it is not done yet; then check `pares site status`",
        .0.by, names(.0.lost)
    )]
    Other(Declaration),
    /// What eras below this count have granted, this register does not know.
    #[error(
        "the witness's register began after takeover {0}, so it does not know earlier grants: this cluster lags behind the others"
    )]
    Before(u32),
    /// A cluster cannot continue without itself, and not without nobody.
    #[error("a cluster cannot continue without itself")]
    Own,
}

fn names(clusters: ClusterSet) -> String {
    let names: Vec<String> = clusters.iter().map(|cluster| cluster.to_string()).collect();
    names.join(" and ")
}

crate::fields! { Register { floor, granted } }

/// What a witness keeps, for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Register {
    /// It grants nothing below this count of takeovers.
    floor: u32,
    granted: Option<Declaration>,
}

impl Register {
    /// One that knows that no cluster can continue from an era with fewer takeovers. 0 for a database that begins.
    #[must_use]
    pub const fn beginning(floor: u32) -> Self {
        Self { floor, granted: None }
    }

    /// Where it began.
    #[must_use]
    pub const fn floor(&self) -> u32 {
        self.floor
    }

    /// What it granted last.
    #[must_use]
    pub const fn granted(&self) -> Option<Declaration> {
        self.granted
    }

    /// Grants a declaration, or has granted it before. It must be durable before it is answered.
    ///
    /// # Errors
    /// Why not.
    pub fn grant(&mut self, asked: Declaration) -> Result<(), NotGranted> {
        if asked.lost == ClusterSet::default() || asked.lost.contains(asked.by) {
            return Err(NotGranted::Own);
        }
        let is_more = |last: Declaration| {
            (last.takeovers, last.by) == (asked.takeovers, asked.by)
                && last.lost.iter().all(|lost| asked.lost.contains(lost))
        };
        match self.granted {
            Some(last) if asked.takeovers <= last.takeovers && !is_more(last) => Err(NotGranted::Other(last)),
            _ if asked.takeovers < self.floor => Err(NotGranted::Before(self.floor)),
            _ => {
                self.granted = Some(asked);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Coded;

    fn declared(takeovers: u32, by: u8, lost: u8) -> Declaration {
        Declaration { takeovers, by: ClusterId(by), lost: ClusterSet::default().with(ClusterId(lost)) }
    }

    #[test]
    fn of_two_who_declare_each_other_lost_one_goes_on() {
        let mut register = Register::beginning(0);
        assert_eq!(register.grant(declared(0, 1, 0)), Ok(()));
        assert_eq!(register.grant(declared(0, 0, 1)), Err(NotGranted::Other(declared(0, 1, 0))));
        assert_eq!(register.grant(declared(0, 1, 0)), Ok(()), "the same again");
        assert_eq!(register.grant(declared(0, 1, 2)), Err(NotGranted::Other(declared(0, 1, 0))));
        assert_eq!(register.grant(declared(1, 1, 2)), Ok(()), "the next, from where that one led");
        assert_eq!(register.grant(declared(0, 1, 0)), Err(NotGranted::Other(declared(1, 1, 2))));
    }

    #[test]
    fn who_was_granted_that_it_goes_on_may_go_on_without_more() {
        let mut register = Register::beginning(0);
        let more = Declaration { lost: ClusterSet(0b101), ..declared(0, 1, 0) };
        assert_eq!(register.grant(declared(0, 1, 0)), Ok(()));
        assert_eq!(
            register.grant(Declaration { by: ClusterId(3), ..more }),
            Err(NotGranted::Other(declared(0, 1, 0)))
        );
        assert_eq!(register.grant(more), Ok(()));
        assert_eq!(register.granted(), Some(more));
        assert_eq!(
            register.grant(declared(0, 1, 0)),
            Err(NotGranted::Other(more)),
            "less is not what was granted"
        );
        assert_eq!(register.grant(declared(1, 1, 3)), Ok(()));
        assert_eq!(register.grant(more), Err(NotGranted::Other(declared(1, 1, 3))), "of before");
    }

    #[test]
    fn a_register_that_began_later_grants_nothing_of_before() {
        let mut register = Register::beginning(3);
        assert_eq!(register.grant(declared(2, 0, 1)), Err(NotGranted::Before(3)));
        assert_eq!(register.grant(declared(3, 0, 1)), Ok(()));
    }

    #[test]
    fn nobody_goes_on_without_himself_or_without_nobody() {
        let mut register = Register::default();
        assert_eq!(register.grant(declared(0, 1, 1)), Err(NotGranted::Own));
        let nobody = Declaration { lost: ClusterSet::default(), ..declared(0, 1, 0) };
        assert_eq!(register.grant(nobody), Err(NotGranted::Own));
        assert_eq!(register, Register::default());
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let mut register = Register::beginning(7);
        register.grant(declared(9, 2, 0)).unwrap();
        let bytes = [7, 0, 0, 0, 1, 9, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0];
        let mut written = Vec::new();
        register.encode(&mut written);
        assert_eq!(written, bytes);
        assert_eq!(Register::decode(&mut bytes.as_slice()), Ok(register));
    }
}
