//! A small file, read whole, whatever stands in its place.
//!
//! Opened as it comes, a pipe of its name waits for somebody at the other end: the process neither begins nor heeds a signal that asks it to end.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// All that a file says.
///
/// # Errors
/// As the system says; `NotFound` if there is none, `InvalidData` if a pipe, a directory or a device is there.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(ErrorKind::InvalidData, "something else has the name of a file"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(read_file(&path).unwrap_err().kind(), ErrorKind::NotFound);
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        assert_eq!(read_file(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(read_file(dir.path()).unwrap_err().kind(), ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "all").unwrap();
        assert_eq!(read_file(&path).unwrap(), b"all");
    }
}
