//! What the sites keep their items in: files of their own, or a PostgreSQL server that is started for the length of the benchmark.

use std::path::{Path, PathBuf};

use pares_load::LabError;
use pares_wice::SiteId;

/// What databases are called, before the site's cluster and number.
const DATABASE: &str = "tpcc";

/// As asked for: `redb`, `postgres`, or a URL of a server that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Engine {
    /// What it is called in figures.
    pub(super) name: &'static str,
    /// As `sites.toml` has it; nothing for files.
    pub(super) url: Option<String>,
    /// Where the server keeps its data, if it was started here.
    server: Option<PathBuf>,
}

impl Engine {
    /// Starts what has to be.
    ///
    /// # Errors
    /// [`LabError::Skipped`] if PostgreSQL is to be started and is not installed.
    pub(super) fn start(asked: &str) -> Result<Self, LabError> {
        match asked {
            "redb" => Ok(Self { name: "redb", url: None, server: None }),
            "postgres" => {
                let server = pares_testbed::postgres::server()
                    .ok_or_else(|| LabError::Skipped("PostgreSQL is not installed".into()))?;
                let place = server.connection("");
                let folder = place.split(' ').next().unwrap_or_default().trim_start_matches("host=");
                let url =
                    format!("postgres:///{DATABASE}_{{cluster}}_{{number}}?host={folder}&user=postgres");
                Ok(Self { name: "postgres", url: Some(url), server: Some(folder.into()) })
            }
            url if url.starts_with("postgres://") => {
                Ok(Self { name: "postgres", url: Some(url.to_owned()), server: None })
            }
            other => Err(LabError::Usage(format!("--store must be redb, postgres, or a URL, not {other}"))),
        }
    }

    /// The server's processes that work for a site. Those of a server that was not started here are not known.
    pub(super) fn processes_of(&self, site: SiteId) -> Vec<u32> {
        let Some(postmaster) = self.server.as_deref().and_then(postmaster) else { return Vec::new() };
        let database = format!("{DATABASE}_{}_{}", site.cluster.0, site.number);
        let works_for = |process: &u32| {
            let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).split(' ').any(|word| word == database)
        };
        let parent = Some(postmaster);
        processes()
            .filter(|&process| crate::bench::processor::parent(process) == parent)
            .filter(works_for)
            .collect()
    }
}

/// The first line of its file is its number.
fn postmaster(folder: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(folder.join("data/postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
