//! Files by name, whatever stands in their place.
//!
//! Opening a pipe in a file's place waits for a process at the other end: meanwhile this one neither starts nor obeys a signal to end.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a file as `options` say, flags of the system's own excepted. Never waits.
///
/// # Errors
/// As the system says; `InvalidData` if a pipe, a directory or a device is there.
pub fn open_file(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = options.clone().custom_flags(flags).open(path);
    // A pipe that no process reads, a socket and a directory are refused to who would write.
    let is_other = |error: &io::Error| {
        [Errno::NXIO, Errno::ISDIR].map(|no| Some(no.raw_os_error())).contains(&error.raw_os_error())
    };
    match opened {
        Ok(file) if file.metadata()?.is_file() => Ok(file),
        Err(error) if !is_other(&error) => Err(error),
        _ => Err(io::Error::new(ErrorKind::InvalidData, "something else has the name of a file")),
    }
}

/// All that a file says.
///
/// # Errors
/// As [`open_file`].
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(File::options().read(true), path)?.read_to_end(&mut bytes)?;
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
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(read_file(&path).unwrap_err().kind(), ErrorKind::InvalidData);
        for options in [File::options().write(true), File::options().read(true).write(true)] {
            assert_eq!(open_file(options, &path).unwrap_err().kind(), ErrorKind::InvalidData);
            assert_eq!(open_file(options, dir.path()).unwrap_err().kind(), ErrorKind::InvalidData);
        }
        assert_eq!(read_file(dir.path()).unwrap_err().kind(), ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "all").unwrap();
        assert_eq!(read_file(&path).unwrap(), b"all");
    }
}
