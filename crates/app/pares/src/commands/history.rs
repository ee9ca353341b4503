//! `pares history`: orders and trades, looked up in what a recorder has recorded.
//!
//! A recorder's log is the truth and answers no questions: finding a member's orders in it means reading all of it.
//! So each call first brings an index up to date ([`Index`]), a SQLite file beside the logs, and asks that. The index
//! holds nothing of its own: delete it, and the next call rebuilds it.

mod print;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use pares_archive::{ArchiveError, Store, restore};
use pares_history::{Filter, Index, Story, TradeRow};
use pares_log::MarksReader;
use pares_node::{Layout, NodeId, SystemConfig};
use pares_types::{
    ClientOrderId, GatewayId, InstrumentId, MemberId, OrderId, Position, RecorderId, RequestId, Timestamp,
};

use super::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::progress;
use crate::text;
use crate::utc::Moment;

/// Bytes of log to index from which on a progress bar is shown.
const LONG_BYTES: u64 = 8 << 20;

/// Arguments of `pares history`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The system's directory; it may be running
    #[arg(long, global = true, default_value = "pares-data")]
    dir: PathBuf,
    /// The recorder whose log to read [default: the one with the most records]
    #[arg(long, global = true, value_parser = recorder_id)]
    recorder: Option<RecorderId>,
    /// The archive (`pares archive --to`) to read days from that the recorder has dropped
    #[arg(long, global = true)]
    archive: Option<String>,
    /// One JSON object instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum What {
    /// Orders in their current state, newest first
    Orders {
        #[command(flatten)]
        select: Select,
        /// Only orders in this state: resting, held, filled, cancelled or refused
        #[arg(long, value_parser = ["resting", "held", "filled", "cancelled", "refused"])]
        status: Option<String>,
    },
    /// Trades, newest first
    Trades {
        #[command(flatten)]
        select: Select,
        /// Only trades of this order
        #[arg(long, value_parser = order_id)]
        order: Option<OrderId>,
    },
    /// One order: its state, all requests concerning it, and its trades
    Order {
        /// The order's id, GATEWAY:SEQUENCE, as `pares history orders` shows it
        #[arg(value_parser = order_id)]
        id: OrderId,
    },
}

/// What to look for; all given conditions must hold.
#[derive(clap::Args)]
struct Select {
    /// An instrument, by symbol or id
    #[arg(long)]
    instrument: Option<String>,
    /// A member
    #[arg(long)]
    member: Option<u32>,
    /// The order's client order id
    #[arg(long)]
    client_order_id: Option<u64>,
    /// Accepted by a gateway at or after this time: 2026-08-01, 2026-08-01T09:30:00 (UTC), or an age: 90s, 15m, 2h, 3d
    #[arg(long)]
    from: Option<Moment>,
    /// Accepted before this time
    #[arg(long)]
    to: Option<Moment>,
    /// Most rows to print
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Prints what was asked for.
///
/// # Errors
/// If there is no record, it is damaged, or the index cannot be read or written.
pub fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = configuration(&layout)?;
    let recorder = recorder(args.recorder, &config, &layout)?;
    // One that was made without the archive may lack what lies there.
    let made_of = if args.archive.is_some() { "-archive" } else { "" };
    let mut index = Index::open(&layout.root().join(format!("history-{recorder}{made_of}.sqlite")))?;
    if let Some(archive) = &args.archive {
        read_archive(&mut index, archive, recorder, &layout)?;
    }
    update(&mut index, recorder, &layout.recorder_log(recorder))?;
    let symbols = print::Symbols::of(&config, index.added()?);
    let filter = match &args.what {
        What::Orders { select, status } => Filter { status: status.clone(), ..select.filter(&symbols)? },
        What::Trades { select, order } => Filter { order: *order, ..select.filter(&symbols)? },
        What::Order { .. } => Filter::default(),
    };
    let found = match &args.what {
        What::Orders { .. } => print::orders(&index.orders(&filter)?, &symbols, args.json),
        What::Trades { .. } => print::trades(&index.trades(&filter)?, &symbols, args.json),
        What::Order { id } => print::story(&story(&index, *id, recorder)?, &symbols, args.json),
    };
    text::print(&found);
    Ok(())
}

/// The trade of an instrument that is event `place.1` of position `place.0`.
///
/// # Errors
/// If there is none in the record, or it cannot be read.
pub fn trade(
    instrument: InstrumentId,
    place: (Position, u32),
    config: &SystemConfig,
    layout: &Layout,
) -> Result<(TradeRow, [ClientOrderId; 2]), CommandError> {
    let recorder = recorder(None, config, layout)?;
    let mut index = Index::open(&layout.root().join(format!("history-{recorder}.sqlite")))?;
    update(&mut index, recorder, &layout.recorder_log(recorder))?;
    let absent = || {
        let (position, event) = place;
        CommandError::Failed(format!(
            "recorder-{recorder} has no trade {position}.{event} of that instrument; `pares history trades` lists \
             those it has"
        ))
    };
    let trade = index.trade_at(instrument, place)?.ok_or_else(absent)?;
    let name = |order| index.name_of(order)?.ok_or_else(absent);
    let names = [name(trade.buy.0)?, name(trade.sell.0)?];
    Ok((trade, names))
}

impl Select {
    fn filter(&self, symbols: &print::Symbols) -> Result<Filter, CommandError> {
        let now_ns = pares_os::clock::now_ns();
        let instrument = self.instrument.as_deref().map(|name| instrument(name, symbols)).transpose()?;
        Ok(Filter {
            instrument,
            member: self.member.map(MemberId),
            client_order_id: self.client_order_id.map(ClientOrderId),
            from: self.from.map(|moment| Timestamp(moment.resolve(now_ns))),
            to: self.to.map(|moment| Timestamp(moment.resolve(now_ns))),
            limit: self.limit,
            ..Filter::default()
        })
    }
}

/// An instrument by what people call it, else by its id.
fn instrument(name: &str, symbols: &print::Symbols) -> Result<InstrumentId, CommandError> {
    let by_id = || name.parse().ok().map(InstrumentId).filter(|&id| symbols.symbol(id).is_some());
    symbols.id(name).or_else(by_id).ok_or_else(|| {
        CommandError::Usage(format!("there is no instrument `{name}`; there are: {}", symbols.list()))
    })
}

/// Reads `recorder-0`, as other commands name nodes, or its number alone.
fn recorder_id(text: &str) -> Result<RecorderId, String> {
    match (text.parse(), text.parse()) {
        (Ok(number), _) => Ok(RecorderId(number)),
        (_, Ok(NodeId::Recorder(id))) => Ok(id),
        _ => Err(format!("`{text}` is not a recorder; expected a name such as recorder-0")),
    }
}

/// Reads `GATEWAY:SEQUENCE`.
fn order_id(text: &str) -> Result<OrderId, String> {
    let parts = text.split_once(':').and_then(|(gateway, sequence)| {
        let (gateway, sequence) = (gateway.parse().ok()?, sequence.parse().ok()?);
        (1..=RequestId::SEQUENCE_MAX)
            .contains(&sequence)
            .then(|| RequestId::new(GatewayId(gateway), sequence))
    });
    parts
        .map(OrderId)
        .ok_or_else(|| format!("`{text}` is not an order id; expected GATEWAY:SEQUENCE, such as 0:17"))
}

/// The recorder asked for, or the one with the most records.
fn recorder(
    asked: Option<RecorderId>,
    config: &SystemConfig,
    layout: &Layout,
) -> Result<RecorderId, CommandError> {
    if let Some(asked) = asked.filter(|asked| asked.0 >= config.recorders) {
        return Err(CommandError::Usage(format!(
            "there is no recorder-{asked}: this system has {}, numbered from 0",
            config.recorders
        )));
    }
    let candidates = config.recorder_ids().filter(|id| asked.is_none_or(|asked| asked == *id));
    let records = |id| MarksReader::open(&layout.recorder_log(id)).ok().map(|marks| marks.stats().appends);
    let best = candidates.filter_map(|id| Some((records(id)?, std::cmp::Reverse(id)))).max();
    best.map(|(_, id)| id.0).ok_or_else(|| {
        let dir = layout.root().display();
        CommandError::Failed(format!(
            "nothing is recorded in {dir} yet; start it with `pares up --dir {dir}`"
        ))
    })
}

/// Brings the index up to date, with a bar if that takes long.
fn update(index: &mut Index, recorder: RecorderId, log: &Path) -> CommandResult {
    let mut bar = None;
    let mut tell = |done: u64, total: u64| {
        if bar.is_none() && total - done > LONG_BYTES {
            bar = Some(progress::bytes("indexing", total));
        }
        if let Some(bar) = &bar {
            bar.set_position(done);
        }
    };
    let updated = index.update(log, &mut tell);
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let updated = updated?;
    if updated.skipped_bytes > 0 {
        pares_text::aside!(
            "pares: recorder-{recorder} dropped {} of its log before indexing it; the orders and trades in \
             that part are missing below. Another recorder (--recorder) may have them",
            text::bytes(updated.skipped_bytes)
        );
    }
    Ok(())
}

/// Indexes what the recorder has dropped of its log, out of the archive; nothing if the index has that already.
fn read_archive(index: &mut Index, archive: &str, recorder: RecorderId, layout: &Layout) -> CommandResult {
    let store = Store::open_existing(archive)?;
    let log = layout.recorder_log(recorder);
    let begins = MarksReader::open(&log).map_err(ArchiveError::from)?.stats().released;
    if index.reach()? >= begins {
        return Ok(());
    }
    // One that is being used by nobody else, whatever ended before it was removed.
    let scratch = layout.root().join(format!("history-{recorder}.{}.restored", std::process::id()));
    let name = NodeId::Recorder(recorder).to_string();
    let read = restore(&store, &name, (None, None), &scratch)
        .map_err(CommandError::from)
        .and_then(|_| update(index, recorder, &scratch.join(&name)));
    let removed = std::fs::remove_dir_all(&scratch);
    read?;
    removed.map_err(CommandError::io("removing what was restored of the archive"))
}

fn story(index: &Index, id: OrderId, recorder: RecorderId) -> Result<Story, CommandError> {
    index.story(id)?.ok_or_else(|| {
        CommandError::Failed(format!(
            "recorder-{recorder} has no order {id}; `pares history orders` lists those it has"
        ))
    })
}
