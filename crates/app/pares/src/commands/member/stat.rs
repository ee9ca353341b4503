//! `pares member stat`: how a member's servers are, by what they left in `run/`.

use std::path::PathBuf;

use pares_member::MemberConfig;
use pares_member::config::submissions;
use pares_member::process::{announced, config_file};
use pares_node::Layout;
use pares_node::watched::last_words;
use pares_os::CountersReader;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Map, Value, json};

use crate::error::{CommandError, CommandResult};
use crate::text::count;

/// Arguments of `pares member stat`.
#[derive(clap::Args)]
pub struct Args {
    /// The directory of the member's system
    #[arg(long, default_value = "member-data")]
    dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One server.
struct Seen {
    server: u16,
    is_up: bool,
    counters: Vec<(String, u64)>,
    complaint: Option<String>,
}

/// Shows all servers. Ends with 0 if all are up, 3 if none is, 4 otherwise, as `pares stat` does.
pub(super) fn run(args: &Args) -> CommandResult {
    let layout = Layout::new(&args.dir);
    let config = MemberConfig::load(&config_file(&layout))?;
    let seen: Vec<Seen> = (0..config.count()).map(|server| look(&layout, server)).collect();
    match args.json {
        true => pares_text::say!("{}", json!({ "servers": seen.iter().map(Seen::json).collect::<Vec<_>>() })),
        false => seen.iter().for_each(|one| pares_text::say!("{}", one.line())),
    }
    let down = seen.iter().filter(|one| !one.is_up).count();
    let dir = args.dir.display();
    match down {
        0 => Ok(()),
        _ if down == seen.len() => Err(CommandError::NotRunning(format!(
            "no server runs; `pares member up --dir {dir}` starts them"
        ))),
        _ => Err(CommandError::Unhealthy(format!("{} of {} down", count(down as u64, "server"), seen.len()))),
    }
}

fn look(layout: &Layout, server: u16) -> Seen {
    let counters = CountersReader::open(&layout.counters(&format!("member-{server}"))).ok();
    let counters = counters.iter().flat_map(CountersReader::iter);
    let pid = announced(layout, server).and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    Seen {
        server,
        is_up: pid.is_some_and(|pid| test_kill_process(pid).is_ok()),
        counters: counters.map(|(name, value)| (name.to_owned(), value)).collect(),
        complaint: last_words(&layout.complaints(submissions(server))),
    }
}

impl Seen {
    fn line(&self) -> String {
        let state = if self.is_up { "up" } else { "down" };
        let counters: Vec<String> =
            self.counters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let complaint = self.complaint.iter().map(|line| format!("\n          last output: {line}"));
        format!("server {} {state:<4} {}{}", self.server, counters.join(", "), complaint.collect::<String>())
    }

    fn json(&self) -> Value {
        let counters: Map<String, Value> =
            self.counters.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
        json!({ "server": self.server, "up": self.is_up, "counters": counters, "complaint": self.complaint })
    }
}
