//! `pares feed capture`: what comes on the lines, as a file of packets.
//!
//! It joins the lines itself, as any receiver does, so it needs no rights that a receiver does not have, and sees what one sees: on a line
//! that goes to one receiver it *is* that receiver. With `--replay` it also takes the day of each shard over TCP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use pares_config::{FeedConfig, TlsSetting};
use pares_feed::soup;
use pares_node::{Layout, SystemConfig};
use pares_receiver::line_socket;
use pares_types::ShardId;
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::json;

use super::feed_of;
use crate::commands::frames::{MadeConnection, PacketFile};
use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text;

/// What the kernel keeps of packets that were not read yet, bytes; it gives what it may.
const RECEIVE_BYTES: usize = 8 << 20;
/// Times a source is read before the others have their turn.
const READS_MAX: usize = 256;
/// How long it sleeps at most: the time until it notices Ctrl-C.
const SLEEP_MAX: Duration = Duration::from_millis(100);
/// How often a replayer receives a heartbeat.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How long a replayer may take to answer.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// Arguments of `pares feed capture`.
#[derive(clap::Args)]
pub struct Args {
    /// The file to write: classic pcap
    #[arg(long)]
    pcap: PathBuf,
    /// Stop after this many seconds [default: at Ctrl-C]
    #[arg(long)]
    seconds: Option<u64>,
    /// Also request each shard's day over TCP, from its first message, and write it as TCP packets
    #[arg(long)]
    replay: bool,
    /// One JSON object instead of a line
    #[arg(long)]
    json: bool,
}

/// Writes what comes.
///
/// # Errors
/// If there is no such system or it has no market data, a line is taken by another receiver, or the file cannot be written.
pub fn run(args: &Args, layout: &Layout) -> CommandResult {
    let config = configuration(layout)?;
    let feed = feed_of(&config, layout)?;
    if args.replay && feed.tls == TlsSetting::On {
        let why =
            "the replayers' TCP is encrypted (TLS), which a packet capture cannot show: leave --replay out";
        return Err(CommandError::Usage(why.into()));
    }
    let stop =
        pares_os::process::stop_on_signals().map_err(CommandError::io("installing a signal handler"))?;
    let written = |source| CommandError::Io { doing: format!("writing {}", args.pcap.display()), source };
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    let shards = config.shards()?;
    for line in shards.keys().flat_map(|&shard| feed.lines(shard)) {
        sources.push(Box::new(Line::join(line, feed)?));
    }
    // What was there is overwritten by a capture, and not by one that cannot begin.
    let mut file = PacketFile::create(&args.pcap).map_err(written)?;
    for shard in shards.into_keys().filter(|_| args.replay) {
        sources.push(Box::new(Replay::begin(shard, &config, layout, &mut file)?));
    }
    let until = args.seconds.and_then(|seconds| Instant::now().checked_add(Duration::from_secs(seconds)));
    watch(&mut sources, &mut file, until, &stop).map_err(written)?;
    let (packets, bytes) = (file.packets, file.bytes);
    file.finish().map_err(written)?;
    tell(args, packets, bytes);
    match packets {
        0 => Err(CommandError::Failed(
            "no packet arrived, and the file is empty: check that the system is up".into(),
        )),
        _ => Ok(()),
    }
}

fn tell(args: &Args, packets: u64, bytes: u64) {
    let file = args.pcap.display().to_string();
    match args.json {
        true => text::print(&json!({ "file": file, "packets": packets, "bytes": bytes }).to_string()),
        false => text::print(&format!(
            "{file}: {}, {} of payload",
            text::count(packets, "packet"),
            text::count(bytes, "byte")
        )),
    }
}

/// Where packets come from.
trait Source {
    /// The descriptor to wait for; `None` once nothing comes any more.
    fn socket(&self) -> Option<rustix::fd::BorrowedFd<'_>>;

    /// Takes in what is there, but not for long.
    fn read(&mut self, file: &mut PacketFile) -> io::Result<()>;
}

fn watch(
    sources: &mut [Box<dyn Source>],
    file: &mut PacketFile,
    until: Option<Instant>,
    stop: &AtomicBool,
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let left = until.map_or(SLEEP_MAX, |until| until.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            break;
        }
        let wait = Timespec::try_from(left.min(SLEEP_MAX)).map_err(io::Error::other)?;
        let sockets = sources.iter().filter_map(|source| source.socket());
        let mut polled: Vec<PollFd<'_>> =
            sockets.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match rustix::event::poll(&mut polled, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for source in sources.iter_mut() {
            source.read(file)?;
        }
    }
    Ok(())
}

/// Since 1970.
fn now() -> Duration {
    SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// A line, joined.
struct Line {
    socket: UdpSocket,
    address: SocketAddr,
    buffer: Vec<u8>,
}

impl Line {
    fn join(address: SocketAddr, feed: &FeedConfig) -> Result<Self, CommandError> {
        let socket = line_socket(address, feed.interface, RECEIVE_BYTES).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => CommandError::Usage(format!(
                "{address} is in use: a unicast line has one receiver, and another program has it; stop that program, or send the lines to multicast groups"
            )),
            _ => CommandError::Io { doing: format!("listening at {address}"), source: error },
        })?;
        Ok(Self { socket, address, buffer: vec![0; usize::from(u16::MAX)] })
    }
}

impl Source for Line {
    fn socket(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        Some(rustix::fd::AsFd::as_fd(&self.socket))
    }

    fn read(&mut self, file: &mut PacketFile) -> io::Result<()> {
        for _ in 0..READS_MAX {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, from)) => {
                    file.datagram(now(), [from, self.address], &self.buffer[..length])?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The day of a shard, over TCP.
struct Replay {
    stream: TcpStream,
    connection: MadeConnection,
    beat_at: Instant,
    is_over: bool,
}

impl Replay {
    /// Logs in at the first replayer that is there.
    fn begin(
        shard: ShardId,
        config: &SystemConfig,
        layout: &Layout,
        file: &mut PacketFile,
    ) -> Result<Self, CommandError> {
        let connect = |address| TcpStream::connect_timeout(address, CONNECT_MAX).ok();
        let stream = pares_node::config::replayers(layout, config).iter().find_map(connect);
        let Some(stream) = stream else {
            return Err(CommandError::NotRunning(format!(
                "no replayer of {} answers; `pares up` starts them",
                layout.root().display()
            )));
        };
        let asking = || format!("asking a replayer for shard {shard}");
        Self::log_in(stream, shard, file).map_err(|source| CommandError::Io { doing: asking(), source })
    }

    fn log_in(stream: TcpStream, shard: ShardId, file: &mut PacketFile) -> io::Result<Self> {
        let ends = [stream.local_addr()?, stream.peer_addr()?];
        let connection = MadeConnection::opened(file, now(), ends)?.of_soup();
        let (beat_at, is_over) = (Instant::now() + BEAT_EVERY, false);
        let mut replay = Self { stream, connection, beat_at, is_over };
        replay.send(file, &soup::login(*b"REPLAY", soup::current_session(shard), 1))?;
        replay.stream.set_nonblocking(true)?;
        Ok(replay)
    }

    fn send(&mut self, file: &mut PacketFile, packet: &[u8]) -> io::Result<()> {
        self.is_over |= self.stream.write_all(packet).is_err();
        self.connection.sent(file, now(), 0, packet)
    }

    fn take_in(&mut self, file: &mut PacketFile) -> io::Result<()> {
        let mut bytes = [0; 16 << 10];
        for _ in 0..READS_MAX {
            match self.stream.read(&mut bytes) {
                Ok(0) => self.is_over = true,
                Ok(length) => self.connection.sent(file, now(), 1, &bytes[..length])?,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => self.is_over = true,
            }
            if self.is_over {
                break;
            }
        }
        Ok(())
    }
}

impl Source for Replay {
    fn socket(&self) -> Option<rustix::fd::BorrowedFd<'_>> {
        (!self.is_over).then(|| rustix::fd::AsFd::as_fd(&self.stream))
    }

    fn read(&mut self, file: &mut PacketFile) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        if Instant::now() >= self.beat_at {
            self.beat_at = Instant::now() + BEAT_EVERY;
            let mut beat = Vec::new();
            soup::write(&mut beat, b'R', b"");
            self.send(file, &beat)?;
        }
        self.take_in(file)
    }
}
