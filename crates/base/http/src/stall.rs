//! A stream that a client who does not read cannot keep for ever.
//!
//! A timeout for a whole answer would cut off a long log over a slow line. What counts is whether bytes go at all: a write that waits longer than its patience fails.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

pub(crate) struct Stalling<S, P> {
    stream: S,
    patience: Duration,
    /// Given back when the stream ends, also if it has become another protocol's meanwhile.
    _place: P,
    /// Since a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S: Unpin, P> Stalling<S, P> {
    pub(crate) fn new(stream: S, patience: Duration, place: P) -> Self {
        Self { stream, patience, _place: place, waiting: None }
    }

    fn wait<T>(&mut self, context: &mut Context<'_>, tried: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.waiting = None;
            return tried;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| {
            let mut waiting = Box::pin(sleep(patience));
            waiting.as_mut().reset(Instant::now() + patience);
            waiting
        });
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin, P: Unpin> AsyncRead for Stalling<S, P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin, P: Unpin> AsyncWrite for Stalling<S, P> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.wait(context, tried)
    }
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_flush(context);
        self.wait(context, tried)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = Pin::new(&mut self.stream).poll_shutdown(context);
        self.wait(context, tried)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_reads_slowly_gets_all_and_who_does_not_read_is_let_go() {
        let patience = Duration::from_secs(15);
        let (server, mut client) = duplex(64);
        let mut server = Stalling::new(server, patience, ());
        let writing = tokio::spawn(async move {
            server.write_all(&[7; 640]).await.unwrap();
            server.write_all(&[7; 640]).await.unwrap_err().kind()
        });
        let mut part = [0; 64];
        for _ in 0..10 {
            tokio::time::sleep(patience - Duration::from_secs(1)).await;
            client.read_exact(&mut part).await.unwrap();
        }
        assert_eq!(writing.await.unwrap(), io::ErrorKind::TimedOut);
    }
}
