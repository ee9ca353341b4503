//! The client against a gateway of a few lines, over loopback.
#![allow(clippy::unwrap_used)] // clippy lets tests unwrap, but not the functions they share

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;

use pares_client::{Client, ClientError, OpenRequests, Options, Update};
use pares_exercise::replies;
use pares_types::{
    Answer, ClientOrderId, ClientRequest, Command, GatewayId, InstrumentId, MemberId, OrderChange, OrderId,
    OrderNews, Phase, Position, Price, Quantity, Reason, Reply, RequestId, ShardId, Side, Status,
};
use pares_wire::frame::{self, ClientFrame, Pong, SignedOn};

/// Serves one connection after the other: `answer` turns each request into replies, or `None` to hang up.
fn gateway(
    connections: usize,
    answer: impl Fn(usize, ClientRequest) -> Option<Vec<Reply>> + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = spawn(move || {
        for connection in 0..connections {
            let (stream, _) = listener.accept().unwrap();
            serve(stream, |request| answer(connection, request));
        }
    });
    (address, serving)
}

fn serve(mut stream: TcpStream, answer: impl Fn(ClientRequest) -> Option<Vec<Reply>>) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4_096]);
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        bytes.extend_from_slice(&chunk[..count]);
        let mut out = Vec::new();
        while let Some((kind, body, rest)) = frame::split(&bytes).unwrap() {
            match frame::decode_client(kind, body).unwrap() {
                ClientFrame::SignOn(sign_on) => {
                    let (member, token) = (sign_on.member, sign_on.token);
                    let (gateway, in_flight_max) = (9.into(), 64.into());
                    let signed_on = SignedOn { member, token, gateway, in_flight_max, ..SignedOn::default() };
                    frame::write(&mut out, &signed_on);
                }
                ClientFrame::Proof(_)
                | ClientFrame::Resume { .. }
                | ClientFrame::CancelAfter { .. }
                | ClientFrame::OrderStatusRequest(_)
                | ClientFrame::ListRequest(_)
                | ClientFrame::LimitsRequest { .. } => {
                    unreachable!("nobody asks for any of them")
                }
                ClientFrame::Ping(ping) => frame::write(&mut out, &Pong { token: ping.token }),
                ClientFrame::Request(request) => match answer(request) {
                    Some(replies) => replies.iter().for_each(|reply| frame::write_reply(&mut out, reply)),
                    None => return,
                },
            }
            bytes = rest.to_vec();
        }
        let _ = stream.write_all(&out);
    }
}

fn request(name: u64) -> ClientRequest {
    let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(0));
    ClientRequest::MassCancel { client_order_id, instrument, side: None }
}

fn answer(name: u64) -> Answer {
    let (instrument, status, remaining) = (InstrumentId(0), Status::MassCancelled, Quantity(0));
    Answer { instrument, status, remaining, position: Position(name), ..replies::answer(name, 0) }
}

/// Polls until `count` updates came.
fn updates(client: &mut Client, count: usize) -> Vec<Update> {
    let mut updates = Vec::new();
    while updates.len() < count {
        client.flush().unwrap();
        client.wait(Duration::from_secs(5)).unwrap();
        client.poll(|update| updates.push(update)).unwrap();
    }
    updates
}

#[test]
fn signing_on_tells_who_answers_and_how_much_it_takes() {
    let (address, serving) = gateway(1, |_, _| None);
    let client = Client::connect(address, MemberId(7)).unwrap();
    assert_eq!((client.gateway(), client.in_flight_max()), (GatewayId(9), 64));
    drop(client);
    serving.join().unwrap();
}

#[test]
fn waiting_for_one_answer_keeps_what_comes_before_it() {
    // The gateway answers the first request only together with the second.
    let (address, serving) = gateway(1, |_, request| {
        let second = request.client_order_id() == ClientOrderId(2);
        Some(if second { vec![Reply::Answer(answer(1)), Reply::Answer(answer(2))] } else { vec![] })
    });
    let mut client = Client::connect(address, MemberId(7)).unwrap();
    client.send(&request(1)).unwrap();
    assert_eq!(client.submit_and_wait(&request(2)).unwrap(), answer(2));
    client.ping(5).unwrap();
    assert_eq!(updates(&mut client, 2), [Update::Answer(answer(1)), Update::Pong { token: 5 }]);
    drop(client);
    serving.join().unwrap();
}

#[test]
fn a_rejection_is_an_error_that_says_why() {
    let (address, serving) = gateway(1, |_, request| {
        let client_order_id = request.client_order_id();
        Some(vec![Reply::Rejected { client_order_id, reason: Reason::Overloaded }])
    });
    let mut client = Client::connect(address, MemberId(7)).unwrap();
    let rejected = client.submit_and_wait(&request(1));
    assert!(matches!(rejected, Err(ClientError::Rejected(Reason::Overloaded))));
    drop(client);
    serving.join().unwrap();
}

#[test]
fn a_gateway_that_hangs_up_loses_nothing_that_is_repeated() {
    // The first connection answers request 1 and is lost at request 3.
    let (address, serving) =
        gateway(2, |connection, request| match (connection, request.client_order_id().0) {
            (0, 3) => None,
            (0, 2) => Some(vec![]),
            (_, name) => Some(vec![Reply::Answer(answer(name))]),
        });
    let (mut client, mut open) = (Client::connect(address, MemberId(7)).unwrap(), OpenRequests::new());
    open.submit(&mut client, &request(1)).unwrap();
    assert_eq!(updates(&mut client, 1).iter().filter_map(|update| open.on_update(update)).count(), 1);
    for name in [2, 3] {
        open.submit(&mut client, &request(name)).unwrap();
        client.flush().unwrap();
    }
    client.wait(Duration::from_secs(5)).unwrap();
    assert!(matches!(client.poll(|_| ()), Err(ClientError::Closed)));

    let mut client = Client::connect(address, MemberId(7)).unwrap();
    assert_eq!(open.repeat_all(&mut client).unwrap(), 2);
    assert_eq!(updates(&mut client, 2).iter().filter_map(|update| open.on_update(update)).count(), 2);
    assert_eq!((open.len(), open.retries()), (0, 2));
    drop(client);
    serving.join().unwrap();
}

#[test]
fn whoever_does_not_speak_the_protocol_is_found_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        let _ = stream.read(&mut [0; 64]);
    });
    let refused = Client::connect(address, MemberId(7));
    assert!(matches!(refused, Err(ClientError::Protocol(_))));
    serving.join().unwrap();
}

#[test]
fn whoever_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = Options { patience: Duration::from_millis(1), ..Options::default() };
    let silent = Client::connect_with(listener.local_addr().unwrap(), MemberId(7), options);
    assert!(matches!(silent, Err(ClientError::TimedOut)));
}

#[test]
fn nobody_listening_is_said_with_the_address() {
    let Err(error) = Client::connect("127.0.0.1:1", MemberId(7)) else { panic!("nobody listens on port 1") };
    assert!(error.to_string().contains("cannot reach a gateway at 127.0.0.1:1"));
}

#[test]
fn the_exchange_asks_and_is_told_what_became_of_it() {
    let news = OrderNews {
        client_order_id: ClientOrderId(5),
        order: OrderId(RequestId::new(GatewayId(9), 5)),
        shard: ShardId(0),
        position: Position(1),
        instrument: InstrumentId(1),
        side: Side::Buy,
        change: OrderChange::Withdrawn,
        price: Price(1),
        remaining: Quantity(2),
        shown: Quantity(0),
        number: 1,
    };
    let (address, serving) = gateway(1, move |_, request| match request {
        ClientRequest::Exchange { command: Command::SetPhase(Phase::Halted), .. } => {
            Some(vec![Reply::News(news), Reply::Answer(answer(1))])
        }
        _ => None,
    });
    let mut client = Client::connect(address, MemberId(0)).unwrap();
    client.exchange(ClientOrderId(1), InstrumentId(1), Command::SetPhase(Phase::Halted)).unwrap();
    assert_eq!(updates(&mut client, 2), [Update::News(news), Update::Answer(answer(1))]);
    drop(client);
    serving.join().unwrap();
}
