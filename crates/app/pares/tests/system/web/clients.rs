//! Programs that we did not write, made from the published document: requests at random, and typed clients that trade.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pares_testbed::registries::{answers, name_of, node_with, python_with};

use super::support::{Asker, serving};
use crate::common::exchange::small;

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const PYTHON_CLIENT: &str = "openapi-python-client==0.29.1";
const TYPESCRIPT: [&str; 4] =
    ["openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.0"];
/// Whether the server does what its document says. Not that it accepts all that fits the document: symbols and prices are judged by the rules.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,ignored_auth,unsupported_method,negative_data_rejection";

/// The folder of what is installed for that.
pub(crate) const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");

/// What a command printed, which must succeed.
fn done(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let said = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{said}");
    said.into_owned()
}

/// A Python environment with a package that has a program of its name: where its programs are.
fn program_of(package: &str) -> Option<PathBuf> {
    let is_there = |bin: &Path| answers(Command::new(bin.join(name_of(package))).arg("--help"));
    python_with(Path::new(FOLDER), package, is_there)
}

/// A file of the project.
pub(super) fn published(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(name)
}

#[test]
#[ignore = "all: searches requests"]
fn whatever_schemathesis_sends_is_answered_as_the_document_says() {
    let Some(programs) = program_of(SCHEMATHESIS) else { return };
    let (_exchange, web) = serving(&small(1));
    let asker = Asker::open(&web.address, 7);
    let scratch = tempfile::tempdir().unwrap();
    let said = done(
        Command::new(programs.join("schemathesis"))
            .args(["run", &format!("http://{}/v1/openapi.json", web.address), "--checks", CHECKS])
            .args(["--header", &format!("Authorization: Bearer {}", asker.token.unwrap())])
            .args(["--phases", "coverage,fuzzing", "--max-examples", "20", "--seed", "1"])
            // The one is a WebSocket, the other ends the session that is used.
            .args(["--exclude-path", "/v1/socket", "--exclude-path", "/v1/session"])
            .current_dir(scratch.path()),
    );
    assert!(said.contains("Tested: 30"), "{said}");
}

#[test]
#[ignore = "all: programs of others, installed from a registry"]
fn a_python_client_made_of_the_document_trades() {
    let Some(programs) = program_of(PYTHON_CLIENT) else { return };
    let (_exchange, web) = serving(&small(1));
    let scratch = tempfile::tempdir().unwrap();
    done(
        Command::new(programs.join("openapi-python-client"))
            .args(["generate", "--meta", "none", "--fail-on-warning", "--path"])
            .arg(published("docs/protocols/http-openapi.json"))
            .arg("--output-path")
            .arg(scratch.path().join("pares_exchange"))
            // It has a formatter run, which lies beside it.
            .env("PATH", programs.as_os_str()),
    );
    let said = done(
        Command::new(programs.join("python"))
            .arg(published("tests/http-clients/trade.py"))
            .arg(format!("http://{}", web.address))
            .env("PYTHONPATH", scratch.path()),
    );
    assert!(said.ends_with("traded\n"), "{said}");
}

#[test]
#[ignore = "all: programs of others, installed from a registry"]
fn a_typescript_client_made_of_the_document_trades() {
    let is_there = |dir: &Path| answers(Command::new(dir.join("node_modules/.bin/tsc")).arg("--version"));
    let dir = Path::new(FOLDER).join("openapi-typescript");
    let Some(dir) = node_with(dir, &TYPESCRIPT, is_there) else { return };
    let (_exchange, web) = serving(&small(1));
    let program = |name: &str| Command::new(dir.join("node_modules/.bin").join(name));
    let document = published("docs/protocols/http-openapi.json");
    done(program("openapi-typescript").arg(document).arg("-o").arg(dir.join("api.ts")));
    std::fs::copy(published("tests/http-clients/trade.ts"), dir.join("trade.ts")).unwrap();
    std::fs::write(dir.join("package.json"), r#"{ "type": "module" }"#).unwrap();
    done(
        program("tsc")
            .args(["--strict", "--target", "es2022", "--module", "nodenext", "trade.ts"])
            .current_dir(&dir),
    );
    let said = done(Command::new("node").arg(dir.join("trade.js")).arg(format!("http://{}", web.address)));
    assert!(said.ends_with("traded\n"), "{said}");
}
