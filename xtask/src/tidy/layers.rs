//! Which crate may depend on which.
//!
//! ```text
//!   4  pares                                        the command line
//!   3  pares-node  pares-sim  pares-tpcc  pares-bench  pares-site   wiring
//!   2  pares-shm  pares-log  pares-cluster  pares-client  pares-flow  pares-link  pares-store   edges: memory, files, sockets
//!   1  pares-book  pares-sequencer  pares-recorder  pares-gateway  pares-venue  pares-wice   rules
//!   0  pares-types  pares-wire                      vocabulary
//! ```
//! A crate depends on lower layers only. Crates of layers 0 and 1 reach nothing that could read a clock, touch a file
//! or draw a random number, not even through somebody else: what they may reach is listed, and everything
//! else is refused.

use std::collections::BTreeSet;

use crate::{cargo, root};

/// A crate's place.
pub(super) struct Place {
    pub(super) name: &'static str,
    layer: u8,
    /// Crates of the same layer it may use all the same.
    beside: &'static [&'static str],
}

const fn place(name: &'static str, layer: u8, beside: &'static [&'static str]) -> Place {
    Place { name, layer, beside }
}

/// Every crate of the workspace.
pub(super) const CRATES: &[Place] = &[
    place("pares-types", 0, &[]),
    place("pares-wire", 0, &["pares-types"]), // gives the vocabulary its bytes
    place("pares-book", 1, &[]),
    place("pares-sequencer", 1, &[]),
    place("pares-venue", 1, &["pares-book", "pares-sequencer"]), // executes on the one what the other decides
    place("pares-recorder", 1, &[]),
    place("pares-gateway", 1, &[]),
    place("pares-wice", 1, &[]),
    place("pares-shm", 2, &[]),
    place("pares-log", 2, &["pares-shm"]),     // is made of mapped files
    place("pares-cluster", 2, &["pares-log"]), // keeps what it must not forget in one
    place("pares-client", 2, &[]),
    place("pares-flow", 2, &[]),
    place("pares-link", 2, &[]),
    place("pares-store", 2, &[]),
    place("pares-sim", 2, &[]),  // is wiring, but must do without every edge
    place("pares-tpcc", 2, &[]), // the same, around replication between clusters
    place("pares-node", 3, &[]),
    place("pares-bench", 3, &[]),
    place("pares-site", 3, &[]),
    place("pares", 4, &[]),
];

/// Libraries that rules crates may reach: none of them does anything but compute.
const PURE: &[&str] = &["thiserror", "zerocopy"];

/// Whether a crate must be free of clocks, I/O, threads and randomness.
pub(super) fn is_rules(name: &str) -> bool {
    CRATES.iter().any(|place| place.name == name && place.layer <= 1)
}

/// One crate and all it reaches, as `cargo tree` prints it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Reach {
    name: String,
    direct: BTreeSet<String>,
    all: BTreeSet<String>,
}

/// Checks the layers.
///
/// # Errors
/// If cargo cannot be asked.
pub(super) fn check(violations: &mut Vec<String>) -> Result<(), String> {
    check_folders(violations)?;
    let output = cargo()
        .args(["tree", "--workspace", "--edges", "normal,no-proc-macro", "--no-dedupe"])
        .args(["--prefix", "depth", "--format", " {p}", "--offline", "--locked"])
        .output()
        .map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    for reach in parse(&String::from_utf8_lossy(&output.stdout)) {
        check_one(&reach, violations);
    }
    Ok(())
}

fn check_folders(violations: &mut Vec<String>) -> Result<(), String> {
    for folder in folders()? {
        if !CRATES.iter().any(|place| place.name == folder) {
            violations
                .push(format!("crates/{folder}: has no layer; give it one in xtask/src/tidy/layers.rs"));
        }
    }
    Ok(())
}

/// The crates' folders.
pub(super) fn folders() -> Result<BTreeSet<String>, String> {
    let entries = std::fs::read_dir(root().join("crates")).map_err(|error| format!("crates: {error}"))?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

fn parse(tree: &str) -> Vec<Reach> {
    let mut crates: Vec<Reach> = Vec::new();
    for line in tree.lines() {
        let Some((depth, package)) = line.split_once(' ') else { continue };
        let name = package.split(' ').next().unwrap_or_default().to_owned();
        match (depth, crates.last_mut()) {
            ("0", _) => crates.push(Reach { name, ..Reach::default() }),
            ("1", Some(reach)) => {
                reach.direct.insert(name.clone());
                reach.all.insert(name);
            }
            (_, Some(reach)) => {
                reach.all.insert(name);
            }
            (_, None) => {}
        }
    }
    crates
}

fn check_one(reach: &Reach, violations: &mut Vec<String>) {
    let Some(place) = CRATES.iter().find(|place| place.name == reach.name) else { return };
    for name in &reach.direct {
        let Some(other) = CRATES.iter().find(|other| other.name == name) else { continue };
        if other.layer >= place.layer && !place.beside.contains(&other.name) {
            violations.push(format!(
                "{}: depends on {name}, which is not below it (layer {} on {}); let the two meet in pares-node",
                place.name, place.layer, other.layer
            ));
        }
    }
    if place.layer > 1 {
        return;
    }
    for name in reach.all.iter().filter(|name| !name.starts_with("pares-")) {
        if !PURE.contains(&name.as_str()) {
            violations.push(format!(
                "{}: reaches {name}; rules take time, randomness and bytes as arguments from the edge. If the \
                 library only computes, add it to PURE in xtask/src/tidy/layers.rs",
                place.name
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violations(tree: &str) -> Vec<String> {
        let mut violations = Vec::new();
        parse(tree).iter().for_each(|reach| check_one(reach, &mut violations));
        violations
    }

    #[test]
    fn a_crate_may_use_what_is_below_it() {
        assert!(
            violations("0 pares-book v0.1.0 (/x)\n1 pares-types v0.1.0\n1 thiserror v2.0.0\n").is_empty()
        );
    }

    #[test]
    fn a_crate_may_not_use_what_is_beside_or_above_it() {
        assert!(violations("0 pares-book v0.1.0\n1 pares-recorder v0.1.0\n")[0].contains("not below"));
        assert!(violations("0 pares-sim v0.1.0\n1 pares-log v0.1.0\n")[0].contains("not below"));
    }

    #[test]
    fn rules_do_not_reach_the_system_through_somebody_else() {
        let tree = "0 pares-venue v0.1.0\n1 pares-book v0.1.0\n2 innocent v1.0.0\n3 getrandom v0.3.0\n";
        assert_eq!(violations(tree).len(), 2, "innocent and getrandom");
        assert!(violations("0 pares-node v0.1.0\n1 getrandom v0.3.0\n").is_empty());
    }
}
