//! Tests of multicast run in a network of their own, where groups reach nobody else.
//!
//! A test starts its own program again under `unshare`, in which it finds itself with a loopback interface that carries groups. Where the
//! system allows no such thing the test is skipped, and says so.

use std::process::{Command, Output};

/// Says that a test runs in a network of its own.
const OWN_NETWORK: &str = "PARES_OWN_NETWORK";
/// Makes loopback carry groups.
const SETUP: &str =
    "ip link set lo up && ip link set lo multicast on && ip route add 239.0.0.0/8 dev lo || exit 77";

/// Whether the test of that name is in a network of its own, and is to continue. If not, it was run in one.
///
/// # Panics
/// If it failed there.
pub fn is_inside(test: &str) -> bool {
    if std::env::var_os(OWN_NETWORK).is_some() {
        return true;
    }
    match run_inside(test) {
        Ok(output) if output.status.success() => {}
        Ok(output) if text(&output.stdout).contains("running 1 test") => {
            panic!("in a network of its own:\n{}{}", text(&output.stdout), text(&output.stderr))
        }
        _ => println!("skipped: this system makes no network for a test"),
    }
    false
}

fn run_inside(test: &str) -> std::io::Result<Output> {
    let run = format!("{SETUP}; exec \"$0\" --exact {test} --nocapture");
    let mut command = Command::new("unshare");
    command.args(["--net", "--map-root-user", "sh", "-c", &run]);
    command.arg(std::env::current_exe()?).env(OWN_NETWORK, "1").output()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
