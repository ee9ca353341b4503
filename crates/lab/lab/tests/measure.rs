//! What measures runs, prints one JSON object and leaves its files; what it measures is not judged here.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::process::Command;

use serde_json::Value;

fn pares(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_pares-lab")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn the_sequencer_is_measured_alone_and_against_another_process() {
    let found = pares(&["bench", "sequencer", "--seconds", "1", "--json"]);
    let figures = found["figures"].as_array().unwrap();
    assert_eq!(figures.len(), 8);
    assert!(figures.iter().all(|line| line["positions"].as_u64() > Some(0)));
    let alone = figures.iter().filter(|line| line["processes"] == 1);
    assert!(alone.map(|line| &line["won_share"]).all(|share| *share == 1.0));
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn the_journal_is_measured_beside_raw_writes() {
    let (dir, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let [within, out] =
        [dir.path(), &out.path().join("results")].map(|path| path.to_str().unwrap().to_owned());
    let arguments = ["experiment", "journal", "--quick", "--dir", &within, "--out", &out, "--json"];
    let found = &pares(&arguments)["journal"]["beside_raw"];
    assert_eq!(found["append"]["log"]["count"], 10_000);
    assert_eq!(found["append"]["raw"]["count"], 10_000);
    assert_eq!(found["round_trip"]["count"], 10_000);
    assert!(found["rolls"]["rolls"]["count"].as_u64() > Some(0));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn an_experiment_leaves_its_chart_its_data_and_its_section() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    std::fs::write(dir.path().join("results.md"), "# Results\n\nkept\n").unwrap();
    let found = pares(&["experiment", "fig3", "--quick", "--json", "--out", out.to_str().unwrap()]);
    assert!(found["fig3"]["resync_ms"].as_f64() > Some(0.0));
    let text = std::fs::read_to_string(dir.path().join("results.md")).unwrap();
    assert!(text.starts_with("# Results\n\nkept\n\n<!-- fig3 -->"));
    assert!(std::fs::read_to_string(out.join("fig3.svg")).unwrap().contains("<text"));
    // How many tenths of a second there are is how long a loaded machine took: a head and one of them.
    assert!(std::fs::read_to_string(out.join("fig3.csv")).unwrap().lines().count() > 1);
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn the_papers_figures_of_a_members_traders_are_drawn_and_tabled() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let found = &pares(&["experiment", "swx", "--quick", "--json", "--out", out.to_str().unwrap()])["swx"];
    let all = |of: &str, holds: &dyn Fn(&Value) -> bool| found[of].as_array().unwrap().iter().all(holds);
    let counted = |of: &str| found[of].as_array().unwrap().len();
    assert_eq!(["rates", "others", "filled"].map(counted), [4, 4, 6], "{found}");
    let is_some = |value: &Value| value.as_f64() > Some(0.0);
    let all_receive = |point: &Value| point["received"].as_array().unwrap().iter().all(is_some);
    assert!(all("rates", &|point| is_some(&point["emitted"]) && all_receive(point)), "{found}");
    assert!(
        all("others", &|state| is_some(&state["quick"]) && is_some(&state["delays"]["messages"])),
        "{found}"
    );
    assert_eq!(
        (&found["others"][2]["others"], &found["others"][2]["other"]),
        (&"are stopped".into(), &0.0.into())
    );
    let is_whole = |stretch: &Value| is_some(&stretch["messages"]) && is_some(&stretch["p99_us"]);
    assert!(
        all("filled", &|way| is_whole(&way["before"])) && is_whole(&found["filled"][2]["during"]),
        "{found}"
    );
    let text = std::fs::read_to_string(dir.path().join("results.md")).unwrap();
    for file in ["swx4", "swx5", "swx6", "swx7", "swx8", "swx8-gib"] {
        assert!(
            text.contains(&format!("(results/{file}.svg)"))
                && text.contains(&format!("(results/{file}.csv)"))
        );
        assert!(std::fs::read_to_string(out.join(file).with_extension("svg")).unwrap().contains("<text"));
        let data = std::fs::read_to_string(out.join(file).with_extension("csv")).unwrap();
        assert!(data.lines().count() > 2 && !data.contains("NaN"), "{data}");
    }
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn paper_4_figures_are_drawn_and_every_log_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("results");
    let found = &pares(&["experiment", "daytrading", "--quick", "--json", "--out", out.to_str().unwrap()]);
    let found = &found["daytrading"];
    let list = |of: &str| found[of].as_array().unwrap();
    assert_eq!(["runs", "desks", "workers"].map(|of| list(of).len()), [12, 10, 5], "{found}");
    for run in list("runs") {
        let figures = &run["figures"];
        assert_eq!((&figures["audit_verified"], &figures["conserved"]), (&true.into(), &true.into()));
        let asked_once = figures["hits"].as_u64().unwrap() - figures["hedges"].as_u64().unwrap();
        assert!(figures["commands"].as_u64() >= Some(2_500) && asked_once >= 25, "{figures}");
    }
    let text = std::fs::read_to_string(dir.path().join("results.md")).unwrap();
    for file in ["daytrading", "daytrading2", "daytrading3", "daytrading4", "daytrading5"] {
        assert!(text.contains(&format!("(results/{file}.svg)")));
        let data = std::fs::read_to_string(out.join(file).with_extension("csv")).unwrap();
        assert!(data.lines().count() > 2 && !data.contains("NaN"), "{data}");
    }
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn everything_is_killed_and_every_old_name_has_its_old_answer() {
    let arguments =
        "drill kill-everything --count 1 --rate 1000 --symbols 3 --records 5000 --check 5000 --json";
    let found = &pares(&arguments.split(' ').collect::<Vec<_>>())["start"];
    assert_eq!((&found["lost"], &found["halted_shards"]), (&0.into(), &0.into()));
    assert!(found["checked"].as_u64() >= Some(4_000), "{found}");
}

/// Runs a command: it counts nothing of what would be wrong, and has these figures.
fn measured(command: &str, wrong: &[&str], figures: &[&str]) -> Value {
    let found = pares(&command.split(' ').chain(["--json"]).collect::<Vec<_>>());
    for name in wrong {
        assert_eq!(found[name], 0, "{name}: {found}");
    }
    for name in figures {
        assert!(found[name].as_f64() > Some(0.0), "{name}: {found}");
    }
    found
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn the_kill_switch_cancels_everything_of_a_throttled_member() {
    let found = measured("bench kill-switch --orders 500 --rounds 2", &["untold"], &["orders"]);
    assert!(found["throttled"].as_u64() >= Some(300), "{found}");
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn records_come_to_a_mirror() {
    let command = "bench mirror --records 20000 --delays 50 --rate 500";
    measured(command, &[], &["mirror_records_per_s", "mirror_p50_us", "mirror_p99_us"]);
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn fix_measured_beside_own_protocol_and_echo() {
    let own = ["new_order_ns", "report_ns", "orders_per_s", "p50_us", "p99_us", "echo_p50_us"];
    let beside = ["binary_orders_per_s", "binary_p50_us", "binary_p99_us"];
    let command = "bench entry --protocol fix --seconds 1 --connections 2 --in-flight 64";
    measured(command, &["lost", "rejected"], &[&own[..], &beside].concat());
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn checkpoints_are_seen_under_way_and_a_killed_venue_joins() {
    let small = "--state-mib 2 --symbols 20 --shards 2 --rate 5000 --rounds 1 --quiet-seconds 1";
    let figures = ["state_mib", "checkpoints", "checkpoint_mib", "join_ms"];
    measured(&format!("bench checkpoint {small}"), &["lost", "checkpoint_failures"], &figures);
}

#[test]
#[ignore = "all: runs benchmarks; judges only that they end and name their figures"]
fn twice_the_highest_rate_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let command = format!("drill flood --minutes 0.2 --dir {}", dir.path().display());
    let figures =
        ["highest_rate", "due_rate", "offered_rate", "answered_rate", "p50_us", "p99_us", "answer_ns"];
    let found = measured(&command, &["lost", "duplicated"], &figures);
    assert_eq!(found["anon_kib_end"].as_object().unwrap().len(), 5, "every node is looked at: {found}");
}
