//! Who a site is, and how it proves it: certificates of the system's own authority.
//!
//! Between sites, and between them and applications, lies a network that others may own, so both ends show a certificate (mutual TLS). A
//! site's must name the very site that its owner says it is; what stands in an application's, the protocols above judge.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pares_tls::{
    Authority, Callers, CertificateDer, ClientConnection, IssueError, Lifetime, ServerConfig, TlsError,
    TlsFiles, Trust, names_in, revoked_file,
};

use crate::ended::Ended;

/// The number of the witness: a third place that is no site, and has no port for sites. Its certificate bears the name `witness.SYSTEM`, its files are called `witness`.
pub const WITNESS: u16 = u16::MAX;

/// The number of a system's source of mirrors, which is no site either: the name `mirror.SYSTEM`, files `mirror`.
pub const MIRROR: u16 = u16::MAX - 1;

/// The name a site's certificate must bear: cluster and number within it are the halves of the site's number.
#[must_use]
pub fn site_name(number: u16, system: &str) -> String {
    format!("{}.{system}", stem(number))
}

/// Where the certificate of site `number` lies in `dir`. [`issue`] writes it under these names.
#[must_use]
pub fn site_files(dir: &Path, number: u16) -> TlsFiles {
    TlsFiles::named(dir, &stem(number))
}

fn stem(number: u16) -> String {
    match number {
        WITNESS => "witness".into(),
        MIRROR => "mirror".into(),
        _ => format!("site-{}-{}", number >> 8, number & 0xff),
    }
}

/// Makes the certificates of `sites` in `dir`: `ca.pem`, `ca.key.pem`, and for each site `site-C-N.pem` and
/// `site-C-N.key.pem`. What is there already stays as it is, so that sites can be added later; to replace a
/// certificate, delete it first. Keys are readable by their owner only. Each site needs `ca.pem` and its own two files;
/// `ca.key.pem` is needed only here, and any process that has it can be any site. The certificates do not expire.
///
/// # Errors
/// If `ca.pem` is there without its key, a file cannot be read or written, or a name cannot stand in a certificate. Files already written stay.
pub fn issue(dir: &Path, system: &str, sites: &[u16]) -> Result<(), IssueError> {
    let authority = Authority::in_dir(dir, system)?;
    for &site in sites {
        let files = site_files(dir, site);
        if !files.exist() {
            authority.issue(&files, &[site_name(site, system)], Lifetime::Endless)?;
        }
    }
    Ok(())
}

/// Makes a certificate for a client that is no site, by the authority that is in `dir`: `NAME.pem` and `NAME.key.pem`, believed as
/// `NAME.SYSTEM`.
///
/// # Errors
/// If there is no authority, or not its key; if there is such a certificate already; if it cannot be written.
pub fn issue_named(dir: &Path, system: &str, name: &str) -> Result<TlsFiles, IssueError> {
    let files = TlsFiles::named(dir, name);
    let absent = |path: &Path| {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        IssueError::File { path: path.to_owned(), source }
    };
    if !files.ca.exists() {
        return Err(absent(&files.ca));
    }
    if files.certificate.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(IssueError::File { path: files.certificate, source });
    }
    Authority::in_dir(dir, system)?.issue(&files, &[format!("{name}.{system}")], Lifetime::Endless)?;
    Ok(files)
}

/// Revokes the certificate `NAME.pem` in `dir`: `revoked.pem` there lists it from now on. Every site that is given the list refuses it.
///
/// # Errors
/// If there is no such certificate, no authority or not its key, or a file cannot be written.
pub fn revoke(dir: &Path, system: &str, name: &str) -> Result<PathBuf, IssueError> {
    let files = TlsFiles::named(dir, name);
    if !files.certificate.exists() {
        let source = std::io::Error::from(std::io::ErrorKind::NotFound);
        return Err(IssueError::File { path: files.certificate, source });
    }
    Authority::in_dir(dir, system)?.revoke(dir, &files)?;
    Ok(revoked_file(&files.ca))
}

/// What a certificate of the system calls its owner, without the system's name.
#[must_use]
pub fn caller(certificate: &CertificateDer<'_>, system: &str) -> Option<String> {
    let bare = |name: String| Some(name.strip_suffix(system)?.strip_suffix('.')?.to_owned());
    names_in(certificate).into_iter().find_map(bare)
}

/// A site's certificate and what it believes of others'.
#[derive(Clone, Debug)]
pub struct SiteIdentity {
    own: Arc<pares_tls::Identity>,
    /// For all who dial here: they must show a certificate.
    pub(crate) callers: Arc<ServerConfig>,
    /// For sites dialled from here: they are shown one.
    dial: Trust,
    files: TlsFiles,
}

impl SiteIdentity {
    /// Reads the files, and `revoked.pem` beside the authority's certificate, if it is there.
    ///
    /// # Errors
    /// If one is missing or not what it should be, or they do not go together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let own = pares_tls::Identity::load(files)?;
        let callers = own.server(Callers::Certified)?;
        Ok(Self { dial: own.trust()?, own: Arc::new(own), callers, files: files.clone() })
    }

    /// The TLS of those who dial here, by the files as they are now.
    ///
    /// # Errors
    /// As [`SiteIdentity::load`].
    pub fn callers_now(&self) -> Result<Arc<ServerConfig>, TlsError> {
        Self::load(&self.files).map(|now| now.callers)
    }

    /// The same, read again; the certificate may be a new one in the same name.
    pub(crate) fn again(&self, name: &str) -> Result<Self, TlsError> {
        let again = Self::load(&self.files)?;
        again.check_own_name(name).map(|()| again)
    }

    /// Where the list of revoked certificates is, or would be.
    pub(crate) fn revoked(&self) -> PathBuf {
        revoked_file(&self.files.ca)
    }

    /// Whether the certificate bears `name`.
    pub(crate) fn check_own_name(&self, name: &str) -> Result<(), TlsError> {
        self.own.check_name(name)
    }

    /// The TLS of a connection to the site of that name.
    pub(crate) fn dial(&self, name: &str) -> Result<ClientConnection, Ended> {
        self.dial.dial(name).map_err(|_| Ended::WrongName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_site_added_later_has_the_same_authority() {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), "pares", &[0x0100]).unwrap();
        let before = fs::read(dir.path().join("site-1-0.pem")).unwrap();
        let authority = fs::read(dir.path().join("ca.pem")).unwrap();
        issue(dir.path(), "pares", &[0x0100, 0x0101]).unwrap();
        assert_eq!(fs::read(dir.path().join("site-1-0.pem")).unwrap(), before);
        assert_eq!(fs::read(dir.path().join("ca.pem")).unwrap(), authority);
        let added = SiteIdentity::load(&site_files(dir.path(), 0x0101)).unwrap();
        added.check_own_name("site-1-1.pares").unwrap();
        added.check_own_name("site-1-0.pares").unwrap_err();
    }
}
