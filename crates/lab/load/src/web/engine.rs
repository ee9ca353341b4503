//! A session at a server.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};

use pares_types::ClientRequest;

use super::follower::{Follower, Next, Standing};
use super::http::{HttpAnswer, HttpConnection, number_of, text_of};
use super::{WebCaller, request_bodies};
use crate::front::{FrontEnd, FrontEngine, Heard};

/// A session at a server: one connection for requests, one behind the other, and one that follows.
pub(crate) struct WebEngine {
    server: SocketAddr,
    connection: HttpConnection,
    caller: WebCaller,
    follower: Option<Follower>,
    next: Next,
    is_signed_on: bool,
    /// What was asked and is not answered, in that order.
    asked: VecDeque<ClientRequest>,
}

fn lost(error: io::Error) -> FrontEnd {
    FrontEnd::Lost(error.to_string())
}

/// A connection of the caller's session, and whether that is signed on.
fn called(server: SocketAddr, caller: &WebCaller) -> io::Result<(HttpConnection, bool)> {
    let mut connection = HttpConnection::connect(server)?;
    connection.stream().set_nonblocking(true)?;
    let token = caller.token();
    match &token {
        Some(token) => connection.set_token(token),
        None => connection.put_sign_on(caller.member.0, 0),
    }
    Ok((connection, token.is_some()))
}

impl FrontEngine for WebEngine {
    type Caller = WebCaller;
    type Numbers = Next;

    fn name(caller: &WebCaller) -> &str {
        &caller.name
    }

    fn can_say(request: &ClientRequest) -> bool {
        request_bodies::put(None, request)
    }

    fn call(server: SocketAddr, caller: &WebCaller, next: Next) -> Result<Self, (io::Error, Next)> {
        let (connection, is_signed_on) = match called(server, caller) {
            Ok(called) => called,
            Err(error) => return Err((error, next)),
        };
        let (caller, asked) = (caller.clone(), VecDeque::new());
        Ok(Self { server, connection, caller, follower: None, next, is_signed_on, asked })
    }

    fn into_numbers(self) -> Next {
        self.next
    }

    fn socket(&self) -> &TcpStream {
        self.connection.stream()
    }

    fn is_logged_on(&self) -> bool {
        let live = self.follower.as_ref().map_or(0, Follower::live);
        self.is_signed_on && live == self.caller.follows.len()
    }

    fn send(&mut self, request: &ClientRequest, _: bool) {
        if request_bodies::put(Some(&mut self.connection), request) {
            self.asked.push_back(*request);
        }
    }

    fn flush(&mut self) -> Result<(), FrontEnd> {
        self.connection.flush().map_err(lost)
    }

    fn poll(&mut self, on: &mut dyn FnMut(Heard)) -> Result<usize, FrontEnd> {
        let read = self.connection.read();
        let mut count = 0;
        while let Some(answer) = self.connection.next_answer().map_err(lost)? {
            count += 1;
            if self.is_signed_on {
                self.on_answer(&answer, on)?;
            } else {
                self.on_signed_on(&answer)?;
            }
        }
        read.map_err(lost)?;
        self.follow()?;
        Ok(count)
    }
}

impl WebEngine {
    fn on_signed_on(&mut self, answer: &HttpAnswer) -> Result<(), FrontEnd> {
        let Some(token) = text_of(&answer.body, "token") else {
            return Err(FrontEnd::Lost(format!("not signed on: {}", answer.body)));
        };
        self.is_signed_on = true;
        self.connection.set_token(token);
        self.caller.share(token);
        let follows = &self.caller.follows;
        if !follows.is_empty() {
            self.follower = Some(Follower::open(self.server, token, follows, &self.next).map_err(lost)?);
        }
        Ok(())
    }

    /// The answer to what was asked first.
    fn on_answer(&mut self, answer: &HttpAnswer, on: &mut dyn FnMut(Heard)) -> Result<(), FrontEnd> {
        let Some(request) = self.asked.pop_front() else {
            return Err(FrontEnd::Broken(format!("nothing was asked: {}", answer.body)));
        };
        let name = request.client_order_id().0;
        match answer.status {
            200 | 201 => self.note(name, &answer.body)?,
            401 => return Err(FrontEnd::Lost("the session has ended".into())),
            // It may be done or not; the same again is answered.
            429 | 503 | 504 => {
                self.send(&request, true);
                return Ok(());
            }
            403..=422 => self.caller.told.iter().for_each(|told| told.note_refused(name)),
            status => return Err(FrontEnd::Broken(format!("{status}: {}", answer.body))),
        }
        on(Heard::Answered(name));
        Ok(())
    }

    /// What an answer says is held against the record later.
    fn note(&self, name: u64, body: &str) -> Result<(), FrontEnd> {
        let number = |field| number_of(body, field);
        let said = (number("client_order_id"), number("shard"), number("position"));
        let (Some(of), Some(shard), Some(position)) = said else {
            return Err(FrontEnd::Broken(format!("no outcome: {body}")));
        };
        if of != name {
            return Err(FrontEnd::Broken(format!("{name} was asked: {body}")));
        }
        if let Some(told) = &self.caller.told {
            told.note(self.caller.member, format!("{shard}-{position}-A"), body.contains("\"repeat\":true"));
        }
        Ok(())
    }

    fn follow(&mut self) -> Result<(), FrontEnd> {
        let Self { follower: Some(follower), next, caller: WebCaller { told, member, .. }, .. } = self else {
            return Ok(());
        };
        let followed = follower.read(next, &mut |shard, number, standing| {
            let Some(told) = told else { return };
            match standing {
                Standing::Next => told.note(*member, format!("{shard}-N{number}"), false),
                Standing::BehindGap => told.note_gap(),
                Standing::Low => told.note_low(),
            }
        });
        followed.map_err(lost)
    }
}
