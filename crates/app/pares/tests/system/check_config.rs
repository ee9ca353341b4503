//! `pares check-config`, and the file that a new system is given.

use std::path::Path;

use pares_node::SystemConfig;
use serde_json::Value;

use crate::common::process::{Ran, pares, run};

fn check(file: &Path) -> Ran {
    run(&format!("check-config {}", file.display()))
}

/// What it finds, and what it says of a setting.
fn checked(file: &Path) -> (Value, impl Fn(&str) -> Value) {
    let told = run(&format!("check-config {} --json", file.display())).json();
    let points = told["points"].as_array().unwrap().clone();
    (told, move |setting: &str| points.iter().find(|point| point["setting"] == setting).unwrap().clone())
}

#[test]
fn a_sites_toml_is_known_for_what_it_describes_and_checked() {
    let dir = tempfile::tempdir().unwrap();
    let system = dir.path().join("sites");
    let init = pares(&system, "site init --clusters 1 --sites 1 --no-tls").done();
    assert!(init.contains(": 1 cluster of 1 site. "), "{init}");
    let file = system.join("sites.toml");
    let (told, of) = checked(&file);
    assert!(told["what"].as_str().unwrap().ends_with("1 site in 1 cluster"), "{told}");
    let looks = |setting: &str| of(setting)["safe"] == false;
    assert!(looks("[[site]]") && looks("clusters") && !looks("durability") && !looks("witness"), "{told}");
    assert!(of("tls")["why"].as_str().unwrap().contains("on this machine"), "{told}");
    assert!(check(&system).is_ok(), "the directory of it will do");
    let renamed = dir.path().join("other.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&renamed, text.replace("number = 0", "number = 9")).unwrap();
    let refused = check(&renamed).complaint;
    assert!(refused.contains("other.toml") && refused.contains("numbers from 0 to 8"), "{refused}");
}

#[test]
fn legal_config_is_reviewed_illegal_one_names_setting() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pares.toml");
    std::fs::write(&file, SystemConfig::fresh().text()).unwrap();
    let (_, of) = checked(&file);
    assert_eq!((&of("durability")["in_force"], &of("durability")["safe"]), (&"disk".into(), &true.into()));
    assert_eq!(of("session_rate_max")["safe"], true);
    // One disk for both, and one recorder's disk is enough to lose.
    assert_eq!((&of("recorders' disks")["safe"], &of("quorum")["safe"]), (&false.into(), &false.into()));
    assert!(check(&file).out.contains("LOOK  quorum = 1 of 2 recorders"));

    assert_eq!(of("tap")["safe"], false);
    // Both are fine, and the words say why, and not what the other setting would do.
    let why = |setting: &str| of(setting)["why"].as_str().unwrap().to_owned();
    assert!(why("tls").contains("every port is on this machine"), "{}", why("tls"));
    assert!(why("client_certificates").starts_with("none is asked for"));

    let exposed = "gateways = [\"127.0.0.1:0\"]\nfix = [\"0.0.0.0:0\"]\ngateways_exposed = true\ntap = true";
    std::fs::write(&file, exposed).unwrap();
    let told = check(&file).out;
    assert!(told.contains("LOOK  gateways, fix, ouch = 1 of 2 ports beyond this machine"), "{told}");
    assert!(told.contains("ok    tap = on, "), "{told}");
    assert!(told.contains("LOOK  tls = off\n      without it, anyone"), "{told}");

    let lanes = |second: &str| {
        format!(
            "venues = 3\n[[lanes]]\nshards = [0, 1, 2, 3, 4]\nvenues = [0, 1]\n[[lanes]]\nshards = [{second}]\nvenues = [2]\n"
        )
    };
    std::fs::write(&file, lanes("5, 6, 7, 8, 9")).unwrap();
    let told = check(&file).out;
    assert!(told.contains("LOOK  lanes = 2; of one venue: lane 2"), "{told}");
    std::fs::write(&file, lanes("4, 5, 6, 7, 8, 9")).unwrap();
    let refused = check(&file).complaint;
    assert!(refused.contains("lane 2 of the file: shard 4 is in a lane already"), "{refused}");
    std::fs::write(&file, exposed).unwrap();

    assert!(check(dir.path()).is_ok(), "the directory of it will do");
    std::fs::write(&file, "quorum = 3").unwrap();
    let refused = check(&file);
    assert!(!refused.is_ok() && refused.complaint.contains("`quorum`"), "{refused:?}");
}
