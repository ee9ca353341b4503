//! `pares hosts`: a system whose order several hosts decide.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use pares_config::{HostConfig, TlsSetting};
use pares_node::{Layout, SystemConfig, hosts};

use crate::error::{CommandError, CommandResult};

/// `pares hosts`.
#[derive(clap::Subcommand)]
pub enum HostsCommand {
    /// Make the directories of a new system: one for each host, with the same pares.toml, keys and certificates
    New(NewArgs),
}

/// Arguments of `pares hosts new`.
#[derive(clap::Args)]
pub struct NewArgs {
    /// The hosts, three or more, each as NAME=ADDRESS, such as `a=10.0.0.1`
    #[arg(required = true, value_name = "NAME=ADDRESS", value_parser = named)]
    hosts: Vec<(String, IpAddr)>,
    /// Where the directories are made, each under its host's name
    #[arg(long, default_value = "pares-hosts")]
    dir: PathBuf,
    /// A host that orders and records, and neither matches nor has a gateway; may be repeated
    #[arg(long, value_name = "NAME")]
    witness: Vec<String>,
    /// The first of three ports of each host: its gateway's; the next two are for the other hosts
    #[arg(long, default_value_t = 7100)]
    port: u16,
}

fn named(text: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = text.split_once('=').ok_or("expected NAME=ADDRESS, such as a=10.0.0.1")?;
    let address = address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
    Ok((name.to_owned(), address))
}

/// Carries the command out.
///
/// # Errors
/// If the hosts cannot be those of one system, or a directory is there already or cannot be written.
pub fn run(command: &HostsCommand) -> CommandResult {
    let HostsCommand::New(args) = command;
    let config = config(args)?;
    config.check().map_err(|error| CommandError::Usage(error.to_string()))?;
    let layouts: Vec<_> = args.hosts.iter().map(|(name, _)| Layout::new(args.dir.join(name))).collect();
    hosts::make(&layouts, &config)?;
    for (layout, (name, address)) in layouts.iter().zip(&args.hosts) {
        let dir = layout.root().display();
        pares_text::say!("{name}  {address}  {dir}: copy it to that host, then `pares up --dir {dir}` there");
    }
    Ok(())
}

fn config(args: &NewArgs) -> Result<SystemConfig, CommandError> {
    let unknown = args.witness.iter().find(|name| !args.hosts.iter().any(|(host, _)| host == *name));
    if let Some(name) = unknown {
        return Err(CommandError::Usage(format!("--witness {name}: there is no host of that name")));
    }
    let mut config = SystemConfig { gateways: Vec::new(), venues: 0, ..SystemConfig::fresh() };
    for ((name, address), recorder) in args.hosts.iter().zip(0..) {
        let at = |place| SocketAddr::new(*address, args.port.saturating_add(place));
        let (mut gateways, mut venues) = (Vec::new(), Vec::new());
        if !args.witness.contains(name) {
            (gateways, venues) = (vec![config.venues], vec![config.venues]);
            config.gateways.push(at(0));
            config.venues += 1;
        }
        let (name, orders, mirror) = (name.clone(), at(1), at(2));
        let (publishers, replayers) = (Vec::new(), Vec::new());
        config.hosts.push(HostConfig {
            name,
            orders,
            mirror,
            gateways,
            venues,
            recorder,
            publishers,
            replayers,
        });
        config.recorders = recorder + 1;
    }
    config.quorum = config.recorders / 2 + 1;
    if config.exposed_ports().next().is_some() {
        config.tls = TlsSetting::On;
    }
    Ok(config)
}
