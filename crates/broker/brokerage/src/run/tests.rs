//! Workloads through a site, with a server that misbehaves; the log at the end says all of it.

use super::*;
use crate::generate;

fn args(file: PathBuf, bad_per_mille: u64) -> Args {
    let behaviour = Behaviour::instant(7, bad_per_mille);
    let logs = Some(file.with_extension("logs"));
    Args { file, durability: Promise::Os, quote_server: None, behaviour, window: 500, logs, json: false }
}

#[test]
fn what_a_workload_does_is_in_its_log_whole_though_the_quote_server_misbehaves() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload");
    generate::run(&generate::Args::of(&file, 3_000, 12, 40)).unwrap();
    for bad_per_mille in [0, 150] {
        let args = args(file.clone(), bad_per_mille);
        let figures = measure(&args).unwrap();
        assert!(figures.audit_verified && figures.conserved, "{figures:?}");
        assert_eq!((figures.commands, figures.unreadable, figures.users), (3_000, 0, 12));
        assert!(figures.refused > 500 && figures.done > 500, "{figures:?}");
        assert_eq!(figures.quote_faults > 0, bad_per_mille > 0, "{figures:?}");
        assert!(figures.hits >= 40 && figures.elements["accountTransaction"] > 100, "{figures:?}");
        let log = args.logs.unwrap().join("testLOG");
        assert_eq!(audit::replay(&log).unwrap().count("userCommand"), 3_000, "the dump that was commanded");
        let broken = dir.path().join("broken");
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::write(&broken, text.replacen("<action>add<", "<action>remove<", 1)).unwrap();
        assert!(audit::run(&audit::Args::of(&broken)).is_err());
        audit::run(&audit::Args::of(&log)).unwrap();
    }
}

#[test]
fn a_workload_of_anything_ends_and_every_line_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("workload");
    let lines = "[1] ADD,jo,10.00\nnothing\n\n[2] STEAL,jo\n\u{fe}\n[3] BUY,jo,S,0.00\n[4] COMMIT_BUY,\n\
                 [5] DUMPLOG,jo,../../jo.xml\n[6] DUMPLOG,../..\n[7] QUOTE,al,ZZ";
    std::fs::write(&file, lines).unwrap();
    let args = args(file, 0);
    let figures = measure(&args).unwrap();
    assert!(figures.audit_verified && figures.conserved, "{figures:?}");
    assert_eq!((figures.commands, figures.unreadable, figures.refused), (6, 3, 3), "{figures:?}");
    let names = std::fs::read_dir(args.logs.unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["audit.xml", "jo.xml"], "in the folder of logs, and nowhere else");
}
