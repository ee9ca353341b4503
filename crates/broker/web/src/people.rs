//! Signing up, in and out.

use axum::Json;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use pares_broker::{
    Asked, BrokerRead, BrokerReply, PasswordString, Person, PersonAsked, PersonRead, PersonRight, Refusal,
    SESSION_IDLE_MS, UserName,
};
use pares_http::origins::{self, is_other_site};
use pares_table::Origin;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::{App, Shared};
use crate::body::Said;
use crate::broker::{Broker, Unavailable};
use crate::caller::{COOKIE, Caller, csrf_of, digest_of, text_of};
use crate::codes;
use crate::passwords::{Asker, PASSWORD_BYTES_MAX, PASSWORD_CHARACTERS_MIN, Passwords};
use crate::problem::{self, Answer, Problem};
use crate::settings::WebSettings;

const NAME_FORM: &str = "a name must be 1 to 32 letters and digits";
const PASSWORD_FORM: &str = "a password must have at least 10 characters and at most 256 bytes, no control characters, and none that Unicode does not assign or leaves to private use";

/// Who wants to be known.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignUp {
    /// 1 to 32 letters and digits.
    #[schema(min_length = 1, max_length = 32, pattern = "^[A-Za-z0-9]+$")]
    name: String,
    /// 10 characters at least, 256 bytes at most.
    #[schema(min_length = 10, max_length = 256)]
    password: String,
}

/// A name.
#[derive(Serialize, ToSchema)]
pub(crate) struct Named {
    name: String,
}

/// Who signs in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    name: String,
    password: String,
    /// The code of the second factor, where there is one.
    code: Option<String>,
}

/// A session that has begun.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    name: String,
    /// `trader`, `supervisor`.
    rights: Vec<&'static str>,
    /// To be sent in `X-CSRF` with all that changes something, where the cookie is used.
    csrf: String,
    /// When it ends, if it is not used again, ms since 1970.
    expires_ms: u64,
    /// For `Authorization: Bearer`; told once.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<Caller> for Session {
    fn from(Caller { name, rights, csrf, expires_ms, .. }: Caller) -> Self {
        Self { name: name.to_string(), rights: names(&rights), csrf, expires_ms, token: None }
    }
}

pub(crate) fn names(rights: &[PersonRight]) -> Vec<&'static str> {
    rights.iter().map(|right| right.name()).collect()
}

/// A name that people may have: letters and digits.
pub(crate) fn person_name(name: &str) -> Option<UserName> {
    UserName::new(name).filter(|name| name.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

pub(crate) fn check_password(password: &str) -> Answer<()> {
    let may_be = pares_keys::may_be_password(password);
    let password = pares_keys::opaque(password);
    if !may_be || password.chars().count() < PASSWORD_CHARACTERS_MIN || password.len() > PASSWORD_BYTES_MAX {
        return Err(Problem::of(StatusCode::UNPROCESSABLE_ENTITY, PASSWORD_FORM).reason("bad-password"));
    }
    Ok(())
}

/// There is a new person, who may trade.
#[utoipa::path(post, path = "/api/v1/people", security(()), request_body = SignUp, responses(
    (status = 201, description = "made", body = Named), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_up(
    State(app): State<Shared>,
    peer: Option<Extension<Origin>>,
    headers: HeaderMap,
    Said(who): Said<SignUp>,
) -> Answer<Response> {
    admit(&app, peer, &headers)?;
    let unlike = || Problem::of(StatusCode::UNPROCESSABLE_ENTITY, NAME_FORM).reason("bad-name");
    let name = person_name(&who.name).ok_or_else(unlike)?;
    check_password(&who.password)?;
    let password = app.passwords.hash(who.password, Asker::Anybody).await?;
    let (rights, takes_account) = (vec![PersonRight::Trader], false);
    let asked = PersonAsked::Add { name: name.clone(), password, rights, takes_account };
    done(app.person(asked).await?)?;
    Ok((StatusCode::CREATED, Json(Named { name: name.to_string() })).into_response())
}

/// Who has no session comes from no other site's page, and not too often.
fn admit(app: &App, peer: Option<Extension<Origin>>, headers: &HeaderMap) -> Answer<()> {
    if is_other_site(headers, app.is_secure) && !origins::is_named(headers, &app.settings.origins) {
        return Err(Problem::forbidden("requests from other origins are refused").reason("cross-site"));
    }
    app.sign_ins.take(&text_of(peer.map(|peer| peer.0)), app.now_ms()).map_err(Problem::too_many)
}

/// # Errors
/// If it was refused.
pub(crate) fn done(reply: BrokerReply) -> Answer<()> {
    match reply {
        BrokerReply::Refused { refusal } => Err(problem::refused(refusal)),
        _ => Ok(()),
    }
}

/// A session begins.
#[utoipa::path(post, path = "/api/v1/session", security(()), request_body = SignIn, responses(
    (status = 200, description = "the answer", body = Session), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_in(
    State(app): State<Shared>,
    peer: Option<Extension<Origin>>,
    headers: HeaderMap,
    Said(who): Said<SignIn>,
) -> Answer<Response> {
    admit(&app, peer, &headers)?;
    let name = person_name(&who.name);
    let person = match &name {
        Some(name) => counted(&app, name).await?,
        None => None,
    };
    let password = person.as_ref().map(|person| person.password.clone());
    let fits = app.passwords.fits(who.password, password, Asker::Anybody).await?;
    let (Some(name), Some(person), true) = (name, person, fits) else {
        return Err(wrong("name or password is wrong").reason("wrong-password"));
    };
    let step = step(&app, &person, who.code.as_deref())?;
    begin(&app, name, person, step).await
}

fn wrong(detail: &str) -> Problem {
    Problem::of(StatusCode::UNAUTHORIZED, detail)
}

/// Counts the try, and says whose it is; none if there is nobody of that name.
pub(crate) async fn counted(app: &App, name: &UserName) -> Answer<Option<Person>> {
    match app.person(PersonAsked::Try { name: name.clone() }).await? {
        BrokerReply::Person { person } => Ok(Some(person)),
        BrokerReply::Refused { refusal: Refusal::TooManyTries } => {
            let wait_ms = person(app, name).await?.wait_until_ms.saturating_sub(app.now_ms());
            Err(problem::refused(Refusal::TooManyTries).retry(wait_ms.div_ceil(1_000)))
        }
        BrokerReply::Refused { refusal: Refusal::ClockOff } => Err(problem::refused(Refusal::ClockOff)),
        _ => Ok(None),
    }
}

pub(crate) async fn person(app: &App, name: &UserName) -> Answer<Person> {
    let read = BrokerRead::Person { read: PersonRead::Person { name: name.clone() } };
    let found: Option<Person> = app.in_time(app.front.read(read)).await??;
    found.ok_or_else(|| Problem::unknown("there is no such person").reason("no-person"))
}

/// The 30 seconds of the code, where one is needed.
pub(crate) fn step(app: &App, person: &Person, code: Option<&str>) -> Answer<Option<u64>> {
    let Some(factor) = person.code.as_ref().filter(|code| code.is_confirmed) else { return Ok(None) };
    let code =
        code.ok_or_else(|| wrong("this needs the code of your second factor").reason("code-needed"))?;
    let step = codes::step_of(&factor.secret, code, app.now_ms());
    step.map(Some).ok_or_else(|| wrong("the code is wrong").reason("wrong-code"))
}

async fn begin(app: &App, name: UserName, person: Person, step: Option<u64>) -> Answer<Response> {
    let token = pares_keys::to_hex(&pares_keys::random());
    let password: PasswordString = person.password;
    let asked = PersonAsked::SignIn { name: name.clone(), password, step, session: digest_of(&token) };
    done(app.person(asked).await?)?;
    let session = Session {
        name: name.to_string(),
        rights: names(&person.rights),
        csrf: csrf_of(&token),
        expires_ms: app.now_ms() + SESSION_IDLE_MS,
        token: Some(token.clone()),
    };
    Ok(([(header::SET_COOKIE, cookie(app, &token)?)], Json(session)).into_response())
}

/// The cookie that a browser is to keep; of no token: to forget.
fn cookie(app: &App, token: &str) -> Answer<HeaderValue> {
    let secure = if app.is_secure { "; Secure" } else { "" };
    let forget = if token.is_empty() { "; Max-Age=0" } else { "" };
    let text = format!("{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict{secure}{forget}");
    HeaderValue::from_str(&text).map_err(|_| problem::unavailable())
}

/// The session that this request has.
#[utoipa::path(get, path = "/api/v1/session", responses(
    (status = 200, description = "the answer", body = Session), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn session(caller: Caller) -> Json<Session> {
    Json(caller.into())
}

/// The session ends.
#[utoipa::path(delete, path = "/api/v1/session", responses(
    (status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_out(State(app): State<Shared>, caller: Caller) -> Answer<Response> {
    done(app.person(PersonAsked::SignOut { session: caller.session }).await?)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&app, "")?)]).into_response())
}

/// Another password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewPassword {
    /// The one until now.
    password: String,
    /// 10 characters at least, 256 bytes at most.
    #[schema(min_length = 10, max_length = 256)]
    new: String,
}

/// The person, who has just shown the password: who has only a session may have stolen it. The right one ends the count of tries, so that count alone would let him have it looked at without end.
pub(crate) async fn proved(app: &App, caller: &Caller, password: String) -> Answer<Person> {
    let now_ms = app.now_ms();
    app.proofs.take(caller.name.as_str(), now_ms).map_err(Problem::too_many)?;
    app.sign_ins.take(&caller.from, now_ms).map_err(Problem::too_many)?;
    let person = counted(app, &caller.name).await?.ok_or_else(Problem::no_session)?;
    if !app.passwords.fits(password, Some(person.password.clone()), Asker::SignedIn).await? {
        return Err(Problem::forbidden("the password is wrong").reason("wrong-password"));
    }
    Ok(person)
}

/// The caller has another password from now on. All his other sessions end.
#[utoipa::path(post, path = "/api/v1/password", request_body = NewPassword, responses(
    (status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn password(
    State(app): State<Shared>,
    caller: Caller,
    Said(NewPassword { password, new }): Said<NewPassword>,
) -> Answer<StatusCode> {
    check_password(&new)?;
    let before = proved(&app, &caller, password).await?.password;
    let password = app.passwords.hash(new, Asker::SignedIn).await?;
    let Caller { name, session, .. } = caller;
    done(app.person(PersonAsked::ChangePassword { name, before, password, session }).await?)?;
    Ok(StatusCode::NO_CONTENT)
}

/// All sessions of the caller end, this one too.
#[utoipa::path(delete, path = "/api/v1/sessions", responses(
    (status = 204, description = "done"), (status = "default", description = "a problem", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn sign_out_all(State(app): State<Shared>, caller: Caller) -> Answer<Response> {
    done(app.person(PersonAsked::SignOutAll { name: caller.name }).await?)?;
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&app, "")?)]).into_response())
}

/// Why there is no such person now.
#[derive(Debug, thiserror::Error)]
pub enum PersonError {
    /// Not as people's names and passwords are.
    #[error("{0}")]
    Form(&'static str),
    /// No site answers.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    /// The rules refuse it.
    #[error("{0}")]
    Refused(Refusal),
}

/// A person's name, and the string that the password fits, as the rules take them. Takes a tenth of a second of a processor.
///
/// # Errors
/// If name or password are not as they should be.
pub fn person_of(
    settings: &WebSettings,
    name: &str,
    password: &str,
) -> Result<(UserName, PasswordString), PersonError> {
    let name = person_name(name).ok_or(PersonError::Form(NAME_FORM))?;
    check_password(password).map_err(|_| PersonError::Form(PASSWORD_FORM))?;
    Ok((name, Passwords::new(settings).hash_here(password)))
}

/// Makes a person of these rights, who has the account of this name if there is one.
///
/// # Errors
/// If the name is taken, or name or password are not as they should be.
pub async fn add_person(
    broker: &impl Broker,
    settings: &WebSettings,
    name: &str,
    password: &str,
    rights: &[PersonRight],
) -> Result<(), PersonError> {
    let (name, password) = person_of(settings, name, password)?;
    let asked = PersonAsked::Add { name, password, rights: rights.to_vec(), takes_account: true };
    match broker.ask(None, None, Asked::Person { asked }).await? {
        BrokerReply::Refused { refusal } => Err(PersonError::Refused(refusal)),
        _ => Ok(()),
    }
}
