//! What a node holds in memory of its own, from outside.
//!
//! Logs and windows are mapped files: they count as resident and belong to the page cache, which gives them back when a process
//! needs the room. What could grow without end is anonymous memory, `RssAnon` in `/proc/PID/status`.

use std::collections::BTreeMap;
use std::path::Path;

use pares_gateway::NAME_BYTES;
use pares_load::LabError;
use pares_node::{Layout, NodeId, SystemConfig};
use pares_os::CountersReader;

/// One look at all nodes, KiB by node.
#[derive(Clone, Debug, Default)]
pub(in crate::drill) struct Sample {
    /// Anonymous memory.
    pub(in crate::drill) anon_kib: BTreeMap<String, u64>,
    /// What of it gateways' tables of names take: the latest `names_max` are kept.
    pub(super) names_kib: BTreeMap<String, u64>,
}

impl Sample {
    /// Looks at all nodes of a system.
    pub(in crate::drill) fn take(layout: &Layout, config: &SystemConfig) -> Result<Self, LabError> {
        let mut sample = Self::default();
        for role in NodeId::all(config) {
            let name = role.to_string();
            let counters = CountersReader::open(&layout.counters(&name)).ok();
            let names = counters.and_then(|counters| counters.get("names")).unwrap_or_default();
            sample.names_kib.insert(name.clone(), names * NAME_BYTES as u64 / 1_024);
            sample.anon_kib.insert(name, anon_kib(&layout.pid(role))?);
        }
        Ok(sample)
    }
}

fn anon_kib(pid: &Path) -> Result<u64, LabError> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(LabError::io(format!("reading {}", path.display())))
    };
    let status = Path::new("/proc").join(read(pid)?.trim()).join("status");
    field_kib(&read(&status)?, "RssAnon:")
        .ok_or_else(|| LabError::Failed(format!("{} says nothing of RssAnon", status.display())))
}

/// A field of `/proc/PID/status` or `/proc/meminfo`.
fn field_kib(text: &str, field: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(field))?.split_whitespace().next()?.parse().ok()
}

/// Memory that could be had, bytes.
pub(super) fn available_bytes() -> Result<u64, LabError> {
    let text = std::fs::read_to_string("/proc/meminfo").map_err(LabError::io("reading /proc/meminfo"))?;
    let available = field_kib(&text, "MemAvailable:");
    available.map(|kib| kib << 10).ok_or_else(|| LabError::Failed("no MemAvailable in /proc/meminfo".into()))
}

/// How a node's memory changed, names aside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) start_kib: u64,
    pub(super) end_kib: u64,
    /// What names took meanwhile.
    pub(super) names_kib: u64,
}

impl Change {
    /// Growth beside names, percent of what there was; shrinking is negative.
    pub(super) fn growth_percent(&self) -> f64 {
        let grown = self.end_kib as f64 - self.names_kib as f64 - self.start_kib as f64;
        100.0 * grown / (self.start_kib as f64).max(1.0)
    }
}

/// From the second tenth of the samples to the last, each by the most that was held in it, as checkpoints on their way come and go;
/// none without at least ten samples.
pub(super) fn changes(samples: &[Sample]) -> BTreeMap<String, Change> {
    let tenth = samples.len() / 10;
    let Some(last) = samples.last().filter(|_| tenth > 0) else { return BTreeMap::new() };
    let (early, late) = (&samples[tenth..2 * tenth], &samples[samples.len() - tenth..]);
    let most = |part: &[Sample], of: &dyn Fn(&Sample) -> u64| part.iter().map(of).max().unwrap_or_default();
    let change = |node: &String| {
        let anon = |sample: &Sample| sample.anon_kib[node];
        let names = |sample: &Sample| sample.names_kib[node];
        Change {
            start_kib: most(early, &anon),
            end_kib: most(late, &anon),
            names_kib: most(late, &names).saturating_sub(most(early, &names)),
        }
    };
    last.anon_kib.keys().map(|node| (node.clone(), change(node))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name() {
        let status = "Name:\tpares\nVmRSS:\t  9000 kB\nRssAnon:\t     512 kB\nRssFile:\t 1 kB\n";
        assert_eq!((field_kib(status, "RssAnon:"), field_kib(status, "Swap:")), (Some(512), None));
    }

    #[test]
    fn growth_is_what_is_left_beside_names_after_the_first_tenth() {
        let sample = |second: u64| Sample {
            // A warm-up of 100, a leak of 2 and names of 10 a second.
            anon_kib: [("gateway-0".into(), 1_000 + 12 * second - if second < 10 { 100 } else { 0 })].into(),
            names_kib: [("gateway-0".into(), 10 * second)].into(),
        };
        let samples: Vec<Sample> = (0..100).map(sample).collect();
        let change = changes(&samples)["gateway-0"];
        assert_eq!(change, Change { start_kib: 1_228, end_kib: 2_188, names_kib: 800 });
        assert!((change.growth_percent() - 100.0 * 160.0 / 1_228.0).abs() < 1e-9);
        assert!(changes(&samples[..9]).is_empty());
    }
}
