//! `pares web`: the exchange over HTTP, in a process of its own. There may be any number.

mod market;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pares_api::{ApiServer, ApiSettings, WebTransport};
use pares_config::{SignOnSetting, TlsSetting};
use pares_node::{Layout, SystemConfig, leftovers};
use pares_os::scheduling::{self, Background};
use pares_receiver::Trust;

use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};

/// Where it listens if nothing else is said.
pub const LISTEN: &str = "127.0.0.1:8420";
/// A server that starts leaves the processor to those that serve, so long at most.
const STARTING_MAX: Duration = Duration::from_secs(2);
/// Between two looks at whether it is to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `pares web`.
#[derive(clap::Args)]
pub struct Args {
    /// The exchange's directory, where its gateways publish their addresses
    #[arg(long, value_name = "DIR", default_value = "pares-data")]
    exchange: PathBuf,
    /// The address to listen at; port 0 chooses a free port
    #[arg(long, value_name = "ADDRESS", default_value = LISTEN)]
    listen: SocketAddr,
    /// The server's certificate chain (PEM); allows any listening address
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve without TLS at any address, because only a TLS proxy can reach it
    #[arg(long, conflicts_with = "tls_cert")]
    plain_behind_proxy: bool,
    /// Additional host name; repeatable
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    #[arg(
        long = "origin",
        value_name = "ORIGIN",
        value_parser = pares_api::origins::checked,
        help = "Origin of another server's pages that may call this one, such as https://desk.example; repeatable"
    )]
    origins: Vec<String>,
    /// Worker threads
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    threads: u8,
    /// Also write the listening address to this file
    #[arg(long, value_name = "FILE", hide = true)]
    announce: Option<PathBuf>,
}

/// Serves until a signal stops it.
///
/// # Errors
/// If there is no such exchange, or the address cannot be had.
pub fn run(args: &Args) -> CommandResult {
    if args.announce.is_some() {
        // `pares up` has started it, and ends it.
        leftovers::end_with_parent()?;
    }
    let background = Background::enter(STARTING_MAX);
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    let layout = Layout::new(&args.exchange);
    let config = configuration(&layout)?;
    check_exposure(args, &config)?;
    let settings = settings(args, &layout, &config)?;
    let mut building = tokio::runtime::Builder::new_multi_thread();
    building.on_thread_start(|| _ = scheduling::ordinary());
    let runtime = building.worker_threads(args.threads.into()).enable_all().build();
    let runtime = runtime.map_err(CommandError::io("starting the web server"))?;
    let serving = ApiServer::bind(args.listen, transport(args)?, settings);
    let server = runtime.block_on(serving).map_err(|error| CommandError::Usage(error.to_string()))?;
    announce(args, server.address());
    drop(background);
    runtime.block_on(async {
        tokio::select! {
            () = server.run() => {}
            () = until(&stop) => {}
        }
    });
    Ok(())
}

fn settings(args: &Args, layout: &Layout, config: &SystemConfig) -> Result<ApiSettings, CommandError> {
    let mut settings = ApiSettings::new(gateways(layout.clone(), config));
    settings.hosts.clone_from(&args.hosts);
    settings.origins.clone_from(&args.origins);
    if config.tls == TlsSetting::On {
        let unusable = |error| CommandError::Usage(format!("the exchange's authority: {error}"));
        settings.tls = Some(Trust::load(&layout.keys().join("ca.pem")).map_err(unusable)?);
    }
    settings.market = market::receive(layout, config)?;
    Ok(settings)
}

/// Where nobody proves who he is, all who reach this port trade for any member: that is the gateways' rule too.
fn check_exposure(args: &Args, config: &SystemConfig) -> CommandResult {
    let is_of_here = args.listen.ip().is_loopback() && args.tls_cert.is_none() && !args.plain_behind_proxy;
    if is_of_here || config.sign_on == SignOnSetting::Required || config.gateways_exposed {
        return Ok(());
    }
    Err(CommandError::Usage(
        "the exchange's sign-on is open, so anyone who reaches this server can trade for any member: serve this machine only, or set sign_on = \"required\" (or gateways_exposed = true, to allow it) in its pares.toml".into(),
    ))
}

/// A disk that is full keeps nobody from being served.
fn announce(args: &Args, address: SocketAddr) {
    let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
    pares_text::tell!(
        "the exchange is at {scheme}://{address}/v1, its pages at {scheme}://{address}/ and {scheme}://{address}/operator"
    );
    let announced = args.announce.as_ref();
    let said = announced.map(|path| pares_os::replace_file_unsynced(path, format!("{address}\n").as_bytes()));
    if let (Some(path), Some(Err(error))) = (announced, said) {
        // Where the one before it listened is true no more.
        let _ = std::fs::remove_file(path);
        pares_text::aside!("pares: writing the listening address: {error}");
    }
}

async fn until(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Where the gateways listen, as they have said so last.
fn gateways(layout: Layout, config: &SystemConfig) -> pares_api::Gateways {
    let ids: Vec<_> = config.gateway_ids().collect();
    Arc::new(move || {
        let address = |id| std::fs::read_to_string(layout.gateway_address(id)).ok()?.trim().parse().ok();
        ids.iter().copied().filter_map(address).collect()
    })
}

fn transport(args: &Args) -> Result<WebTransport, CommandError> {
    match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => pares_tls::web_server(certificate, key)
            .map(WebTransport::Tls)
            .map_err(|error| CommandError::Usage(format!("--tls-cert and --tls-key: {error}"))),
        _ if args.plain_behind_proxy => Ok(WebTransport::BehindProxy),
        _ => Ok(WebTransport::Loopback),
    }
}
