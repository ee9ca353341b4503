//! What happens by itself: notices, answers that are lost, prices that come faster than a screen draws.

use serde_json::{Value, json};

use crate::day::{add_and_quote, sign_up};
use crate::support::{Hand, Page, in_browser};

/// Bytes on the wire until the trading page can be used.
const WEIGHT_MAX: u64 = 300_000;

#[test]
fn the_first_usable_page_is_light() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "light").await;
        page.find("#chart-card canvas").await;
        let script = "return performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'))\
                      .map((one) => [one.name, one.encodedBodySize])";
        let parts = page.script(script, Value::Null).await;
        let bytes: u64 = parts.as_array().unwrap().iter().map(|part| part[1].as_u64().unwrap()).sum();
        println!(
            "the trading page with its chart: {bytes} bytes in {} files",
            parts.as_array().unwrap().len()
        );
        assert!((10_000..=WEIGHT_MAX).contains(&bytes), "{bytes} bytes: {parts}");
    });
}

#[test]
fn a_command_whose_answer_is_lost_is_done_once() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "lost").await;
        let script = "const real = window.fetch; let lost = 0; window.fetch = async (path, asked) => { const answer = await real(path, asked); \
                      if (asked?.method === 'POST' && lost < 2) { lost += 1; window.lost = lost; throw new TypeError('cut'); } return answer; }";
        page.script(script, Value::Null).await;
        Hand::Mouse.write(&page, "#add-amount", "500").await;
        Hand::Mouse.press(&page, "#add button").await;
        page.shows("#add .done", "Added $500.00").await;
        assert_eq!(page.script("return window.lost", Value::Null).await, json!(2), "two answers were lost");
        page.shows("#cash", "$500.00").await;
        page.goto("/#/history").await;
        page.shows("#entries", "Add").await;
        assert_eq!(page.text_of("#entries").await.matches("Add").count(), 1, "it was done once");
    });
}

#[test]
fn a_trigger_that_fires_is_told_without_asking() {
    in_browser(|page, server| async move {
        sign_up(&page, Hand::Mouse, "trigger").await;
        add_and_quote(&page, Hand::Mouse).await;
        Hand::Mouse.write(&page, "#buy-amount", "20000").await;
        Hand::Mouse.press(&page, "#set-buy-amount button").await;
        page.shows("#buy-trigger-now", "not armed").await;
        Hand::Mouse.write(&page, "#buy-price", "0.50").await;
        Hand::Mouse.press(&page, "#set-buy-trigger button").await;
        page.shows("#buy-trigger-now", "armed at $0.50").await;
        page.shows("#feed", "Live").await;
        server.price("ABC", 40);
        page.shows(".notice", "bought").await;
        page.shows("#holdings", "50,000").await;
        page.shows("#buy-trigger-now", "None is set").await;
        page.picture("notice").await;
    });
}

#[test]
fn what_is_not_confirmed_in_time_is_given_back_and_told() {
    in_browser(|page, server| async move {
        sign_up(&page, Hand::Mouse, "lapses").await;
        add_and_quote(&page, Hand::Mouse).await;
        Hand::Mouse.write(&page, "#amount", "20000").await;
        Hand::Mouse.press(&page, "#ticket button").await;
        page.shows("#pending", "s left").await;
        page.shows("#feed", "Live").await;
        server.pass(61_000);
        page.shows(".notice", "It was given back").await;
        page.shows("#pending", "Nothing is pending.").await;
        page.shows("#cash", "$100,000.00").await;
    });
}

#[test]
fn notices_come_again_after_the_connection_broke() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "broken").await;
        page.shows("#feed", "Live").await;
        // The next one is refused once.
        let script = "const Real = window.WebSocket; let made = 0; window.WebSocket = class extends Real { constructor(url) { made += 1; \
                      super(made === 1 ? url.replace('notices', 'nothing') : url); window.made = made; } }; window.WebSocket.OPEN = Real.OPEN; \
                      const done = arguments[1]; import('/js/feed.js').then((feed) => { feed.close(); feed.open(); done(true); })";
        page.script_ends(script, Value::Null).await;
        page.until("return window.made >= 2", Value::Null, "it is tried again").await;
        page.shows("#feed", "Live").await;
    });
}

#[test]
fn many_updates_a_second_are_drawn_once_a_frame() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "frames").await;
        add_and_quote(&page, Hand::Mouse).await;
        page.find("#chart-card canvas").await;
        let found = page.script_ends(FRAMES, Value::Null).await;
        println!(
            "frames: {} a second, the longest {} ms, at {} updates a second",
            found["frames"], found["longest"], found["updates"]
        );
        page.shows("#price", "$77.77").await;
    });
}

/// Five seconds of 200 updates a second, of eight stocks, one of them the one on the chart.
const FRAMES: &str = "
const done = arguments[1];
import('/js/feed.js').then((feed) => {
  const from = performance.now();
  let [frames, longest, last, sent] = [0, 0, from, 0];
  const symbols = ['ABC', 'B', 'C', 'D', 'E', 'F', 'G', 'H'];
  const tell = (symbol, price) => feed.receive(JSON.stringify({ kind: 'quote', symbol, price, server_ms: Date.now() + 1000 }));
  const frame = (now) => {
    frames += 1;
    longest = Math.max(longest, now - last);
    last = now;
    // As many as are due: a timer of 5 ms comes when it can.
    for (; sent < (now - from) / 5; sent += 1) tell(symbols[sent % 8], `${50 + sent % 20}.${String(sent % 100).padStart(2, '0')}`);
    if (now - from < 5000) return requestAnimationFrame(frame);
    tell('ABC', '77.77');
    done({ frames: Math.round(frames * 10000 / (now - from)) / 10, longest: Math.round(longest), updates: Math.round(sent * 1000 / (now - from)) });
  };
  requestAnimationFrame(frame);
});";

#[test]
fn names_cannot_become_markup() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "markup").await;
        let script = "const [text, done] = arguments; import('/js/feed.js').then((feed) => { feed.receive(text); done(true); })";
        let notice = json!({ "kind": "order", "text": "<img src=x onerror=\"window.harmed = true\">" });
        page.script_ends(script, json!(notice.to_string())).await;
        page.shows(".notice", "<img src=x").await;
        assert!(!harmed(&page).await, "a notice is text");
    });
}

async fn harmed(page: &Page) -> bool {
    page.script("return window.harmed === true", Value::Null).await == Value::Bool(true)
}
