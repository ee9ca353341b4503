//! Clients that are not ours: one that is generated from the document and used, and one that tries everything that the document allows, and what it does not.
//!
//! Both come from PyPI, into folders of their own below `target`. Where that cannot be, a test says so and is not done.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too
#![allow(clippy::print_stderr)] // a test that skips says why

#[path = "../../examples/pages/stand_in.rs"]
mod stand_in;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pares_broker::PersonRight;
use pares_web::{Allowance, WebServer, WebSettings, WebTransport, add_person};
use stand_in::MemoryBroker;

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
const GENERATOR: &str = "openapi-python-client==0.29.1";
const PASSWORD: &str = "correct horse";

/// A server with a person who may do everything.
async fn serve() -> SocketAddr {
    let much = Allowance { burst: 1e6, per_second: 1.0 };
    let settings = WebSettings {
        commands: much,
        reads: much,
        sign_ins: much,
        callers: much,
        password_cost: (8, 1),
        ..WebSettings::default()
    };
    let broker = MemoryBroker::new(settings.clock.clone());
    add_person(&broker, &settings, "boss", PASSWORD, &PersonRight::ALL).await.unwrap();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = WebServer::bind(any, WebTransport::Loopback, broker, settings).await.unwrap();
    let address = server.address();
    tokio::spawn(server.run());
    address
}

/// The programs of a Python environment that has `package`.
fn programs(package: &str) -> Option<PathBuf> {
    let name = package.split('=').next().unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let programs = dir.join("bin");
    let answers = |command: &mut Command| {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    let is_there = || answers(Command::new(programs.join(name)).arg("--help"));
    if is_there()
        || answers(Command::new("python3").args(["-m", "venv"]).arg(&dir))
            && answers(
                Command::new(programs.join("python")).args(["-m", "pip", "install", "--quiet", package]),
            )
            && is_there()
    {
        return Some(programs);
    }
    eprintln!("skipped: {package} cannot be installed; it needs Python 3 with venv, and PyPI");
    None
}

fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

/// Signs in, and prints the token.
const SIGN_IN: &str = "
import json, sys, urllib.request
body = json.dumps({'name': 'boss', 'password': sys.argv[2]}).encode()
request = urllib.request.Request(sys.argv[1] + '/api/v1/session', body, {'Content-Type': 'application/json'})
print(json.load(urllib.request.urlopen(request))['token'])
";

/// Checks that say whether the server does what its document says. Not that it accepts all that fits the document: amounts and symbols are judged by the rules.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance,ignored_auth,unsupported_method,negative_data_rejection";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "all: a program of others, installed from a registry"]
async fn whatever_schemathesis_sends_is_answered_as_the_document_says() {
    let at = format!("http://{}", serve().await);
    let tried = tokio::task::spawn_blocking(move || {
        let Some(programs) = programs(SCHEMATHESIS) else { return };
        let token = run(Command::new(programs.join("python")).args(["-c", SIGN_IN, &at, PASSWORD]));
        let scratch = tempfile::tempdir().unwrap();
        let said = run(Command::new(programs.join("schemathesis"))
            .args(["run", &format!("{at}/api/v1/openapi.json"), "--checks", CHECKS])
            .args(["--header", &format!("Authorization: Bearer {}", token.trim())])
            .args(["--phases", "coverage,fuzzing", "--max-examples", "20", "--seed", "1"])
            // The one is a WebSocket, the others end the session that is used.
            .args(["--exclude-path", "/api/v1/notices", "--exclude-method", "DELETE"])
            .current_dir(scratch.path()));
        assert!(said.contains("Tested: 23"), "{said}");
    });
    tried.await.unwrap();
}

/// A day of a customer's, by the client that is generated.
const DAY: &str = "
import sys
from broker import AuthenticatedClient, Client
from broker.api.account import account
from broker.api.commands import command
from broker.api.history import history
from broker.api.orders import cancel, list_, one, place
from broker.api.people import sign_in, sign_up
from broker.models import Fields, OrderWanted, Side, SignIn, SignUp

anybody = Client(base_url=sys.argv[1])
assert sign_up.sync(client=anybody, body=SignUp(name='ann', password=sys.argv[2])).name == 'ann'
session = sign_in.sync(client=anybody, body=SignIn(name='ann', password=sys.argv[2]))
ann = AuthenticatedClient(base_url=sys.argv[1], token=session.token)
told = command.sync('add', client=ann, body=Fields(amount='1000.00'), idempotency_key='first')
assert told.outcome.cash == '1000.00', told
told = command.sync('buy', client=ann, body=Fields(symbol='ABC', amount='900.00'))
assert told.outcome.shares >= 1, told
assert command.sync('commit-buy', client=ann, body=Fields()).outcome.symbol == 'ABC'
refused = command.sync('buy', client=ann, body=Fields(symbol='ABC', amount='900.00'))
assert (refused.status, refused.reason, refused.code) == (422, 'insufficient-cash', 13), refused
assert account.sync(client=ann).holdings[0].symbol == 'ABC'
entries = history.sync(client=ann, limit=10).entries
assert [entry.command for entry in entries] == ['buy', 'commit-buy', 'buy', 'add'], entries
wanted = OrderWanted(symbol='ABC', side=Side.BUY, shares=1, limit='0.01')
number = place.sync(client=ann, body=wanted, idempotency_key='order').number
assert place.sync(client=ann, body=wanted, idempotency_key='order').number == number
assert [order.number for order in list_.sync(client=ann, open_=True).orders] == [number]
assert one.sync(number, client=ann).held == '0.01'
assert cancel.sync(number, client=ann).state == 'cancelled'
assert one.sync('7', client=ann).reason == 'no-order'
print('done')
";

#[tokio::test(flavor = "multi_thread")]
#[ignore = "all: a program of others, installed from a registry"]
async fn a_client_that_is_generated_from_the_document_trades() {
    let at = format!("http://{}", serve().await);
    let tried = tokio::task::spawn_blocking(move || {
        let Some(programs) = programs(GENERATOR) else { return };
        let scratch = tempfile::tempdir().unwrap();
        let url = format!("{at}/api/v1/openapi.json");
        run(Command::new(programs.join("openapi-python-client"))
            .args(["generate", "--url", &url, "--meta", "none", "--output-path", "broker"])
            .current_dir(scratch.path()));
        let day = Command::new(programs.join("python"))
            .args(["-c", DAY, &at, PASSWORD])
            .current_dir(scratch.path())
            .output();
        let day = day.unwrap();
        let found = String::from_utf8_lossy(&day.stdout);
        assert_eq!(found, "done\n", "{}", String::from_utf8_lossy(&day.stderr));
    });
    tried.await.unwrap();
}
