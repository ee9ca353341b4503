//! `pares mirror`: the logs of an exchange at another host.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_node::mirrors::{self, ReceiverNews};
use pares_node::{HostWorld, Layout, leftovers};
use pares_roles::mirror::MirrorReceiver;
use serde_json::json;

use crate::error::{CommandError, CommandResult};
use crate::text;

/// Between two lines on how it stands.
const EVERY: Duration = Duration::from_secs(1);

/// `pares mirror`.
#[derive(clap::Subcommand)]
pub enum MirrorCommand {
    /// Send the logs to the hosts that ask for them; `pares up` does it if pares.toml has `mirror`
    Serve(ServeArgs),
    /// Keep copies of another host's logs, until Ctrl-C; `pares up` on them continues where that host ended
    Receive(ReceiveArgs),
}

/// Arguments of `pares mirror serve`.
#[derive(clap::Args)]
pub struct ServeArgs {
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// The address to listen at; TLS unless it is of loopback
    #[arg(long, value_name = "ADDRESS")]
    listen: SocketAddr,
    /// Also write the listening address to this file
    #[arg(long, value_name = "FILE", hide = true)]
    announce: Option<PathBuf>,
}

/// Arguments of `pares mirror receive`.
#[derive(clap::Args)]
pub struct ReceiveArgs {
    /// The directory of the copies, empty or new
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// Where the other host sends its logs
    #[arg(long, value_name = "ADDRESS")]
    from: SocketAddr,
    /// The certificate to show, in DIR/keys, as `pares certificate mirror-b` issues it there; without TLS on loopback only
    #[arg(long, value_name = "NAME")]
    certificate: Option<String>,
    /// One JSON object a second instead of lines
    #[arg(long)]
    json: bool,
}

/// Sends or receives until a signal stops it.
///
/// # Errors
/// If it cannot begin.
pub fn run(command: &MirrorCommand) -> CommandResult {
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    match command {
        MirrorCommand::Serve(args) => serve(args, &stop),
        MirrorCommand::Receive(args) => receive(args, &stop),
    }
}

fn serve(args: &ServeArgs, stop: &AtomicBool) -> CommandResult {
    if args.announce.is_some() {
        // `pares up` has started it, and ends it.
        leftovers::end_with_parent()?;
    }
    let layout = Layout::new(&args.dir);
    super::stat::configuration(&layout)?;
    mirrors::serve(&layout, args.listen, stop, |at| {
        let _ = pares_os::scheduling::ordinary();
        pares_text::tell!("{at} sends the logs of {}", args.dir.display());
        let announce = |path: &PathBuf| pares_os::replace_file_unsynced(path, format!("{at}\n").as_bytes());
        if let Some(Err(error)) = args.announce.as_ref().map(announce) {
            pares_text::aside!("pares: announcing the address: {error}");
        }
    })?;
    Ok(())
}

fn receive(args: &ReceiveArgs, stop: &AtomicBool) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let door = mirrors::door(&layout, args.from, args.certificate.as_deref())?;
    let mut told = Instant::now();
    mirrors::receive(&layout, &door, stop, |news| match news {
        ReceiverNews::Connected => pares_text::aside!("connected to {}", args.from),
        ReceiverNews::Disconnected(why) => pares_text::aside!("pares: {why}; trying again"),
        ReceiverNews::Standing(receiver) if told.elapsed() >= EVERY => {
            told = Instant::now();
            text::print(&if args.json { as_json(receiver) } else { as_line(receiver) });
        }
        ReceiverNews::Standing(_) => {}
    })?;
    Ok(())
}

fn as_json(receiver: &MirrorReceiver<HostWorld>) -> String {
    let logs = receiver.progress().map(|(log, standing)| {
        json!({
            "log": log.to_string(),
            "next": standing.next.0,
            "durable": standing.durable.0,
            "lag_bytes": standing.lag_bytes,
        })
    });
    json!({ "rounds": receiver.rounds(), "logs": logs.collect::<Vec<_>>() }).to_string()
}

fn as_line(receiver: &MirrorReceiver<HostWorld>) -> String {
    let logs = receiver.progress().map(|(log, standing)| {
        let lag = match standing.lag_bytes {
            0 => "all".to_owned(),
            bytes => format!("{} behind", text::bytes(bytes)),
        };
        format!("{log} {} ({lag})", text::bytes(standing.next.0))
    });
    logs.collect::<Vec<_>>().join(", ")
}
