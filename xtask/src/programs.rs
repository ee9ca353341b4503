//! The workspace's programs of tests: building them, and where they are.
//!
//! `cargo test` builds them and runs them one after the other, and most of them wait for sockets and timers. So cargo only
//! builds here, and reports in JSON where each program is; [`crate::running`] runs several at once.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// One program of tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    /// What to run.
    pub(crate) executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    pub(crate) folder: PathBuf,
    /// Package and target, such as `pares-log: damage`; `pares-log` alone for the unit tests.
    pub(crate) name: String,
}

/// Runs a `cargo test --no-run ..` and collects what it built, ordered by name.
///
/// # Errors
/// If cargo cannot be started, or the build fails; cargo has said why on standard error.
pub(crate) fn build(command: &mut Command) -> Result<Vec<Program>, String> {
    let mut child = command
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo: {error}"))?;
    let messages = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut programs: Vec<Program> =
        messages.lines().map_while(Result::ok).filter_map(|line| program(&line)).collect();
    let status = child.wait().map_err(|error| format!("cargo: {error}"))?;
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    if status.success() { Ok(programs) } else { Err("the build failed; see above".into()) }
}

/// The program of tests that a message from cargo names, if it names one.
fn program(message: &str) -> Option<Program> {
    let profile = message.split_once("\"profile\":{")?.1.split_once('}')?.0;
    if !profile.contains("\"test\":true") {
        return None;
    }
    let executable = PathBuf::from(text(message, "executable")?);
    let folder = Path::new(text(message, "manifest_path")?).parent()?.to_path_buf();
    let target = message.split_once("\"target\":{")?.1;
    let package = package(&folder);
    let name = match text(target, "name")? {
        unit if unit.replace('_', "-") == package => package,
        name => format!("{package}: {name}"),
    };
    Some(Program { executable, folder, name })
}

/// The name of the package in a folder, as its manifest says.
fn package(folder: &Path) -> String {
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
    package_name(&manifest).map_or_else(|| folder.display().to_string(), str::to_owned)
}

/// The name of the package that a manifest describes.
pub(crate) fn package_name(manifest: &str) -> Option<&str> {
    manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'))
}

/// The first text under a key. Paths and names here contain nothing that JSON escapes.
fn text<'a>(json: &'a str, key: &str) -> Option<&'a str> {
    let behind = json.split_once(&format!("\"{key}\":\""))?.1;
    behind.split_once('"').map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_programs_of_tests_are_collected() {
        let message = |test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/nowhere/log/Cargo.toml","target":{{"kind":["test"],"name":"damage","test":true}},"profile":{{"opt_level":"0","test":{test}}},"executable":"/t/damage-1"}}"#
            )
        };
        let found = program(&message(true)).unwrap();
        assert_eq!(found.executable, Path::new("/t/damage-1"));
        assert_eq!(
            (found.folder.as_path(), found.name.as_str()),
            (Path::new("/nowhere/log"), "/nowhere/log: damage")
        );
        assert_eq!(program(&message(false)), None);
        assert_eq!(program(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
