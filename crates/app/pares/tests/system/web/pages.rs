//! The market's page and the operators', in Chromium, against a running exchange.

use std::path::{Path, PathBuf};

use pares_browser::access::{AXE, axe, fits, violations};
use pares_browser::{Driver, Hand, PageLook, Tab, in_browser};
use serde_json::{Value, json};

use super::support::{Asker, Web, serving};
use crate::common::exchange::{Exchange, gateway, small, with_feed};
use crate::sign_on::{done, required};

/// A tab on the page of that path.
pub(super) async fn at(driver: &Driver, web: &Web, path: &str) -> Tab {
    let page = Tab::open(driver, &format!("http://{}", web.address)).await;
    if path != "/" {
        page.goto(path).await;
    }
    page
}

pub(super) async fn sign_on(page: &Tab, hand: Hand, member: u32) {
    hand.write(page, "#member", &member.to_string()).await;
    hand.press(page, "#sign-on button").await;
    page.find("#sign-out").await;
}

async fn sign_on_with(page: &Tab, key: &Path) {
    page.find("#key").await.send_keys(key.to_str().unwrap()).await.unwrap();
    Hand::Mouse.press(page, "#sign-on button").await;
    page.find("#sign-out").await;
}

async fn order(page: &Tab, hand: Hand, side: &str, quantity: &str, price: &str) {
    hand.side(page, side).await;
    hand.write(page, "#quantity", quantity).await;
    hand.write(page, "#price", price).await;
    hand.press(page, "#ticket button").await;
}

/// What to do next is on the ladder: `price` with `shares` on that side.
async fn shows_level(page: &Tab, side: &str, price: &str, shares: &str) {
    page.shows(&format!("#ladder .{side}"), price).await;
    page.shows(&format!("#ladder .{side}"), shares).await;
    page.shows("#book-standing", "Verified up to").await;
}

#[test]
#[ignore = "all: in a browser"]
fn order_passes_from_page_to_book_by_mouse_and_keyboard() {
    for hand in [Hand::Mouse, Hand::Keyboard] {
        in_browser(async |driver| {
            let (_exchange, web) = serving(&with_feed(small(1)));
            let page = at(&driver, &web, "/").await;
            sign_on(&page, hand, 7).await;
            page.shows("#instruments", "ALFA").await;
            page.shows("#feed", "Live").await;
            order(&page, hand, "buy", "1200", "9.5").await;
            page.shows("#ticket .done", "Resting").await;
            page.shows("#own-orders", "1,200").await;
            shows_level(&page, "bids", "9.50", "1,200").await;

            let mut seller = Asker::open(&web.address, 8);
            assert_eq!(seller.limit(1, "sell", 200, "9.5").status, 201);
            page.shows("#own-fills", "9.50").await;
            page.shows("#own-orders", "1,000").await;
            page.shows("#tape", "9.50").await;
            page.shows("#candle", "close 9.50, 200 shares").await;
            page.shows("#ticker", "9.50 × 1,000").await;
            shows_level(&page, "bids", "9.50", "1,000").await;

            hand.press(&page, "[id^=change-]:not(#change-title)").await;
            hand.write(&page, "#new-price", "9.25").await;
            hand.press(&page, "#change button").await;
            shows_level(&page, "bids", "9.25", "1,000").await;
            hand.press(&page, "button[id^=cancel-]:not(#cancel-all)").await;
            page.shows("#own-orders", "No open orders").await;
            page.shows("#ladder", "No orders").await;
        });
    }
}

#[test]
#[ignore = "all: in a browser"]
fn a_book_that_does_not_add_up_is_told_anew() {
    in_browser(async |driver| {
        let (_exchange, web) = serving(&with_feed(small(1)));
        let page = at(&driver, &web, "/").await;
        sign_on(&page, Hand::Mouse, 7).await;
        order(&page, Hand::Mouse, "sell", "30", "12").await;
        shows_level(&page, "offers", "12.00", "30").await;
        let damaged = "const done = arguments[1]; Promise.all(['feed', 'state', 'book'].map((name) => import(`/js/${name}.js`))).then(([feed, { state }, { crc32 }]) => { \
                       const told = { channel: 'book', type: 'delta', symbol: state.symbol, previous: state.book.number, number: state.book.number, is_current: true, \
                       bids: [{ price: '1', quantity: '1' }], offers: [], checksum: '00000000' }; feed.receive(JSON.stringify(told)); \
                       done([state.book.number, crc32('123456789')]); })";
        assert_eq!(page.script_ends(damaged, Value::Null).await, json!([null, "cbf43926"]));
        shows_level(&page, "offers", "12.00", "30").await;
        assert!(!page.text_of("#ladder .bids").await.contains("1.00"), "what was damaged is gone");
    });
}

fn operator_key(exchange: &Exchange, session: u16) -> PathBuf {
    match session {
        1 => exchange.layout().operator_key(),
        other => exchange.layout().keys().join(format!("member-0-{other}.key")),
    }
}

async fn phase_is(page: &Tab, symbol: &str, phase: &str) {
    let script = "const row = [...document.querySelectorAll('#instruments tbody tr')].find((row) => row.cells[0].innerText === arguments[0][0]); \
                  return row?.cells[1].innerText === arguments[0][1]";
    page.until(script, json!([symbol, phase]), &format!("{symbol} is {phase}")).await;
}

#[test]
#[ignore = "all: in a browser"]
fn one_operator_proposes_a_halt_and_another_one_halts() {
    in_browser(async |driver| {
        let exchange = Exchange::start(&required(1));
        done(&exchange, "member key 0 2");
        let web = Web::start(exchange.layout().root());
        let first = at(&driver, &web, "/operator").await;
        sign_on_with(&first, &operator_key(&exchange, 1)).await;
        first.shows("#who", "Operator 1").await;
        Hand::Mouse.press(&first, "#four-eyes-on").await;
        Hand::Mouse.press(&first, "#do-it").await;
        first.shows("#done", "Accepted").await;

        Hand::Mouse.press(&first, "#halted-ALFA").await;
        Hand::Mouse.press(&first, "#do-it").await;
        first.shows("#deed .error", "second_operator").await;
        phase_is(&first, "ALFA", "Continuous").await;
        Hand::Mouse.press(&first, "#propose-it").await;
        first.shows("#proposed", "phase ALFA halted").await;
        phase_is(&first, "ALFA", "Continuous").await;

        let link = first.script("return document.querySelector('#proposed a').hash", Value::Null).await;
        let second = at(&driver, &web, &format!("/operator{}", link.as_str().unwrap())).await;
        sign_on_with(&second, &operator_key(&exchange, 2)).await;
        Hand::Mouse.press(&second, "#second button").await;
        Hand::Mouse.press(&second, "#do-it").await;
        for page in [&first, &second] {
            phase_is(page, "ALFA", "Halted").await;
        }
        assert!(done(&exchange, "audit").contains("halted"), "the record says so");
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_member_is_blocked_from_the_page_and_its_orders_are_gone() {
    in_browser(async |driver| {
        let (_exchange, web) = serving(&small(1));
        let mut member = Asker::open(&web.address, 7);
        assert_eq!(member.limit(1, "sell", 10, "5").status, 201);
        let page = at(&driver, &web, "/operator").await;
        sign_on(&page, Hand::Keyboard, 0).await;
        Hand::Keyboard.write(&page, "#blocked", "7").await;
        Hand::Keyboard.press(&page, "#block button").await;
        page.shows("#deed", "Cancels all its orders").await;
        Hand::Keyboard.press(&page, "#do-it").await;
        page.shows("#done", "1 order").await;
        assert_eq!(member.limit(2, "sell", 10, "5").reason(), "blocked");
        Hand::Mouse.press(&page, "#unblock").await;
        Hand::Mouse.press(&page, "#do-it").await;
        page.shows("#done", "unblock 7").await;
        assert_eq!(member.limit(3, "sell", 10, "5").status, 201);
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_page_signs_on_again_by_its_key_when_the_gateway_dies() {
    in_browser(async |driver| {
        let mut exchange = Exchange::start(&with_feed(required(2)));
        done(&exchange, "member add 7");
        let web = Web::start(exchange.layout().root());
        let page = at(&driver, &web, "/").await;
        let key = exchange.layout().keys().join("member-7-1.key");
        sign_on_with(&page, &key).await;
        order(&page, Hand::Mouse, "buy", "10", "9").await;
        page.shows("#ticket .done", "Resting").await;
        for dead in [0, 1] {
            exchange.replace(gateway(dead));
            order(&page, Hand::Mouse, "buy", "10", &format!("8.{dead}")).await;
            page.shows("#ladder .bids", &format!("8.{dead}0")).await;
        }
        let rows =
            page.script("return document.querySelectorAll('#own-orders tbody tr').length", Value::Null).await;
        assert_eq!(rows, 3, "each order is there once");
        let sent = page
            .script(
                "return performance.getEntriesByType('resource').map((one) => one.name).join(' ')",
                Value::Null,
            )
            .await;
        let secret = std::fs::read_to_string(&key).unwrap().split_whitespace().last().unwrap().to_owned();
        assert!(!sent.as_str().unwrap().contains(&secret), "{sent}");
    });
}

#[test]
#[ignore = "all: in a browser"]
fn axe_finds_nothing_on_the_pages_and_they_fit_a_phone() {
    let Some(axe) = axe() else {
        println!("skipped: {AXE} cannot be had from npm");
        return;
    };
    in_browser(async |driver| {
        let (_exchange, web) = serving(&with_feed(small(1)));
        for (path, member, name) in [("/", 7, "market"), ("/operator", 0, "operator")] {
            let page = at(&driver, &web, path).await;
            looks(&page, &axe, &format!("{name}-sign-on")).await;
            sign_on(&page, Hand::Mouse, member).await;
            page.shows("#instruments", "ALFA").await;
            if member == 7 {
                order(&page, Hand::Mouse, "buy", "10", "9").await;
                page.shows("#ladder .bids", "9.00").await;
                order(&page, Hand::Mouse, "sell", "10", "9").await;
                page.shows("#own-fills", "9.00").await;
                order(&page, Hand::Mouse, "sell", "10", "11").await;
                page.shows("#own-orders", "11.00").await;
            }
            looks(&page, &axe, name).await;
        }
    });
}

async fn looks(page: &Tab, axe: &str, name: &str) {
    for look in [PageLook::DESK, PageLook::DARK, PageLook::PHONE] {
        page.look(look).await;
        let scheme = if look.is_dark { "dark" } else { "light" };
        page.picture(&format!("exchange-{name}-{scheme}-{}", look.width)).await;
        let found = violations(page, axe).await;
        assert!(found.is_empty(), "{name}, {look:?}: {}", found.join("\n"));
    }
    fits(page, name).await;
    page.look(PageLook::DESK).await;
}
