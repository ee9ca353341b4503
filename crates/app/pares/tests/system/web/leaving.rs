//! A user who leaves a page, by will or not, and the next one: nothing of one is shown, sent or answered to the other.

use pares_browser::{Hand, Tab, in_browser};
use serde_json::{Value, json};

use super::pages::{at, sign_on};
use super::support::{Asker, Web, serving};
use crate::common::exchange::{Exchange, small, with_feed};
use crate::sign_on::done;

/// What every script below begins with. `instead(method, url, asked)` may answer in the server's place; where it gives nothing, the server is asked.
const SCRIPT: &str = r"
    const end = arguments[1];
    let instead = () => null;
    const { fetch } = window;
    window.fetch = async (url, asked) => await instead(asked.method, url, asked) ?? fetch(url, asked);
    const later = (ms) => new Promise((done) => { setTimeout(done, ms); });
    const drawn = () => new Promise((done) => { requestAnimationFrame(() => requestAnimationFrame(done)); });
    const words = (asked) => asked.then(() => 'answered', ({ message }) => message);
    const nobody = (status) => new Response('{}', { status, headers: { 'Content-Type': 'application/json' } });
    const order = { symbol: 'ALFA', side: 'sell', quantity: '30', price: '12' };
    const open = Promise.all(['api', 'state'].map((name) => import(`/js/${name}.js`)));
";

async fn run(page: &Tab, script: &str) -> Value {
    page.script_ends(&format!("{SCRIPT} open.then(async ([api, {{ state, readOrders }}]) => {{ {script} }}).catch(({{ message }}) => end(message));"), Value::Null).await
}

fn in_a_page(test: impl AsyncFnOnce(Exchange, Web, Tab)) {
    in_browser(async |driver| {
        let (exchange, web) = serving(&with_feed(small(1)));
        let page = at(&driver, &web, "/").await;
        test(exchange, web, page).await;
    });
}

#[test]
#[ignore = "all: in a browser"]
fn what_one_asked_is_not_sent_again_by_the_next() {
    in_a_page(async |_exchange, _web, page| {
        sign_on(&page, Hand::Mouse, 7).await;
        let script = r"
            let sent = 0;
            instead = (method, url) => {
                if (method !== 'POST' || !url.endsWith('/orders')) return null;
                sent += 1;
                return nobody(504);
            };
            const asked = words(api.enter(order, false, () => {}));
            await later(50);
            await api.signOut();
            await api.signOn({ member: 8, session: 0 });
            end([await asked, sent, api.who().member]);";
        assert_eq!(run(&page, script).await, json!(["You have signed out.", 1, 8]));
    });
}

#[test]
#[ignore = "all: in a browser"]
fn an_answer_to_the_one_before_is_shown_to_nobody() {
    in_a_page(async |_exchange, web, page| {
        assert_eq!(Asker::open(&web.address, 7).limit(1, "sell", 30, "12").status, 201);
        sign_on(&page, Hand::Mouse, 7).await;
        page.shows("#own-orders", "30").await;
        let script = r"
            let [comes, isFirst] = [null, true];
            const held = new Promise((done) => { comes = done; });
            instead = async (method, url, asked) => {
                if (!url.endsWith('/orders')) return null;
                if (!isFirst) return new Promise(() => {});
                isFirst = false;
                const answer = await fetch(url, asked);
                await held;
                return answer;
            };
            readOrders();
            await later(500);
            await api.signOut();
            await api.signOn({ member: 8, session: 0 });
            await drawn();
            const before = [state.orders.length, document.getElementById('own-orders').innerText];
            comes();
            await later(300);
            end([...before, state.orders.length]);";
        assert_eq!(run(&page, script).await, json!([0, "No open orders.", 0]));
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_late_session_of_the_one_before_is_ended_and_not_taken() {
    in_a_page(async |_exchange, _web, page| {
        sign_on(&page, Hand::Mouse, 7).await;
        let script = r"
            let [ended, signOns, isFirst] = [0, 0, true];
            instead = async (method, url) => {
                if (url.endsWith('/sign-on')) signOns += 1;
                if (url.endsWith('/status') && isFirst) { isFirst = false; return nobody(401); }
                if (method === 'POST' && url.endsWith('/sign-on') && api.who()?.member === 7) await later(300);
                if (method === 'DELETE' && url.endsWith('/session')) ended += 1;
                return null;
            };
            const asked = words(api.standing());
            await later(50);
            await api.signOut();
            await api.signOn({ member: 8, session: 0 });
            const said = await asked;
            await later(300);
            await drawn();
            end([said, await words(api.standing()), ended, signOns, document.getElementById('who').innerText]);";
        let all = json!(["You have signed out.", "answered", 2, 2, "Member 8"]);
        assert_eq!(run(&page, script).await, all);
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_page_that_loses_its_session_again_and_again_gives_it_up() {
    in_a_page(async |_exchange, _web, page| {
        sign_on(&page, Hand::Mouse, 7).await;
        let script = r"
            let signOns = 0;
            instead = (method, url) => {
                if (url.endsWith('/sign-on')) signOns += 1;
                return url.endsWith('/status') ? nobody(401) : null;
            };
            while (api.who()) await words(api.standing());
            end(signOns);";
        // One more where the machine was slow at first.
        assert!((2..=3).contains(&run(&page, script).await.as_u64().unwrap()));
        page.shows("#why-left", "signed on elsewhere").await;
    });
}

#[test]
#[ignore = "all: in a browser"]
fn order_after_double_session_end_keeps_its_name() {
    in_a_page(async |_exchange, _web, page| {
        sign_on(&page, Hand::Mouse, 7).await;
        let script = r"
            const names = [];
            instead = (method, url, asked) => {
                if (method !== 'POST' || !url.endsWith('/orders')) return null;
                names.push(JSON.parse(asked.body).client_order_id);
                return names.length < 3 ? nobody(401) : null;
            };
            const said = [await words(api.enter(order, false, () => {})), await words(api.enter(order, false, () => {}))];
            end([said[1], names.length, new Set(names).size]);";
        assert_eq!(run(&page, script).await, json!(["answered", 3, 1]));
    });
}

#[test]
#[ignore = "all: in a browser"]
fn who_comes_back_finds_the_prices_that_the_page_entered() {
    in_a_page(async |_exchange, _web, page| {
        sign_on(&page, Hand::Mouse, 7).await;
        Hand::Mouse.side(&page, "sell").await;
        for (field, text) in [("#quantity", "30"), ("#price", "12")] {
            Hand::Mouse.write(&page, field, text).await;
        }
        Hand::Mouse.press(&page, "#ticket button").await;
        page.shows("#own-orders", "12.00").await;
        Hand::Mouse.press(&page, "#sign-out").await;
        sign_on(&page, Hand::Mouse, 7).await;
        page.shows("#own-orders", "12.00").await;
        Hand::Mouse.press(&page, "#sign-out").await;
        sign_on(&page, Hand::Mouse, 8).await;
        page.shows("#own-orders", "No open orders").await;
        let kept = run(&page, "end([state.entered.size, state.fills.length]);").await;
        assert_eq!(kept, json!([0, 0]));
    });
}

#[test]
#[ignore = "all: in a browser"]
fn a_copy_sees_the_others_orders_and_nothing_to_ask_by() {
    in_a_page(async |exchange, web, page| {
        for words in ["member add 7", "member add 9", "member copy 9 7 --session 1"] {
            done(&exchange, words);
        }
        assert_eq!(Asker::open(&web.address, 7).limit(1, "sell", 30, "12").status, 201);
        sign_on_as(&page, 9, 1).await;
        page.shows("#who", "Member 9, session 1, drop copy of member 7").await;
        page.shows("#orders", "Orders (member 7)").await;
        page.shows("#own-orders", "30").await;
        let ask = "return document.querySelectorAll('#ticket, [id^=cancel-]:not([hidden] *), [id^=change-]:not(#change-title)').length";
        assert_eq!(page.script(ask, Value::Null).await, json!(0));

        // It is its own member's again: nothing of the other one stays there.
        done(&exchange, "member copy 9 none --session 1");
        page.shows("#why-left", "The operator has changed").await;
        page.shows("#why-left", "may have been executed").await;
        sign_on_as(&page, 9, 1).await;
        page.shows("#own-orders", "No open orders").await;
        page.find("#ticket").await;
    });
}

async fn sign_on_as(page: &Tab, member: u32, session: u16) {
    Hand::Mouse.write(page, "#session", &session.to_string()).await;
    sign_on(page, Hand::Mouse, member).await;
}

#[test]
#[ignore = "all: in a browser"]
fn what_an_operator_asked_and_proposed_goes_with_that_operator() {
    in_browser(async |driver| {
        let (_exchange, web) = serving(&small(1));
        let page = at(&driver, &web, "/operator").await;
        let script = r"
            const { confirmDeed } = await import('/js/proposals.js');
            let comes = null;
            const held = new Promise((done) => { comes = done; });
            const deed = (words, ask) => ({ title: 'Halt it', meaning: 'It halts.', words, canPropose: true, ask });
            const texts = () => ['done', 'proposed', 'deed', 'said'].map((id) => document.getElementById(id)?.innerText ?? 'none');
            const press = (id) => document.getElementById(id).click();
            const is = async (member, session) => { await api.signOn({ member, session }); await drawn(); await drawn(); };
            await is(0, 1);
            confirmDeed(deed('halt one', async () => null));
            press('propose-it');
            await drawn(); await drawn();
            const own = texts();
            confirmDeed(deed('halt two', () => held));
            press('do-it');
            location.hash = 'second=halt%20one';
            await api.signOut();
            await is(7, 1);
            const members = [...texts(), document.getElementById('second-words').value];
            await api.signOut();
            await is(0, 2);
            comes(null);
            await drawn(); await drawn();
            const others = texts();
            end([own, members, others].map((all) => all.map((text) => [text === 'none', /halt /i.test(text)])));";
        let (nowhere, named, unsaid) = ([true, false], [false, true], [false, false]);
        let (own, others) = ([named, named, nowhere, named], [unsaid, unsaid, nowhere, unsaid]);
        let members = [unsaid, unsaid, nowhere, unsaid, unsaid];
        assert_eq!(run(&page, script).await, json!([own, members, others]));
    });
}
