//! Wrong keys: each guess is well formed in all but its key, and a conversation up to the answer that says that its key was looked at.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use pares_client::{Client, ClientError, Credential, Options, Secret, from_hex, random_token, to_hex};
use pares_load::{HttpAnswer, HttpConnection, LabError, fix_logon, ouch_login};
use pares_types::{MemberId, Reason};

use super::bytes::{Told, is_let_in, is_looked_at};
use super::guests::{connect, is_there, let_in};
use super::{Attack, Port};

/// The session of each member.
const SESSION: u16 = 1;
/// How long an answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// Guesses once, at that port. Says whether it was refused as a key that was looked at: others find no room, or are refused unread because too many were tried.
pub(super) fn guess(port: Port, address: SocketAddr, member: MemberId) -> Result<bool, LabError> {
    let secret = Secret::generate();
    match port {
        Port::Binary => by_binary(address, member, secret),
        Port::Fix => by_door(port, address, &fix_logon(member, &secret)),
        Port::Ouch => {
            let token = random_token();
            by_door(port, address, &ouch_login(member, std::str::from_utf8(&token).expect("letters")))
        }
        Port::Http => match by_http(address, member, &secret) {
            Ok(answers) => is_refused_by_http(address, &answers),
            Err(error) => is_there(address, &error).map(|()| false),
        },
    }
}

fn by_binary(address: SocketAddr, member: MemberId, secret: Secret) -> Result<bool, LabError> {
    let credential = Some(Credential { session: SESSION, secret });
    match Client::connect_with(address, member, Options { credential, ..Options::default() }) {
        Err(ClientError::Rejected(Reason::WrongKey)) => Ok(true),
        // No room among those who have not signed on yet, or for another try.
        Err(
            ClientError::Rejected(Reason::TooManyAttempts | Reason::TooManyConnections) | ClientError::Closed,
        ) => Ok(false),
        Err(error) => Err(error.into()),
        Ok(_) => Err(let_in(address, &format!("member {member}"))),
    }
}

/// One message, and what is said to it until the connection ends. OUCH has one word for a wrong password and for too many of them: the first
/// of each name is looked at.
fn by_door(port: Port, address: SocketAddr, logon: &[u8]) -> Result<bool, LabError> {
    let Some(mut stream) = connect(address)? else { return Ok(false) };
    let said = stream.set_read_timeout(Some(ANSWER_LIMIT)).and_then(|()| stream.write_all(logon));
    if said.is_err() {
        return Ok(false);
    }
    let told = Told::on(&mut stream);
    match &told {
        Told::Answer(answer) if is_let_in(port, answer) => {
            Err(let_in(address, &String::from_utf8_lossy(answer)))
        }
        told => Ok(is_looked_at(Attack::WrongKeys, port, told)),
    }
}

/// What is answered to a token that is nobody's, to a sign-on, and to a proof by a wrong key; less if it does not come so far.
fn by_http(address: SocketAddr, member: MemberId, secret: &Secret) -> io::Result<Vec<HttpAnswer>> {
    let mut connection = HttpConnection::connect(address)?;
    connection.stream().set_read_timeout(Some(ANSWER_LIMIT))?;
    connection.set_token(&to_hex(&secret.prove(b"")[..32]));
    connection.put("GET", "/v1/orders", "", "");
    let mut answers = vec![connection.wait()?];
    connection.put_sign_on(member.0, SESSION);
    let challenge = connection.wait()?;
    if let Some((id, transcript)) = challenge_of(&challenge) {
        let proof = to_hex(&secret.prove(&transcript));
        connection.put("POST", &format!("/v1/sign-on/{id}"), "", &format!("{{\"proof\":\"{proof}\"}}"));
        answers.extend([challenge.clone(), connection.wait()?]);
    } else {
        answers.push(challenge);
    }
    Ok(answers)
}

/// The sign-on that waits for a proof, and what it is to sign.
fn challenge_of(answer: &HttpAnswer) -> Option<(&str, Vec<u8>)> {
    let (first, second) = answer.text("transcript")?.split_at_checked(64)?;
    Some((answer.text("sign_on")?, [from_hex(first)?, from_hex(second)?].concat()))
}

fn is_refused_by_http(address: SocketAddr, answers: &[HttpAnswer]) -> Result<bool, LabError> {
    if let Some(answer) = answers.iter().find(|answer| matches!(answer.status, 200 | 201)) {
        return Err(let_in(address, &answer.body));
    }
    let told: Vec<_> = answers.iter().map(|answer| (answer.status, answer.text("reason"))).collect();
    Ok(told == [(401, Some("sign_on_again")), (202, None), (401, Some("wrong_key"))])
}
