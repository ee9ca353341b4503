//! Processes beside the nodes that `pares up` keeps running: the server of HTTP, and the source of mirrors.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use pares_node::Layout;
use pares_node::watched::Watched;
use pares_os::{replace_file_unsynced, scheduling};

/// Removes what those of the last run said of themselves.
pub fn forget(layout: &Layout) {
    let announced = ["web", "mirror"].map(|name| layout.run().join(format!("{name}.addr")));
    for path in announced.into_iter().chain([layout.web_pid(), layout.mirror_pid()]) {
        let _ = std::fs::remove_file(path);
    }
}

/// Such a process, kept running.
pub struct BesideUp {
    pub name: &'static str,
    pub watched: Watched,
    /// Words of its command before the directory.
    words: &'static [&'static str],
    listen: SocketAddr,
    dir: PathBuf,
    log: PathBuf,
    announced: PathBuf,
    pid: PathBuf,
    is_told: bool,
}

impl BesideUp {
    /// Serves HTTP there.
    pub fn web(listen: SocketAddr, layout: &Layout) -> Self {
        Self::new("web", &["web", "--exchange"], listen, layout, layout.web_pid())
    }

    /// Sends the logs to hosts that connect there.
    pub fn mirror(listen: SocketAddr, layout: &Layout) -> Self {
        Self::new("mirror", &["mirror", "serve", "--dir"], listen, layout, layout.mirror_pid())
    }

    fn new(
        name: &'static str,
        words: &'static [&'static str],
        listen: SocketAddr,
        layout: &Layout,
        pid: PathBuf,
    ) -> Self {
        let (dir, log) = (layout.root().to_owned(), layout.run().join(format!("{name}.log")));
        let announced = layout.run().join(format!("{name}.addr"));
        let watched = Watched::default();
        Self { name, watched, words, listen, dir, log, announced, pid, is_told: false }
    }

    /// Where it listens, once that is so. One that is restarted listens there too, though any port was asked for.
    pub fn heard(&mut self) -> Option<String> {
        let address = std::fs::read_to_string(&self.announced).ok().filter(|_| !self.is_told)?;
        self.is_told = true;
        self.listen = address.trim().parse().unwrap_or(self.listen);
        Some(address.trim().to_owned())
    }

    /// Starts it if it does not run. Says how it ended, or why it did not begin.
    pub fn tick(&mut self) -> Option<String> {
        let ended = self.watched.reap();
        if ended.is_some() || !self.watched.is_due() {
            return ended.map(|how| match self.watched.last_words(&self.log) {
                Some(complaint) => format!("{how}: {complaint}"),
                None => how,
            });
        }
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => return Some(error.to_string()),
        };
        let mut command = Command::new(program);
        command.args(self.words).arg(&self.dir).arg("--listen").arg(self.listen.to_string());
        command.arg("--announce").arg(&self.announced);
        match self.watched.start(&mut command, &self.log) {
            Ok(id) => {
                // Those that serve continue meanwhile; it leaves the background when it listens.
                scheduling::start_in_background(id);
                // Nobody but `pares stat`, and an operator who wants to kill it, misses this.
                let _unsaid = replace_file_unsynced(&self.pid, format!("{id}\n").as_bytes());
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }
}
