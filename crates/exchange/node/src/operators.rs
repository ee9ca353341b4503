//! The operators' socket of a gateway: a Unix socket in the system's directory.
//!
//! Anyone on the machine may connect to a port, and so take the places that connections of this machine have there. To this socket the kernel lets
//! only the owner of the directory connect, so `pares admin` gets through however crowded the ports are. The protocol is that of the gateway's port, the
//! sign-on included; there is no TLS, since nothing leaves the machine.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use mio::net::UnixListener;
use pares_gateway_role::OPERATORS_MAX;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};

/// Connects to a gateway's socket.
///
/// # Errors
/// If this user may not, or nobody listens there.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    let (_folder, name) = short(path)?;
    UnixStream::connect(name)
}

/// Listens there in place of an earlier process.
pub(crate) fn listen_at(path: &Path) -> io::Result<UnixListener> {
    let fresh = path.with_extension("operators.new");
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let (_folder, name) = short(&fresh)?;
    bind(&socket, &SocketAddrUnix::new(name)?)?;
    // Before it listens: nobody else has connected by then.
    fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
    listen(&socket, OPERATORS_MAX as i32)?;
    fs::rename(&fresh, path)?;
    Ok(UnixListener::from_std(socket.into()))
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
    fn only_the_owner_connects_however_long_the_path_is() {
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
}
