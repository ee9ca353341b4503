//! What happens by itself: notices, answers that are lost, prices that come faster than a screen draws.

use serde_json::{Value, json};

use crate::day::{add_and_quote, sign_up};
use crate::support::{Hand, PASSWORD, Tab, in_browser, send};

/// Bytes on the wire until the trading page can be used.
const WEIGHT_MAX: u64 = 300_000;

#[test]
#[ignore = "all: in a browser"]
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
#[ignore = "all: in a browser"]
fn a_command_whose_answer_is_lost_is_done_once() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "lost").await;
        let script = "const real = window.fetch; let lost = 0; window.fetch = async (path, asked) => { const answer = await real(path, asked); \
                      if (asked?.method === 'POST' && lost < 2) { lost += 1; window.lost = lost; throw new TypeError('cut'); } return answer; }";
        page.script(script, Value::Null).await;
        send(&page, Hand::Mouse, [("#add-amount", "500")], "#add button").await;
        page.shows("#add .done", "Added $500.00").await;
        assert_eq!(page.script("return window.lost", Value::Null).await, json!(2), "two answers were lost");
        page.shows("#cash", "$500.00").await;
        page.goto("/#/history").await;
        page.shows("#entries", "Add").await;
        assert_eq!(page.text_of("#entries").await.matches("Add").count(), 1, "it is executed only once");
    });
}

/// From now on no command gets an answer, though each is executed; until `window.isCut` is false.
const CUT: &str = "const real = window.fetch; window.isCut = true; window.sent = 0; window.fetch = async (path, asked) => { const answer = await real(path, asked); \
                   if (asked?.method === 'POST' && window.isCut) { window.sent += 1; throw new TypeError('cut'); } return answer; }";

#[test]
#[ignore = "all: in a browser"]
fn unanswered_command_is_resent_and_done_once() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "outage").await;
        page.script(CUT, Value::Null).await;
        Hand::Mouse.write(&page, "#add-amount", "500").await;
        for sent in [6, 12] {
            Hand::Mouse.press(&page, "#add button").await;
            page.until(&format!("return window.sent === {sent}"), Value::Null, "all tries were made").await;
            page.shows("#add .error[role=alert]", "Press the same button again").await;
        }
        page.script("window.isCut = false", Value::Null).await;
        Hand::Mouse.press(&page, "#add button").await;
        page.shows("#add .done", "Added $500.00").await;
        page.shows("#cash", "$500.00").await;
        send(&page, Hand::Mouse, [("#add-amount", "500")], "#add button").await;
        page.shows("#cash", "$1,000.00").await;
    });
}

#[test]
#[ignore = "all: in a browser"]
fn new_command_after_unanswered_one_notes_doubt() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "doubt").await;
        page.script(CUT, Value::Null).await;
        send(&page, Hand::Mouse, [("#add-amount", "500")], "#add button").await;
        page.shows("#add .error[role=alert]", "Press the same button again").await;
        page.script("window.isCut = false", Value::Null).await;
        send(&page, Hand::Mouse, [("#add-amount", "70")], "#add button").await;
        page.shows("#add .done", "Added $70.00").await;
        page.shows(".notice.doubt", "no answer to “add 500.00”, so its outcome is unknown").await;
        page.shows("#cash", "$570.00").await;
    });
}

#[test]
#[ignore = "all: in a browser"]
fn confirming_superseded_pending_does_nothing() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "windows").await;
        add_and_quote(&page, Hand::Mouse).await;
        send(&page, Hand::Mouse, [("#amount", "20000")], "#ticket button").await;
        page.find("[id^=commit-buy-]").await;
        // Another window buys, and this one hears nothing of it: its account is read when it is refused.
        let script = "const done = arguments[1]; fetch('/api/v1/session').then((answer) => answer.json()).then(({ csrf }) => \
                      fetch('/api/v1/commands/buy', { method: 'POST', headers: { 'X-CSRF': csrf, 'Content-Type': 'application/json' }, \
                      body: JSON.stringify({ symbol: 'ABC', amount: '30000.00' }) })).then((answer) => done(answer.status))";
        assert_eq!(page.script_ends(script, Value::Null).await, json!(200));
        Hand::Mouse.press(&page, "[id^=commit-buy-]").await;
        page.shows("#pending", "A newer command from another window is pending").await;
        page.shows("#pending", "You can confirm it when the newer ones are done.").await;
        assert_eq!(page.text_of("#holdings").await.matches("ABC").count(), 0, "nothing was bought");
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_password_is_changed_and_all_sessions_end_from_the_page() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "secret").await;
        page.goto("/#/you").await;
        send(
            &page,
            Hand::Mouse,
            [("#password-now", PASSWORD), ("#password-new", "short")],
            "#password button",
        )
        .await;
        page.shows("#password-new-error", "10 characters").await;
        send(&page, Hand::Mouse, [("#password-new", "another password")], "#password button").await;
        page.shows("#password .done", "is changed").await;
        send(&page, Hand::Mouse, [("#totp-own", "another password")], "#totp-begin button").await;
        page.find("#totp-code").await;
        Hand::Mouse.press(&page, "#sign-out-all").await;
        page.find("#sign-in").await;
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_trigger_that_fires_is_told_without_asking() {
    in_browser(|page, server| async move {
        sign_up(&page, Hand::Mouse, "trigger").await;
        add_and_quote(&page, Hand::Mouse).await;
        send(&page, Hand::Mouse, [("#buy-amount", "20000")], "#set-buy-amount button").await;
        page.shows("#buy-trigger-now", "not armed").await;
        send(&page, Hand::Mouse, [("#buy-price", "0.50")], "#set-buy-trigger button").await;
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
#[ignore = "all: in a browser"]
fn what_is_not_confirmed_in_time_is_given_back_and_told() {
    in_browser(|page, server| async move {
        sign_up(&page, Hand::Mouse, "lapses").await;
        add_and_quote(&page, Hand::Mouse).await;
        send(&page, Hand::Mouse, [("#amount", "20000")], "#ticket button").await;
        page.shows("#pending", "s left").await;
        page.shows("#feed", "Live").await;
        server.pass(61_000);
        page.shows(".notice", "It was released").await;
        page.shows("#pending", "Nothing is pending.").await;
        page.shows("#cash", "$100,000.00").await;
    });
}

#[test]
#[ignore = "all: in a browser"]
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
#[ignore = "all: in a browser"]
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
#[ignore = "all: in a browser"]
fn names_cannot_become_markup() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "markup").await;
        let script = "const [text, done] = arguments; import('/js/feed.js').then((feed) => { feed.receive(text); done(true); })";
        let notice = json!({ "kind": "order", "what": "filled", "side": "buy", "shares": 1, "amount": "1.00", "symbol": "<img src=x onerror=\"window.harmed = true\">" });
        page.script_ends(script, json!(notice.to_string())).await;
        page.shows(".notice", "<img src=x").await;
        assert!(!harmed(&page).await, "a notice is text");
    });
}

async fn harmed(page: &Tab) -> bool {
    page.script("return window.harmed === true", Value::Null).await == Value::Bool(true)
}

#[test]
#[ignore = "all: in a browser"]
fn waiting_command_is_not_sent_by_next_person() {
    in_browser(|page, _server| async move {
        sign_up(&page, Hand::Mouse, "first").await;
        let script = "const [[name, password], end] = arguments; import('/js/api.js').then(async (api) => { \
                      const { fetch } = window; let sent = 0; \
                      window.fetch = (url, asked) => { if (!url.includes('/commands/')) return fetch(url, asked); sent += 1; return Promise.resolve(new Response('', { status: 504 })); }; \
                      const asked = api.command('add', { amount: '100' }).then(() => 'answered', ({ message }) => message); \
                      await new Promise((done) => { setTimeout(done, 50); }); \
                      await api.signOut(); \
                      await api.signUp(name, password); \
                      await api.signIn(name, password); \
                      end([await asked, sent, (await api.session()).name]); }).catch(({ message }) => end(message))";
        let told = page.script_ends(script, json!(["second", PASSWORD])).await;
        assert_eq!(told, json!(["You have signed out.", 1, "second"]));
    });
}
