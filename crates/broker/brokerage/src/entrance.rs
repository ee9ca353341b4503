//! How people reach a front's pages: plain on this machine, by TLS, or through a proxy that speaks TLS.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use pares_tls::TlsError;
use pares_web::WebTransport;

use crate::error::{BrokerageError, BrokerageResult, failed, usage};

/// Arguments about it.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Entrance {
    /// The pages' certificate chain (PEM); allows any listening address
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve without TLS at any address, because only a TLS proxy can reach it
    #[arg(long, conflicts_with = "tls_cert")]
    plain_behind_proxy: bool,
    /// Additional host name of the pages, such as a proxy's; repeatable
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Origin of another server's pages that may call this one, such as https://desk.example; repeatable
    #[arg(long = "origin", value_name = "ORIGIN", value_parser = pares_web::origins::checked)]
    pub(crate) origins: Vec<String>,
}

impl Entrance {
    /// How connections come.
    ///
    /// # Errors
    /// If certificate and key are not what they should be.
    pub(crate) fn transport(&self) -> BrokerageResult<WebTransport> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => {
                pares_tls::web_server(certificate, key).map(WebTransport::Tls).map_err(unusable)
            }
            _ if self.plain_behind_proxy => Ok(WebTransport::BehindProxy),
            _ => Ok(WebTransport::Loopback),
        }
    }

    /// Whether pages may be at this address, and certificate and key are what they should be.
    ///
    /// # Errors
    /// What to do if not.
    pub(crate) fn check(&self, http: SocketAddr) -> BrokerageResult {
        let transport = self.transport()?;
        if http.ip().is_loopback() || !matches!(transport, WebTransport::Loopback) {
            return Ok(());
        }
        Err(usage(format!(
            "at {http}, others on the network could read passwords: give --tls-cert FILE and --tls-key FILE, or --plain-behind-proxy if only a TLS proxy can reach it"
        )))
    }

    /// The beginning of the pages' address.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls_cert.is_some() { "https" } else { "http" }
    }

    /// The same arguments, for another process.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        for (name, file) in [("--tls-cert", &self.tls_cert), ("--tls-key", &self.tls_key)] {
            arguments.extend(file.iter().flat_map(|file| [name.into(), file.clone().into()]));
        }
        arguments.extend(self.plain_behind_proxy.then(|| "--plain-behind-proxy".into()));
        arguments.extend(self.hosts.iter().flat_map(|host| ["--host".into(), host.into()]));
        arguments.extend(self.origins.iter().flat_map(|origin| ["--origin".into(), origin.into()]));
        arguments
    }
}

/// What to do about certificate and key.
fn unusable(error: TlsError) -> BrokerageError {
    match error {
        TlsError::File { path, why } => usage(format!(
            "{} cannot be used ({why}): --tls-cert and --tls-key must name the PEM files of a certificate and its private key",
            path.display()
        )),
        TlsError::Mismatch(why) => usage(format!(
            "the files of --tls-cert and --tls-key do not match ({why}): name the key of that certificate"
        )),
        other => failed(other),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use pares_tls::{Authority, Lifetime, TlsFiles};

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        entrance: Entrance,
    }

    fn entrance(line: &str) -> Result<Entrance, clap::Error> {
        Line::try_parse_from(format!("front {line}").split_whitespace()).map(|line| line.entrance)
    }

    #[test]
    fn pages_are_plain_on_this_machine_alone() {
        let dir = tempfile::tempdir().unwrap();
        let files = TlsFiles::named(dir.path(), "web");
        let authority = Authority::in_dir(dir.path(), "broker").unwrap();
        authority.issue(&files, &["localhost".to_owned()], Lifetime::Endless).unwrap();
        let tls = format!("--tls-cert {} --tls-key {}", files.certificate.display(), files.key.display());
        let anywhere = "0.0.0.0:8080".parse().unwrap();
        let refused = entrance("").unwrap().check(anywhere).unwrap_err().to_string();
        assert!(refused.contains("--tls-cert FILE") && refused.contains("--plain-behind-proxy"), "{refused}");
        entrance("").unwrap().check("127.0.0.1:8080".parse().unwrap()).unwrap();
        for (line, scheme) in [(tls.as_str(), "https"), ("--plain-behind-proxy", "http")] {
            let entrance = entrance(line).unwrap();
            entrance.check(anywhere).unwrap();
            assert_eq!(entrance.scheme(), scheme);
            let told: Vec<_> = line.split_whitespace().map(OsString::from).collect();
            assert_eq!(entrance.arguments(), told, "a process that is started is told the same");
        }
    }

    #[test]
    fn arguments_that_could_not_work_are_refused() {
        for wrong in [
            "--tls-cert x",
            "--tls-key x",
            "--tls-cert x --tls-key y --plain-behind-proxy",
            "--origin https://desk.example/",
        ] {
            assert!(entrance(wrong).is_err(), "{wrong}");
        }
        let missing = entrance("--tls-cert nowhere.pem --tls-key nowhere.key.pem").unwrap();
        let why = missing.check("127.0.0.1:8080".parse().unwrap()).unwrap_err().to_string();
        assert!(why.starts_with("nowhere.pem cannot be used") && why.contains("--tls-cert"), "{why}");
    }
}
