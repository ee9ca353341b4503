//! What happened: one line per event, the last ones kept, all of them hashed.

use std::collections::VecDeque;

use pares_random::mix;

const KEPT: usize = 50;

/// An event as it is kept: formatted only when it is read.
#[derive(Clone, Copy, Debug)]
struct Line {
    now_ns: u64,
    template: &'static str,
    words: [u64; 4],
}

impl Line {
    /// Each `{}` of the template is replaced by the next word; `{id}` by a request id.
    fn format(&self) -> String {
        let mut text = format!("{:>8}.{:03} ms  ", self.now_ns / 1_000_000, self.now_ns / 1_000 % 1_000);
        let mut words = self.words.iter();
        let mut rest = self.template;
        while let Some(at) = rest.find('{') {
            text.push_str(&rest[..at]);
            let word = *words.next().unwrap_or(&0);
            let (shown, skip) = match rest[at..].strip_prefix("{id}") {
                Some(_) => (format!("{}:{}", word >> 48, word & ((1 << 48) - 1)), 4),
                None => (word.to_string(), 2),
            };
            text.push_str(&shown);
            rest = &rest[at + skip..];
        }
        text + rest
    }
}

/// What is kept of the last events.
#[derive(Debug)]
enum Entry {
    Noted(Line),
    Said(u64, String),
}

impl Entry {
    fn format(&self) -> String {
        match self {
            Self::Noted(line) => line.format(),
            Self::Said(now_ns, text) => {
                format!("{:>8}.{:03} ms  {text}", now_ns / 1_000_000, now_ns / 1_000 % 1_000)
            }
        }
    }
}

/// Where each line goes as it happens.
pub(crate) type Watcher<'a> = Option<&'a mut dyn FnMut(&str)>;

pub(crate) struct Trace<'a> {
    last: VecDeque<Entry>,
    hash: u64,
    watcher: Watcher<'a>,
}

impl<'a> Trace<'a> {
    pub(crate) fn new(watcher: Watcher<'a>) -> Self {
        Self { last: VecDeque::with_capacity(KEPT), hash: 0, watcher }
    }

    pub(crate) fn note(&mut self, now_ns: u64, template: &'static str, words: &[u64]) {
        let mut kept = [0; 4];
        kept[..words.len()].copy_from_slice(words);
        let line = Line { now_ns, template, words: kept };
        let text = template.bytes().fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
        self.hash = words.iter().fold(mix(self.hash ^ now_ns ^ mix(text)), |hash, &word| mix(hash ^ word));
        self.keep(Entry::Noted(line));
    }

    /// As [`Trace::note`], of words that a process said. They go to the watcher, and count by their length alone.
    pub(crate) fn say(&mut self, now_ns: u64, text: &str) {
        self.hash = mix(self.hash ^ now_ns ^ text.len() as u64);
        self.keep(Entry::Said(now_ns, text.to_owned()));
    }

    fn keep(&mut self, entry: Entry) {
        if let Some(watch) = &mut self.watcher {
            watch(&entry.format());
        }
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(entry);
    }

    /// Equal for equal histories.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn last_lines(&self) -> Vec<String> {
        self.last.iter().map(Entry::format).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_its_words() {
        let mut trace = Trace::new(None);
        trace.note(1_500_000, "venue {} won {} with {id}", &[2, 7, 3 << 48 | 9]);
        assert_eq!(trace.last_lines(), ["       1.500 ms  venue 2 won 7 with 3:9"]);
    }
}
