//! Orders on the exchange, by mouse and by keyboard alone; and what a supervisor says of them.

use crate::day::{add_and_quote, sign_up};
use crate::support::{Hand, Server, Tab, in_browser, send};

#[test]
#[ignore = "all: in a browser"]
fn orders_by_mouse() {
    in_browser(|page, server| async move { orders(&page, &server, Hand::Mouse, "mouse").await });
}

#[test]
#[ignore = "all: in a browser"]
fn orders_by_keyboard_alone() {
    in_browser(|page, server| async move { orders(&page, &server, Hand::Keyboard, "keyboard").await });
}

async fn orders(page: &Tab, server: &Server, hand: Hand, name: &str) {
    sign_up(page, hand, name).await;
    add_and_quote(page, hand).await;
    server.price("ABC", 2_000);
    hand.press(page, "nav a[href='#/orders']").await;
    fills_as_they_come(page, server, hand).await;
    cancels(page, hand).await;
    what_is_refused_is_said(page, hand).await;
    page.picture(&format!("orders-{hand:?}").to_lowercase()).await;
    hand.press(page, "nav a[href='#/history']").await;
    for words in ["150 ABC of order", "accepted", "traded", "A cancel was sent", "released"] {
        page.shows("#entries", words).await;
    }
}

async fn write(page: &Tab, hand: Hand, shares: &str, limit: &str) {
    hand.write(page, "#order-stock", "abc").await;
    hand.write(page, "#order-shares", shares).await;
    hand.write(page, "#order-limit", limit).await;
}

/// What will be held is shown before; then a hundred shares trade, then the rest.
async fn fills_as_they_come(page: &Tab, server: &Server, hand: Hand) {
    write(page, hand, "150", "10.00").await;
    page.shows("#order-estimate", "Holds $1,500.00").await;
    hand.press(page, "#order button").await;
    page.shows("#order .done", "Placed: buy 150 shares of ABC at $10.00").await;
    page.shows("#open-orders", "Open: 150 left, $1,500.00 held").await;
    server.price("ABC", 900);
    page.shows("#notices", "You bought 100 shares of ABC for $1,000.00").await;
    page.shows("#notices", "You bought 50 shares of ABC for $500.00. The order is filled.").await;
    page.shows("#open-orders", "No order is open.").await;
    page.shows("#all-orders", "150 of 150").await;
    hand.side(page, "sell").await;
    page.shows("#order-estimate", "You own 150 shares of ABC free.").await;
}

async fn cancels(page: &Tab, hand: Hand) {
    write(page, hand, "60", "99.00").await;
    page.shows("#order-estimate", "Holds 60 shares of ABC").await;
    hand.press(page, "#order button").await;
    page.shows("#open-orders", "Open: 60 left, 60 shares of ABC held").await;
    hand.press(page, "[id^=cancel-order-]").await;
    page.shows("#notices", "An order to sell 60 shares of ABC at $99.00 was cancelled: requested.").await;
    page.shows("#all-orders", "Cancelled: requested").await;
    page.shows("#open-orders", "No order is open.").await;
}

async fn what_is_refused_is_said(page: &Tab, hand: Hand) {
    hand.side(page, "buy").await;
    write(page, hand, "1.5", "1.00").await;
    hand.press(page, "#order button").await;
    page.shows("#order-shares-error", "whole number").await;
    write(page, hand, "1000001", "0.01").await;
    hand.press(page, "#order button").await;
    page.shows("#order-shares-error", "exceeds your size limit").await;
}

/// Places an order of seven shares, and after it 24 that never trade.
const PLACE_MANY: &str = "const done = arguments[1]; (async () => { const { csrf } = await (await fetch('/api/v1/session')).json(); \
                          const headers = { 'X-CSRF': csrf, 'Content-Type': 'application/json' }; const all = [7, ...Array(24).fill(1)]; \
                          const terms = (shares) => ({ symbol: 'ABC', side: 'buy', shares, limit: shares === 7 ? '10.00' : '0.01' }); let placed = 0; \
                          for (const shares of all) placed += (await fetch('/api/v1/orders', { method: 'POST', headers, body: JSON.stringify(terms(shares)) })).status === 201; \
                          done(placed); })()";

#[test]
#[ignore = "all: in a browser"]
fn what_happens_to_an_order_far_down_is_shown_there() {
    in_browser(|page, server| async move {
        sign_up(&page, Hand::Mouse, "many").await;
        add_and_quote(&page, Hand::Mouse).await;
        server.price("ABC", 2_000);
        assert_eq!(page.script_ends(PLACE_MANY, serde_json::Value::Null).await, 25);
        Hand::Mouse.press(&page, "nav a[href='#/orders']").await;
        Hand::Mouse.press(&page, "#older-orders").await;
        let last = "const rows = [...document.querySelectorAll('#all-orders tbody tr')]; \
                    return rows.length === 25 && rows[24].innerText.includes('Buy 7 ABC') && rows[24].innerText.includes(arguments[0])";
        page.until(last, "Open".into(), "the oldest is open").await;
        server.price("ABC", 900);
        page.until(last, "Filled".into(), "the oldest is filled").await;
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_supervisor_limits_and_stops_a_customer_by_mouse() {
    in_browser(|page, server| async move { supervise(&page, &server, Hand::Mouse).await });
}

#[test]
#[ignore = "all: in a browser"]
fn a_supervisor_limits_and_stops_a_customer_by_keyboard_alone() {
    in_browser(|page, server| async move { supervise(&page, &server, Hand::Keyboard).await });
}

async fn supervise(page: &Tab, server: &Server, hand: Hand) {
    sign_up(page, Hand::Mouse, "customer").await;
    add_and_quote(page, Hand::Mouse).await;
    Hand::Mouse.press(page, "#sign-out").await;
    page.find("#sign-in").await;
    server.enter_supervisor(page).await;
    hand.press(page, "nav a[href='#/supervisor']").await;
    send(page, hand, [("#customer-name", "nobody")], "#look button").await;
    page.shows("#customer-name-error", "There is no account of that name.").await;
    send(page, hand, [("#customer-name", "customer")], "#look button").await;
    page.shows("#customer-now", "May place orders").await;
    page.shows("#limits", "Standard: 1,000,000").await;
    send(page, hand, [("#limit-shares", "25"), ("#limit-loss", "1000")], "#limits button").await;
    page.until(
        "return document.getElementById('limit-loss')?.value === '1000.00'",
        serde_json::Value::Null,
        "they are set",
    )
    .await;
    hand.press(page, "#kill").await;
    page.shows("#customer-now", "Blocked: no orders").await;
    page.picture(&format!("customer-{hand:?}").to_lowercase()).await;
    hand.press(page, "#kill").await;
    page.shows("#customer-now", "May place orders").await;
}
