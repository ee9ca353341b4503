//! What those need who see little, use no mouse, or have a phone: axe-core's rules on each page in both colour schemes, and a phone's width.

use pares_browser::access::{AXE, axe, fits, violations};
use serde_json::{Value, json};

use crate::day::{add_and_quote, sign_up};
use crate::support::{Hand, PageLook, Tab, in_browser, send};

#[test]
#[ignore = "all: in a browser"]
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
async fn fill(page: &Tab) {
    add_and_quote(page, Hand::Mouse).await;
    for amount in ["20000", "10000"] {
        send(page, Hand::Mouse, [("#amount", amount)], "#ticket button").await;
        page.shows("#ticket .done", "Held").await;
    }
    Hand::Mouse.press(page, "[id^=commit-buy-]").await;
    page.shows("#holdings", "ABC").await;
    send(page, Hand::Mouse, [("#buy-amount", "750")], "#set-buy-amount button").await;
    page.shows("#buy-trigger-now", "not armed").await;
    send(page, Hand::Mouse, [("#buy-price", "0.01")], "#set-buy-trigger button").await;
    page.shows("#buy-trigger-now", "armed at").await;
    send(page, Hand::Mouse, [("#amount", "x")], "#ticket button").await;
    page.shows("#amount-error", "two decimals").await;
    let notice = json!({ "kind": "lapsed", "way": "buy", "symbol": "ABC" }).to_string();
    let script = "const [text, done] = arguments; import('/js/feed.js').then((feed) => { feed.receive(text); done(true); })";
    page.script_ends(script, json!(notice)).await;
    page.find(".notice").await;
    page.goto("/#/orders").await;
    send(
        page,
        Hand::Mouse,
        [("#order-stock", "abc"), ("#order-shares", "7"), ("#order-limit", "0.02")],
        "#order button",
    )
    .await;
    page.shows("#open-orders", "Open: 7 left").await;
    page.goto("/#/trade").await;
    page.find("#ticket").await;
}

async fn everywhere(page: &Tab, axe: &str, name: &str) {
    for look in [PageLook::DESK, PageLook::DARK, PageLook::PHONE] {
        page.look(look).await;
        let found = violations(page, axe).await;
        let scheme = if look.is_dark { "dark" } else { "light" };
        page.picture(&format!("{name}-{scheme}-{}", look.width)).await;
        assert!(found.is_empty(), "{name}, {look:?}: {}", found.join("\n"));
    }
    page.look(PageLook::DESK).await;
}

#[test]
#[ignore = "all: in a browser"]
fn everything_fits_a_phones_width() {
    in_browser(|page, server| async move {
        page.look(PageLook::PHONE).await;
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

#[test]
#[ignore = "all: in a browser"]
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
