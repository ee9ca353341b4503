//! What those need who see little, use no mouse, or have a phone: axe-core's rules, and a phone's width.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::{Tab, target};

/// Which axe-core is asked. Fixed, so that a new rule of another version breaks nothing by itself.
pub const AXE: &str = "axe-core@4.14.1";

/// What axe finds on the page as it is now.
pub async fn violations(page: &Tab, axe: &str) -> Vec<String> {
    page.script(axe, Value::Null).await;
    let script = "const done = arguments[1]; axe.run(document).then((found) => done(found.violations.map((one) => \
                  `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html + ' ' + node.failureSummary).join('; ')}`)), \
                  (error) => done([String(error)]))";
    let found = page.script_ends(script, Value::Null).await;
    found.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// The text of axe-core, fetched once; none if it cannot be had from npm.
#[must_use]
pub fn axe() -> Option<String> {
    let folder = target().join("axe");
    let script: PathBuf = folder.join("package").join("axe.min.js");
    if !script.exists() {
        std::fs::create_dir_all(&folder).ok()?;
        let quietly = |command: &mut Command| {
            command
                .current_dir(&folder)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
        };
        quietly(Command::new("npm").args(["pack", AXE])).ok().filter(|status| status.success())?;
        let packed = format!("{}.tgz", AXE.replace('@', "-"));
        quietly(Command::new("tar").args(["xzf", &packed])).ok().filter(|status| status.success())?;
    }
    std::fs::read_to_string(script).ok()
}

/// Checks that a page is no wider than the screen, and has nothing too small to hit.
pub async fn fits(page: &Tab, name: &str) {
    let wide = page.script("return [document.documentElement.scrollWidth, innerWidth]", Value::Null).await;
    assert!(wide[0].as_u64() <= wide[1].as_u64(), "{name} is wider than the screen: {wide}");
    // What a finger has to hit is 24 pixels high and wide at least (WCAG 2.2).
    let small = "return [...document.querySelectorAll('button, nav a, input, select')].filter((one) => one.offsetParent && \
                 !['radio', 'checkbox'].includes(one.type)).map((one) => [one, one.getBoundingClientRect()])\
                 .filter(([, box]) => box.width < 24 || box.height < 24).map(([one]) => one.outerHTML)";
    assert_eq!(page.script(small, Value::Null).await, json!([]), "{name} has something too small to hit");
}
