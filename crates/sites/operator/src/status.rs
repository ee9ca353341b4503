//! `pares site status`: how each site is.

use pares_site::{Access, SiteReport, SitesConfig, WitnessReport};
use pares_text::{self as text, Table};
use pares_wice::SiteId;

use crate::error::{OperatorError, OperatorResult};
use crate::histories;
use crate::sites;
use crate::starts;
use crate::witness;

const COLUMNS: [&str; 11] = [
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
];

/// Shows it.
///
/// # Errors
/// If no site answers, or not all is well.
pub fn run(access: &Access, json: bool) -> OperatorResult {
    let asked = sites::all_asked(access);
    let reports: Vec<(SiteId, SiteReport)> =
        asked.iter().filter_map(|(site, said)| Some((*site, said.clone().ok()?))).collect();
    if json {
        let all: Vec<&SiteReport> = reports.iter().map(|(_, report)| report).collect();
        text::print(&serde_json::to_string(&all).expect("reports are plain"));
        let witness = witness::asked(access);
        tell_aside(witness.as_ref());
        return judge(&access.config, &asked, &reports, without_register(witness));
    }
    text::print(&as_table(access, &reports).render());
    for (site, report) in &reports {
        for stranger in report.refused_strangers() {
            text::print(&format!("{}: {stranger}", sites::name(*site)));
        }
    }
    if let Some(mixed) = mixed(&reports) {
        text::print(&mixed);
    }
    let witness = witness::asked(access);
    if let Some(said) = &witness {
        text::print(&told(said));
    }
    judge(&access.config, &asked, &reports, without_register(witness))
}

/// A row for each site.
fn as_table(access: &Access, reports: &[(SiteId, SiteReport)]) -> Table {
    let mut table = Table::new(COLUMNS);
    for site in sites::all(&access.config) {
        let report = reports.iter().find(|(other, _)| *other == site).map(|(_, report)| report);
        table.row(report.map_or_else(|| silent(&sites::name(site)), row));
    }
    table
}

/// What is said of the witness. That it is down is nothing wrong: it may be, while nobody is to be declared lost.
fn told(witness: &Result<WitnessReport, String>) -> String {
    match witness {
        Ok(report) => format!("witness: {}", witness::told(report)),
        Err(why) => {
            format!(
                "witness: no answer ({why}): until it answers, a cluster can be declared lost only by `lost --without-witness`, while nothing listens at its address"
            )
        }
    }
}

/// The same beside what programs read.
fn tell_aside(witness: Option<&Result<WitnessReport, String>>) {
    if let Some(said) = witness {
        pares_text::aside!("{}", told(said));
    }
}

/// That the witness waits for its operator, if there is one and it does: it grants nothing until then.
fn without_register(witness: Option<Result<WitnessReport, String>>) -> Option<String> {
    let report = witness?.ok()?;
    report.floor.is_none().then(|| told(&Ok(report)))
}

/// Whether every site answers and participates.
fn judge(
    config: &SitesConfig,
    asked: &[(SiteId, Result<SiteReport, String>)],
    reports: &[(SiteId, SiteReport)],
    without_register: Option<String>,
) -> OperatorResult {
    if reports.is_empty() {
        let why = asked.iter().find_map(|(_, said)| said.as_ref().err()).map_or("", String::as_str);
        return Err(OperatorError::NotRunning(format!(
            "no site answers ({why}): start them with `{}`",
            starts(config)
        )));
    }
    let mut wrong: Vec<String> = asked.iter().filter_map(|(site, said)| absent(*site, said)).collect();
    for (site, report) in reports {
        let (refused, others) = (report.refused_sites(), report.trouble.iter().chain(&report.differing));
        let told = refused.chain(others.map(String::as_str));
        wrong.extend(told.map(|told| format!("{}: {told}", sites::name(*site))));
        if !report.other_lists.is_empty() {
            let (name, others) = (sites::name(*site), report.other_lists.join(", "));
            wrong.push(format!("{name}: the sites.toml of {others} lists other sites"));
        }
    }
    let named: Vec<SiteId> = asked.iter().map(|(site, _)| *site).collect();
    wrong.extend(unnamed_voters(&named, reports));
    if !reports.iter().any(|(_, report)| report.certifies) {
        wrong.push("no site certifies".into());
    }
    wrong.extend(histories::two(reports));
    wrong.extend(without_register);
    if wrong.is_empty() { Ok(()) } else { Err(OperatorError::Unhealthy(wrong.join("; "))) }
}

/// Why a site takes no part in what is certified, if it does not.
fn absent(site: SiteId, said: &Result<SiteReport, String>) -> Option<String> {
    let name = sites::name(site);
    match said {
        Err(why) => Some(format!("{name} does not answer ({why})")),
        Ok(SiteReport { apart: Some(why), .. }) => Some(format!("{name} {why}")),
        Ok(report) if report.recalling => Some(format!("{name} is reading its log")),
        Ok(report) if !report.live.contains(&site.cluster.0) => {
            Some(format!("{name} belongs to a cluster that is not live"))
        }
        Ok(_) => None,
    }
}

/// Which versions sites speak, while they differ: an upgrade is under way.
fn mixed(reports: &[(SiteId, SiteReport)]) -> Option<String> {
    let lowest = reports.iter().map(|(_, report)| report.speaks).min()?;
    let highest = reports.iter().map(|(_, report)| report.speaks).max()?;
    let behind = reports.iter().filter(|(_, report)| report.speaks < highest);
    let behind: Vec<String> = behind.map(|(site, _)| sites::name(*site)).collect();
    (lowest < highest).then(|| {
        format!("sites speak versions {lowest} to {highest}, and each pair uses the lower one; still to upgrade: {}", behind.join(", "))
    })
}

/// Sites that have a vote although `sites.toml` no longer names them. The delegate knows who votes; a delegate that is itself no longer
/// named is not asked, so the first site of its cluster that answers speaks for it.
fn unnamed_voters(named: &[SiteId], reports: &[(SiteId, SiteReport)]) -> Vec<String> {
    let mut all = Vec::new();
    for mates in reports.chunk_by(|(one, _), (other, _)| one.cluster == other.cluster) {
        let (site, report) = mates.iter().find(|(_, report)| report.delegate).unwrap_or(&mates[0]);
        let voters = report.voters.iter().map(|number| SiteId::new(site.cluster.0, *number));
        all.extend(voters.filter(|voter| !named.contains(voter)).map(|voter| {
            let name = sites::name(voter);
            format!("{name} has a vote, but is not in sites.toml: `pares site remove {name}`")
        }));
    }
    all
}

fn silent(name: &str) -> Vec<String> {
    let mut row = vec![name.to_owned(), "does not answer".to_owned()];
    row.resize(COLUMNS.len(), "-".to_owned());
    row
}

fn row(report: &SiteReport) -> Vec<String> {
    let role = match report {
        SiteReport { apart: Some(_), .. } => "does not participate",
        SiteReport { recalling: true, .. } => "is reading its log",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_that_is_down_is_told_and_nothing_wrong() {
        let down = Err("refused".to_owned());
        assert!(told(&down).contains("no answer (refused)"));
        assert_eq!(without_register(Some(down)), None);
        let begun = WitnessReport { floor: Some(0), ..WitnessReport::default() };
        assert_eq!(without_register(Some(Ok(begun))), None);
        let lost = without_register(Some(Ok(WitnessReport::default())));
        assert!(lost.unwrap().contains("pares site renew"));
        assert_eq!(without_register(None), None);
    }

    #[test]
    fn voter_missing_from_sites_file_is_named_without_its_delegate() {
        let [first, last] = [SiteId::new(0, 0), SiteId::new(0, 2)];
        let report = |delegate, voters: &[u8]| SiteReport {
            delegate,
            voters: voters.to_vec(),
            ..SiteReport::default()
        };
        let said = |reports: [SiteReport; 2]| {
            let [one, two] = reports;
            unnamed_voters(&[first, last], &[(first, one), (last, two)])
        };
        assert_eq!(said([report(false, &[0, 1, 2]), report(true, &[0, 2])]), Vec::<String>::new());
        assert!(said([report(false, &[]), report(true, &[0, 1, 2])])[0].contains("`pares site remove 0.1`"));
        // The delegate is 0.1 itself, which is not asked.
        assert_eq!(said([report(false, &[0, 1, 2]), report(false, &[0, 1, 2])]).len(), 1);
    }
}
