//! A server that does nothing but hand the same bytes to all who connect: each turn's frames are made once, and each connection writes what has come since it wrote last.

use std::sync::Arc;
use std::time::Duration;

use pares_load::{LabError, LabResult};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use super::TURN;
use super::changes::clock;
use super::subscribers::{Read, Subscribers};
use crate::bench::entry::Args;
use crate::bench::peer::{self, PeerProcess};

/// Turns that a connection may be behind.
const BEHIND_MAX: usize = 256;
/// Worker threads, as of the exchange's server.
const THREADS: usize = 2;

type Turn = Arc<[u8]>;

pub(super) fn measure(args: &Args, lasting: Duration) -> Result<Read, LabError> {
    let address = peer::free_address()?;
    let (port, books) = (address.port().to_string(), args.books.to_string());
    let _server = PeerProcess::start(&["broadcast", &port, &books])?;
    Subscribers::of_yardstick(address, args.connections())?.read(lasting, &mut || {})
}

/// Serves until killed.
///
/// # Errors
/// If the port cannot be had.
pub(crate) fn serve(port: u16, books: u32) -> LabResult {
    let mut building = tokio::runtime::Builder::new_multi_thread();
    let runtime = building.worker_threads(THREADS).enable_all().build();
    let runtime = runtime.map_err(LabError::io("starting a server"))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.map_err(LabError::io("listening"))?;
        let (sender, _) = tokio::sync::broadcast::channel::<Turn>(BEHIND_MAX);
        peer::ready()?;
        tokio::spawn(turns(sender.clone(), books));
        loop {
            let (stream, _) = listener.accept().await.map_err(LabError::io("accepting"))?;
            let _ = stream.set_nodelay(true);
            tokio::spawn(hand_on(stream, sender.subscribe()));
        }
    })
}

/// A delta of each book, turn by turn.
async fn turns(sender: Sender<Turn>, books: u32) {
    let mut turn = tokio::time::interval(TURN);
    for number in 1_000_000_u64.. {
        turn.tick().await;
        let mut frames = Vec::new();
        for book in 1..=books {
            let text = format!(
                "{{\"channel\":\"book\",\"type\":\"delta\",\"symbol\":\"SYM{book}\",\"previous\":\"{}\",\"number\":\"{number}\",\"is_current\":true,\"bids\":[{{\"price\":\"100\",\"quantity\":\"{}\"}}],\"offers\":[],\"checksum\":\"00000000\"}}",
                number - 1,
                clock()
            );
            let length = u16::try_from(text.len()).expect("a short text");
            frames.extend_from_slice(&[0x81, 126]);
            frames.extend_from_slice(&length.to_be_bytes());
            frames.extend_from_slice(text.as_bytes());
        }
        // Nobody may be there yet.
        let _ = sender.send(frames.into());
    }
}

async fn hand_on(mut stream: tokio::net::TcpStream, mut turns: Receiver<Turn>) {
    let mut out = Vec::new();
    loop {
        match turns.recv().await {
            Ok(turn) => out.extend_from_slice(&turn),
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        }
        while let Ok(turn) = turns.try_recv() {
            out.extend_from_slice(&turn);
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
        out.clear();
    }
}
