//! Two operators who declare each other's cluster lost, with a witness and without.

use super::*;

/// A process that is the witness.
fn witness(dir: &Path) -> Running {
    start_after("", "witness", dir)
}

#[test]
fn witness_register_single_process_damaged_needs_renewal() {
    let scratch = tempfile::tempdir().unwrap();
    let [dir, other] = ["sites", "other"].map(|name| scratch.path().join(name));
    site("init --sites 1 --durability os --witness", &dir).unwrap();
    let running = witness(&dir);
    eventually("it has a register", || dir.join("witness/register").exists());
    std::fs::create_dir(&other).unwrap();
    for name in ["sites.toml", "tls", "witness"] {
        std::os::unix::fs::symlink(dir.join(name), other.join(name)).unwrap();
    }
    let said = site("witness", &other).unwrap_err();
    assert!(said.contains("another process runs the witness"), "{said}");
    drop(running);
    let mut register = std::fs::read(dir.join("witness/register")).unwrap();
    *register.last_mut().unwrap() ^= 1;
    std::fs::write(dir.join("witness/register"), register).unwrap();
    let ended = output("witness", &dir);
    assert_eq!(ended.status, Some(6));
    assert!(ended.complaint.contains("pares site renew"), "{ended:?}");
}

/// Writes where the first cluster reaches the second: there, or nowhere.
fn reach(config: &SitesConfig, is_cut: bool, dir: &Path) {
    let mut config = config.clone();
    config.sites[1].far = is_cut.then(|| "127.0.0.1:1".parse().unwrap());
    std::fs::write(dir.join("sites.toml"), config.to_text()).unwrap();
}

/// The files of another operator, who does not hear the first cluster.
fn operate_elsewhere(config: &SitesConfig, dir: &Path, elsewhere: &Path) {
    std::fs::create_dir(elsewhere).unwrap();
    std::os::unix::fs::symlink(dir.join("tls"), elsewhere.join("tls")).unwrap();
    let mut config = config.clone();
    config.sites[0].clients = "127.0.0.1:1".parse().unwrap();
    std::fs::write(elsewhere.join("sites.toml"), config.to_text()).unwrap();
}

#[test]
fn witness_lets_one_of_two_rival_operators_continue() {
    let scratch = tempfile::tempdir().unwrap();
    let [dir, elsewhere] = ["sites", "elsewhere"].map(|name| scratch.path().join(name));
    site("init --sites 1 --durability os --witness", &dir).unwrap();
    let config = SitesConfig::load(&dir).unwrap();
    operate_elsewhere(&config, &dir, &elsewhere);
    let third = witness(&dir);
    let here = start("0.0", &dir);
    let there = start("1.0", &dir);
    site("execute add alice 100", &dir).unwrap();
    eventually("all is well", || output("status", &dir).is_ok());
    drop(here);
    reach(&config, true, &dir);
    let here = start("0.0", &dir);
    eventually("0.0 answers", || status(&dir).iter().any(|report| report["site"] == "0.0"));
    drop(third);
    let said = site("lost 1 --yes --patience 3", &dir).unwrap_err();
    assert!(said.contains("the witness does not answer") && said.contains("--without-witness"), "{said}");
    let third = witness(&dir);
    site("lost 1 --yes", &dir).unwrap();
    let said = site("lost 0 --yes", &elsewhere).unwrap_err();
    assert!(said.contains("granted cluster 0 to continue without cluster 1"), "{said}");
    let said = site("lost 0 --yes --without-witness", &elsewhere).unwrap_err();
    assert!(said.contains("its decision counts"), "{said}");
    assert_eq!(site("execute --site 0.0 transfer alice bob 30", &dir).unwrap(), "alice has 70 left");
    drop(here);
    reach(&config, false, &dir);
    let _here = start("0.0", &dir);
    // 1.0 alone still counts itself live.
    let knows = |report: &Value| report["site"] == "0.0" && report["live"] == serde_json::json!([0]);
    eventually("0.0 answers", || status(&dir).iter().any(knows));
    site("admit 1", &dir).unwrap();
    assert_eq!(site("read --site 1.0 --latest get alice", &dir).unwrap(), "70", "one history");

    drop(third);
    std::fs::remove_dir_all(dir.join("witness")).unwrap();
    let third = witness(&dir);
    let said = site("lost 1 --yes", &dir).unwrap_err();
    assert!(said.contains("no register"), "{said}");
    eventually("it wants attention", || output("status", &dir).status == Some(4));
    site("renew", &dir).unwrap();
    assert!(site("renew", &dir).unwrap_err().contains("has a register"));
    eventually("all is well again", || output("status", &dir).is_ok());
    drop(there);
    site("lost 1 --yes", &dir).unwrap();
    assert_eq!(site("execute --site 0.0 transfer alice bob 30", &dir).unwrap(), "alice has 40 left");
    let there = start("1.0", &dir);
    site("admit 1", &dir).unwrap();
    drop(there);
    third.signal(Signal::STOP);
    let said = site("lost 1 --yes --without-witness --patience 5", &dir).unwrap_err();
    assert!(said.contains("something listens at its address"), "a slow one may grant it yet: {said}");
    drop(third);
    site("lost 1 --yes --without-witness", &dir).unwrap();
    assert_eq!(site("execute --site 0.0 transfer alice bob 30", &dir).unwrap(), "alice has 10 left");
}

#[test]
fn two_operators_without_witness_make_two_histories() {
    let scratch = tempfile::tempdir().unwrap();
    let [dir, elsewhere] = ["sites", "elsewhere"].map(|name| scratch.path().join(name));
    site("init --sites 1 --durability os", &dir).unwrap();
    let config = SitesConfig::load(&dir).unwrap();
    operate_elsewhere(&config, &dir, &elsewhere);
    let here = start("0.0", &dir);
    let _there = start("1.0", &dir);
    eventually("all is well", || output("status", &dir).is_ok());
    drop(here);
    reach(&config, true, &dir);
    let _here = start("0.0", &dir);
    site("lost 1 --yes", &dir).unwrap();
    let ends_with_two = |command: &str| {
        let output = output(command, &dir);
        let said = output.complaint;
        assert_eq!(output.status, Some(4), "{command}: {said}");
        assert!(said.contains("two histories: 0.0 is in era") && said.contains("; 1.0 is in era"), "{said}");
        said
    };
    let said = site("lost 0 --yes", &dir).unwrap_err();
    assert!(said.contains("no cluster would be left"), "one who hears both: {said}");
    site("lost 0 --yes", &elsewhere).unwrap();
    eventually("both are heard", || status(&dir).len() == 2);
    ends_with_two("status");
    let said = ends_with_two("admit 1 --patience 1");
    assert!(said.contains("not within 1s"), "by its own word it is among the living: {said}");
}
