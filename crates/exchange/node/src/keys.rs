//! The certificates of a system whose gateways or replayers speak TLS: `DIR/keys`.
//!
//! ```text
//! ca.pem            the authority: members need it, and nobody may change it on its way to them
//! ca.key.pem        its key: who has it can be any gateway and any member. Needed to issue more
//! gateway-G.pem     what gateway G shows           gateway-G.key.pem    its key
//! replayer-R.pem    what replayer R shows          replayer-R.key.pem   its key, if market data are served by TLS
//! operator.pem      what `pares admin` shows       operator.key.pem     its key
//! NAME.pem          what a member shows            NAME.key.pem         its key: `pares certificate NAME`
//! ```

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use pares_config::{ClientCertificates, Layout, SystemConfig, TlsSetting};
use pares_link::{site_files, site_name};
use pares_tls::{
    Authority, Callers, Identity, IssueError, Lifetime, ServerConfig, TlsError, TlsFiles, Trust,
};
use pares_types::{GatewayId, ReplayerId};
use pares_wire::{GATEWAYS_NAME, REPLAYERS_NAME};

use crate::world::complain;
use crate::{NodeError, NodeId};

/// The system's name in its certificates.
pub(crate) const SYSTEM: &str = "pares";
/// Whose certificate local commands show.
const OPERATOR: &str = "operator";
/// Whose certificate the source of mirrors shows.
const MIRROR: &str = "mirror";

/// Has each of these gateways and replayers of a system with TLS a certificate that names it. The authority is made if it is missing, and so are certificates that
/// are missing or damaged, lack a name or have expired; what is there and still good stays.
///
/// # Errors
/// If a certificate is needed and the authority's key was put away or is another's, or files cannot be read or written.
pub(crate) fn ensure(layout: &Layout, config: &SystemConfig, nodes: &[NodeId]) -> Result<(), NodeError> {
    for (owner, names) in needed(config, nodes) {
        let files = TlsFiles::named(&layout.keys(), &owner);
        let Some(why) = lacking(&files, &names) else { continue };
        let failed = |error| NodeError::Refused(format!("{why}, and a new one cannot be issued: {error}"));
        let authority = Authority::in_dir(&layout.keys(), SYSTEM).map_err(failed)?;
        authority.issue(&files, &names, Lifetime::Endless).map_err(failed)?;
    }
    Ok(())
}

/// The owners of the certificates that these nodes, and those who operate them, need, each with its names.
fn needed(config: &SystemConfig, nodes: &[NodeId]) -> Vec<(String, Vec<String>)> {
    let feed = config.feed.as_ref().filter(|feed| feed.tls == TlsSetting::On);
    let of = |&node: &NodeId| {
        let names = match node {
            NodeId::Gateway(id) if config.tls == TlsSetting::On => {
                names(GATEWAYS_NAME, node, config.gateways[usize::from(id.0)].ip(), config)
            }
            NodeId::Replayer(id) => {
                names(REPLAYERS_NAME, node, feed?.replayers[usize::from(id.0)].ip(), config)
            }
            _ => return None,
        };
        Some((node.to_string(), names))
    };
    let mut needed: Vec<_> = nodes.iter().filter_map(of).collect();
    if config.tls == TlsSetting::On {
        needed.push((OPERATOR.to_owned(), vec![format!("{OPERATOR}.{SYSTEM}")]));
    }
    if config.mirror.is_some_and(|at| !at.ip().is_loopback()) {
        needed.push((MIRROR.to_owned(), vec![format!("{MIRROR}.{SYSTEM}")]));
    }
    needed
}

/// Issues a certificate for a member's program, in place of one it has: `NAME.pem` and `NAME.key.pem` in `DIR/keys`.
///
/// # Errors
/// If the name cannot stand in a certificate or is the system's own, the authority's key was put away, or files cannot be written.
pub fn issue(layout: &Layout, name: &str, days: u32) -> Result<TlsFiles, NodeError> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let is_node = name.starts_with("gateway-") || name.starts_with("replayer-");
    let is_own = ["ca", OPERATOR, MIRROR].contains(&name) || is_node;
    if name.is_empty() || is_own || !name.chars().all(plain) {
        let why = format!(
            "`{name}`: a name must consist of letters, digits and dashes, and must not be `ca`, `{OPERATOR}`, `{MIRROR}`, `gateway-...` or `replayer-...`"
        );
        return Err(NodeError::Refused(why));
    }
    let files = TlsFiles::named(&layout.keys(), name);
    let end = SystemTime::now() + Duration::from_secs(u64::from(days) * 86_400);
    let authority = Authority::in_dir(&layout.keys(), SYSTEM).map_err(not_issued)?;
    authority.issue(&files, &[format!("{name}.{SYSTEM}")], Lifetime::Until(end)).map_err(not_issued)?;
    Ok(files)
}

/// Issues to each host of a new system, in its own directory, what it shows: its nodes' certificates, and those of its orderer, its source of mirrors
/// and its receivers. The first has the authority.
///
/// # Errors
/// If one cannot be written.
pub(crate) fn issue_for_hosts(all: &[Layout], config: &SystemConfig) -> Result<(), NodeError> {
    let authority_dir = all[0].keys();
    let authority = Authority::in_dir(&authority_dir, SYSTEM).map_err(not_issued)?;
    for (layout, id) in all.iter().zip(config.host_ids()) {
        let dir = layout.keys();
        std::fs::create_dir_all(&dir).map_err(NodeError::io("making a host's directory of keys"))?;
        let issue = |files: &TlsFiles, names: &[String]| {
            authority.issue(files, names, Lifetime::Endless).map_err(not_issued)
        };
        for (owner, names) in needed(config, &NodeId::at(config, Some(id))) {
            issue(&TlsFiles::named(&dir, &owner), &names)?;
        }
        for number in [id.0.into(), pares_link::MIRROR] {
            issue(&site_files(&dir, number), &[site_name(number, SYSTEM)])?;
        }
        let receiver = receiver(&config.hosts[usize::from(id.0)].name);
        issue(&TlsFiles::named(&dir, &receiver), &[format!("{receiver}.{SYSTEM}")])?;
        if dir != authority_dir {
            let [from, to] = [&authority_dir, &dir].map(|dir| TlsFiles::named(dir, &receiver).ca);
            std::fs::copy(from, to).map_err(NodeError::io("copying the authority's certificate"))?;
        }
    }
    Ok(())
}

/// What the certificate of a host's receivers of mirrors is called.
pub(crate) fn receiver(host: &str) -> String {
    format!("mirror-{host}")
}

/// What a gateway shows, and what it asks of those who connect. None if its port is not TLS.
pub(crate) fn server(
    layout: &Layout,
    id: GatewayId,
    config: &SystemConfig,
) -> Result<Option<std::sync::Arc<ServerConfig>>, NodeError> {
    if config.tls == TlsSetting::Off {
        return Ok(None);
    }
    let callers = match config.client_certificates {
        ClientCertificates::None => Callers::Anybody,
        ClientCertificates::Required => Callers::Certified,
    };
    serving(&files_of(layout, NodeId::Gateway(id)), callers).map(Some)
}

/// What a replayer of market data shows. None if its port is not TLS.
///
/// # Errors
/// If its certificate cannot be used.
pub fn replayer(
    layout: &Layout,
    id: ReplayerId,
    config: &SystemConfig,
) -> Result<Option<std::sync::Arc<ServerConfig>>, NodeError> {
    match &config.feed {
        Some(feed) if feed.tls == TlsSetting::On => {
            serving(&files_of(layout, NodeId::Replayer(id)), Callers::Anybody).map(Some)
        }
        _ => Ok(None),
    }
}

fn serving(files: &TlsFiles, callers: Callers) -> Result<std::sync::Arc<ServerConfig>, NodeError> {
    let identity = Identity::load(files).map_err(not_usable)?;
    // Those who connect would refuse it: better that the operator is informed why.
    identity.check_issued().map_err(not_usable)?;
    identity.server(callers).map_err(not_usable)
}

/// What a program on this machine shows and believes, to speak to the gateways as the operator's. None without TLS.
///
/// # Errors
/// If the operator's certificate cannot be used.
pub fn operator(layout: &Layout, config: &SystemConfig) -> Result<Option<Trust>, NodeError> {
    if config.tls == TlsSetting::Off {
        return Ok(None);
    }
    let identity = Identity::load(&TlsFiles::named(&layout.keys(), OPERATOR)).map_err(not_usable)?;
    identity.trust().map(Some).map_err(not_usable)
}

fn files_of(layout: &Layout, node: NodeId) -> TlsFiles {
    TlsFiles::named(&layout.keys(), &node.to_string())
}

/// What a node's certificate must bear: the name of all nodes of its kind first, since members ask for that; its own, those of its address, and
/// those that the configuration adds.
fn names(of_all: &str, node: NodeId, address: IpAddr, config: &SystemConfig) -> Vec<String> {
    let mut names = vec![of_all.to_owned(), format!("{node}.{SYSTEM}")];
    if address.is_loopback() {
        names.push("localhost".into());
    }
    if !address.is_unspecified() {
        names.push(address.to_string());
    }
    names.extend(config.tls_names.iter().cloned());
    names
}

/// Why a certificate is to be issued, if it is. The operator is informed, unless there was none.
fn lacking(files: &TlsFiles, names: &[String]) -> Option<String> {
    let file = files.certificate.display();
    if !files.exist() {
        return Some(format!("{file} or its key is missing"));
    }
    let checked = Identity::load(files).and_then(|identity| {
        names.iter().try_for_each(|name| identity.check_name(name))?;
        identity.check_issued()
    });
    let why = format!("{file} cannot be used ({})", checked.err()?);
    complain(&format_args!("pares: {why}: issuing a new one"));
    Some(why)
}

fn not_issued(error: IssueError) -> NodeError {
    NodeError::Refused(error.to_string())
}

fn not_usable(error: TlsError) -> NodeError {
    NodeError::Refused(format!(
        "{error}; `pares up` issues missing or damaged certificates of gateways and replayers"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> (tempfile::TempDir, Layout, SystemConfig) {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        (dir, layout, SystemConfig { tls: TlsSetting::On, ..SystemConfig::default() })
    }

    fn certificate(layout: &Layout) -> Vec<u8> {
        std::fs::read(files_of(layout, NodeId::Gateway(GatewayId(0))).certificate).unwrap()
    }

    #[test]
    fn a_certificate_stays_until_it_lacks_a_name() {
        let (_dir, layout, config) = system();
        ensure(&layout, &config, &NodeId::all(&config)).unwrap();
        let first = certificate(&layout);
        ensure(&layout, &config, &NodeId::all(&config)).unwrap();
        assert_eq!(certificate(&layout), first);
        let renamed = SystemConfig { tls_names: vec!["exchange.example.com".into()], ..config };
        ensure(&layout, &renamed, &NodeId::all(&renamed)).unwrap();
        assert_ne!(certificate(&layout), first);
        assert!(server(&layout, GatewayId(0), &renamed).unwrap().is_some());
    }

    #[test]
    fn damaged_certificate_reissued_damaged_ca_named() {
        let (_dir, layout, config) = system();
        ensure(&layout, &config, &NodeId::all(&config)).unwrap();
        let files = files_of(&layout, NodeId::Gateway(GatewayId(0)));
        for file in [&files.certificate, &files.key] {
            let whole = std::fs::read(file).unwrap();
            std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
            ensure(&layout, &config, &NodeId::all(&config)).unwrap();
            assert!(server(&layout, GatewayId(0), &config).unwrap().is_some());
        }
        let ca = layout.keys().join("ca.pem");
        std::fs::write(&ca, "damaged").unwrap();
        let why = ensure(&layout, &config, &NodeId::all(&config)).unwrap_err().to_string();
        assert!(why.contains("ca.pem"), "{why}");
        assert_eq!(std::fs::read(&ca).unwrap(), b"damaged");
    }

    #[test]
    fn without_tls_no_keys_are_made() {
        let (_dir, layout, config) = system();
        ensure(&layout, &SystemConfig { tls: TlsSetting::Off, ..config }, &[]).unwrap();
        assert!(!layout.keys().exists());
    }

    #[test]
    fn nobody_is_issued_the_certificate_of_a_gateway() {
        let (_dir, layout, _config) = system();
        for name in ["gateway-0", "replayer-0", "operator", "mirror", "ca", "", "../x", "a.b"] {
            assert!(issue(&layout, name, 1).is_err(), "{name}");
        }
        assert!(issue(&layout, "member-7", 1).unwrap().exist());
    }
}
