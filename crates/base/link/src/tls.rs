//! Who a site is, and how it proves it: certificates of the system's own authority.
//!
//! Between clusters lies a network that others own. Encryption alone would hide the traffic and still let anybody
//! with a certificate of any authority pretend to be a site, so both ends show one (mutual TLS), only the
//! system's own authority is believed, and the certificate must name the very site that its owner says it is.
//! TLS 1.3 only: both ends are of one release, so nothing older has to be spoken to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{Resumption, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};

use crate::ended::Ended;

/// The name a site's certificate must bear: cluster and number within it are the halves of the site's number.
#[must_use]
pub fn site_name(number: u16, system: &str) -> String {
    format!("site-{}-{}.{system}", number >> 8, number & 0xff)
}

/// Where a site's certificate lies. `issue` writes them under these names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The authority's certificate.
    pub ca: PathBuf,
    /// The site's certificate, and those between it and the authority, if any.
    pub certificate: PathBuf,
    /// The site's private key.
    pub key: PathBuf,
}

impl TlsFiles {
    /// Those of site `number` in `dir`, as [`issue`](crate::issue()) names them.
    #[must_use]
    pub fn in_dir(dir: &Path, number: u16) -> Self {
        let site = format!("site-{}-{}", number >> 8, number & 0xff);
        Self {
            ca: dir.join("ca.pem"),
            certificate: dir.join(format!("{site}.pem")),
            key: dir.join(format!("{site}.key.pem")),
        }
    }
}

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as what it should be.
    #[error("{path}: {why}: issue certificates first, or correct the path", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// They do not go together.
    #[error("the certificate, its key and the authority do not go together ({0}): issue them anew")]
    Mismatch(String),
    /// The certificate is another site's.
    #[error("the certificate does not name {0}: give this site its own")]
    WrongName(String),
}

impl TlsError {
    fn file(path: &Path, why: impl ToString) -> Self {
        Self::File { path: path.to_owned(), why: why.to_string() }
    }
}

/// A site's certificate and what it believes of others'.
#[derive(Clone, Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    /// For sites that dial here: they must show a certificate.
    pub(crate) sites: Arc<ServerConfig>,
    /// For sites dialled from here: they are shown one.
    dial: Arc<ClientConfig>,
    /// For applications: only this end shows a certificate.
    pub(crate) clients: Arc<ServerConfig>,
}

impl Identity {
    /// Reads the files.
    ///
    /// # Errors
    /// If one is missing or not what it should be, or they do not go together.
    pub fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|why| TlsError::file(&files.key, why))?;
        let roots = Arc::new(authority(&files.ca)?);
        let mismatch = |error: rustls::Error| TlsError::Mismatch(error.to_string());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider())
            .build()
            .map_err(|error| TlsError::Mismatch(error.to_string()))?;
        let sites = server()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(mismatch)?;
        let clients = server()
            .with_no_client_auth()
            .with_single_cert(chain.clone(), key.clone_key())
            .map_err(mismatch)?;
        let certificate = chain.first().expect("read as not empty").clone();
        let dial = client(roots).with_client_auth_cert(chain, key).map_err(mismatch)?;
        let (sites, clients) = (without_resumption(sites), without_resumption(clients));
        Ok(Self { certificate, sites, dial: resumed_never(dial), clients })
    }

    /// Whether the certificate bears `name`.
    pub(crate) fn check_own_name(&self, name: &str) -> Result<(), TlsError> {
        if names(&self.certificate, name) { Ok(()) } else { Err(TlsError::WrongName(name.to_owned())) }
    }

    /// The TLS of a connection to the site of that name.
    pub(crate) fn dial(&self, name: &str) -> Result<ClientConnection, Ended> {
        connection(&self.dial, name)
    }
}

/// What an application believes: the authority of the system it uses. It shows no certificate of its own.
#[derive(Clone, Debug)]
pub struct Trust(Arc<ClientConfig>);

impl Trust {
    /// Reads the authority's certificate.
    ///
    /// # Errors
    /// If there is none in the file.
    pub fn load(ca: &Path) -> Result<Self, TlsError> {
        Ok(Self(resumed_never(client(Arc::new(authority(ca)?)).with_no_client_auth())))
    }

    pub(crate) fn dial(&self, name: &str) -> Result<ClientConnection, Ended> {
        connection(&self.0, name)
    }
}

/// Whether a certificate, verified before, bears `name`.
pub(crate) fn names(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let (Ok(parsed), Ok(name)) = (ParsedCertificate::try_from(certificate), ServerName::try_from(name))
    else {
        return false;
    };
    verify_server_name(&parsed, &name).is_ok()
}

fn connection(config: &Arc<ClientConfig>, name: &str) -> Result<ClientConnection, Ended> {
    let wanted = ServerName::try_from(name.to_owned()).map_err(|_| Ended::WrongName(name.to_owned()))?;
    ClientConnection::new(config.clone(), wanted).map_err(Ended::Tls)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|why| TlsError::file(path, why))?;
    if chain.is_empty() { Err(TlsError::file(path, "holds no certificate")) } else { Ok(chain) }
}

fn authority(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| TlsError::file(path, why))?;
    }
    Ok(roots)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server() -> rustls::ConfigBuilder<ServerConfig, rustls::WantsVerifier> {
    ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
}

fn client(roots: Arc<RootCertStore>) -> rustls::ConfigBuilder<ClientConfig, rustls::client::WantsClientCert> {
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
        .with_root_certificates(roots)
}

// Connections last for days: a handshake saved is nothing, and certificates are looked at every time.

fn without_resumption(mut config: ServerConfig) -> Arc<ServerConfig> {
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

fn resumed_never(mut config: ClientConfig) -> Arc<ClientConfig> {
    config.resumption = Resumption::disabled();
    Arc::new(config)
}
