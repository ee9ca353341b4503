//! TPC-C on real sites, briefly and small: its conditions hold at every site, nothing is lost, and every figure is there.
#![allow(clippy::unwrap_used)] // a test fails by panicking
#![allow(clippy::print_stderr)] // a test that skips says why

use std::process::{Command, Output};

use serde_json::Value;

fn run(arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pares-lab"));
    command.args(arguments.split_whitespace()).output().unwrap()
}

fn tpcc(arguments: &str) -> Option<Value> {
    let small = "--rtt-ms 10 --warehouses 2 --customers 10 --items 100 --clients 6 --seconds 2 --json";
    let output = run(&format!("bench tpcc {small} {arguments}"));
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) {
        eprintln!("left out: {said}");
        return None;
    }
    assert!(output.status.success(), "{arguments}: {said}");
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(figures["consistency"], true, "{figures}");
    for count in ["lost_and_repeated", "sites_differing", "unanswered"] {
        assert_eq!(figures[count], 0, "{count}: {figures}");
    }
    for figure in ["transactions_per_s", "new_orders_per_minute", "cpu_us_per_update", "cpu_us_per_read"] {
        assert!(figures[figure].as_f64() > Some(0.0), "{figure}: {figures}");
    }
    assert!(figures["p50_ms"]["new_order"].as_f64() >= Some(10.0), "a commit takes a round trip: {figures}");
    assert!(figures["p99_ms"]["payment"].as_f64() >= figures["p50_ms"]["payment"].as_f64(), "{figures}");
    Some(figures)
}

#[test]
#[ignore = "all: minutes of load; the conditions are proved in the simulator of sites"]
fn the_conditions_of_tpc_c_hold_at_every_site() {
    let figures = tpcc("--clusters 2 --sites 3 --store redb").unwrap();
    assert_eq!(figures["by_cluster"].as_array().unwrap().len(), 2, "{figures}");
    let figures = tpcc("--clusters 2 --sites 1 --ytd-in-rows").unwrap();
    assert_eq!(figures["year_to_date"], "rows");
}

#[test]
#[ignore = "all: minutes of load; the conditions are proved in the simulator of sites"]
fn they_hold_over_postgresql_too() {
    if let Some(figures) = tpcc("--clusters 2 --sites 1 --store postgres") {
        assert_eq!(figures["store"], "postgres");
    }
}

#[test]
#[ignore = "all: minutes of load; the conditions are proved in the simulator of sites"]
fn processor_times_are_measured_and_the_simulation_takes_them() {
    let dir = tempfile::tempdir().unwrap();
    let figures = tpcc("--clusters 2 --sites 1 --costs").unwrap();
    let of = |kind: &str, what: &str| figures["costs"][kind][what].as_f64().unwrap();
    assert!(of("new_order", "execute_us") > 0.0 && of("payment", "apply_us") > 0.0, "{figures}");
    let (file, out) = (dir.path().join("costs.json"), dir.path().join("results"));
    std::fs::write(&file, figures.to_string()).unwrap();
    let output = run(&format!(
        "experiment wice --quick --seconds 5 --json --costs {} --out {}",
        file.display(),
        out.display()
    ));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = found["wice-costs"]["points"].as_array().unwrap();
    let busy = |point: &Value, costs: &str| point[costs]["C_A"]["processor_percent"].as_f64();
    let safe = points.iter().find(|point| point["clients"] == 4_000 && point["line"] == "WICE").unwrap();
    assert!(busy(safe, "measured") < busy(safe, "paper"), "sites are quicker than the paper's: {safe}");
    let text = std::fs::read_to_string(dir.path().join("results.md")).unwrap();
    assert!(text.contains("<!-- wice-costs -->") && text.contains("| new_order | 11.64 |"), "{text}");
}
