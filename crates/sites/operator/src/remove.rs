//! `pares site remove`: a site that leaves for good has no vote in its cluster any more.

use pares_site::Access;
use pares_wice::SiteId;

use crate::decide::Patience;
use crate::error::{OperatorError, OperatorResult, usage};
use crate::{reached, sites, tell_if_quiet};

/// Arguments of `pares site remove`.
#[derive(clap::Args)]
pub struct Remove {
    /// The leaving site, as in 0.2
    #[arg(value_parser = sites::parse)]
    site: SiteId,
    /// Confirm that its disk is given up
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    patience: Patience,
}

impl Remove {
    /// Has its cluster's log take its vote away, if `--yes` is said.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        let (site, name) = (self.site, sites::name(self.site));
        if !self.yes {
            return Err(usage(format!(
                "{name} would lose its vote, and its directory would become worthless. If only its disk or \
                 machine is replaced, do not remove it: the other sites refill it. If it leaves \
                 permanently, repeat with --yes"
            )));
        }
        let mates: Vec<SiteId> =
            sites::all(&access.config).into_iter().filter(|other| other.cluster == site.cluster).collect();
        if mates.is_empty() {
            return Err(usage(format!(
                "sites.toml names no other site of {} that could remove it",
                site.cluster
            )));
        }
        let patience = self.patience.duration();
        reached(access)?;
        let answered = tell_if_quiet(patience);
        let removed = access.client(sites::OPERATOR, 0, &mates)?.remove(site, patience);
        drop(answered);
        removed.map_err(|error| OperatorError::Failed(format!("{name}: {error}")))?;
        pares_text::say!(
            "{name} has no vote any more. Take it out of every sites.toml and restart the other sites one \
             after the other (a running `pares site up` does so), or it could rejoin with an empty disk. \
             Then stop it; `pares site revoke --site {name}` revokes its certificate"
        );
        Ok(())
    }
}
