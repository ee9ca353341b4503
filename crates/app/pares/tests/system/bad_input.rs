//! What no client should send: each gets a clear reason or a closed connection, and another member trades on
//! through the same gateway during all of it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use pares_client::{Client, ClientError};
use pares_node::SystemConfig;
use pares_types::{ClientOrderId, MemberId, Reason, Side, Status};
use pares_wire::frame::{self, FRAME_MAX, GatewayFrame, SignOn};

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::{PATIENCE, cancel, eventually, limit, random};

/// A member that wants to trade in peace.
pub(crate) struct Bystander {
    client: Client,
    names: u64,
}

impl Bystander {
    /// A trade, with itself.
    pub(crate) fn trades(&mut self) {
        for side in [Side::Sell, Side::Buy] {
            self.names += 1;
            let answer = self.client.submit_and_wait(&limit(self.names, 3, side, 1, 500_000)).unwrap();
            assert_ne!(answer.status, Status::Refused);
        }
        self.client.poll(drop).unwrap();
    }
}

/// A system whose gateway a bystander trades at, and where that is.
pub(crate) fn peaceful(config: &SystemConfig) -> (Exchange, Bystander, SocketAddr) {
    let exchange = Exchange::start(config);
    let client = exchange.client(0, 1_000);
    let address = exchange.addresses()[0];
    (exchange, Bystander { client, names: 0 }, address)
}

/// A connection that speaks bytes.
pub(crate) fn raw(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The same, signed on as `member`.
pub(crate) fn signed_on(address: SocketAddr, member: u32) -> TcpStream {
    let mut stream = raw(address);
    let mut bytes = Vec::new();
    frame::write(&mut bytes, &SignOn { member: member.into(), ..SignOn::default() });
    stream.write_all(&bytes).unwrap();
    assert!(matches!(read_frame(&mut stream), Some(GatewayFrame::SignedOn(_))));
    stream
}

/// The next frame; none if the connection is closed.
pub(crate) fn read_frame(stream: &mut TcpStream) -> Option<GatewayFrame> {
    let mut bytes = vec![0; 4];
    if !read_all(stream, &mut bytes) {
        return None;
    }
    let length = usize::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    bytes.resize(length, 0);
    assert!(read_all(stream, &mut bytes[4..]), "a frame is whole");
    let (kind, body, _) = frame::split(&bytes).unwrap().unwrap();
    Some(frame::decode_gateway(kind, body).unwrap())
}

/// Fills `bytes`, or says that the connection is closed.
fn read_all(stream: &mut TcpStream, bytes: &mut [u8]) -> bool {
    match stream.read_exact(bytes) {
        Ok(()) => true,
        Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => false,
        Err(error) => panic!("neither a frame nor a closed connection: {error}"),
    }
}

/// Sends bytes and expects the connection to be closed without a word.
fn is_closed_after(mut stream: TcpStream, bytes: &[u8]) {
    // It may be closed before all of it is sent.
    let _ = stream.write_all(bytes);
    assert!(read_frame(&mut stream).is_none(), "closed: {:?}", &bytes[..bytes.len().min(16)]);
}

#[test]
fn garbage_closes_the_connection_and_nobody_else_notices() {
    let (exchange, mut bystander, address) = peaceful(&small(1));
    let mut random = random(1);
    for round in 0..200 {
        let mut garbage: Vec<u8> = (0..1 + random.below(4_000)).map(|_| random.next_u64() as u8).collect();
        // Never by accident a head that is right: that would be half a frame, which is waited for.
        garbage.splice(0..0, [0xFF; 4]);
        let stream = if round % 2 == 0 { raw(address) } else { signed_on(address, 7) };
        is_closed_after(stream, &garbage);
        if round % 20 == 0 {
            bystander.trades();
        }
    }
    let huge = [0xFF, 0xFF, 2, frame::VERSION];
    let just_too_long = [FRAME_MAX as u8 + 1, 0, 2, frame::VERSION];
    let too_short = [3, 0, 2, frame::VERSION];
    let wrong_version = [36, 0, 2, frame::VERSION + 1];
    let unknown_kind = [4, 0, 99, frame::VERSION];
    let a_gateways_kind = [4, 0, 131, frame::VERSION];
    for head in [huge, just_too_long, too_short, wrong_version, unknown_kind, a_gateways_kind] {
        is_closed_after(raw(address), &head);
        is_closed_after(signed_on(address, 7), &head);
        bystander.trades();
    }
    assert_eq!(exchange.counter(gateway(0), "malformed_connections"), 212);
}

#[test]
fn damaged_frames_are_rejected_or_close_the_connection() {
    let (_exchange, mut bystander, address) = peaceful(&small(1));
    let mut random = random(2);
    for round in 0..300 {
        let mut bytes = Vec::new();
        for name in 0..5 {
            frame::write_request(&mut bytes, &limit(round * 5 + name, 1, Side::Buy, 1, 1_000_000));
        }
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        signed_on(address, 7).write_all(&bytes).unwrap();
        if round % 30 == 0 {
            bystander.trades();
        }
    }
    bystander.trades();
}

#[test]
fn half_a_frame_then_silence_is_closed_in_the_end() {
    let (exchange, mut bystander, address) = peaceful(&small(1));
    let mut half = signed_on(address, 7);
    half.write_all(&[36, 0, 2]).unwrap();
    let mut mute = raw(address);
    let quiet = signed_on(address, 8);
    // Each of its writes ends in the middle of a frame, but never of the same.
    let mut busy = signed_on(address, 9);
    let mut frames = Vec::new();
    frame::write_request(&mut frames, &cancel(1, 2));
    busy.write_all(&frames[..5]).unwrap();
    frames.rotate_left(5);
    for stream in [&mut half, &mut mute] {
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let begun = Instant::now();
        // A read that times out is no news; one of nothing is the end.
        while !matches!(stream.read(&mut [0; 64]), Ok(0)) {
            assert!(begun.elapsed() < PATIENCE, "closed in the end");
            bystander.trades();
            busy.write_all(&frames).unwrap();
            assert!(read_frame(&mut busy).is_some());
        }
    }
    eventually("both are counted", || exchange.counter(gateway(0), "silent_connections") == 2);
    // Who is signed on and owes nothing may be silent for as long as it likes.
    let mut quiet = quiet;
    let mut bytes = Vec::new();
    frame::write_request(&mut bytes, &cancel(1, 2));
    quiet.write_all(&bytes).unwrap();
    assert!(read_frame(&mut quiet).is_some());
}

#[test]
fn short_or_out_of_range_body_rejected_connection_stays() {
    let exchange = Exchange::start(&small(1));
    let mut stream = signed_on(exchange.addresses()[0], 7);
    let mut whole = Vec::new();
    frame::write_request(&mut whole, &limit(9, 1, Side::Buy, 1, 1_000_000));
    let cut_short = [&[20, 0, 2, frame::VERSION], &whole[4..20]].concat();
    let wrong_side = [&whole[..32], &[7], &whole[33..]].concat();
    for bytes in [cut_short, wrong_side] {
        stream.write_all(&bytes).unwrap();
        let Some(GatewayFrame::Reply(reply)) = read_frame(&mut stream) else { panic!("a reply") };
        let (client_order_id, reason) = (ClientOrderId(9), Reason::MalformedRequest);
        assert_eq!(reply, pares_types::Reply::Rejected { client_order_id, reason });
    }
    stream.set_nodelay(true).unwrap();
    for piece in [whole.len(), 1] {
        whole.chunks(piece).for_each(|bytes| stream.write_all(bytes).unwrap());
        let answer = read_frame(&mut stream);
        assert!(matches!(answer, Some(GatewayFrame::Reply(pares_types::Reply::Answer(_)))), "{answer:?}");
    }
}

#[test]
fn ten_thousand_connections_leave_room_for_those_who_trade() {
    const CONNECTIONS: usize = 10_000;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX);
    if limit < CONNECTIONS as u64 + 1_000 {
        eprintln!("skipped: only {limit} open files are allowed (ulimit -n)");
        return;
    }
    let (_exchange, mut bystander, address) = peaceful(&SystemConfig { sessions_max: 500, ..small(1) });
    let mut streams = Vec::with_capacity(CONNECTIONS);
    while streams.len() < CONNECTIONS {
        streams.extend((0..500).map(|_| raw(address)));
        bystander.trades();
    }
    // Those that found no room were refused and closed; the others wait for a sign-on that will not come. The bystander has taken
    // room first, so the 500th finds none; later ones may, once the first have waited too long.
    let refused = &mut streams[499];
    let Some(GatewayFrame::Reply(reply)) = read_frame(refused) else { panic!("a reply") };
    let (client_order_id, reason) = (ClientOrderId(0), Reason::TooManyConnections);
    assert_eq!(reply, pares_types::Reply::Rejected { client_order_id, reason });
    assert!(read_frame(refused).is_none());
    bystander.trades();
    drop(streams);
    bystander.trades();
    let mut newcomer = loop {
        match Client::connect(address, MemberId(7)) {
            Ok(client) => break client,
            // The gateway has not seen yet that the others are gone.
            Err(
                ClientError::Rejected(Reason::TooManyConnections) | ClientError::Closed | ClientError::Io(_),
            ) => {}
            Err(error) => panic!("{error}"),
        }
    };
    newcomer.submit_and_wait(&crate::common::limit(1, 1, Side::Buy, 1, 1_000_000)).unwrap();
}

#[test]
fn a_client_that_never_reads_is_disconnected_and_hurts_nobody() {
    let (exchange, mut bystander, address) = peaceful(&small(1));
    let mut deaf = signed_on(address, 7);
    deaf.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    // Repeats of one request: each is answered, and no answer is ever read.
    let mut bytes = Vec::new();
    for _ in 0..1_000 {
        frame::write_request(&mut bytes, &limit(1, 1, Side::Buy, 1, 1_000_000));
    }
    let begun = Instant::now();
    let mut sent = 0;
    loop {
        // Whole frames, however the socket takes them.
        match deaf.write(&bytes[sent % bytes.len()..]) {
            Ok(written) => sent += written,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        bystander.trades();
        assert!(begun.elapsed() < PATIENCE, "disconnected in the end");
    }
    eventually("it is counted", || exchange.counter(gateway(0), "slow_connections") == 1);
}
