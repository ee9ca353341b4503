//! Making certificates: a system's own authority, and what it issues.
//!
//! A public authority would vouch for names in the world's name space, which a system has no use for, and would have to
//! be asked again every few months. A system's own authority is two files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber,
};

use rustls::pki_types::UnixTime;

use webpki::EndEntityCert;

use crate::error::{IssueError, TlsError};
use crate::identity::{self, TlsFiles, revoked_file};

/// From when until when a certificate is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// It does not expire.
    Endless,
    /// From two days ago, for clocks that are late or set back, until then.
    Until(SystemTime),
}

/// A clock may be so late, or set back so far, and believe a new certificate all the same.
const CLOCK_LATE_MAX: Duration = Duration::from_secs(2 * 86_400);

/// The one that issues a system's certificates: `ca.pem` and `ca.key.pem` in one directory.
pub struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// The authority in `dir`, made if it is not there: a directory and a key that are their owner's alone.
    ///
    /// # Errors
    /// If `ca.pem` is there without its key or with another, or a file cannot be read or written. Files already written stay.
    pub fn in_dir(dir: &Path, system: &str) -> Result<Self, IssueError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| IssueError::File { path: dir.to_owned(), source })?;
        let (certificate_path, key_path) = (dir.join("ca.pem"), dir.join("ca.key.pem"));
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name = common_name(&format!("authority of {system}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        if certificate_path.exists() {
            // A new authority in its place would cut off all who have a certificate.
            if !key_path.exists() {
                return Err(IssueError::NoKey(key_path));
            }
            let pem = fs::read_to_string(&key_path)
                .map_err(|source| IssueError::File { path: key_path.clone(), source })?;
            let key = KeyPair::from_pem(&pem).map_err(|_| IssueError::OtherKey(key_path.clone()))?;
            let authority = Self(Issuer::new(params, key));
            return match authority.is_of(&certificate_path)? {
                true => Ok(authority),
                false => Err(IssueError::OtherKey(key_path)),
            };
        }
        let key = KeyPair::generate()?;
        write(&key_path, &key.serialize_pem(), 0o600)?;
        write(&certificate_path, &params.self_signed(&key)?.pem(), 0o644)?;
        Ok(Self(Issuer::new(params, key)))
    }

    /// Revokes what `files` has, and writes the list of all that it has revoked ([`revoked_file`]): who has the list does not believe them any more.
    /// The certificate is moved to the directory `revoked`, its key is deleted, and another can be issued in its name.
    ///
    /// # Errors
    /// If there is no such certificate, or a file cannot be read or written.
    pub fn revoke(&self, dir: &Path, files: &TlsFiles) -> Result<(), IssueError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            |source| IssueError::File { path, source }
        };
        let kept = dir.join("revoked");
        let number: String =
            serial(&files.certificate)?.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        fs::create_dir_all(&kept).map_err(at(&kept))?;
        fs::rename(&files.certificate, kept.join(format!("{number}.pem"))).map_err(at(&files.certificate))?;
        match fs::remove_file(&files.key) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(at(&files.key)(error)),
            _ => {}
        }
        self.write_revoked(dir, &kept)
    }

    fn write_revoked(&self, dir: &Path, kept: &Path) -> Result<(), IssueError> {
        let at = |source| IssueError::File { path: kept.to_owned(), source };
        let now = rcgen::date_time_ymd(1970, 1, 1)
            + SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut revoked_certs = Vec::new();
        for file in fs::read_dir(kept).map_err(at)? {
            let serial_number = serial(&file.map_err(at)?.path())?;
            revoked_certs.push(RevokedCertParams {
                serial_number,
                revocation_time: now,
                reason_code: None,
                invalidity_date: None,
            });
        }
        let params = CertificateRevocationListParams {
            this_update: now,
            next_update: rcgen::date_time_ymd(4096, 1, 1),
            crl_number: SerialNumber::from(revoked_certs.len() as u64),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        write(&revoked_file(&dir.join("ca.pem")), &params.signed_by(&self.0)?.pem()?, 0o644)
    }

    /// Whether what it issues is believed by those who have that certificate.
    fn is_of(&self, certificate: &Path) -> Result<bool, IssueError> {
        let roots = identity::authority(certificate)?;
        let tried = params(&[])?.signed_by(&KeyPair::generate()?, &self.0)?;
        Ok(identity::check_issued(&[tried.der().clone()], &roots, UnixTime::now()).is_ok())
    }

    /// Issues a certificate for `names`, host names or IP addresses, and writes it with a new key, which is readable by its owner
    /// only. The first name is also the one that people see. Either end of a connection may show it.
    ///
    /// # Errors
    /// If a name cannot stand in a certificate, or a file cannot be written.
    pub fn issue(&self, files: &TlsFiles, names: &[String], lifetime: Lifetime) -> Result<(), IssueError> {
        let mut params = params(names)?;
        if let Lifetime::Until(end) = lifetime {
            let epoch = rcgen::date_time_ymd(1970, 1, 1);
            let since_epoch = |at: SystemTime| at.duration_since(UNIX_EPOCH).unwrap_or_default();
            let begin = SystemTime::now().min(end) - CLOCK_LATE_MAX;
            (params.not_before, params.not_after) = (epoch + since_epoch(begin), epoch + since_epoch(end));
        }
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.0)?;
        // The key first: a certificate without its key is replaced by the next call, as both are looked for.
        write(&files.key, &key.serialize_pem(), 0o600)?;
        write(&files.certificate, &certificate.pem(), 0o644)
    }
}

/// A certificate of those names, for either end of a connection.
fn params(names: &[String]) -> Result<CertificateParams, IssueError> {
    // An IP address becomes one in the certificate too.
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = common_name(names.first().map_or("", String::as_str));
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    Ok(params)
}

/// The number by which the authority tells a certificate from all others it has issued.
fn serial(path: &Path) -> Result<SerialNumber, IssueError> {
    let chain = identity::certificates(path)?;
    let certificate = chain.first().expect("read as not empty");
    let parsed = EndEntityCert::try_from(certificate).map_err(|why| TlsError::file(path, why))?;
    Ok(SerialNumber::from_slice(parsed.serial()))
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

    use crate::Identity;

    fn issued(dir: &Path, name: &str, lifetime: Lifetime) -> TlsFiles {
        let files = TlsFiles::named(dir, name);
        let names = [format!("{name}.pares"), "127.0.0.1".to_owned()];
        Authority::in_dir(dir, "pares").unwrap().issue(&files, &names, lifetime).unwrap();
        files
    }

    #[test]
    fn keys_are_their_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("keys");
        issued(&keys, "one", Lifetime::Endless);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&keys), 0o700);
        for name in ["ca.key.pem", "one.key.pem"] {
            assert_eq!(mode(&keys.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn an_authority_whose_key_was_put_away_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        issued(dir.path(), "one", Lifetime::Endless);
        let authority = fs::read(dir.path().join("ca.pem")).unwrap();
        fs::remove_file(dir.path().join("ca.key.pem")).unwrap();
        assert!(matches!(Authority::in_dir(dir.path(), "pares"), Err(IssueError::NoKey(_))));
        assert_eq!(fs::read(dir.path().join("ca.pem")).unwrap(), authority);
    }

    #[test]
    fn authority_with_wrong_key_or_damage_issues_nothing() {
        let [dir, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let files = issued(dir.path(), "one", Lifetime::Endless);
        issued(other.path(), "one", Lifetime::Endless);
        let why = || Authority::in_dir(dir.path(), "pares").err().unwrap().to_string();
        let own = fs::read(dir.path().join("ca.key.pem")).unwrap();
        fs::copy(other.path().join("ca.key.pem"), dir.path().join("ca.key.pem")).unwrap();
        assert!(why().contains("is not the key of the ca.pem"), "{}", why());
        fs::write(dir.path().join("ca.key.pem"), &own[..own.len() / 2]).unwrap();
        assert!(why().contains("is not the key of the ca.pem"), "{}", why());
        fs::write(dir.path().join("ca.key.pem"), own).unwrap();
        Authority::in_dir(dir.path(), "pares").unwrap();
        fs::write(&files.ca, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
        assert!(why().contains("Restore the authority's ca.pem"), "{}", why());
    }

    #[test]
    fn anothers_key_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) =
            (issued(dir.path(), "one", Lifetime::Endless), issued(dir.path(), "two", Lifetime::Endless));
        assert!(matches!(Identity::load(&TlsFiles { key: two.key, ..one }), Err(TlsError::Mismatch(_))));
    }

    #[test]
    fn a_certificate_bears_its_names_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let identity = Identity::load(&issued(dir.path(), "one", Lifetime::Endless)).unwrap();
        identity.check_issued().unwrap();
        for (name, good) in
            [("one.pares", true), ("127.0.0.1", true), ("two.pares", false), ("127.0.0.2", false)]
        {
            assert_eq!(identity.check_name(name).is_ok(), good, "{name}");
        }
    }

    #[test]
    fn what_has_expired_or_is_anothers_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let day = Duration::from_secs(86_400);
        for (lifetime, good) in [(SystemTime::now() - day, false), (SystemTime::now() + day, true)] {
            let files = issued(dir.path(), "one", Lifetime::Until(lifetime));
            let identity = Identity::load(&files).unwrap();
            assert_eq!(identity.check_issued().is_ok(), good);
            let a_day_back = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() - day;
            let back = UnixTime::since_unix_epoch(a_day_back);
            assert!(!good || identity.check_issued_at(back).is_ok(), "the clock is set back a day");
        }
        let others = tempfile::tempdir().unwrap();
        let ca = issued(others.path(), "one", Lifetime::Endless).ca;
        let files = TlsFiles { ca, ..TlsFiles::named(dir.path(), "one") };
        Identity::load(&files).unwrap().check_issued().unwrap_err();
    }
}
