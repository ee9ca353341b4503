//! Which certificate an end shows, and whose it believes.
//!
//! Encryption alone would hide the traffic and still let any process with a certificate of any authority pretend to be the other end. So
//! only the system's own authority is believed, and a certificate must bear the very name that is asked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::client::{
    Resumption, WebPkiServerVerifier, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ParsedCertificate, WantsServerCert, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, ConfigBuilder, RootCertStore, ServerConfig, WantsVerifier};
use webpki::EndEntityCert;

use crate::error::TlsError;

/// Where a certificate lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The certificate, and those between it and the authority, if any.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// `NAME.pem` and `NAME.key.pem` in `dir`, by the authority there.
    #[must_use]
    pub fn named(dir: &Path, name: &str) -> Self {
        Self {
            ca: dir.join("ca.pem"),
            certificate: dir.join(format!("{name}.pem")),
            key: dir.join(format!("{name}.key.pem")),
        }
    }

    /// Whether the certificate and its key are there.
    #[must_use]
    pub fn exist(&self) -> bool {
        self.certificate.exists() && self.key.exists()
    }
}

/// What those who call must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callers {
    /// Nothing.
    Anybody,
    /// A certificate of the system's authority.
    Certified,
}

/// A certificate of one's own, and the authority that is believed.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    believed: Believed,
}

/// Whose certificates are believed, and which of them are not any more.
#[derive(Clone, Debug)]
struct Believed {
    roots: Arc<RootCertStore>,
    revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Believed {
    /// The authority `ca`, and the list of what it has revoked, if that lies beside it.
    fn load(ca: &Path) -> Result<Self, TlsError> {
        Ok(Self { roots: Arc::new(authority(ca)?), revoked: revocations(&revoked_file(ca))? })
    }
}

/// Where the list of what an authority has revoked lies: `revoked.pem`, beside its certificate.
#[must_use]
pub fn revoked_file(ca: &Path) -> PathBuf {
    ca.with_file_name("revoked.pem")
}

/// For people's browsers and programs: shows this certificate, with what lies between it and its authority. Nobody is asked for one.
///
/// # Errors
/// If a file is missing or not what it should be, or they do not go together.
pub fn web_server(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|why| TlsError::file(key, why))?;
    finished(serving().with_no_client_auth(), chain, key)
}

fn serving() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
}

fn finished(
    config: ConfigBuilder<ServerConfig, WantsServerCert>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = config.with_single_cert(chain, key).map_err(mismatch)?;
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

impl Identity {
    /// Reads the files.
    ///
    /// # Errors
    /// If one is missing or not what it should be, or they do not go together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|why| TlsError::file(&files.key, why))?;
        let identity = Self { chain, key, believed: Believed::load(&files.ca)? };
        identity.server(Callers::Anybody).map(|_| identity)
    }

    /// For connections that others open.
    ///
    /// # Errors
    /// If certificate, key and authority do not go together.
    pub fn server(&self, callers: Callers) -> Result<Arc<ServerConfig>, TlsError> {
        let config = serving();
        let config = match callers {
            Callers::Anybody => config.with_no_client_auth(),
            Callers::Certified => {
                let Believed { roots, revoked } = self.believed.clone();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                    .with_crls(revoked)
                    .only_check_end_entity_revocation()
                    .allow_unknown_revocation_status();
                config.with_client_cert_verifier(verifier.build().map_err(mismatch)?)
            }
        };
        finished(config, self.chain.clone(), self.key.clone_key())
    }

    /// For connections opened from here: believes the authority, and shows the certificate to who asks for one.
    ///
    /// # Errors
    /// As [`Identity::server`].
    pub fn trust(&self) -> Result<Trust, TlsError> {
        let config = client(self.believed.clone())?;
        let config = config.with_client_auth_cert(self.chain.clone(), self.key.clone_key());
        config.map(Trust::new).map_err(mismatch)
    }

    /// Checks that the certificate bears `name`.
    ///
    /// # Errors
    /// If it does not.
    pub fn check_name(&self, name: &str) -> Result<(), TlsError> {
        let certificate = self.chain.first().expect("read as not empty");
        if names(certificate, name) { Ok(()) } else { Err(TlsError::WrongName(name.to_owned())) }
    }

    /// Checks that the certificate is the authority's, and believed now.
    ///
    /// # Errors
    /// Why it is not: it has expired, or another authority has issued it.
    pub fn check_issued(&self) -> Result<(), TlsError> {
        self.check_issued_at(UnixTime::now())
    }

    /// The same by another clock.
    pub(crate) fn check_issued_at(&self, now: UnixTime) -> Result<(), TlsError> {
        check_issued(&self.chain, &self.believed.roots, now)
    }
}

/// Whether the first certificate is believed then by those who believe `roots`; the others lie between.
pub(crate) fn check_issued(
    chain: &[CertificateDer<'_>],
    roots: &RootCertStore,
    now: UnixTime,
) -> Result<(), TlsError> {
    let (certificate, between) = chain.split_first().expect("read as not empty");
    let parsed = ParsedCertificate::try_from(certificate).map_err(mismatch)?;
    let algorithms = provider().signature_verification_algorithms.all;
    verify_server_cert_signed_by_trust_anchor(&parsed, roots, between, now, algorithms).map_err(mismatch)
}

/// The authority that a caller believes. It shows a certificate only if it has one.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Reads the authority's certificate.
    ///
    /// # Errors
    /// If there is none in the file.
    pub fn load(ca: &Path) -> Result<Self, TlsError> {
        Ok(Self::new(client(Believed::load(ca)?)?.with_no_client_auth()))
    }

    fn new(mut config: ClientConfig) -> Self {
        config.resumption = Resumption::disabled();
        Self(Arc::new(config))
    }

    /// What it believes, for those who make their connections themselves.
    #[must_use]
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.0
    }

    /// The TLS of a connection to the one of that name.
    ///
    /// # Errors
    /// If that cannot be a name.
    pub fn dial(&self, name: &str) -> Result<ClientConnection, TlsError> {
        let wanted =
            ServerName::try_from(name.to_owned()).map_err(|_| TlsError::WrongName(name.to_owned()))?;
        ClientConnection::new(self.0.clone(), wanted).map_err(mismatch)
    }
}

/// Whether a certificate, verified before, bears `name`.
#[must_use]
pub fn names(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(certificate), ServerName::try_from(name))
    else {
        return false;
    };
    verify_server_name(&parsed, &name).is_ok()
}

/// The names a certificate bears that are no addresses; none if it cannot be read.
#[must_use]
pub fn names_in(certificate: &CertificateDer<'_>) -> Vec<String> {
    let parsed = EndEntityCert::try_from(certificate);
    parsed.map_or_else(|_| Vec::new(), |parsed| parsed.valid_dns_names().map(str::to_owned).collect())
}

fn mismatch(why: impl ToString) -> TlsError {
    TlsError::Mismatch(why.to_string())
}

/// What is written there; nothing if there is no such file.
fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let lists = CertificateRevocationListDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| TlsError::file(path, why))?;
    if lists.is_empty() {
        Err(TlsError::file(path, "holds no list of revoked certificates"))
    } else {
        Ok(lists)
    }
}

pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| TlsError::file(path, why))?;
    if chain.is_empty() { Err(TlsError::file(path, "holds no certificate")) } else { Ok(chain) }
}

pub(crate) fn authority(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| TlsError::file(path, why))?;
    }
    Ok(roots)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn client(believed: Believed) -> Result<rustls::ConfigBuilder<ClientConfig, WantsClientCert>, TlsError> {
    let verifier = WebPkiServerVerifier::builder_with_provider(believed.roots, provider())
        .with_crls(believed.revoked)
        .only_check_end_entity_revocation()
        .allow_unknown_revocation_status();
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3");
    Ok(config.with_webpki_verifier(verifier.build().map_err(mismatch)?))
}
