//! Making the certificates of a system: its own authority, and one certificate for each site.
//!
//! A public authority would vouch for names in the world's name space, which sites have no use for, and would have to
//! be asked again every few months. A system's own authority is two files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};

use crate::tls::{TlsFiles, site_name};

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// A file could not be written or read.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The authority is there, and its key is not.
    #[error("{path} is missing: bring it back to issue more, or delete ca.pem to begin anew with all sites", path = .0.display())]
    NoKey(PathBuf),
    /// The name of the system does not make a name of a site, or the authority's key is not one.
    #[error("cannot make certificates: {0}: is the system's name made of letters, digits and dashes?")]
    Certificate(#[from] rcgen::Error),
}

/// Makes the certificates of `sites` in `dir`: `ca.pem`, `ca.key.pem`, and for each site `site-C-N.pem` and
/// `site-C-N.key.pem`. What is there already stays as it is, so that sites can be added later; to replace a
/// certificate, delete it first. Keys are readable by their owner only. Each site needs `ca.pem` and its own two files;
/// `ca.key.pem` is needed only here, and anybody who has it can be any site. The certificates do not expire.
///
/// # Errors
/// If `ca.pem` is there without its key, a file cannot be read or written, or a name cannot stand in a certificate. Files already written stay.
pub fn issue(dir: &Path, system: &str, sites: &[u16]) -> Result<(), IssueError> {
    fs::create_dir_all(dir).map_err(|source| IssueError::File { path: dir.to_owned(), source })?;
    let issuer = authority(dir, system)?;
    for &site in sites {
        let files = TlsFiles::in_dir(dir, site);
        if files.certificate.exists() && files.key.exists() {
            continue;
        }
        let name = site_name(site, system);
        let mut params = CertificateParams::new(vec![name.clone()])?;
        params.distinguished_name = common_name(&name);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &issuer)?;
        // The key first: a certificate without its key is replaced by the next call, as both are looked for.
        write(&files.key, &key.serialize_pem(), 0o600)?;
        write(&files.certificate, &certificate.pem(), 0o644)?;
    }
    Ok(())
}

/// The authority in `dir`, made if it is not there.
fn authority(dir: &Path, system: &str) -> Result<Issuer<'static, KeyPair>, IssueError> {
    let (certificate_path, key_path) = (dir.join("ca.pem"), dir.join("ca.key.pem"));
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = common_name(&format!("authority of {system}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    if certificate_path.exists() {
        // A new authority in its place would cut off every site there is.
        if !key_path.exists() {
            return Err(IssueError::NoKey(key_path));
        }
        let pem = fs::read_to_string(&key_path)
            .map_err(|source| IssueError::File { path: key_path.clone(), source })?;
        return Ok(Issuer::new(params, KeyPair::from_pem(&pem)?));
    }
    let key = KeyPair::generate()?;
    write(&key_path, &key.serialize_pem(), 0o600)?;
    write(&certificate_path, &params.self_signed(&key)?.pem(), 0o644)?;
    Ok(Issuer::new(params, key))
}

fn common_name(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Writes a file that appears as a whole or not at all, with its mode from the first moment on.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), IssueError> {
    let unfinished = path.with_extension("unfinished");
    let write = || {
        // One left over by a crash may be readable by others: begin with none.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|source| IssueError::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::tls::Identity;

    #[test]
    fn keys_are_their_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), "pares", &[0x0100]).unwrap();
        for name in ["ca.key.pem", "site-1-0.key.pem"] {
            let mode = fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
    }

    #[test]
    fn a_site_added_later_has_the_same_authority() {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), "pares", &[0x0100]).unwrap();
        let before = fs::read(dir.path().join("site-1-0.pem")).unwrap();
        let authority = fs::read(dir.path().join("ca.pem")).unwrap();
        issue(dir.path(), "pares", &[0x0100, 0x0101]).unwrap();
        assert_eq!(fs::read(dir.path().join("site-1-0.pem")).unwrap(), before);
        assert_eq!(fs::read(dir.path().join("ca.pem")).unwrap(), authority);
        let added = Identity::load(&TlsFiles::in_dir(dir.path(), 0x0101)).unwrap();
        added.check_own_name("site-1-1.pares").unwrap();
        added.check_own_name("site-1-0.pares").unwrap_err();
    }

    #[test]
    fn an_authority_whose_key_was_put_away_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), "pares", &[1]).unwrap();
        let authority = fs::read(dir.path().join("ca.pem")).unwrap();
        fs::remove_file(dir.path().join("ca.key.pem")).unwrap();
        assert!(matches!(issue(dir.path(), "pares", &[2]), Err(IssueError::NoKey(_))));
        assert_eq!(fs::read(dir.path().join("ca.pem")).unwrap(), authority);
    }

    #[test]
    fn anothers_key_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        issue(dir.path(), "pares", &[1, 2]).unwrap();
        let mut files = TlsFiles::in_dir(dir.path(), 1);
        files.key = TlsFiles::in_dir(dir.path(), 2).key;
        assert!(Identity::load(&files).is_err());
    }
}
