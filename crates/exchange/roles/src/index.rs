//! Indexes of a recorder's log: by what a record can be asked for, where it lies.
//!
//! A gateway that must give a first answer once more knows the name and not the place. To read the log for it would take minutes, and to
//! remember every place would need memory for ever. So each recorder keeps sorted *runs* beside its log: rows of 24 bytes, each run for one
//! stretch of the log. They say nothing that the log does not, so one that is missing or damaged is rebuilt, and one that lies is found
//! out by reading the record (docs/protocols/index.md).
//!
//! ```text
//! recorder-R/index/names-FROM-TO.run, streams-FROM-TO.run
//!
//!  log   |------ 262,144 rows ------|------ 262,144 rows ------|-- less: not indexed yet --|
//!  runs  [ sorted, names-0-a.run    ][ sorted, names-a-b.run   ]   read from the log
//! ```
//! | module | what |
//! |---|---|
//! | `run` | one file |
//! | `indexer` | what a recorder does beside its duty cycle |
//! | `counting` | which numbers members' messages have |
//! | `search`, `starts` | what a gateway does beside its own: for a name, for a stream |

mod counting;
mod indexer;
mod run;
mod search;
mod starts;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use pares_config::Layout;
use pares_log::Offset;
use pares_types::{ClientOrderId, MemberId, Reason, RecorderId};
use pares_wire::WireError;
use pares_wire::record::ResultRecord;

use crate::world::World;

pub(crate) use indexer::Indexer;
pub use search::{Search, Sought};
pub use starts::{Starts, StreamStart, Wanted};

/// What a record is asked for by: any two numbers, compared as such.
type Key = [u64; 2];

/// By what a run is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Member and client order id.
    Names = 1,
    /// Member, shard and stream number.
    Streams = 2,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Names, Self::Streams];

    fn name(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Streams => "streams",
        }
    }
}

/// Where a record lies that has that key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    key: Key,
    offset: u64,
}

fn key_of_name(member: MemberId, name: ClientOrderId) -> Key {
    [member.0.into(), name.0]
}

/// The row of a record that may be the first answer to its name. Refusals that stand behind another are none, and nobody asks again for
/// what gateways ask by themselves.
fn row_of_name(record: &ResultRecord<'_>, offset: Offset) -> Result<Option<Row>, WireError> {
    let (request, reason) = (record.request()?, record.outcome()?.reason);
    let behind_another = matches!(reason, Reason::DuplicateRequest | Reason::TooOld);
    if behind_another || request.command.is_repeatable() {
        return Ok(None);
    }
    let key = key_of_name(request.member, request.client_order_id);
    Ok(Some(Row { key, offset: offset.0 }))
}

fn dir_of(recorder: RecorderId) -> PathBuf {
    Layout::new("").recorder_log(recorder).join("index")
}

/// Removes all runs: another log takes the place of the one that they are of.
pub(crate) fn remove(world: &impl World, recorder: RecorderId) {
    let dir = dir_of(recorder);
    for name in world.list(&dir).unwrap_or_default() {
        // One that stays says where records lie that are not there: readers look before they believe.
        let _ = world.remove_file(&dir.join(name));
    }
}

/// Which stretches of the log have a run in `dir`, in order: from and to, offsets.
fn stretches(world: &impl World, dir: &Path, kind: Kind) -> std::io::Result<Vec<(u64, u64)>> {
    let of = |name: String| {
        let (of, places) = name.strip_suffix(".run")?.split_once('-')?;
        let (from, to) = places.split_once('-')?;
        (of == kind.name()).then_some((from.parse().ok()?, to.parse().ok()?))
    };
    let mut found: Vec<_> = world.list(dir)?.into_iter().filter_map(of).collect();
    found.sort_unstable();
    Ok(found)
}

fn file_of(dir: &Path, kind: Kind, (from, to): (u64, u64)) -> PathBuf {
    dir.join(format!("{}-{from:020}-{to:020}.run", kind.name()))
}
