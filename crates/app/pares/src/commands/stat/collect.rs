//! One look at everything a system shows: processes, counters, windows, marks.
//!
//! The figures are loaded one after the other while the nodes continue, so two of them may be some microseconds
//! apart: a follower can seem a few positions ahead of the recorded mark read before it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_book::{Book, Instrument};
use pares_log::{LogStats, MarksReader, ReadError};
use pares_node::{Layout, NodeId, SystemConfig, lanes, lost};
use pares_os::CountersReader;
use pares_sequencer::Sequencer;
use pares_types::{Epoch, Position, ShardId, VenueId, VenueSet};
use pares_window::SharedWindow;

use crate::error::CommandError;
use crate::standing::Standing;
use crate::text::name;

/// Counters that are 0 as long as all is well.
const WRONG_UNLESS_0: [&str; 8] = [
    "halted_shards",
    "shut_out_venues",
    "shards_not_recorded",
    "shards_away",
    "encumbered",
    "unreadable_logs",
    "catching_up",
    INCOMPLETE,
];
/// With another recorder's disk a shard's state may go while it is raised.
const INCOMPLETE: &str = "shards_incomplete";

/// The source of mirrors says once a second how far its receivers are.
const LAGS_MAX: Duration = Duration::from_secs(5);

/// Everything at one moment.
pub struct System {
    /// Its directory.
    pub dir: String,
    /// The life of the window; `None` before the first start.
    pub epoch: Option<Epoch>,
    /// All nodes, in the order in which they are started.
    pub nodes: Vec<Node>,
    /// The process that serves HTTP, if `pares up` keeps one, and its id while there is one.
    pub web: Option<(State, Option<u32>)>,
    /// Bytes that each receiver of mirrors has not stored yet.
    pub mirrors: Vec<(String, u64)>,
    /// All shards.
    pub shards: Vec<Shard>,
    /// All logs that can be looked at.
    pub logs: Vec<Log>,
    /// Why the others cannot.
    pub unreadable: Vec<String>,
    /// Recorded positions that were lost before the last start.
    pub lost_positions: u64,
    /// When this was.
    pub at: Instant,
}

/// How a node's process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It runs.
    Up,
    /// It exists and does not run: a debugger or SIGSTOP holds it.
    Stopped,
    /// There is no such process.
    Down,
}

/// A node.
pub struct Node {
    /// Which.
    pub role: NodeId,
    /// Its process.
    pub state: State,
    /// The process's id, while there is one.
    pub pid: Option<u32>,
    /// Its counters, in the node's order; those of its last run if it is down.
    pub counters: Vec<(String, u64)>,
}

/// A shard.
pub(crate) struct Shard {
    /// Which.
    pub id: ShardId,
    /// What is traded there.
    pub symbols: Vec<String>,
    /// Of each venue that executes it the next position to execute, and whether the venue runs.
    pub positions: Vec<(VenueId, Option<Position>, State)>,
    /// The next unrecorded position; `None` without a window.
    pub recorded: Option<Position>,
}

/// A log.
pub struct Log {
    /// Whose: `recorder-0`.
    pub name: String,
    /// Marks and counters.
    pub stats: LogStats,
    /// Time in `append`.
    pub append: Histogram<u64>,
    /// Time of each sync.
    pub sync: Histogram<u64>,
}

impl System {
    /// Whether any node runs.
    pub fn is_running(&self) -> bool {
        self.nodes.iter().any(|node| node.state != State::Down)
    }

    /// What is wrong with a system that runs; nothing is there for a healthy one.
    pub fn complaints(&self) -> Vec<String> {
        let down = self.nodes.iter().filter(|node| node.state != State::Up);
        let down = down.map(|node| format!("{} is {}", node.role, name(&node.state)));
        let wrong = self.nodes.iter().filter(|node| node.state == State::Up).flat_map(|node| {
            let raised =
                |(name, value): &&(String, u64)| *value != 0 && WRONG_UNLESS_0.contains(&name.as_str());
            let told = |(name, value): &(String, u64)| wrong(node.role, name, *value);
            node.counters.iter().filter(raised).map(told).collect::<Vec<_>>()
        });
        let web = self.web.filter(|(state, _)| *state != State::Up);
        let web = web.map(|(state, _)| format!("web is {}", name(&state)));
        let poisoned = self.logs.iter().filter(|log| log.stats.poisoned != 0);
        let poisoned = poisoned.map(|log| format!("{} is closed after a failed write", log.name));
        let unreadable = self.unreadable.iter().cloned();
        let lost = (self.lost_positions > 0)
            .then(|| format!("{} recorded positions were lost at an earlier start", self.lost_positions));
        lost.into_iter().chain(down).chain(web).chain(wrong).chain(poisoned).chain(unreadable).collect()
    }

    /// Positions recorded, over all shards.
    pub fn recorded(&self) -> u64 {
        self.shards.iter().filter_map(|shard| shard.recorded).map(|position| position.0).sum()
    }
}

/// What a counter says that is not 0.
fn wrong(node: NodeId, counter: &str, value: u64) -> String {
    match counter {
        INCOMPLETE => format!(
            "{node} lacks records or a checkpoint of {value} shards ({INCOMPLETE}): do not replace other recorders' disks until it is complete"
        ),
        _ => format!("{node}: {counter} is {value}"),
    }
}

impl Shard {
    /// The running venue that is ahead of all others; `None` if several are level.
    pub fn leader(&self) -> Option<VenueId> {
        let highest = self.highest()?;
        let mut ahead = self.running().filter(|(_, position)| *position == highest);
        let (first, second) = (ahead.next(), ahead.next());
        first.filter(|_| second.is_none()).map(|(venue, _)| venue)
    }

    /// Positions between the first and the last running venue.
    pub fn gap(&self) -> Option<u64> {
        let lowest = self.running().map(|(_, position)| position).min()?;
        Some(self.highest()?.0 - lowest.0)
    }

    /// Positions executed by the first venue and not recorded.
    pub fn unrecorded(&self) -> Option<u64> {
        Some(self.highest()?.0.saturating_sub(self.recorded?.0))
    }

    fn highest(&self) -> Option<Position> {
        self.running().map(|(_, position)| position).max()
    }

    fn running(&self) -> impl Iterator<Item = (VenueId, Position)> {
        let running = self.positions.iter().filter(|(_, _, state)| *state == State::Up);
        running.filter_map(|&(venue, position, _)| Some((venue, position?)))
    }
}

/// Looks at the system. What is traded is as `standing` has it, or as configured if the record cannot be read.
///
/// # Errors
/// If its configuration is not valid.
pub fn collect(
    config: &SystemConfig,
    layout: &Layout,
    standing: Option<&Standing>,
) -> Result<System, CommandError> {
    let nodes: Vec<Node> = NodeId::all(config).into_iter().map(|role| node(role, layout)).collect();
    let (mut epoch, mut shards, placement) = (None, Vec::new(), lanes::placement(config, layout)?);
    for (id, instruments) in config.shards()? {
        // No window, or one being replaced: the system is down or just starting.
        let window = SharedWindow::open(&layout.window(id)).ok();
        epoch = window.as_ref().map(Sequencer::epoch).or(epoch);
        shards.push(Shard {
            id,
            symbols: symbols(id, &instruments, standing),
            recorded: window.filter(|_| config.sequencer).map(|window| window.recorded()),
            positions: positions(&nodes, placement.venues_of(id), id),
        });
    }
    let (mut logs, mut unreadable) = (Vec::new(), Vec::new());
    for role in NodeId::all(config) {
        match log(role, layout) {
            Ok(log) => logs.extend(log),
            Err(error) => unreadable.push(format!("{role}: {error}")),
        }
    }
    let start = CountersReader::open(&layout.counters(lost::START));
    let lost_positions = start.ok().and_then(|start| start.get(lost::LOST_POSITIONS)).unwrap_or(0);
    let (dir, at) = (layout.root().display().to_string(), Instant::now());
    let web = layout.web_pid().exists().then(|| process("web", &layout.web_pid()));
    let mirrors = mirrors(layout).unwrap_or_default();
    Ok(System { dir, epoch, nodes, web, mirrors, shards, logs, unreadable, lost_positions, at })
}

/// What the source of mirrors says of its receivers, unless it is long ago.
fn mirrors(layout: &Layout) -> Option<Vec<(String, u64)>> {
    let path = layout.mirror_lags();
    std::fs::metadata(&path).ok()?.modified().ok()?.elapsed().ok().filter(|age| *age < LAGS_MAX)?;
    let said = std::fs::read_to_string(path).ok()?;
    said.lines()
        .map(|line| line.split_once(' ').map(|(name, lag)| Some((name.to_owned(), lag.parse().ok()?)))?)
        .collect()
}

fn symbols(shard: ShardId, configured: &[Instrument], standing: Option<&Standing>) -> Vec<String> {
    match standing.and_then(|standing| standing.shards().find(|one| one.id() == shard)) {
        Some(shard) => shard.books().iter().map(|book| book.instrument().symbol.to_string()).collect(),
        None => configured.iter().map(|instrument| instrument.symbol.to_string()).collect(),
    }
}

fn node(role: NodeId, layout: &Layout) -> Node {
    let (state, pid) = process(&role.to_string(), &layout.pid(role));
    let counters = CountersReader::open(&layout.counters(&role.to_string()));
    let counters = counters.map(|all| all.iter().map(|(name, value)| (name.to_owned(), value)).collect());
    Node { role, state, pid, counters: counters.unwrap_or_default() }
}

/// The process that announced itself under a name in that file. Ids are reused, so it must also look like the one.
fn process(name: &str, announced: &Path) -> (State, Option<u32>) {
    let announced = std::fs::read_to_string(announced).ok();
    let Some(pid) = announced.and_then(|text| text.trim().parse().ok()) else { return (State::Down, None) };
    let command_line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&[u8]> = command_line.split(|&byte| byte == 0).collect();
    if !words.contains(&name.as_bytes()) {
        return (State::Down, None);
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    match state(&stat) {
        State::Down => (State::Down, None),
        state => (state, Some(pid)),
    }
}

/// Reads `/proc/PID/stat`: the letter behind the program's name, which may itself hold brackets.
fn state(stat: &str) -> State {
    match stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
        Some('T' | 't') => State::Stopped,
        Some('Z' | 'X') | None => State::Down,
        Some(_) => State::Up,
    }
}

fn positions(nodes: &[Node], its: VenueSet, shard: ShardId) -> Vec<(VenueId, Option<Position>, State)> {
    let name = format!("position-{shard}");
    let of = |node: &Node| match node.role {
        NodeId::Venue(venue) if its.contains(venue) => {
            let position = node.counters.iter().find(|(counter, _)| *counter == name);
            Some((venue, position.map(|&(_, value)| Position(value)), node.state))
        }
        _ => None,
    };
    nodes.iter().filter_map(of).collect()
}

fn log(role: NodeId, layout: &Layout) -> Result<Option<Log>, ReadError> {
    let marks = match MarksReader::open(&layout.log(role)) {
        Ok(marks) => marks,
        Err(ReadError::NotYet { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let (stats, append, sync) = (marks.stats(), marks.append_latency(), marks.sync_latency());
    Ok(Some(Log { name: role.to_string(), stats, append, sync }))
}

/// Counters of a node that are not shown as positions of a shard.
pub fn plain_counters(node: &Node) -> BTreeMap<&str, u64> {
    let plain = node.counters.iter().filter(|(name, _)| !name.starts_with("position-"));
    plain.map(|(name, value)| (name.as_str(), *value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(positions: &[(u64, State)]) -> Shard {
        let positions = positions.iter().zip(0..);
        Shard {
            id: ShardId(0),
            symbols: Vec::new(),
            positions: positions
                .map(|(&(position, state), venue)| (VenueId(venue), Some(Position(position)), state))
                .collect(),
            recorded: Some(Position(5)),
        }
    }

    #[test]
    fn the_venue_ahead_leads_and_level_ones_do_not() {
        let ahead = shard(&[(7, State::Up), (9, State::Up)]);
        assert_eq!((ahead.leader(), ahead.gap(), ahead.unrecorded()), (Some(VenueId(1)), Some(2), Some(4)));
        assert_eq!(shard(&[(9, State::Up), (9, State::Up)]).leader(), None);
    }

    #[test]
    fn a_venue_that_does_not_run_neither_leads_nor_lags() {
        let one = shard(&[(9, State::Down), (7, State::Up), (8, State::Stopped)]);
        assert_eq!((one.leader(), one.gap()), (Some(VenueId(1)), Some(0)));
        let none = shard(&[(9, State::Down)]);
        assert_eq!((none.leader(), none.gap(), none.unrecorded()), (None, None, None));
    }

    #[test]
    fn system_healthy_if_nodes_up_and_counters_zero() {
        let node = |state, counter: &str, value| Node {
            role: NodeId::Recorder(pares_types::RecorderId(0)),
            state,
            pid: None,
            counters: vec![(counter.to_owned(), value)],
        };
        let complaints = |node: Node| {
            let state = node.state;
            let (nodes, shards, logs) = (vec![node], Vec::new(), Vec::new());
            let (dir, lost_positions, at) = ("d".into(), 0, Instant::now());
            let unreadable = Vec::new();
            let web = Some((state, None));
            let mirrors = Vec::new();
            System { dir, epoch: None, nodes, web, mirrors, shards, logs, unreadable, lost_positions, at }
                .complaints()
        };
        assert!(complaints(node(State::Up, "records", 7)).is_empty());
        assert!(complaints(node(State::Up, "halted_shards", 0)).is_empty());
        assert_eq!(complaints(node(State::Up, "halted_shards", 1)), ["recorder-0: halted_shards is 1"]);
        assert_eq!(
            complaints(node(State::Stopped, "halted_shards", 1)),
            ["recorder-0 is stopped", "web is stopped"]
        );
        let incomplete = complaints(node(State::Up, "shards_incomplete", 2)).join("");
        assert!(
            incomplete.starts_with("recorder-0 lacks records or a checkpoint of 2 shards"),
            "{incomplete}"
        );
    }

    #[test]
    fn a_process_is_known_by_its_state_letter() {
        let states = ["1 (pares) S 0", "1 (a) b) T 1", "1 (pares) Z 0", ""].map(state);
        assert_eq!(states, [State::Up, State::Stopped, State::Down, State::Down]);
    }

    #[test]
    fn a_node_that_never_announced_itself_is_down() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.run()).unwrap();
        let announced = layout.pid(NodeId::Venue(VenueId(0)));
        assert_eq!(process("venue-0", &announced), (State::Down, None));
        // A process of that id lives, but it is not the node.
        std::fs::write(&announced, std::process::id().to_string()).unwrap();
        assert_eq!(process("venue-0", &announced), (State::Down, None));
    }
}
