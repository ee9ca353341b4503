//! `pares site status`: how each site is.

use pares_site::{SiteReport, SitesConfig};
use pares_text::{self as text, Table};
use pares_wice::SiteId;

use crate::error::{OperatorError, OperatorResult};
use crate::sites;

/// Shows it.
///
/// # Errors
/// If no site answers, or not all is well.
pub fn run(config: &SitesConfig, json: bool) -> OperatorResult {
    let reports = sites::reports(config);
    if json {
        let all: Vec<&SiteReport> = reports.iter().map(|(_, report)| report).collect();
        text::print(&serde_json::to_string(&all).expect("reports are plain"));
        return judge(config, &reports);
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
    text::print(&table.render());
    judge(config, &reports)
}

/// Whether every site answers and takes part.
fn judge(config: &SitesConfig, reports: &[(SiteId, SiteReport)]) -> OperatorResult {
    if reports.is_empty() {
        return Err(OperatorError::NotRunning("no site answers: start them with `pares site up`".into()));
    }
    let mut wrong = Vec::new();
    for site in sites::all(config) {
        let name = sites::name(site);
        match reports.iter().find(|(other, _)| *other == site) {
            None => wrong.push(format!("{name} does not answer")),
            Some((_, SiteReport { apart: Some(why), .. })) => wrong.push(format!("{name} {why}")),
            Some((_, report)) if report.recalling => wrong.push(format!("{name} reads its log")),
            Some((_, report)) if !report.live.contains(&site.cluster.0) => {
                wrong.push(format!("{name} is of a cluster that is not among the living"));
            }
            Some(_) => {}
        }
    }
    for (site, report) in reports {
        wrong.extend(report.refused.iter().map(|refused| format!("{}: {refused}", sites::name(*site))));
    }
    if !reports.iter().any(|(_, report)| report.certifies) {
        wrong.push("no site certifies".into());
    }
    if wrong.is_empty() { Ok(()) } else { Err(OperatorError::Unhealthy(wrong.join("; "))) }
}

fn silent(name: &str) -> Vec<String> {
    let mut row = vec![name.to_owned(), "does not answer".to_owned()];
    row.resize(11, "-".to_owned());
    row
}

fn row(report: &SiteReport) -> Vec<String> {
    let role = match report {
        SiteReport { apart: Some(_), .. } => "takes no part",
        SiteReport { recalling: true, .. } => "reads its log",
        SiteReport { certifies: true, .. } => "certifies",
        SiteReport { delegate: true, .. } => "delegate",
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
