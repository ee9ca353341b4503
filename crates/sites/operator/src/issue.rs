//! `pares site issue` and `pares site revoke`: who else may come in, and who may not any more.
//!
//! Both need the authority's key, `ca.key.pem`; sites do not, so it can be put away in between.

use std::path::{Path, PathBuf};

use pares_site::SitesConfig;
use pares_wice::SiteId;

use crate::error::{OperatorResult, usage};
use crate::sites;

/// Longest name of a certificate's owner, so that with its kind it is a label of a host name.
const NAME_MAX: usize = 50;

/// The owner of the certificate.
#[derive(clap::Args)]
pub struct Owner {
    #[command(flatten)]
    who: Who,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Who {
    /// A client, who may execute and read
    #[arg(long, value_name = "NAME", value_parser = proper)]
    client: Option<String>,
    /// A reader, who may only read
    #[arg(long, value_name = "NAME", value_parser = proper)]
    reader: Option<String>,
    /// An operator, who may also declare clusters lost, admit them, move the certifier, remove sites, and take backups
    #[arg(long, value_name = "NAME", value_parser = proper)]
    operator: Option<String>,
    /// A site, as in 0.1: a new certificate, after its old one was revoked
    #[arg(long, value_name = "SITE", value_parser = sites::parse)]
    site: Option<SiteId>,
    /// The witness
    #[arg(long)]
    witness: bool,
}

fn proper(name: &str) -> Result<String, String> {
    let is_proper = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_edge = name.starts_with('-') || name.ends_with('-');
    match name.is_empty() || name.len() > NAME_MAX || is_edge || !name.chars().all(is_proper) {
        true => {
            Err(format!("a name must be 1 to {NAME_MAX} lower-case letters, digits, and dashes between them"))
        }
        false => Ok(name.to_owned()),
    }
}

impl Owner {
    /// What the certificate is called.
    fn name(&self) -> String {
        let Who { client, reader, operator, site, witness } = &self.who;
        if *witness {
            return "witness".into();
        }
        if let Some(site) = site {
            return format!("site-{}-{}", site.cluster.0, site.number);
        }
        let all = [("client", client), ("reader", reader), ("operator", operator)];
        let named = all.into_iter().find_map(|(kind, name)| Some(format!("{kind}-{}", name.as_ref()?)));
        named.expect("clap wants one of them")
    }

    /// Issues it.
    ///
    /// # Errors
    /// If there is one in that name, the authority's key is not there, or the system has no certificates.
    pub fn issue(&self, config: &SitesConfig, dir: &Path) -> OperatorResult {
        let name = self.name();
        let tls = issue(config, dir, &name)?;
        pares_text::say!(
            "{name}: hand over {name}.pem, {name}.key.pem and ca.pem from {}, and sites.toml; give the key to nobody else",
            tls.display()
        );
        Ok(())
    }

    /// Revokes it.
    ///
    /// # Errors
    /// If there is none in that name, the authority's key is not there, or the system has no certificates.
    pub fn revoke(&self, config: &SitesConfig, dir: &Path) -> OperatorResult {
        let tls = certificates(config, dir)?;
        let name = self.name();
        let list = pares_link::revoke(&tls, &config.system, &name).map_err(usage)?;
        pares_text::say!(
            "{name} is revoked. Sites that read {} refuse it within a second: copy that file to every other machine, beside ca.pem",
            list.display()
        );
        Ok(())
    }
}

/// Issues a certificate in that name; where it is.
///
/// # Errors
/// As [`Owner::issue`].
pub(crate) fn issue(config: &SitesConfig, dir: &Path, name: &str) -> Result<PathBuf, crate::OperatorError> {
    let tls = certificates(config, dir)?;
    pares_link::issue_named(&tls, &config.system, name).map_err(|error| {
        usage(format!("{error}. A name can have only one certificate at a time: revoke the old one first"))
    })?;
    Ok(tls)
}

fn certificates(config: &SitesConfig, dir: &Path) -> Result<PathBuf, crate::OperatorError> {
    let tls = config.tls.as_ref();
    tls.map(|tls| dir.join(tls))
        .ok_or_else(|| usage("this system uses no certificates: sites.toml has no `tls`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_stand_in_a_certificate() {
        for good in ["a", "app-2", "0"] {
            assert_eq!(proper(good).as_deref(), Ok(good));
        }
        for bad in ["", "-a", "a-", "A", "a.b", "../x", "a b", &"x".repeat(51)] {
            assert!(proper(bad).is_err(), "{bad}");
        }
    }
}
