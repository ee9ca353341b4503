//! `pares feed tape`: what was published of each business day, out of the record.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use pares_feed::publication::{FeedSink, Publication, Session};
use pares_node::committed::{Committed, CommittedStream};
use pares_node::{HostWorld, Layout, NodeError};
use pares_types::{BusinessDay, Event, ShardId};
use pares_wire::record::ResultRecord;
use serde_json::json;

use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// Records read from each recorder at a time.
const BATCH_MAX: usize = 2_048;

/// Arguments of `pares feed tape`.
#[derive(clap::Args)]
pub struct Args {
    /// A directory for the files; created if missing
    #[arg(long)]
    to: PathBuf,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
}

/// Writes the files.
///
/// # Errors
/// If there is no such system, its record is damaged or does not begin at the beginning, or a file cannot be written.
pub fn run(args: &Args, layout: &Layout) -> CommandResult {
    let Args { to, json } = args;
    let config = configuration(layout)?;
    let (mut stream, begins) = CommittedStream::of_all_kept(&HostWorld::new(layout)?, &config)?;
    if let Some((shard, position)) = begins.first_key_value() {
        return Err(CommandError::Usage(format!(
            "shard {shard} begins at position {position}: earlier days were dropped, and the tape needs the whole record"
        )));
    }
    let written = |source| CommandError::Io { doing: format!("writing to {}", to.display()), source };
    std::fs::create_dir_all(to).map_err(written)?;
    let mut tapes: BTreeMap<ShardId, (Publication, Tape)> = BTreeMap::new();
    for (shard, instruments) in config.shards()? {
        tapes.insert(shard, (Publication::new(shard, &instruments), Tape::new(to)));
    }
    let mut events = Vec::new();
    while stream.poll(BATCH_MAX, |item| match item {
        Committed::Result { record, .. } => publish(&mut tapes, &mut events, &record),
        _ => Ok(()),
    })? > 0
    {}
    let mut told = Vec::new();
    for (_, tape) in tapes.into_values() {
        told.extend(tape.finish().map_err(written)?);
    }
    tell(&told, *json);
    Ok(())
}

fn publish(
    tapes: &mut BTreeMap<ShardId, (Publication, Tape)>,
    events: &mut Vec<Event>,
    record: &ResultRecord<'_>,
) -> Result<(), NodeError> {
    let Some((publication, tape)) = tapes.get_mut(&record.shard()) else { return Ok(()) };
    events.clear();
    for event in record.events() {
        events.push(event?);
    }
    publication.on_record(record.position(), &record.request()?, &record.outcome()?, events, tape);
    Ok(())
}

/// A file that was written.
struct Written {
    path: PathBuf,
    messages: u64,
    over: bool,
}

/// The files of a shard, one after the other.
struct Tape {
    directory: PathBuf,
    file: Option<BufWriter<File>>,
    written: Vec<Written>,
    /// What went wrong first; nothing is written after that.
    failed: io::Result<()>,
}

impl Tape {
    fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), file: None, written: Vec::new(), failed: Ok(()) }
    }

    /// Does something with the file, unless that is past.
    fn try_to(&mut self, what: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        if let (Ok(()), Some(file)) = (&self.failed, &mut self.file) {
            self.failed = what(file);
        }
    }

    fn close(&mut self) {
        self.try_to(|file| {
            file.flush()?;
            file.get_ref().sync_all()
        });
        self.file = None;
    }

    fn finish(mut self) -> io::Result<Vec<Written>> {
        self.close();
        self.failed.map(|()| self.written)
    }
}

/// `0-20261130.itch` is the day of that date in shard 0. A session is named in hexadecimal digits, which people do not read as a day.
fn file_name(session: Session) -> String {
    match session.parts() {
        Some((shard, BusinessDay::NONE)) => format!("{shard}-00000000.itch"),
        Some((shard, day)) => {
            let (year, month, day) = day.date();
            format!("{shard}-{year:04}{month:02}{day:02}.itch")
        }
        None => format!("{session}.itch"),
    }
}

impl FeedSink for Tape {
    fn begin(&mut self, session: Session) {
        self.close();
        let path = self.directory.join(file_name(session));
        if self.failed.is_ok() {
            match File::create(&path) {
                Ok(file) => self.file = Some(BufWriter::new(file)),
                Err(error) => self.failed = Err(error),
            }
        }
        self.written.push(Written { path, messages: 0, over: false });
    }

    fn message(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).expect("messages are short");
        self.try_to(|file| {
            file.write_all(&length.to_be_bytes())?;
            file.write_all(bytes)
        });
        self.written.last_mut().expect("a session has begun").messages += 1;
    }

    fn end(&mut self) {
        self.written.last_mut().expect("a session has begun").over = true;
    }
}

fn tell(written: &[Written], as_json: bool) {
    if as_json {
        let files = written.iter().map(|file| {
            json!({ "file": file.path.display().to_string(), "messages": file.messages, "over": file.over })
        });
        return text::print(&json!({ "files": files.collect::<Vec<_>>() }).to_string());
    }
    for Written { path, messages, over } in written {
        let so_far = if *over { "" } else { ", the day has not ended" };
        text::print(&format!("{}: {}{so_far}", path.display(), text::count(*messages, "message")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tape_is_named_by_its_shard_and_date() {
        let name = |shard, day: &str| file_name(Session::of(ShardId(shard), day.parse().unwrap()));
        assert_eq!(name(0, "2026-11-30"), "0-20261130.itch");
        assert_eq!(name(65_535, "9999-12-31"), "65535-99991231.itch");
        assert_eq!(file_name(Session::of(ShardId(3), BusinessDay::NONE)), "3-00000000.itch");
        assert_eq!(file_name(Session(*b"0000ABCDEF")), "0000ABCDEF.itch");
    }
}
