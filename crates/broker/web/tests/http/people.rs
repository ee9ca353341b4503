//! Who may sign in, and for how long.

use serde_json::{Value, json};
use totp_rs::{Builder, Secret};

use crate::support::{PASSWORD, Signed, Web, has, signed};

const NONE: Value = Value::Null;

#[tokio::test]
async fn a_person_signs_up_in_and_out_by_token_and_by_cookie() {
    let web = Web::new();
    assert_eq!(web.sign_up("ann").await.json(), json!({"name": "ann"}));
    let answer = web.try_in("ann", PASSWORD).await;
    let ann = signed(&answer);
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert_eq!(cookie, format!("pares_session={}; Path=/; HttpOnly; SameSite=Strict", ann.token));
    for header in [ann.bearer(), ann.cookie()] {
        let told = web.other().ask("GET", "/session", &[header], &NONE).await.json();
        has(&told, json!({"name": "ann", "csrf": ann.csrf, "rights": ["trader"], "token": null}));
    }
    assert_eq!(web.ask("DELETE", "/session", &[ann.bearer()], &NONE).await.status, 204);
    assert_eq!(web.other().get(&ann, "/session").await.told(), (401, "no-session".into()));
}

#[tokio::test]
async fn a_name_is_letters_and_digits_and_is_had_once() {
    let web = Web::new();
    let long = "a".repeat(33);
    for name in ["", "a b", "a,b", "a\nb", "a\u{0}", "\u{202e}eve", "ann\u{301}", "<b>", long.as_str()] {
        assert_eq!(web.sign_up(name).await.told(), (422, "bad-name".into()), "{name:?}");
        assert_eq!(web.try_in(name, PASSWORD).await.told(), (401, "wrong-password".into()), "{name:?}");
    }
    assert_eq!(web.sign_up(&long[1..]).await.status, 201);
    assert_eq!(web.sign_up("ann").await.status, 201);
    assert_eq!(web.other().sign_up("ann").await.told(), (409, "person-taken".into()));
    assert_eq!(web.sign_up("Ann").await.status, 201, "upper and lower case differ, as in the commands");
    let long = "x".repeat(257);
    for password in ["short pas", &long, "correct\u{8} horse", "correct \u{378} horse"] {
        let body = json!({"name": "bob", "password": password});
        assert_eq!(web.ask("POST", "/people", &[], &body).await.told(), (422, "bad-password".into()));
    }
}

#[tokio::test]
async fn a_password_fits_in_whichever_form_a_device_sends_it() {
    let web = Web::new();
    let forms = ["contrase\u{f1}a m\u{e1}s larga", "contrasen\u{303}a ma\u{301}s\u{a0}larga"];
    for (name, set) in [("ann", forms[0]), ("bob", forms[1])] {
        let body = json!({"name": name, "password": set});
        assert_eq!(web.ask("POST", "/people", &[], &body).await.status, 201);
        for sent in forms {
            assert_eq!(web.try_in(name, sent).await.status, 200, "{sent:?}");
        }
        assert_eq!(web.try_in(name, "contrasena mas larga").await.status, 401);
    }
    // Five letters, each with an accent of its own: ten characters as they are sent, and half of that.
    let body = json!({"name": "eve", "password": "a\u{301}".repeat(5)});
    assert_eq!(web.ask("POST", "/people", &[], &body).await.told(), (422, "bad-password".into()));
}

#[tokio::test]
async fn an_account_that_is_there_already_is_not_had_by_signing_up() {
    let web = Web::new();
    let command = pares_broker::WorkloadLine::parse(b"[1] ADD,rich,5.00").unwrap().command;
    let (user, asked) = (command.user.clone(), pares_broker::Asked::Command { command, fault: None });
    pares_web::Broker::ask(&web.broker, user, None, asked).await.unwrap();
    assert_eq!(web.sign_up("rich").await.told(), (409, "person-taken".into()));
    let rights = [pares_broker::PersonRight::Trader];
    pares_web::add_person(&web.broker, &web.settings, "rich", PASSWORD, &rights).await.unwrap();
    let rich = web.sign_in("rich").await;
    assert_eq!(web.get(&rich, "/account").await.json()["cash"], "5.00");
}

#[tokio::test]
async fn wrong_passwords_back_off_across_all_fronts() {
    let web = Web::new();
    web.sign_up("ann").await;
    for front in [web.clone(), web.other(), web.clone(), web.other(), web.clone()] {
        assert_eq!(front.try_in("ann", "correct house").await.told(), (401, "wrong-password".into()));
    }
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(web.try_in("ann", "correct house").await.status, 401);
        let refused = web.other().try_in("ann", PASSWORD).await;
        assert_eq!(refused.told(), (429, "too-many-tries".into()), "the right one neither");
        waits.push(refused.retry_s());
        web.pass(refused.retry_s() * 1_000);
    }
    assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60, 60]);
    web.sign_in("ann").await;
    assert_eq!(web.try_in("ann", "correct house").await.status, 401);
    web.sign_in("ann").await;
    assert_eq!(web.try_in("nobody", PASSWORD).await.told(), (401, "wrong-password".into()));
}

#[tokio::test]
async fn session_ends_after_half_hour_idle_or_twelve_hours() {
    let web = Web::new();
    let unused = web.somebody("ann").await;
    web.pass(30 * 60_000 - 1);
    let used = web.sign_in("ann").await;
    web.pass(1);
    assert_eq!(web.get(&unused, "/session").await.status, 401);
    for _ in 0..35 {
        web.pass(20 * 60_000);
        assert_eq!(web.get(&used, "/session").await.status, 200);
    }
    web.pass(20 * 60_000 - 2);
    assert_eq!(web.get(&used, "/session").await.status, 200);
    web.pass(1);
    assert_eq!(web.get(&used, "/session").await.status, 401, "twelve hours");
}

#[tokio::test]
async fn without_certifier_reads_work_and_one_request_waits() {
    let web = Web::with(|settings| settings.patience = std::time::Duration::from_secs(5));
    let ann = web.somebody("ann").await;
    web.command(&ann, "add", json!({"amount": "5.00"})).await;
    web.pass(60_000);
    web.broker.commit_nothing();
    for _ in 0..3 {
        assert_eq!(web.get(&ann, "/account").await.json()["cash"], "5.00");
    }
    assert_eq!(web.broker.left(), 1);
}

#[tokio::test]
async fn the_ninth_session_ends_the_oldest() {
    let web = Web::new();
    let mut sessions = vec![web.somebody("ann").await];
    for _ in 0..8 {
        sessions.push(web.sign_in("ann").await);
    }
    let mut known = Vec::new();
    for session in &sessions {
        known.push(web.get(session, "/session").await.status.as_u16());
    }
    assert_eq!(known, [401, 200, 200, 200, 200, 200, 200, 200, 200]);
}

#[tokio::test]
async fn forged_and_doubled_cookies_are_nobodys() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let (good, digest) = (&ann.token, pares_keys::to_hex(&sha256(&ann.token)));
    let forged =
        ["", "x", "null", &good[1..], &good.to_uppercase(), &digest, &"a".repeat(100_000), "ann", "%00"];
    for token in forged {
        for header in
            [("cookie", format!("pares_session={token}")), ("authorization", format!("Bearer {token}"))]
        {
            assert_eq!(web.ask("GET", "/session", &[header], &NONE).await.status, 401, "{token:?}");
        }
    }
    let double = ("cookie", format!("pares_session={good}; pares_session={good}"));
    assert_eq!(web.ask("GET", "/session", &[double], &NONE).await.status, 401);
    let other_scheme = ("authorization", format!("Basic {good}"));
    assert_eq!(web.ask("GET", "/session", &[other_scheme], &NONE).await.status, 401);
}

fn sha256(text: &str) -> [u8; 32] {
    ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref().try_into().unwrap()
}

#[tokio::test]
async fn a_cookie_alone_changes_nothing_and_another_site_neither() {
    let web = Web::new();
    let (ann, bob) = (web.somebody("ann").await, web.somebody("bob").await);
    let csrf = |of: &Signed| ("x-csrf", of.csrf.clone());
    let header = |name: &'static str, value: &str| (name, value.to_owned());
    let (origin, evil) = (header("origin", "http://here"), header("origin", "http://evil.example"));
    let refused: [&[(&str, String)]; 7] = [
        &[],
        &[csrf(&bob)],
        &[header("x-csrf", "")],
        std::slice::from_ref(&origin),
        &[csrf(&ann), evil.clone()],
        &[csrf(&ann), header("origin", "null")],
        &[csrf(&ann), origin.clone(), header("sec-fetch-site", "cross-site")],
    ];
    let add = json!({"amount": "1.00"});
    for more in refused {
        let headers = [&[ann.cookie()], more].concat();
        let answer = web.ask("POST", "/commands/add", &headers, &add).await;
        assert_eq!(answer.told(), (403, "cross-site".into()), "{more:?}");
        assert_eq!(web.ask("DELETE", "/session", &headers, &NONE).await.status, 403);
    }
    assert_eq!(web.get(&ann, "/account").await.status, 404, "nothing was done");
    let good = [ann.cookie(), csrf(&ann), origin, header("sec-fetch-site", "same-origin")];
    assert_eq!(web.ask("POST", "/commands/add", &good, &add).await.status, 200);
    assert_eq!(web.ask("GET", "/account", &[ann.cookie()], &NONE).await.status, 200, "reading needs no more");
    let sign_in = json!({"name": "ann", "password": PASSWORD});
    for path in ["/session", "/people"] {
        let found = web.ask("POST", path, std::slice::from_ref(&evil), &sign_in).await.told();
        assert_eq!(found, (403, "cross-site".into()));
    }
}

fn code(secret: &str, now_ms: u64) -> String {
    let secret = Secret::try_from_base32(secret).unwrap();
    Builder::new().with_secret(secret).build().unwrap().generate(now_ms / 1_000).to_string()
}

fn own() -> Value {
    json!({"password": PASSWORD})
}

async fn in_by_code(web: &Web, code: Option<&str>) -> (u16, String) {
    let body = json!({"name": "ann", "password": PASSWORD, "code": code});
    web.ask("POST", "/session", &[], &body).await.told()
}

#[tokio::test]
async fn confirmed_second_factor_is_required_code_used_once() {
    let web = Web::new();
    let (ann, other) = (web.somebody("ann").await, web.sign_in("ann").await);
    let told = web.post(&ann, "/totp", own()).await.json();
    let secret = told["secret"].as_str().unwrap();
    assert!(told["uri"].as_str().unwrap().starts_with("otpauth://totp/Pares:ann?secret="), "{told}");
    assert_eq!(in_by_code(&web, None).await.0, 200, "not confirmed yet");
    let now = || (web.settings.clock)();
    let wrong = code(secret, now() + 600_000);
    let found = web.post(&ann, "/totp/confirm", json!({"code": wrong})).await.told();
    assert_eq!(found, (422, "wrong-code".into()));
    assert_eq!(web.post(&ann, "/totp/confirm", json!({"code": code(secret, now())})).await.status, 204);
    assert_eq!(web.get(&other, "/session").await.status, 401, "other sessions end");
    assert_eq!(web.post(&ann, "/totp", own()).await.told(), (409, "person-changed".into()));
    assert_eq!(in_by_code(&web, None).await, (401, "code-needed".into()));
    assert_eq!(in_by_code(&web, Some(&code(secret, now()))).await, (401, "code-used".into()));
    web.pass(30_000);
    for wrong in [wrong.as_str(), "", "000", "abcdef", "12345678901234567890"] {
        assert_eq!(in_by_code(&web, Some(wrong)).await, (401, "wrong-code".into()), "{wrong}");
        web.pass(60_000);
    }
    let good = code(secret, now());
    assert_eq!(in_by_code(&web, Some(&good)).await.0, 200);
    assert_eq!(in_by_code(&web.other(), Some(&good)).await, (401, "code-used".into()));
    web.pass(30_000);
    let end = |password: &str, code: String| json!({"password": password, "code": code});
    let by = [ann.bearer()];
    let answer = web.ask("DELETE", "/totp", &by, &end("wrong password", code(secret, now()))).await;
    assert_eq!(answer.told(), (403, "wrong-password".into()));
    assert_eq!(web.ask("DELETE", "/totp", &by, &end(PASSWORD, good)).await.told().0, 401);
    assert_eq!(web.ask("DELETE", "/totp", &by, &end(PASSWORD, code(secret, now()))).await.status, 204);
    assert_eq!(in_by_code(&web, None).await.0, 200);
}

#[tokio::test]
async fn an_address_that_tries_too_often_waits_whatever_the_names_are() {
    let web = Web::with(|settings| settings.sign_ins = pares_web::Allowance { burst: 3.0, per_second: 0.5 });
    for name in ["a", "b", "c"] {
        assert_eq!(web.try_in(name, PASSWORD).await.status, 401);
    }
    let answer = web.try_in("d", PASSWORD).await;
    assert_eq!((answer.told(), answer.retry_s()), ((429, "too-many".into()), 2));
    web.pass(2_000);
    assert_eq!(web.sign_up("d").await.status, 201);
}

#[tokio::test]
async fn password_checks_are_limited_by_name_and_address() {
    let of = |burst| pares_web::Allowance { burst, per_second: 0.1 };
    let web = Web::with(|settings| (settings.proofs, settings.sign_ins) = (of(2.0), of(9.0)));
    let (ann, bob) = (web.somebody("ann").await, web.somebody("bob").await);
    let same = json!({"password": PASSWORD, "new": PASSWORD});
    assert_eq!(web.post(&ann, "/totp", own()).await.status, 200);
    assert_eq!(web.post(&ann, "/password", same.clone()).await.status, 204);
    for (path, body) in [("/totp", own()), ("/password", same)] {
        let answer = web.post(&ann, path, body).await;
        assert_eq!((answer.told(), answer.retry_s()), ((429, "too-many".into()), 10), "{path}");
    }
    assert_eq!(web.ask("DELETE", "/totp", &[ann.bearer()], &own()).await.told().0, 429);
    assert_eq!(web.post(&bob, "/totp", own()).await.status, 200, "by name");
    web.sign_in("ann").await;
    assert_eq!(web.post(&bob, "/totp", own()).await.status, 200);
    web.pass(20_000);
    assert_eq!(web.post(&ann, "/totp", own()).await.status, 200);
    web.sign_in("ann").await;
    assert_eq!(web.post(&bob, "/totp", own()).await.status, 429, "both have used up the address's tries");
}

#[tokio::test]
async fn a_stolen_session_sets_no_second_factor_and_no_password() {
    let web = Web::new();
    let stolen = web.somebody("ann").await;
    for body in [NONE, json!({"password": "a wrong one"}), json!({"password": ""})] {
        let answer = web.post(&stolen, "/totp", body.clone()).await;
        assert!(matches!(answer.status.as_u16(), 400 | 403), "{body}: {answer:?}");
        let body = json!({"password": body["password"], "new": "another password"});
        assert!(matches!(web.post(&stolen, "/password", body).await.status.as_u16(), 400 | 403));
    }
    web.pass(60_000);
    assert_eq!(in_by_code(&web, None).await.0, 200, "its owner gets in as before");
}

#[tokio::test]
async fn who_changes_his_password_is_signed_out_everywhere_else() {
    let web = Web::new();
    let (ann, other) = (web.somebody("ann").await, web.sign_in("ann").await);
    let change = |password: &str, new: &str| json!({"password": password, "new": new});
    let short = web.post(&ann, "/password", change(PASSWORD, "short")).await;
    assert_eq!(short.told(), (422, "bad-password".into()));
    let wrong = web.post(&ann, "/password", change("not this one", "another password")).await;
    assert_eq!(wrong.told(), (403, "wrong-password".into()));
    assert_eq!(web.get(&other, "/session").await.status, 200);
    assert_eq!(web.post(&ann, "/password", change(PASSWORD, "another password")).await.status, 204);
    assert_eq!(web.get(&ann, "/session").await.status, 200);
    assert_eq!(web.other().get(&other, "/session").await.status, 401);
    assert_eq!(web.try_in("ann", PASSWORD).await.told(), (401, "wrong-password".into()));
    assert_eq!(web.try_in("ann", "another password").await.status, 200);
}

#[tokio::test]
async fn all_sessions_end_at_once() {
    let web = Web::new();
    let (ann, other, bob) = (web.somebody("ann").await, web.sign_in("ann").await, web.somebody("bob").await);
    assert_eq!(web.ask("DELETE", "/sessions", &[ann.bearer()], &NONE).await.status, 204);
    for (who, status) in [(&ann, 401), (&other, 401), (&bob, 200)] {
        assert_eq!(web.get(who, "/session").await.status, status);
    }
}

#[tokio::test]
async fn over_asking_address_waits_before_sites_are_asked() {
    let web = Web::with(|settings| settings.callers = pares_web::Allowance { burst: 3.0, per_second: 0.5 });
    let nobody = Signed { token: "x".to_owned(), csrf: String::new() };
    for _ in 0..3 {
        assert_eq!(web.get(&nobody, "/session").await.status, 401);
    }
    web.broker.set_away(true);
    let answer = web.get(&nobody, "/session").await;
    assert_eq!((answer.told(), answer.retry_s()), ((429, "too-many".into()), 2));
}
