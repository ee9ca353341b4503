//! Drivers that are not ours, at the pinned versions: their pools and pipelines.

use std::path::Path;

use pares_testbed::registries::{answers, node_with, python_with};

use super::*;

const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");
const ASYNCPG: &str = "asyncpg==0.32.0";
const PSYCOPG: &str = "psycopg[binary]==3.3.9";
const POSTGRES_JS: &str = "postgres@3.4.9";

/// Runs a program of `tests/sql-clients` against a site; the program must print that it is done.
fn runs(mut program: Command, script: &Path) {
    let Some(sites) = Sites::start_over(Engine::Postgres, 1, 1) else { return };
    drop(sites.sql(A0));
    let address = sites.sql_address(A0);
    program.arg(script).args([address.ip().to_string(), address.port().to_string()]);
    let output = program.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.starts_with("done\n"), "{said}");
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/sql-clients").join(name)
}

/// Runs a script with that package of PyPI.
fn runs_with(package: &str, module: &str, name: &str) {
    let import = format!("import {module}");
    let imports = |bin: &Path| answers(Command::new(bin.join("python")).args(["-c", &import]));
    let Some(bin) = python_with(Path::new(FOLDER), package, imports) else { return };
    runs(Command::new(bin.join("python")), &script(name));
}

#[test]
#[ignore = "all: programs of others, installed from a registry"]
fn pool_of_asyncpg_reuses_its_connections() {
    runs_with(ASYNCPG, "asyncpg", "asyncpg_pool.py");
}

#[test]
#[ignore = "all: programs of others, installed from a registry"]
fn pipelines_of_psycopg_continue_behind_a_reset() {
    runs_with(PSYCOPG, "psycopg", "psycopg_pipeline.py");
}

#[test]
#[ignore = "all: programs of others, installed from a registry"]
fn postgres_js_continues_behind_a_reset() {
    let is_there = |dir: &Path| dir.join("node_modules/postgres/package.json").exists();
    let dir = Path::new(FOLDER).join("postgres-js");
    let Some(dir) = node_with(dir, &[POSTGRES_JS], is_there) else { return };
    // A module is looked for from where its user lies.
    let copy = dir.join("postgres_js.mjs");
    std::fs::copy(script("postgres_js.mjs"), &copy).unwrap();
    runs(Command::new("node"), &copy);
}
