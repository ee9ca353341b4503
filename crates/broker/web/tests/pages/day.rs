//! Every command, done by a person: first with a mouse, then by keyboard alone.

use crate::support::{Hand, PASSWORD, PageLook, Tab, in_browser, send};

/// All sixteen, as the history calls them.
const COMMANDS: [&str; 16] = [
    "Add",
    "Quote ABC",
    "Buy ABC",
    "Commit buy",
    "Cancel buy",
    "Sell ABC",
    "Commit sell",
    "Cancel sell",
    "Set buy amount ABC",
    "Set buy trigger ABC",
    "Cancel set buy ABC",
    "Set sell amount ABC",
    "Set sell trigger ABC",
    "Cancel set sell ABC",
    "Display summary",
    "Dumplog",
];

#[test]
#[ignore = "all: in a browser"]
fn a_whole_day_by_mouse() {
    in_browser(|page, _server| async move { day(&page, Hand::Mouse, "mouse").await });
}

#[test]
#[ignore = "all: in a browser"]
fn a_whole_day_by_keyboard_alone() {
    in_browser(|page, _server| async move { day(&page, Hand::Keyboard, "keyboard").await });
}

async fn day(page: &Tab, hand: Hand, name: &str) {
    sign_up(page, hand, name).await;
    add_and_quote(page, hand).await;
    trade(page, hand, "buy", "20000").await;
    trade(page, hand, "sell", "6000").await;
    triggers(page, hand).await;
    what_is_refused_is_said_beside_the_field(page, hand).await;
    hand.press(page, "#summary").await;
    page.shows("#said", "Current summary").await;
    log(page, hand).await;
    history(page, hand).await;
    sign_out_and_in(page, hand, name).await;
}

pub(crate) async fn sign_up(page: &Tab, hand: Hand, name: &str) {
    send(page, hand, [("#up-name", name), ("#up-password", PASSWORD)], "#sign-up button").await;
    page.find("#ticket").await;
}

pub(crate) async fn add_and_quote(page: &Tab, hand: Hand) {
    hand.write(page, "#add-amount", "100000").await;
    page.shows("#add-estimate", "You will have $100,000.00").await;
    hand.press(page, "#add button").await;
    page.shows("#cash", "$100,000.00").await;
    send(page, hand, [("#stock", "abc")], "#pick button").await;
    page.shows("#pick .done", "ABC is at $").await;
    page.shows("#age", "old").await;
}

// Held and confirmed, then held and cancelled.
async fn trade(page: &Tab, hand: Hand, way: &str, amount: &str) {
    for what in ["commit", "cancel"] {
        hand.side(page, way).await;
        hand.write(page, "#amount", amount).await;
        page.shows("#ticket-estimate", "shares for $").await;
        hand.press(page, "#ticket button").await;
        let button = format!("[id^={what}-{way}-]");
        page.shows("#pending", "s left").await;
        hand.press(page, &button).await;
        page.shows("#pending", "Nothing is pending.").await;
    }
}

async fn triggers(page: &Tab, hand: Hand) {
    for (way, amount, price) in [("buy", "5000", "0.01"), ("sell", "10000", "9999.00")] {
        hand.write(page, &format!("#{way}-amount"), amount).await;
        hand.press(page, &format!("#set-{way}-amount button")).await;
        page.shows(&format!("#{way}-trigger-now"), "not armed").await;
        hand.write(page, &format!("#{way}-price"), price).await;
        hand.press(page, &format!("#set-{way}-trigger button")).await;
        page.shows(&format!("#{way}-trigger-now"), "armed at").await;
        page.shows("#chart-card .beside", if way == "buy" { "Buy trigger" } else { "Sell trigger" }).await;
        hand.press(page, &format!("#cancel-set-{way}")).await;
        page.shows(&format!("#{way}-trigger-now"), "None is set").await;
    }
}

async fn what_is_refused_is_said_beside_the_field(page: &Tab, hand: Hand) {
    send(page, hand, [("#stock", "goog")], "#pick button").await;
    page.shows("#stock-error", "one to three letters").await;
    hand.write(page, "#stock", "abc").await;
    hand.side(page, "buy").await;
    hand.write(page, "#amount", "$1,000").await;
    page.shows("#ticket-estimate", "shares for $").await;
    send(page, hand, [("#amount", "12.345")], "#ticket button").await;
    page.shows("#amount-error", "two decimals").await;
    send(page, hand, [("#amount", "9999999")], "#ticket button").await;
    page.shows("#amount-error", "You do not have enough free cash.").await;
}

async fn log(page: &Tab, hand: Hand) {
    hand.press(page, "nav a[href='#/you']").await;
    send(page, hand, [("#file", "day.xml")], "#dump button").await;
    page.shows("#dump .done", "day.xml").await;
}

async fn history(page: &Tab, hand: Hand) {
    hand.press(page, "nav a[href='#/history']").await;
    page.shows("#entries", "Dumplog").await;
    let entries = page.text_of("#entries").await;
    for command in COMMANDS {
        assert!(entries.contains(command), "{command} is not in the history: {entries}");
    }
    page.shows("#entries", "Refused").await;
    assert_eq!(entries.matches("Refused").count(), 1, "one command was refused: {entries}");
    page.picture(&format!("history-{hand:?}").to_lowercase()).await;
}

async fn sign_out_and_in(page: &Tab, hand: Hand, name: &str) {
    hand.press(page, "#sign-out").await;
    send(page, hand, [("#in-name", name), ("#in-password", "not the password")], "#sign-in button").await;
    page.shows("#in-password-error", "The name or password is wrong.").await;
    send(page, hand, [("#in-password", PASSWORD)], "#sign-in button").await;
    hand.press(page, "nav a[href='#/trade']").await;
    page.shows("#holdings", "ABC").await;
}

#[test]
#[ignore = "all: in a browser"]
fn the_history_is_filtered_by_command_and_time() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "filter").await;
        add_and_quote(&page, Hand::Mouse).await;
        page.goto("/#/history").await;
        page.shows("#entries", "Quote ABC").await;
        page.find("#command").await.select_by_value("add").await.unwrap();
        Hand::Mouse.press(&page, "#filter button").await;
        page.shows("#filter .done", "1 entry").await;
        assert!(!page.text_of("#entries").await.contains("Quote"), "only what was asked for");
        page.script(
            "document.getElementById('until').value = '2001-01-01T00:00:00'",
            serde_json::Value::Null,
        )
        .await;
        Hand::Mouse.press(&page, "#filter button").await;
        page.shows("#filter .done", "0 entries").await;
        page.look(PageLook::DARK).await;
        page.picture("history-filtered-dark").await;
    });
}
