//! A stream that a client who does not read cannot keep for ever, and whose end takes no last words away.
//!
//! A timeout for a whole answer would cut off a long log over a slow line. What counts is whether bytes go at all: a write that waits longer than its patience fails.
//!
//! A socket that is closed while bytes of the client are unread resets the connection, and the client loses an answer that it has not read: that its body or message is too long. So the server ends its own
//! direction first, and reads what still comes, for a while.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::runtime::Handle;
use tokio::time::{Instant, Sleep, sleep, timeout};

/// What comes behind the end is read for so long, and so much of it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES_MAX: u64 = 4 << 20;

/// What bytes go through.
pub(crate) trait Through: AsyncRead + AsyncWrite + Send + Unpin + 'static {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Through for S {}

pub(crate) struct Stalling<S: Through, P: Send + 'static> {
    /// The stream, and its place, which is given back when the stream ends, also if it has become another protocol's meanwhile. Taken when this is dropped.
    kept: Option<(S, P)>,
    patience: Duration,
    /// Since a write waits.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S: Through, P: Send + 'static> Stalling<S, P> {
    pub(crate) fn new(stream: S, patience: Duration, place: P) -> Self {
        Self { kept: Some((stream, place)), patience, waiting: None }
    }

    fn stream(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.kept.as_mut().expect("it is kept until the drop").0)
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

impl<S: Through, P: Send + Unpin + 'static> AsyncRead for Stalling<S, P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, to)
    }
}

impl<S: Through, P: Send + Unpin + 'static> AsyncWrite for Stalling<S, P> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream().poll_write(context, bytes);
        self.wait(context, tried)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let tried = self.stream().poll_write_vectored(context, parts);
        self.wait(context, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.kept.as_ref().is_some_and(|(stream, _)| stream.is_write_vectored())
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = self.stream().poll_flush(context);
        self.wait(context, tried)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tried = self.stream().poll_shutdown(context);
        self.wait(context, tried)
    }
}

impl<S: Through, P: Send + 'static> Drop for Stalling<S, P> {
    fn drop(&mut self) {
        // Without a runtime the process ends.
        if let (Some((stream, place)), Ok(runtime)) = (self.kept.take(), Handle::try_current()) {
            runtime.spawn(linger(stream, place));
        }
    }
}

/// Ends the stream's own direction, and waits until the client ends the other one.
async fn linger<S: Through, P>(mut stream: S, place: P) {
    let ending = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(LINGER_BYTES_MAX), &mut tokio::io::sink()).await
    };
    // Who takes longer loses what he has not read.
    let _ = timeout(LINGER, ending).await;
    drop(place);
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

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

    #[tokio::test(start_paused = true)]
    async fn what_is_dropped_ends_first_and_reads_on_for_a_while() {
        let (server, client) = duplex(64);
        let place = std::sync::Arc::new(());
        let mut server = Stalling::new(server, LINGER, std::sync::Arc::clone(&place));
        let parts = [IoSlice::new(b"too "), IoSlice::new(b"long")];
        assert_eq!((server.is_write_vectored(), server.write_vectored(&parts).await.unwrap()), (true, 8));
        drop(server);
        let (mut from, mut to) = tokio::io::split(client);
        to.write_all(&[7; 640]).await.expect("it is read");
        let mut told = Vec::new();
        from.read_to_end(&mut told).await.unwrap();
        assert_eq!((told.as_slice(), std::sync::Arc::strong_count(&place)), (&b"too long"[..], 2));
        let began = Instant::now();
        while to.write_all(&[7; 640]).await.is_ok() {
            sleep(LINGER / 4).await;
        }
        assert!(began.elapsed() <= 2 * LINGER, "{:?}", began.elapsed());
        assert_eq!(std::sync::Arc::strong_count(&place), 1);
    }
}
