//! `pares archive`, `pares backup`, `pares restore`: copies of the record, and of a running system.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use pares_archive::{CopiedDay, Days, Store, back_up, restore, restore_backup};
use pares_node::{Layout, NodeId};
use pares_types::{BusinessDay, RecorderId, ShardId};
use serde_json::json;

use super::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// Arguments of `pares archive`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// A directory, or s3://BUCKET/PREFIX (keys, region and endpoint from AWS_... in the environment)
    #[arg(long, required = true)]
    to: Option<String>,
    /// This day only [default: all closed days that are not archived yet]
    #[arg(long)]
    day: Option<BusinessDay>,
    /// The system's directory
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
    /// One JSON object for each recorder instead of lines
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Make a readable system directory from archived days
    Restore {
        /// The archive
        #[arg(long)]
        from: String,
        /// An empty or new directory
        #[arg(long)]
        into: PathBuf,
        /// The recorder whose days to restore
        #[arg(long, default_value_t = 0)]
        recorder: u16,
        /// The first day [default: the first archived]
        #[arg(long)]
        first: Option<BusinessDay>,
        /// The last day [default: the last archived]
        #[arg(long)]
        last: Option<BusinessDay>,
    },
}

/// Arguments of `pares backup`.
#[derive(clap::Args)]
pub struct BackupArgs {
    /// An empty or new directory
    to: PathBuf,
    /// The system's directory; it may be running
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
}

/// Arguments of `pares restore`.
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// A directory that `pares backup` made
    from: PathBuf,
    /// The new system's directory, empty or new
    #[arg(long, default_value = "pares-data")]
    dir: PathBuf,
}

/// Archives closed days, or restores them.
///
/// # Errors
/// If a day is not closed, not whole, or the store fails.
pub fn run(args: &Args) -> CommandResult {
    if let Some(What::Restore { from, into, recorder, first, last }) = &args.what {
        let recorder = NodeId::Recorder(RecorderId(*recorder)).to_string();
        let copied = restore(&Store::open_existing(from)?, &recorder, (*first, *last), into)?;
        tell(&recorder, &copied, "restored", false);
        return Ok(());
    }
    archive(args)
}

/// The days of every recorder: one that fails keeps no other from being archived.
fn archive(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = configuration(&layout)?;
    let shards: Vec<ShardId> = config.shards()?.into_keys().collect();
    let to = args.to.as_deref().ok_or_else(|| CommandError::Usage("--to says where".to_owned()))?;
    let store = Store::open(to)?;
    let mut failures = Vec::new();
    for id in config.recorder_ids() {
        let days = Days::new(&layout.recorder_log(id), &shards);
        let recorder = NodeId::Recorder(id).to_string();
        let archived =
            days.close().and_then(|_| days.archive((&layout.config(), &recorder), &store, args.day));
        match archived {
            Ok(copied) => tell(&recorder, &copied, "archived", args.json),
            Err(error) => failures.push(format!("{recorder} is not archived: {error}")),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(CommandError::Failed(failures.join("\n"))) }
}

fn tell(recorder: &str, copied: &CopiedDay, done: &str, json: bool) {
    let CopiedDay { days, bytes, archived_bytes } = copied;
    text::print(&if json {
        json!({ "recorder": recorder, "days": days, "bytes": bytes, "archived_bytes": archived_bytes })
            .to_string()
    } else {
        let (days, bytes) = (text::count(days.len() as u64, "day"), text::bytes(*bytes));
        let packed = if *archived_bytes == 0 {
            String::new()
        } else {
            format!(" in {}", text::bytes(*archived_bytes))
        };
        format!("{recorder}: {days} {done}, {bytes}{packed}")
    });
}

/// Copies a system, running or not.
///
/// # Errors
/// If something cannot be copied.
pub fn backup(args: &BackupArgs) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = configuration(&layout)?;
    let recorders: Vec<String> = config.recorder_ids().map(|id| NodeId::Recorder(id).to_string()).collect();
    let gateways: Vec<String> = config.gateway_ids().map(|id| NodeId::Gateway(id).to_string()).collect();
    let made = back_up(&args.dir, &args.to, &recorders, &gateways)?;
    text::print(&format!(
        "{} in {}",
        text::count(made.files.len() as u64, "file"),
        text::bytes(made.bytes())
    ));
    Ok(())
}

/// Makes a system of a backup.
///
/// # Errors
/// If the backup is not whole, or the directory not empty.
pub fn restore_system(args: &RestoreArgs) -> CommandResult {
    let made = restore_backup(&args.from, &args.dir)?;
    text::print(&format!(
        "{} in {}",
        text::count(made.files.len() as u64, "file"),
        text::bytes(made.bytes())
    ));
    let keys = Layout::new(&args.dir).keys();
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&keys);
    made.map_err(CommandError::io("making the directory of keys"))?;
    text::print(&format!(
        "a backup does not contain keys/: put operator.key, and with TLS ca.pem and ca.key.pem, into {} before the first start",
        keys.display()
    ));
    Ok(())
}
