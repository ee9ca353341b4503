//! Lines of a workload: how many there are, and which of them are no command.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use pares_broker::{Refusal, WorkloadLine};

/// So many lines that are no command are named.
const NAMED_MAX: usize = 3;

/// Lines as they are read, one after the other.
#[derive(Debug, Default)]
pub(super) struct NumberedLines {
    read: u64,
    /// Lines that are no command, but for empty ones.
    pub(super) unreadable: u64,
    /// The first of them, and why.
    named: Vec<(u64, Refusal)>,
}

impl NumberedLines {
    /// The command of the next line; none if it is no command.
    pub(super) fn parse(&mut self, line: &[u8]) -> Option<WorkloadLine> {
        self.read += 1;
        match WorkloadLine::parse(line) {
            Ok(command) => Some(command),
            Err(_) if line.trim_ascii().is_empty() => None,
            Err(why) => {
                self.unreadable += 1;
                if self.named.len() < NAMED_MAX {
                    self.named.push((self.read, why));
                }
                None
            }
        }
    }

    /// Says which lines of the file were no command.
    pub(super) fn tell(&self, file: &Path) {
        for said in self.told(file) {
            // Standard output is for figures.
            pares_text::aside!("{said}");
        }
    }

    fn told(&self, file: &Path) -> Vec<String> {
        let file = file.display();
        let line = |(number, why): &(u64, Refusal)| format!("{file}, line {number} is not a command: {why}");
        let more = self.unreadable - self.named.len() as u64;
        let more = (more > 0).then(|| format!("{file}: {more} more lines are not commands"));
        self.named.iter().map(line).chain(more).collect()
    }
}

/// How many lines a file has; 0 of what can be read once only.
pub(super) fn lines_of(path: &Path) -> std::io::Result<u64> {
    if !path.metadata()?.is_file() {
        return Ok(0);
    }
    let mut file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let mut count = 0;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(count);
        }
        count += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let read = bytes.len();
        file.consume(read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_three_bad_lines_are_named_empty_ones_are_not() {
        let mut lines = NumberedLines::default();
        for line in ["[1] ADD,jo,1.00", "ADD,jo,1.00", "", "[4] STEAL,jo", "[5] ADD,jo,1.00", "x", "y"] {
            lines.parse(line.as_bytes());
        }
        let told = lines.told(Path::new("file"));
        let begins = ["file, line 2 is", "file, line 4 is", "file, line 6 is", "file: 1 more"];
        assert_eq!((lines.unreadable, told.len()), (4, begins.len()), "{told:?}");
        assert!(told.iter().zip(begins).all(|(told, begin)| told.starts_with(begin)), "{told:?}");
    }
}
