//! Lines of Rust, by group: a ratchet.
//!
//! Every feature adds a test rig, a benchmark, a drill and a demonstration, and none is removed by itself. So `xtask/lines.txt` has a
//! line for each group: how many lines of Rust it may have, and for which feature it was last raised. A change that needs more
//! writes the new figure and its reason there, where a reviewer sees both; one that needs fewer lowers it.

use std::collections::BTreeMap;

use super::File;

const RATCHET: &str = "xtask/lines.txt";
/// A group may have this many lines fewer than its figure before the figure must be lowered.
const SLACK: usize = 400;
/// The fewest words of a reason: "market data by SBE", not "more".
const REASON_WORDS_MIN: usize = 2;

/// Checks each group against its line.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    let text = files.iter().find(|file| file.path == RATCHET).map_or("", |file| file.text.as_str());
    let allowed: BTreeMap<&str, (usize, &str)> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(entry).collect();
    let counted = count(files);
    for (group, lines) in &counted {
        match allowed.get(group.as_str()) {
            None => violations.push(format!("{RATCHET}: `{group} {lines} REASON` is missing")),
            Some((most, _)) if lines > most => violations.push(format!(
                "{group}: {lines} lines of Rust, {most} at most: remove what the change makes superfluous; if a feature needs more, \
                 write the figure and the feature in {RATCHET}"
            )),
            Some((most, _)) if lines + SLACK < *most => {
                violations.push(format!("{RATCHET}: `{group} {most}` can become `{group} {lines}`"));
            }
            Some((_, reason)) if reason.split_whitespace().count() < REASON_WORDS_MIN => {
                violations.push(format!("{RATCHET}: {group}: name the feature that it was last raised for"));
            }
            Some(_) => {}
        }
    }
}

/// Reads `GROUP LINES REASON`.
fn entry(line: &str) -> Option<(&str, (usize, &str))> {
    let (group, rest) = line.split_once(' ')?;
    let (lines, reason) = rest.split_once(' ').unwrap_or((rest, ""));
    Some((group, (lines.parse().ok()?, reason)))
}

/// Lines of each group: `crates/base`, or the first folder outside `crates`.
fn count(files: &[File]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        let parts = if file.path.starts_with("crates/") { 2 } else { 1 };
        let group = file.path.split('/').take(parts).collect::<Vec<_>>().join("/");
        *counted.entry(group).or_default() += file.text.lines().count();
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::{self, file};

    fn found(ratchet: &str) -> Vec<String> {
        let files = [file("crates/base/os/src/lib.rs", &"//! os\n".repeat(1_000)), file(RATCHET, ratchet)];
        testing::found(|violations| check(&files, violations))
    }

    #[test]
    fn a_group_grows_only_for_a_feature_that_is_named() {
        assert!(found("# groups\ncrates/base 1000 the first count").is_empty());
        assert!(found("crates/base 999 the first count")[0].contains("superfluous"));
        assert!(found("crates/base 1500 the first count")[0].contains("can become"));
        assert!(found("crates/base 1000 more")[0].contains("name the feature"));
        assert!(found("")[0].contains("is missing"));
    }
}
