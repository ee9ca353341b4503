//! `pares site status`: how each site is.

use pares_site::{Config, Report};

use crate::error::{CommandError, CommandResult};
use crate::sites;
use crate::text::{self, Table};

/// Shows it.
///
/// # Errors
/// If no site answers.
pub fn run(config: &Config, json: bool) -> CommandResult {
    let reports = sites::reports(config);
    if json {
        let all: Vec<&Report> = reports.iter().map(|(_, report)| report).collect();
        return text::print(&serde_json::to_string(&all).expect("reports are plain")).map(|_| ());
    }
    let mut table = Table::new([
        "site",
        "role",
        ">era",
        "certifier",
        "live",
        ">delivered",
        ">stable",
        ">stored",
        ">open",
        ">executed",
        ">lost",
    ]);
    for site in sites::all(config) {
        let report = reports.iter().find(|(other, _)| *other == site).map(|(_, report)| report);
        table.row(report.map_or_else(|| silent(&sites::name(site)), row));
    }
    text::print(&table.render())?;
    if reports.is_empty() {
        return Err(CommandError::Failed("no site answers: start them with `pares site up`".into()));
    }
    Ok(())
}

fn silent(name: &str) -> Vec<String> {
    let mut row = vec![name.to_owned(), "does not answer".to_owned()];
    row.resize(11, "-".to_owned());
    row
}

fn row(report: &Report) -> Vec<String> {
    let role = match report {
        Report { recalling: true, .. } => "reads its log",
        Report { certifies: true, .. } => "certifies",
        Report { delegate: true, .. } => "delegate",
        _ => "",
    };
    let live: Vec<String> = report.live.iter().map(ToString::to_string).collect();
    vec![
        report.site.clone(),
        role.to_owned(),
        report.era.1.to_string(),
        format!("cluster {}", report.certifier),
        live.join(" "),
        text::grouped(report.delivered),
        text::grouped(report.stable),
        text::grouped(report.stored),
        report.open.to_string(),
        text::grouped(report.work.executed),
        text::grouped(report.work.lost),
    ]
}
