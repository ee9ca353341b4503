//! What a client may ask of a site, by what its certificate calls it.
//!
//! The certificate says whose connection it is, so what that client may do stands there too: a list of names and rights would have to be the same at every site, and
//! would be one more thing to forge. Each right includes those before it.
//!
//! | certificate | may |
//! |---|---|
//! | `site-C-N` | report: how a site is |
//! | `reader-NAME` | also read |
//! | `client-NAME` | also execute |
//! | `operator-NAME` | also decide: lost, admit, migrate, remove; also take all of it away: copies, versions |
//! | none, since `sites.toml` has no `tls` | everything |

use crate::protocol::{Ask, Code};
use crate::requests::Answer;

/// What a client may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Nothing.
    Nothing,
    /// How a site is.
    Report,
    /// Also the stable version.
    Read,
    /// Also that something is executed.
    Execute,
    /// Also what an operator decides, and backups.
    Operate,
}

impl Rights {
    /// The rights of who is called so; of all, where nobody shows a certificate.
    #[must_use]
    pub fn of(caller: Option<&str>) -> Self {
        let Some(caller) = caller else { return Self::Operate };
        match caller.split_once('-') {
            Some(("site", _)) => Self::Report,
            Some(("reader", _)) => Self::Read,
            Some(("client", _)) => Self::Execute,
            Some(("operator", _)) => Self::Operate,
            _ => Self::Nothing,
        }
    }

    /// What it takes to ask that.
    pub(crate) fn needed_for(ask: &Ask) -> Self {
        match ask {
            Ask::Report(_) => Self::Report,
            Ask::Read(..) | Ask::Latest(..) => Self::Read,
            Ask::Execute(..) => Self::Execute,
            _ => Self::Operate,
        }
    }

    /// Whose certificate has it.
    fn whose(self) -> &'static str {
        match self {
            Self::Nothing | Self::Report => "a certificate of this system",
            Self::Read => "the certificate of a reader",
            Self::Execute => "the certificate of a client",
            Self::Operate => "the certificate of an operator",
        }
    }
}

/// The answer to a client whose rights are below what it takes.
pub(crate) fn denied(needed: Rights) -> Answer {
    assert_ne!(needed, Rights::Nothing, "every question takes a right");
    Answer { code: Code::Denied, body: format!("that takes {}", needed.whose()).into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_its_owner_may() {
        for (caller, rights) in [
            (None, Rights::Operate),
            (Some("operator-admin"), Rights::Operate),
            (Some("client-app"), Rights::Execute),
            (Some("client-operator-x"), Rights::Execute),
            (Some("reader-x"), Rights::Read),
            (Some("site-0-1"), Rights::Report),
            (Some("operator"), Rights::Nothing),
            (Some("Operator-x"), Rights::Nothing),
            (Some(""), Rights::Nothing),
        ] {
            assert_eq!(Rights::of(caller), rights, "{caller:?}");
        }
    }
}
