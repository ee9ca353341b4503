//! Which crate may depend on which.
//!
//! Folders are groups, and groups are layers: a group may use the groups named in [`GROUPS`] and no other. So the exchange
//! never reaches the sites, and nothing that ships reaches the laboratory.
//!
//! ```text
//!   app        pares                                                    the command line
//!   lab        lab | drills  experiments | load | books  faults  sim  wholesale | tpcc  flow  wan  browser  testbed | isolation   what proves and measures
//!   broker     brokerage  routing | accounts  web | oracle | front  router  broker                        day trading
//!   sites      operator | site  sql | store | wice                          replication between clusters
//!   doors      api  acceptor | doors  door  fix  ouch  resources  tap | dictionary    how members reach the exchange by protocols of others
//!   feed       member | publisher  receiver | feed  desk                 market data, and a member's system for it
//!   exchange   node  history  archive | gateway-role  roles  orderer  config  window  client  exercise | book  sequencer  register  stream  recorder  port  mirror  gateway  venue | types  wire
//!   base       http  keys  link  cluster  chart | log  text  pages | os  tls | table  random  calendar                what everything stands on
//! ```
//! Inside a group a crate depends on lower layers only. Rules crates reach nothing that could read a clock, touch a file
//! or draw a random number, not even through another crate: what they may reach is listed, and everything
//! else is refused. What only tests use ([`EQUIPMENT`]) may be in a higher layer; nothing that ships depends on it.

use std::collections::BTreeSet;

use crate::{cargo, root};

/// A crate's place.
pub(super) struct Place {
    pub(super) name: &'static str,
    pub(super) group: &'static str,
    layer: u8,
    /// Crates of the same layer that it may use nevertheless.
    beside: &'static [&'static str],
}

impl Place {
    /// Its folder, from the root of the workspace.
    pub(super) fn folder(&self) -> String {
        format!("crates/{}/{}", self.group, self.name.trim_start_matches("pares-"))
    }

    /// Whether it must be free of clocks, I/O, threads and randomness.
    fn is_rules(&self) -> bool {
        self.layer <= RULES
    }
}

const fn place(group: &'static str, name: &'static str, layer: u8, beside: &'static [&'static str]) -> Place {
    Place { name, group, layer, beside }
}

/// The groups, and which others each may use.
const GROUPS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("exchange", &["base"]),
    ("feed", &["base", "exchange"]),
    ("sites", &["base"]),
    ("doors", &["base", "exchange"]),
    ("broker", &["base", "exchange", "sites"]),
    ("lab", &["base", "exchange", "feed", "sites", "doors", "broker"]),
    ("app", &["base", "exchange", "feed", "sites", "doors", "broker"]),
];

/// Whether code of `group` may use that of `other`.
pub(super) fn may_use(group: &str, other: &str) -> bool {
    group == other || uses(group).contains(&other)
}

fn uses(group: &str) -> &'static [&'static str] {
    GROUPS.iter().find(|(name, _)| *name == group).map_or(&[], |(_, uses)| uses)
}

/// Rules crates are in this layer or below.
const RULES: u8 = 1;

/// Every crate of the workspace.
pub(super) const CRATES: &[Place] = &[
    place("base", "pares-table", 0, &[]),
    place("base", "pares-calendar", 0, &[]),
    place("base", "pares-random", 0, &[]),
    place("base", "pares-os", 2, &[]),
    place("base", "pares-log", 2, &["pares-os"]), // is made of mapped files
    place("base", "pares-cluster", 2, &["pares-log"]), // keeps its journal there
    place("base", "pares-tls", 2, &[]),
    place("base", "pares-keys", 2, &[]),
    place("base", "pares-http", 2, &["pares-tls"]), // serves by TLS where people are not on this machine
    place("base", "pares-link", 2, &["pares-tls"]), // is TLS where clusters are apart
    place("base", "pares-pages", 2, &[]),
    place("base", "pares-text", 2, &[]),
    place("base", "pares-chart", 2, &["pares-text"]), // writes figures on its axes
    place("exchange", "pares-types", 0, &[]),
    place("exchange", "pares-wire", 0, &["pares-types"]), // gives the vocabulary its bytes
    place("exchange", "pares-book", 1, &[]),
    place("exchange", "pares-exercise", 2, &[]), // for tests
    place("exchange", "pares-sequencer", 1, &[]),
    place("exchange", "pares-register", 1, &[]),
    place("exchange", "pares-stream", 1, &[]),
    place("exchange", "pares-venue", 1, &["pares-book", "pares-sequencer", "pares-register", "pares-stream"]), // executes on the one what the other decides
    place("exchange", "pares-recorder", 1, &[]),
    place("exchange", "pares-port", 1, &[]),
    place("exchange", "pares-mirror", 1, &[]),
    place("exchange", "pares-gateway", 1, &["pares-book", "pares-register", "pares-stream"]), // follows what a venue decides of them
    place("exchange", "pares-window", 2, &[]),
    place("exchange", "pares-client", 2, &[]),
    place("exchange", "pares-config", 2, &[]),
    place("exchange", "pares-orderer", 2, &[]), // rules, over a replicated log that keeps its journal in files
    place("exchange", "pares-roles", 2, &["pares-config", "pares-orderer"]), // whose settings say what they are
    place("exchange", "pares-gateway-role", 2, &["pares-config", "pares-roles"]), // one of them, in the same world
    place("exchange", "pares-archive", 3, &[]),
    place("exchange", "pares-history", 3, &[]),
    place("exchange", "pares-node", 3, &["pares-archive"]),
    place("feed", "pares-feed", 1, &[]),
    place("feed", "pares-publisher", 2, &[]),
    place("feed", "pares-desk", 1, &["pares-feed"]), // packs its stream as the feed does
    place("feed", "pares-member", 4, &[]),
    place("feed", "pares-receiver", 2, &[]),
    place("doors", "pares-dictionary", 0, &[]),
    place("doors", "pares-fix", 1, &[]),
    place("doors", "pares-acceptor", 2, &[]),
    place("doors", "pares-door", 1, &["pares-fix"]), // which it speaks to members
    place("doors", "pares-ouch", 1, &[]),
    place("doors", "pares-resources", 1, &[]),
    place("doors", "pares-api", 2, &[]),
    place("doors", "pares-doors", 1, &["pares-door", "pares-ouch", "pares-fix", "pares-tap"]),
    place("doors", "pares-tap", 1, &["pares-fix", "pares-door", "pares-ouch"]), // follows sessions as they do
    place("sites", "pares-wice", 1, &[]),
    place("sites", "pares-store", 2, &[]),
    place("sites", "pares-sql", 3, &[]),
    place("sites", "pares-site", 3, &["pares-sql"]), // whose sessions hand it their transactions
    place("sites", "pares-operator", 4, &[]),
    place("broker", "pares-broker", 1, &[]),
    place("broker", "pares-front", 1, &["pares-broker"]), // whose requests it makes
    place("broker", "pares-router", 1, &["pares-broker"]), // whose orders it sends
    place("broker", "pares-oracle", 2, &[]),
    place("broker", "pares-accounts", 3, &[]),
    place("broker", "pares-routing", 4, &[]),
    place("broker", "pares-brokerage", 4, &["pares-routing"]), // whose commands are its
    place("broker", "pares-web", 3, &[]),
    place("lab", "pares-flow", 2, &[]),
    place("lab", "pares-isolation", 1, &[]),
    place("lab", "pares-sim", 3, &["pares-site", "pares-accounts"]), // runs the one's duty cycle, asks the other
    place("lab", "pares-tpcc", 2, &["pares-flow"]),                  // whose chance and time it takes
    place("lab", "pares-wholesale", 3, &[]),
    place("lab", "pares-wan", 2, &[]),
    place("lab", "pares-browser", 2, &[]),
    place("lab", "pares-testbed", 2, &[]),
    place("lab", "pares-books", 3, &[]),
    place("lab", "pares-faults", 3, &[]),
    place("lab", "pares-load", 4, &[]),
    place("lab", "pares-drills", 5, &[]),
    place("lab", "pares-experiments", 5, &[]),
    place("lab", "pares-lab", 6, &[]),
    place("app", "pares", 4, &[]),
];

/// Crates for tests: only dev-dependencies and the laboratory may use them.
const EQUIPMENT: &[&str] =
    &["pares-browser", "pares-exercise", "pares-flow", "pares-oracle", "pares-testbed", "pares-wan"];

/// Libraries that rules crates may reach: all of them only compute.
const PURE: &[&str] = &["thiserror", "zerocopy"];

/// Whether a crate must be free of clocks, I/O, threads and randomness.
pub(super) fn is_rules(name: &str) -> bool {
    CRATES.iter().any(|place| place.name == name && place.is_rules())
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
    let reaches = parse(&tree(&["--edges", "normal,no-proc-macro", "--no-dedupe"])?);
    reaches.iter().for_each(|reach| check_one(reach, violations));
    for tests in parse(&tree(&["--edges", "dev", "--depth", "1"])?) {
        check_tests(&tests, &reaches, violations);
    }
    Ok(())
}

fn tree(edges: &[&str]) -> Result<String, String> {
    let output = cargo()
        .args(["tree", "--workspace", "--prefix", "depth", "--format", " {p}", "--offline", "--locked"])
        .args(edges)
        .output()
        .map_err(|error| format!("cargo tree: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

fn check_folders(violations: &mut Vec<String>) -> Result<(), String> {
    let placed: BTreeSet<String> = CRATES.iter().map(Place::folder).collect();
    for folder in folders()?.difference(&placed) {
        violations.push(format!("{folder}: has no layer; give it one in xtask/src/tidy/layers.rs"));
    }
    Ok(())
}

/// The crates' folders, from the root of the workspace.
pub(super) fn folders() -> Result<BTreeSet<String>, String> {
    let list = |folder: &str| -> Result<Vec<String>, String> {
        let entries = std::fs::read_dir(root().join(folder)).map_err(|error| format!("{folder}: {error}"))?;
        Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
    };
    let mut found = BTreeSet::new();
    for group in list("crates")? {
        let group = format!("crates/{group}");
        found.extend(list(&group)?.into_iter().map(|name| format!("{group}/{name}")));
    }
    Ok(found)
}

/// The crates' names.
pub(super) fn names() -> BTreeSet<String> {
    CRATES.iter().map(|place| place.name.to_owned()).collect()
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
        if is_equipment(name) && !is_equipment(place.name) && place.group != "lab" {
            violations.push(format!("{}: depends on {name}, which is for tests", place.name));
        }
        if other.group != place.group {
            if !may_use(place.group, other.group) {
                violations.push(format!(
                    "{}: depends on {name}, but `{}` may not use `{}`",
                    place.name, place.group, other.group
                ));
            }
        } else if other.layer >= place.layer && !place.beside.contains(&other.name) {
            violations.push(format!(
                "{}: depends on {name}, which is not below it (layer {} on {}); let the two meet above both",
                place.name, place.layer, other.layer
            ));
        }
    }
    if !place.is_rules() {
        return;
    }
    for name in reach.all.iter().filter(|name| !is_pure(name)) {
        violations.push(format!(
            "{}: reaches {name}; rules take time, randomness and bytes as arguments from the edge. If the \
             library only computes, add it to PURE in xtask/src/tidy/layers.rs",
            place.name
        ));
    }
}

/// Checks what the tests of a crate use: what the crate may use itself, rules, and equipment. Those of a rules crate use nothing that
/// reaches more of ours than rules, so that to test a rule no edge is compiled.
fn check_tests(tests: &Reach, reaches: &[Reach], violations: &mut Vec<String>) {
    let Some(place) = CRATES.iter().find(|place| place.name == tests.name) else { return };
    let is_light = |name: &str| is_rules(name) || is_equipment(name) || !name.starts_with("pares-");
    for name in tests.direct.iter().filter(|name| name.starts_with("pares")) {
        let group = CRATES.iter().find(|other| other.name == name).map(|other| other.group);
        let may =
            group.is_some_and(|group| may_use(place.group, group) || is_rules(name) || is_equipment(name));
        if !may {
            violations.push(format!("{}: its tests depend on {name}, which is above it", place.name));
        }
        let reached = reaches.iter().filter(|reach| reach.name == *name).flat_map(|reach| &reach.all);
        for heavy in reached.chain([name]).filter(|name| place.is_rules() && !is_light(name)) {
            violations.push(format!(
                "{}: its tests reach {heavy} by {name}; tests of rules need rules and no edge",
                place.name
            ));
        }
    }
}

/// Whether a crate is for tests.
fn is_equipment(name: &str) -> bool {
    EQUIPMENT.contains(&name)
}

/// Whether a crate only computes.
fn is_pure(name: &str) -> bool {
    is_rules(name) || PURE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::found;

    fn violations(tree: &str) -> Vec<String> {
        found(|violations| parse(tree).iter().for_each(|reach| check_one(reach, violations)))
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
        assert!(violations("0 pares-wice v0.1.0\n1 pares-store v0.1.0\n")[0].contains("not below"));
    }

    #[test]
    fn a_group_may_not_use_one_it_does_not_name() {
        assert!(violations("0 pares-node v0.1.0\n1 pares-wice v0.1.0\n")[0].contains("may not use `sites`"));
        assert!(violations("0 pares-site v0.1.0\n1 pares-sim v0.1.0\n")[0].contains("may not use `lab`"));
        assert!(violations("0 pares-roles v0.1.0\n1 pares-door v0.1.0\n")[0].contains("may not use `doors`"));
        assert!(violations("0 pares v0.1.0\n1 pares-drills v0.1.0\n")[0].contains("may not use `lab`"));
    }

    #[test]
    fn no_group_reaches_itself() {
        for (group, first) in GROUPS {
            let (mut reached, mut next) = (BTreeSet::new(), first.to_vec());
            while let Some(other) = next.pop() {
                assert!(
                    GROUPS.iter().any(|(name, _)| *name == other),
                    "{group} uses `{other}`, which is no group"
                );
                if reached.insert(other) {
                    next.extend(uses(other));
                }
            }
            assert!(!reached.contains(group), "{group} reaches itself by {reached:?}");
        }
    }

    #[test]
    fn rules_do_not_reach_the_system_through_somebody_else() {
        let tree = "0 pares-venue v0.1.0\n1 pares-book v0.1.0\n2 innocent v1.0.0\n3 getrandom v0.3.0\n";
        assert_eq!(violations(tree).len(), 2, "innocent and getrandom");
        assert!(violations("0 pares-node v0.1.0\n1 getrandom v0.3.0\n").is_empty());
    }

    #[test]
    fn tests_of_rules_reach_no_edge_and_equipment_does_not_ship() {
        let reaches =
            parse("0 pares-fuzz v0.1.0\n1 pares-api v0.1.0\n0 pares-exercise v0.1.0\n1 pares-book v0.1.0\n");
        let found = |tree: &str| {
            found(|violations| parse(tree).iter().for_each(|tests| check_tests(tests, &reaches, violations)))
        };
        let of_feed =
            found("0 pares-feed v0.1.0\n1 pares-exercise v0.1.0\n1 pares-fuzz v0.1.0\n1 proptest v1.0.0\n");
        assert_eq!(of_feed.len(), 3, "fuzz is above it, is no rules crate, and reaches the API: {of_feed:?}");
        assert!(found("0 pares-link v0.1.0\n1 pares-wan v0.1.0\n").is_empty());
        assert!(found("0 pares-site v0.1.0\n1 pares-node v0.1.0\n")[0].contains("above it"));
        assert!(violations("0 pares-node v0.1.0\n1 pares-exercise v0.1.0\n")[0].contains("for tests"));
    }
}
