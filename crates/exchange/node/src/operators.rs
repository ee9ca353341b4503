//! The operators' socket of a gateway: a Unix socket in the system's directory.
//!
//! Anyone on the machine may connect to a port, and so take the places that connections of this machine have there. To this socket the kernel lets
//! only the user that the gateway runs as connect, and root, so `pares admin` gets through however crowded the ports are. The protocol is that of the
//! gateway's port, the sign-on included; there is no TLS, since nothing leaves the machine.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use mio::net::UnixListener;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// Connections that may wait to be accepted. Those of clients that have left count until the gateway looks at them.
const BACKLOG: i32 = 128;

/// Connects to a gateway's socket. A gateway that accepts nothing is not waited for.
///
/// # Errors
/// If this user may not, nobody listens there, or too many wait to be accepted.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_folder, name) = short(path)?;
    let socket = socket()?;
    // One that blocks would wait without end for a place in the queue.
    rustix::net::connect(&socket, &SocketAddrUnix::new(name)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Listens there in place of an earlier process.
pub(crate) fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let fresh = path.with_extension("operators.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = socket()?;
    let (_folder, name) = short(&fresh)?;
    bind(&socket, &SocketAddrUnix::new(name)?)?;
    // Before it listens: nobody else has connected by then.
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    listen(&socket, BACKLOG)?;
    fs::rename(&fresh, path)?;
    Ok(UnixListener::from_std(socket.into()))
}

/// One that never blocks.
fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// The same path by way of its folder, which is open as long: a socket's may have a hundred bytes only.
fn short(path: &Path) -> io::Result<(File, PathBuf)> {
    let (folder, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
    let folder = File::open(folder)?;
    let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
    Ok((folder, short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn socket_is_of_mode_0600_however_long_its_path_is() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a".repeat(200));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("gateway-0.operators");
        drop(listen_at(&path).unwrap());
        assert!(connect(&path).is_err(), "its process has ended");
        let listener = listen_at(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let _client = connect(&path).unwrap();
        listener.accept().unwrap();
    }

    #[test]
    fn hung_gateway_with_full_queue_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gateway-0.operators");
        let _hung = listen_at(&path).unwrap();
        // Each client leaves at once, and keeps its place in the queue.
        let full = (0..2 * BACKLOG).find_map(|_| connect(&path).err());
        assert_eq!(full.map(|error| error.kind()), Some(io::ErrorKind::WouldBlock));
    }
}
