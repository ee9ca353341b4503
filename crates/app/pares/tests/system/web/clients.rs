//! Requests made up from the published document, by a program that we did not write.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::support::{Asker, Web};
use crate::common::exchange::{Exchange, small};

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// Whether the server does what its document says. Not that it accepts all that fits the document: symbols and prices are judged by the rules.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,ignored_auth,unsupported_method,negative_data_rejection";

/// Schemathesis in a Python environment of its own, where Python and its index are at hand.
fn schemathesis() -> Option<PathBuf> {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("schemathesis");
    let program = dir.join("bin/schemathesis");
    let answers = |command: &mut Command| {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let is_there = || answers(Command::new(&program).arg("--help"));
    let made = is_there()
        || answers(Command::new("python3").args(["-m", "venv"]).arg(&dir))
            && answers(Command::new(dir.join("bin/python")).args([
                "-m",
                "pip",
                "install",
                "--quiet",
                SCHEMATHESIS,
            ]))
            && is_there();
    made.then_some(program)
}

#[test]
fn whatever_schemathesis_sends_is_answered_as_the_document_says() {
    let Some(program) = schemathesis() else {
        println!("skipped: {SCHEMATHESIS} cannot be installed");
        return;
    };
    let exchange = Exchange::start(&small(1));
    let web = Web::start(exchange.layout().root());
    let asker = Asker::open(&web.address, 7);
    let scratch = tempfile::tempdir().unwrap();
    let output = Command::new(program)
        .args(["run", &format!("http://{}/v1/openapi.json", web.address), "--checks", CHECKS])
        .args(["--header", &format!("Authorization: Bearer {}", asker.token.unwrap())])
        .args(["--phases", "coverage,fuzzing", "--max-examples", "20", "--seed", "1"])
        // The one is a WebSocket, the other ends the session that is used.
        .args(["--exclude-path", "/v1/socket", "--exclude-path", "/v1/session"])
        .current_dir(scratch.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("Tested: 26"), "{said}");
}
