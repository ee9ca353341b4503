//! The look of `pares stat`.

use hdrhistogram::Histogram;
use pares_node::NodeId;
use pares_os::Quantiles;
use pares_types::{Position, VenueId};
use serde_json::{Map, Value, json};

use super::collect::{self, Log, Node, Shard, State, System};
use crate::text::{self, Table, duration, grouped, name};

/// Nodes that are shown side by side.
const GROUPS: [fn(NodeId) -> bool; 5] = [
    |role| matches!(role, NodeId::Gateway(_)),
    |role| matches!(role, NodeId::Venue(_)),
    |role| matches!(role, NodeId::Recorder(_)),
    |role| matches!(role, NodeId::Publisher(_)),
    |role| matches!(role, NodeId::Replayer(_)),
];

/// Tables for people. `before` is an earlier look, for rates.
pub fn as_tables(system: &System, before: Option<&System>) -> String {
    let mut out = headline(system, before);
    for group in GROUPS {
        let nodes: Vec<&Node> = system.nodes.iter().filter(|node| group(node.role)).collect();
        if !nodes.is_empty() {
            out.push_str(&format!("\n{}", nodes_table(&nodes).render()));
        }
    }
    if let Some((state, pid)) = system.web {
        let process = pid.map_or(String::new(), |pid| format!(", process {pid}"));
        out.push_str(&format!("\nweb: {}{process}\n", name(&state)));
    }
    out.push_str(&format!("\n{}", shards_table(system).render()));
    if system.shards.iter().flat_map(|shard| &shard.positions).any(|(_, _, state)| *state != State::Up) {
        out.push_str("(positions in brackets: the venue is not running)\n");
    }
    if system.shards.iter().any(|shard| shard.positions.len() < venues(system).count()) {
        out.push_str("(no position: the venue executes the shards of other lanes)\n");
    }
    out.push_str(&format!("\n{}", logs_table(&system.logs).render()));
    out.push_str(&format!("\n{}", log_times_table(&system.logs).render()));
    for (name, lag) in &system.mirrors {
        out.push_str(&format!("{name} mirrors the logs, {} behind\n", text::bytes(*lag)));
    }
    if system.lost_positions > 0 {
        let lost = grouped(system.lost_positions);
        out.push_str(&format!("{lost} recorded positions were lost at an earlier start\n"));
    }
    for log in system.logs.iter().filter(|log| log.stats.poisoned != 0) {
        let error = std::io::Error::from_raw_os_error(log.stats.poisoned);
        out.push_str(&format!("{} is closed after a failed write ({error})\n", log.name));
    }
    system.unreadable.iter().for_each(|why| out.push_str(&format!("{why}\n")));
    out
}

fn headline(system: &System, before: Option<&System>) -> String {
    let dir = &system.dir;
    if !system.is_running() {
        return format!(
            "{dir}: not running (start it with `pares up --dir {dir}`). Figures of the last run:\n"
        );
    }
    let up = system.nodes.iter().filter(|node| node.state == State::Up).count();
    let epoch = system.epoch.map_or(String::new(), |epoch| format!(", epoch {epoch}"));
    let rate = before.map_or(String::new(), |before| {
        let ms = system.at.duration_since(before.at).as_millis().max(1);
        let recorded = u128::from(system.recorded().saturating_sub(before.recorded()));
        format!(", {} recorded a second", grouped(u64::try_from(recorded * 1_000 / ms).unwrap_or(u64::MAX)))
    });
    format!("{dir}: {up} of {} nodes up{epoch}{rate}\n", system.nodes.len())
}

/// Nodes of one role side by side: a line per counter.
fn nodes_table(nodes: &[&Node]) -> Table {
    let names: Vec<String> = nodes.iter().map(|node| format!(">{}", node.role)).collect();
    let mut table = Table::new(std::iter::once("node").chain(names.iter().map(String::as_str)));
    let mut row = |title: &str, cell: &dyn Fn(&Node) -> String| {
        let cells = nodes.iter().map(|node| cell(node));
        table.row(std::iter::once(title.to_owned()).chain(cells).collect());
    };
    row("state", &|node| name(&node.state));
    row("process", &|node| node.pid.map_or("-".into(), |pid| pid.to_string()));
    let longest = nodes.iter().map(|node| &node.counters).max_by_key(|counters| counters.len());
    for (counter, _) in longest.into_iter().flatten().filter(|(name, _)| !name.starts_with("position-")) {
        row(counter, &|node| {
            let value = node.counters.iter().find(|(name, _)| name == counter);
            value.map_or("-".into(), |&(_, value)| grouped(value))
        });
    }
    table
}

/// All venues, whatever they execute.
fn venues(system: &System) -> impl Iterator<Item = VenueId> {
    system.nodes.iter().filter_map(|node| match node.role {
        NodeId::Venue(venue) => Some(venue),
        _ => None,
    })
}

fn shards_table(system: &System) -> Table {
    let names: Vec<String> = venues(system).map(|venue| format!(">venue-{venue}")).collect();
    let titles = [">shard", "instruments"].into_iter().chain(names.iter().map(String::as_str));
    let mut table = Table::new(titles.chain(["leads", ">gap", ">recorded", ">unrecorded"]));
    for shard in &system.shards {
        let mut cells = vec![shard.id.to_string(), symbols(&shard.symbols)];
        cells.extend(venues(system).map(|venue| {
            let its = shard.positions.iter().find(|(its, ..)| *its == venue);
            its.map_or_else(String::new, |&(_, position, state)| position_cell(position, state))
        }));
        cells.push(shard.leader().map_or("-".into(), |venue| format!("venue-{venue}")));
        cells.extend([shard.gap(), shard.recorded.map(|p| p.0), shard.unrecorded()].map(optional));
        table.row(cells);
    }
    table
}

fn position_cell(position: Option<Position>, state: State) -> String {
    match (position, state) {
        (None, _) => "-".to_owned(),
        (Some(position), State::Up) => grouped(position.0),
        (Some(position), _) => format!("({})", grouped(position.0)),
    }
}

fn symbols(symbols: &[String]) -> String {
    match symbols {
        [] => "none".to_owned(),
        [first, second, _, rest @ ..] if !rest.is_empty() => {
            format!("{first}, {second} and {} more", rest.len() + 1)
        }
        few => few.join(", "),
    }
}

fn optional(value: Option<u64>) -> String {
    value.map_or("-".into(), grouped)
}

fn logs_table(logs: &[Log]) -> Table {
    let mut table = Table::new([
        "log",
        ">records",
        ">payload",
        ">written",
        ">not durable",
        ">rolls",
        ">unprepared",
        ">refused (full)",
    ]);
    for log in logs {
        let stats = &log.stats;
        let mut cells = vec![
            log.name.clone(),
            grouped(stats.appends),
            text::bytes(stats.payload_bytes),
            grouped(stats.written.0),
            text::bytes(stats.written.since(stats.durable)),
        ];
        cells.extend([stats.rolls, stats.rolls_unprepared, stats.refused_full].map(grouped));
        table.row(cells);
    }
    table
}

/// How long what logs do has taken; with the other figures of a log, it would be wider than a terminal.
fn log_times_table(logs: &[Log]) -> Table {
    let mut table = Table::new(["log", ">append p50", ">p99", ">max", ">syncs", ">sync p50", ">p99", ">max"]);
    for log in logs {
        let mut cells = vec![log.name.clone()];
        cells.extend(latency(&log.append));
        cells.push(grouped(log.stats.syncs));
        cells.extend(latency(&log.sync));
        table.row(cells);
    }
    table
}

fn latency(times: &Histogram<u64>) -> [String; 3] {
    let Quantiles { p50, p99, max, .. } = Quantiles::of(times);
    [p50, p99, max].map(|time| time.map_or("-".into(), duration))
}

/// Everything as one JSON object.
pub fn as_json(system: &System) -> Value {
    json!({
        "dir": system.dir,
        "running": system.is_running(),
        "epoch": system.epoch.map(|epoch| epoch.0),
        "lost_positions": system.lost_positions,
        "unreadable": system.unreadable,
        "nodes": system.nodes.iter().map(node_json).collect::<Vec<_>>(),
        "mirrors": system.mirrors.iter().map(|(name, lag)| json!({ "receiver": name, "lag_bytes": lag })).collect::<Vec<_>>(),
        "web": system.web.map(|(state, pid)| json!({ "state": name(&state), "pid": pid })),
        "shards": system.shards.iter().map(shard_json).collect::<Vec<_>>(),
        "logs": system.logs.iter().map(log_json).collect::<Vec<_>>(),
    })
}

fn node_json(node: &Node) -> Value {
    json!({
        "node": node.role.to_string(),
        "state": name(&node.state),
        "pid": node.pid,
        "counters": collect::plain_counters(node),
    })
}

fn shard_json(shard: &Shard) -> Value {
    let venue = |venue: VenueId| format!("venue-{venue}");
    let positions: Map<String, Value> = shard
        .positions
        .iter()
        .map(|&(id, position, _)| (venue(id), position.map_or(Value::Null, |p| p.0.into())))
        .collect();
    json!({
        "shard": shard.id.0,
        "instruments": shard.symbols,
        "positions": positions,
        "leads": shard.leader().map(venue),
        "gap": shard.gap(),
        "recorded": shard.recorded.map(|position| position.0),
        "unrecorded": shard.unrecorded(),
    })
}

fn log_json(log: &Log) -> Value {
    let stats = &log.stats;
    json!({
        "log": log.name,
        "records": stats.appends,
        "payload_bytes": stats.payload_bytes,
        "released": stats.released.0,
        "written": stats.written.0,
        "durable": stats.durable.0,
        "durability": stats.durability.map(|setting| name(&setting)),
        "append_ns": latency_json(&log.append),
        "sync_ns": latency_json(&log.sync),
        "publishes": stats.publishes,
        "rolls": stats.rolls,
        "rolls_unprepared": stats.rolls_unprepared,
        "refused_full": stats.refused_full,
        "poisoned": stats.poisoned,
    })
}

fn latency_json(times: &Histogram<u64>) -> Value {
    let Quantiles { count, p50, p99, max } = Quantiles::of(times);
    json!({ "count": count, "p50": p50, "p99": p99, "max": max })
}
