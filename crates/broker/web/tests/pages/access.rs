//! What those need who see little, use no mouse, or have a phone: axe-core's rules on each page in both colour schemes, and a phone's width.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::day::{add_and_quote, sign_up};
use crate::support::{Hand, Look, Page, in_browser, target};

/// Which axe-core is asked. Fixed, so that a new rule of another version breaks nothing by itself.
const AXE: &str = "axe-core@4.14.1";

#[test]
fn axe_finds_nothing_on_any_page_in_both_colour_schemes() {
    let Some(axe) = axe() else {
        println!("skipped: {AXE} cannot be had from npm");
        return;
    };
    in_browser(|page, server| async move {
        everywhere(&page, &axe, "sign").await;
        server.enter_supervisor(&page).await;
        fill(&page).await;
        everywhere(&page, &axe, "trade").await;
        for name in ["orders", "history", "you", "supervisor"] {
            page.goto(&format!("/#/{name}")).await;
            page.find(".card").await;
            page.script(
                "document.querySelectorAll('details').forEach((one) => { one.open = true; })",
                Value::Null,
            )
            .await;
            everywhere(&page, &axe, name).await;
        }
    });
}

// Something of everything: pending, triggers, an error, a notice.
async fn fill(page: &Page) {
    add_and_quote(page, Hand::Mouse).await;
    for amount in ["20000", "10000"] {
        Hand::Mouse.write(page, "#amount", amount).await;
        Hand::Mouse.press(page, "#ticket button").await;
        page.shows("#ticket .done", "Held").await;
    }
    Hand::Mouse.press(page, "[id^=commit-buy-]").await;
    page.shows("#holdings", "ABC").await;
    Hand::Mouse.write(page, "#buy-amount", "750").await;
    Hand::Mouse.press(page, "#set-buy-amount button").await;
    page.shows("#buy-trigger-now", "not armed").await;
    Hand::Mouse.write(page, "#buy-price", "0.01").await;
    Hand::Mouse.press(page, "#set-buy-trigger button").await;
    page.shows("#buy-trigger-now", "armed at").await;
    Hand::Mouse.write(page, "#amount", "x").await;
    Hand::Mouse.press(page, "#ticket button").await;
    page.shows("#amount-error", "two decimals").await;
    let notice = json!({ "kind": "lapsed", "way": "buy", "symbol": "ABC" }).to_string();
    let script = "const [text, done] = arguments; import('/js/feed.js').then((feed) => { feed.receive(text); done(true); })";
    page.script_ends(script, json!(notice)).await;
    page.find(".notice").await;
    page.goto("/#/orders").await;
    Hand::Mouse.write(page, "#order-stock", "abc").await;
    Hand::Mouse.write(page, "#order-shares", "7").await;
    Hand::Mouse.write(page, "#order-limit", "0.02").await;
    Hand::Mouse.press(page, "#order button").await;
    page.shows("#open-orders", "Open: 7 left").await;
    page.goto("/#/trade").await;
    page.find("#ticket").await;
}

async fn everywhere(page: &Page, axe: &str, name: &str) {
    for look in [Look::DESK, Look::DARK, Look::PHONE] {
        page.look(look).await;
        let found = violations(page, axe).await;
        let scheme = if look.is_dark { "dark" } else { "light" };
        page.picture(&format!("{name}-{scheme}-{}", look.width)).await;
        assert!(found.is_empty(), "{name}, {look:?}: {}", found.join("\n"));
    }
    page.look(Look::DESK).await;
}

async fn violations(page: &Page, axe: &str) -> Vec<String> {
    page.script(axe, Value::Null).await;
    let script = "const done = arguments[1]; axe.run(document).then((found) => done(found.violations.map((one) => \
                  `${one.id}: ${one.help}: ${one.nodes.map((node) => node.html + ' ' + node.failureSummary).join('; ')}`)), \
                  (error) => done([String(error)]))";
    let found = page.script_ends(script, Value::Null).await;
    found.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

/// The text of axe-core, fetched once.
fn axe() -> Option<String> {
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

#[test]
fn everything_fits_a_phones_width() {
    in_browser(|page, server| async move {
        page.look(Look::PHONE).await;
        fits(&page, "sign").await;
        server.enter_supervisor(&page).await;
        fill(&page).await;
        fits(&page, "trade").await;
        for name in ["orders", "history", "you", "supervisor"] {
            page.goto(&format!("/#/{name}")).await;
            page.find(".card").await;
            fits(&page, name).await;
        }
    });
}

async fn fits(page: &Page, name: &str) {
    let wide = page.script("return [document.documentElement.scrollWidth, innerWidth]", Value::Null).await;
    assert!(wide[0].as_u64() <= wide[1].as_u64(), "{name} is wider than the screen: {wide}");
    // What a finger has to hit is 24 pixels high and wide at least (WCAG 2.2).
    let small = "return [...document.querySelectorAll('button, nav a, input, select')].filter((one) => one.offsetParent && \
                 !['radio', 'checkbox'].includes(one.type)).map((one) => [one, one.getBoundingClientRect()])\
                 .filter(([, box]) => box.width < 24 || box.height < 24).map(([one]) => one.outerHTML)";
    assert_eq!(page.script(small, Value::Null).await, json!([]), "{name} has something too small to hit");
}

#[test]
fn a_stranger_sees_only_the_way_in() {
    in_browser(|page, _server| async move {
        for path in ["/#/supervisor", "/#/history", "/#/trade"] {
            page.goto(path).await;
            page.find("#sign-in").await;
        }
        sign_up(&page, Hand::Mouse, "stranger").await;
        page.goto("/#/supervisor").await;
        page.find("#ticket").await;
        assert!(!page.text_of("nav").await.contains("Supervisor"), "no way to where one may not go");
    });
}
