//! The books of others: built from `bench/peers` of the source tree, and asked in a process of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use pares_books::{EngineInfo, Measured, Task};
use pares_load::LabError;

use crate::bench::peer::PeerProcess;

/// Where the package lies in the source tree.
const MANIFEST: &str = "bench/peers/Cargo.toml";

/// The process that runs them.
pub(super) struct Peers {
    process: PeerProcess,
    introductions: Vec<EngineInfo>,
}

impl Peers {
    /// Builds and starts them; `None`, and a word about it, away from the source tree.
    ///
    /// # Errors
    /// If they cannot be built or do not answer.
    pub(super) fn start() -> Result<Option<Self>, LabError> {
        let Some(root) = source_tree() else {
            pares_text::aside!("no {MANIFEST} here or above: measuring only our own book");
            return Ok(None);
        };
        let mut process = PeerProcess::spawn(&mut Command::new(build(&root)?))?;
        let introductions = parse(&process.ask("list")?)?;
        Ok(Some(Self { process, introductions }))
    }

    /// Who they are.
    pub(super) fn introductions(&self) -> &[EngineInfo] {
        &self.introductions
    }

    /// Measures one of them over the stream in a file, for so many seconds at most.
    ///
    /// # Errors
    /// If it fails.
    pub(super) fn run(
        &mut self,
        name: &str,
        task: Task,
        seconds: u64,
        stream: &Path,
    ) -> Result<Measured, LabError> {
        let task = match task {
            Task::Throughput => "throughput",
            Task::Latency => "latency",
            Task::Check => "check",
        };
        parse(&self.process.ask(&format!("{name} {task} {seconds} {}", stream.display()))?)
    }
}

fn parse<T: serde::de::DeserializeOwned>(answer: &str) -> Result<T, LabError> {
    serde_json::from_str(answer).map_err(pares_load::failed("what the peers answered"))
}

/// Above the working directory, or above this program as cargo builds it.
fn source_tree() -> Option<PathBuf> {
    let starts = [std::env::current_dir(), std::env::current_exe()];
    let found =
        |start: PathBuf| start.ancestors().find(|folder| folder.join(MANIFEST).exists()).map(Path::to_owned);
    starts.into_iter().filter_map(Result::ok).find_map(found)
}

/// Builds them, beside the other builds, and says where the program is.
fn build(root: &Path) -> Result<PathBuf, LabError> {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |dir| root.join(dir));
    let target = target.join("peers");
    pares_text::aside!("building the other engines (bench/peers; the first time takes a minute or two)");
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(root.join(MANIFEST))
        .arg("--target-dir")
        .arg(&target)
        .output()
        .map_err(LabError::io("running cargo"))?;
    if !output.status.success() {
        return Err(LabError::Failed(format!(
            "the other engines cannot be built (--no-peers measures without them):\n{}",
            String::from_utf8_lossy(&output.stderr)
        )));
    }
    Ok(target.join("release/pares-peers"))
}
