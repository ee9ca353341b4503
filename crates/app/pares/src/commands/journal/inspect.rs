//! `pares journal inspect`: a log's marks, segments and records.

use std::path::{Path, PathBuf};

use pares_log::{Inspection, LogStats, Offset, ReadError, Reader};
use serde_json::{Value, json};

use super::decode;
use crate::error::{CommandError, CommandResult};
use crate::text::{self, Table, count, grouped, name};

/// Arguments of `pares journal inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// The log: a directory such as pares-data/recorder-0
    log: PathBuf,
    /// Begin at the record at this offset, taken from an earlier listing [default: the first record]
    #[arg(long)]
    from: Option<u64>,
    /// Most records to print
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What a listing found.
struct Listing {
    /// Offset, payload bytes and content of each record.
    records: Vec<(Offset, usize, decode::Shown)>,
    /// Where to continue.
    next: Offset,
    /// Why it ended before the limit, if not at the end of the log.
    damage: Option<ReadError>,
}

/// Prints the log.
///
/// # Errors
/// If there is no log, it cannot be read, or a record asked for is damaged.
pub fn run(args: &Args) -> CommandResult {
    let inspection = pares_log::inspect(&args.log).map_err(|error| failed(&args.log, &error))?;
    let listing = list(args).map_err(|error| failed(&args.log, &error))?;
    text::print(&match args.json {
        true => as_json(&args.log, &inspection, &listing).to_string(),
        false => as_text(&args.log, &inspection, &listing),
    });
    listing.damage.as_ref().map_or(Ok(()), |error| Err(failed(&args.log, error)))
}

/// What a reader's error means for an operator who named a directory.
pub fn failed(log: &Path, error: &ReadError) -> CommandError {
    let what = match error {
        ReadError::NotYet { .. } => format!(
            "{} is not a log; expected a directory such as pares-data/recorder-0, which contains a file `marks`",
            log.display()
        ),
        error => format!("{}: {error}", log.display()),
    };
    CommandError::Failed(what)
}

fn list(args: &Args) -> Result<Listing, ReadError> {
    let mut reader = match args.from {
        Some(from) => Reader::open(&args.log, Offset(from))?,
        None => Reader::at_start(&args.log)?,
    };
    let (mut records, mut damage) = (Vec::new(), None);
    while records.len() < args.limit {
        match reader.next() {
            Ok(Some(record)) => {
                records.push((record.offset, record.payload.len(), decode::show(record.payload)));
            }
            Ok(None) => break,
            Err(error) => {
                damage = Some(error);
                break;
            }
        }
    }
    Ok(Listing { records, next: reader.offset(), damage })
}

fn as_text(log: &Path, inspection: &Inspection, listing: &Listing) -> String {
    let stats = &inspection.stats;
    let mut out = format!("{}\n{}\n", log.display(), marks(stats).render());
    out.push_str(&format!(
        "{} of {}, including prepared ones ({}): {}\n\n",
        count(inspection.segments.len() as u64, "segment"),
        text::bytes(stats.segment_bytes),
        text::bytes(inspection.file_bytes),
        segments(&inspection.segments),
    ));
    let mut table = Table::new([">offset", ">bytes", "kind", "content"]);
    for (offset, bytes, shown) in &listing.records {
        table.row(vec![offset.to_string(), bytes.to_string(), shown.kind.into(), shown.line.clone()]);
    }
    match table.is_empty() {
        true => out.push_str("no records here\n"),
        false => out.push_str(&table.render()),
    }
    if listing.damage.is_none() && listing.next < stats.written {
        out.push_str(&format!("more: --from {}\n", listing.next));
    }
    out
}

fn marks(stats: &LogStats) -> Table {
    let mut table = Table::new(["mark", ">value"]);
    let mut row = |mark: &str, value: String| table.row(vec![mark.into(), value]);
    row("released (the log begins here)", stats.released.to_string());
    row("written (readable below)", stats.written.to_string());
    row("durable (kept below)", stats.durable.to_string());
    row("synced (on the device below)", stats.synced.to_string());
    row("durability", stats.durability.map_or("-".into(), |setting| name(&setting)));
    row("records appended", grouped(stats.appends));
    row("payload", text::bytes(stats.payload_bytes));
    row("writer's process", stats.writer_pid.to_string());
    if stats.poisoned != 0 {
        row("POISONED by", std::io::Error::from_raw_os_error(stats.poisoned).to_string());
    }
    table
}

/// The first offsets of the segments; the middle of a long list is left out.
fn segments(bases: &[Offset]) -> String {
    let text: Vec<String> = bases.iter().map(Offset::to_string).collect();
    match text.as_slice() {
        [first, second, .., last] if text.len() > 8 => format!("{first}, {second}, ..., {last}"),
        all => all.join(", "),
    }
}

fn as_json(log: &Path, inspection: &Inspection, listing: &Listing) -> Value {
    let stats = &inspection.stats;
    let record = |(offset, bytes, shown): &(Offset, usize, decode::Shown)| {
        let mut fields = shown.fields.clone();
        fields.insert("offset".into(), offset.0.into());
        fields.insert("payload_bytes".into(), (*bytes).into());
        fields.insert("record".into(), shown.kind.into());
        Value::Object(fields)
    };
    json!({
        "log": log.display().to_string(),
        "marks": {
            "released": stats.released.0,
            "written": stats.written.0,
            "durable": stats.durable.0,
            "synced": stats.synced.0,
            "durability": stats.durability.map(|setting| name(&setting)),
            "appends": stats.appends,
            "payload_bytes": stats.payload_bytes,
            "writer_pid": stats.writer_pid,
            "poisoned": stats.poisoned,
        },
        "segment_bytes": stats.segment_bytes,
        "file_bytes": inspection.file_bytes,
        "segments": inspection.segments.iter().map(|base| base.0).collect::<Vec<_>>(),
        "records": listing.records.iter().map(record).collect::<Vec<_>>(),
        "next": listing.next.0,
        "damage": listing.damage.as_ref().map(ReadError::to_string),
    })
}
