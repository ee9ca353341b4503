//! The books of others: built from `bench/peers` of the source tree, and asked in a process of their own.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pares_books::{EngineInfo, Measured, Task};
use pares_load::LabError;

/// Where the package lies in the source tree.
const MANIFEST: &str = "bench/peers/Cargo.toml";

/// The process that runs them; it ends when this is dropped.
pub(super) struct Peers {
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
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
        let program = build(&root)?;
        let starting =
            |error| LabError::Io { doing: format!("starting {}", program.display()), source: error };
        let mut child =
            Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(starting)?;
        let questions = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut peers = Self { child, questions, answers, introductions: Vec::new() };
        peers.introductions = parse(&peers.ask("list")?)?;
        Ok(Some(peers))
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
        parse(&self.ask(&format!("{name} {task} {seconds} {}", stream.display()))?)
    }

    fn ask(&mut self, question: &str) -> Result<String, LabError> {
        let questions = self.questions.as_mut().expect("open until it is dropped");
        let asked = writeln!(questions, "{question}").and_then(|()| questions.flush());
        asked.map_err(LabError::io("asking the peers"))?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(LabError::io("hearing the peers"))?;
        match answer.is_empty() {
            true => Err(LabError::Failed(format!("the peers ended without an answer to `{question}`"))),
            false => Ok(answer),
        }
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        // Without questions it ends by itself; there is nobody to tell how.
        drop(self.questions.take());
        let _ = self.child.wait();
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
