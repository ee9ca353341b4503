//! A gateway whose log is damaged or poisoned rebuilds it, from what is whole of it.
//!
//! A request that cannot be read is lost: no other log has it, unless a venue read it in time. So the members may be told
//! nothing of it, and ask again. But its number may be known out there, and giving that to another request would have the
//! venues drop the new one as ordered. So the numbers continue behind all that may have been there, and the first of them are
//! spent at once, on telling each shard the time. They say where the numbers continue when the new log is opened; and once they
//! are committed, all gateways know that what is lost never will be, and take it in when a member asks again.
//!
//! ```text
//!   damaged log   | 1 | 2 | ... | 5 | 6 | ..............|        what cannot be read behind the last whole request
//!                                       +- written mark-+        held at most so many
//!   new log       | 1 | 2 | 5 | 6 | time 9 | time 10 |
//! ```

use std::path::PathBuf;

use pares_config::{NodeId, SystemConfig};
use pares_gateway::Gateway;
use pares_log::{LogReader, LogReplacement, LogSalvage, record};
use pares_roles::world::World;
use pares_roles::{NodeError, durable_log};
use pares_types::{Epoch, GatewayId, Request, RequestId, Timestamp};
use pares_wire::record::{RequestRecord, is_of_fix_session, request_bytes, write_request};

use crate::recover::{self, Opened};

/// The bytes that a request takes in a log, at least.
const REQUEST_BYTES_MIN: u64 = record::size(size_of::<RequestRecord>()) as u64;
/// Requests that a log holds, at most, if nobody knows where it ends: hundreds of gigabytes of them.
const REQUESTS_MAX: u64 = 1 << 32;

/// Opens the gateway's log and learns from all logs; one that is damaged is repaired first.
pub(crate) fn opened<W: World>(
    world: &W,
    id: GatewayId,
    life: Epoch,
    config: &SystemConfig,
) -> Result<Opened<W>, NodeError> {
    match recover::open(world, id, life, config) {
        Err(error) if error.is_damage() => {
            let mut rules = recover::record(world, (id, life), config)?.rules;
            repair(world, NodeId::Gateway(id), config, &error, &mut rules)?;
        }
        other => return other,
    }
    recover::open(world, id, life, config)
}

/// `rules` knows the record, and nothing of the log.
fn repair<W: World>(
    world: &W,
    log: NodeId,
    config: &SystemConfig,
    why: &NodeError,
    rules: &mut Gateway,
) -> Result<(), NodeError> {
    world.complain(&format_args!("{log}: {why}"));
    let written = world.read_log_from_start(log).ok().map(|reader| reader.written().0);
    let mut new = world.replace_log(log, durable_log(config))?;
    let (mut damaged, mut last, mut kept, mut end) = (new.damaged()?, 0, 0_u64, 0);
    while let Some(entry) = damaged.next() {
        end = entry.offset.0 + record::size(entry.payload.len()) as u64;
        if is_of_fix_session(entry.payload) {
            new.append(entry.payload)?;
        } else if let Ok(request) = RequestRecord::read(entry.payload)
            && rules.salvage(&request, &mut last)
        {
            new.append(entry.payload)?;
            kept += 1;
        }
    }
    assert!(kept <= last, "each request that is kept has a number of its own");
    let lost = written.map_or(REQUESTS_MAX, |written| written.saturating_sub(end) / REQUEST_BYTES_MIN);
    for marker in markers(world, rules, lost) {
        new.append(&marker)?;
    }
    say_so(world, (log, new.complete()?), kept, rules.last_request());
    Ok(())
}

/// Records that say where the numbers continue.
fn markers(world: &impl World, rules: &mut Gateway, lost: u64) -> Vec<Vec<u8>> {
    let record = |marker: &Request| {
        let mut payload = vec![0; request_bytes(marker)];
        write_request(&mut payload, marker);
        payload
    };
    let before = rules.last_request().sequence();
    let skipped = rules.skip_numbers(Timestamp(world.now_ns()), lost);
    let last = rules.last_request().sequence();
    assert!(last >= before + lost, "no number that may be known out there is given once more");
    skipped.iter().map(record).collect()
}

fn say_so(world: &impl World, (log, aside): (NodeId, PathBuf), kept: u64, last: RequestId) {
    let aside = aside.display();
    world.complain(&format_args!(
        "{log}: rebuilt its log from the {kept} intact requests; numbering continues after {last}, and \
         members must repeat lost requests; the damaged log is in {aside}"
    ));
}
