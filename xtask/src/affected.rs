//! What a change to some crates affects: these crates and all that depend on them.

use std::collections::{BTreeMap, BTreeSet};

use crate::programs::package_name;
use crate::tidy;

/// The crates of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Affected {
    /// None: all.
    crates: Option<BTreeSet<String>>,
    others: BTreeSet<String>,
}

impl Affected {
    /// The arguments that select these crates for cargo.
    pub(crate) fn arguments(&self) -> Vec<String> {
        match &self.crates {
            None => vec!["--workspace".into()],
            Some(crates) => crates.iter().flat_map(|name| ["-p".into(), name.clone()]).collect(),
        }
    }

    /// What the run does not cover.
    pub(crate) fn left_out(&self) -> Option<String> {
        let others: Vec<&str> = self.others.iter().map(String::as_str).collect();
        (!others.is_empty()).then(|| format!("crates that do not depend on these: {}", others.join(" ")))
    }
}

/// The crates with these names, `log` or `pares-log`, and all that depend on them; without a name, all.
///
/// # Errors
/// If there is no crate of a name, or a folder of crates cannot be read.
pub(crate) fn by(names: &[String]) -> Result<Affected, String> {
    if names.is_empty() {
        return Ok(Affected { crates: None, others: BTreeSet::new() });
    }
    among(&manifests()?, names)
}

fn among(uses: &BTreeMap<String, BTreeSet<String>>, names: &[String]) -> Result<Affected, String> {
    let mut found = BTreeSet::new();
    for name in names {
        let full = [name.clone(), format!("pares-{name}")].into_iter().find(|name| uses.contains_key(name));
        found.insert(full.ok_or_else(|| format!("test: there is no crate {name}"))?);
    }
    while let Some((user, _)) =
        uses.iter().find(|(user, used)| !found.contains(*user) && !used.is_disjoint(&found))
    {
        found.insert(user.clone());
    }
    let others = uses.keys().filter(|name| !found.contains(*name)).cloned().collect();
    Ok(Affected { crates: Some(found), others })
}

/// Each package of the workspace, and the packages of it that it names as dependencies of any kind.
fn manifests() -> Result<BTreeMap<String, BTreeSet<String>>, String> {
    let files = tidy::files()?;
    let manifests = files.iter().filter(|file| file.path.ends_with("Cargo.toml"));
    Ok(manifests.filter_map(|file| manifest(&file.text)).collect())
}

/// The package's name, and the packages of the workspace that begin a line of its manifest.
fn manifest(text: &str) -> Option<(String, BTreeSet<String>)> {
    let keys = text.lines().filter_map(|line| line.split([' ', '.', '=']).next());
    let used = keys.filter(|key| *key == "pares" || key.starts_with("pares-")).map(str::to_owned).collect();
    Some((package_name(text)?.to_owned(), used))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_on_a_crate_is_affected_and_the_rest_is_named() {
        let of = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let uses = BTreeMap::from([
            ("pares-log".to_owned(), of(&[])),
            ("pares-node".to_owned(), of(&["pares-log"])),
            ("pares".to_owned(), of(&["pares-node"])),
            ("pares-wice".to_owned(), of(&[])),
        ]);
        let affected = among(&uses, &["log".into()]).unwrap();
        assert_eq!(affected.crates, Some(of(&["pares", "pares-log", "pares-node"])));
        assert_eq!(affected.others, of(&["pares-wice"]));
        assert!(among(&uses, &["lgo".into()]).is_err());
    }

    #[test]
    fn every_crate_of_the_workspace_is_known() {
        let known = manifests().unwrap();
        assert!(
            known.contains_key("pares-fuzz")
                && known.contains_key("bank")
                && known["pares-lab"].contains("pares-sim")
        );
    }
}
