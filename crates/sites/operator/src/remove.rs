//! `pares site remove`: a site that leaves for good has no vote in its cluster any more.

use pares_site::Access;
use pares_wice::SiteId;

use crate::decide::Patience;
use crate::error::{OperatorError, OperatorResult, usage};
use crate::sites;

/// Arguments of `pares site remove`.
#[derive(clap::Args)]
pub struct Remove {
    /// The site that leaves, as in 0.2
    #[arg(value_parser = sites::parse)]
    site: SiteId,
    /// Yes, its disk is given up
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
                "{name} would have no vote in its cluster any more, and its directory would count for nothing from then on. If its disk or machine is \
                 replaced, nothing is to be removed: it is filled by itself. If it leaves for good, say --yes"
            )));
        }
        let mates: Vec<SiteId> =
            sites::all(&access.config).into_iter().filter(|other| other.cluster == site.cluster).collect();
        if mates.is_empty() {
            return Err(usage(format!(
                "sites.toml names no site of {}, which could remove it",
                site.cluster
            )));
        }
        let removed = access.client(sites::OPERATOR, 0, &mates)?.remove(site, self.patience.duration());
        removed.map_err(|error| OperatorError::Failed(format!("{name}: {error}")))?;
        pares_text::say!(
            "{name} has no vote. If sites.toml names it, take it out of every one and restart the other sites one after the other (a running `pares site up` \
             does that by itself): named, it would be let in again with an empty disk. Then stop it; `pares site revoke --site {name}` ends its certificate"
        );
        Ok(())
    }
}
