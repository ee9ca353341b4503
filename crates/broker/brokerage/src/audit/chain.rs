//! What a log hashes to.
//!
//! A replay finds what does not add up. A file whose elements were all changed alike adds up, and so does one that was cut behind some user's last command. So each
//! element's SHA-256 is over that of the one before and its own lines: the last one, the log's head, stands for all of them and their order.
//!
//! Lines are hashed as the replay reads them, without blanks around them; a declaration in the first one, empty ones, `<log>` and `</log>` are not, since the log says nothing by them.

use pares_broker::{LogDigest, is_declaration};
use ring::digest::{Context, SHA256};

/// See the [module](self).
#[derive(Clone, Default)]
pub(crate) struct LogChain {
    head: LogDigest,
    elements: u64,
    has_begun: bool,
    /// The element that has begun, behind the head.
    open: Option<Context>,
}

impl LogChain {
    /// The head of the elements so far: of none it is zero.
    pub(crate) fn head(&self) -> LogDigest {
        self.head
    }

    /// How many elements have ended.
    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// Takes the next lines, each of which is whole.
    pub(crate) fn text(&mut self, text: &str) {
        text.lines().for_each(|line| self.line(line));
    }

    /// Takes the next line.
    pub(crate) fn line(&mut self, line: &str) {
        let (line, is_first) = (line.trim(), !self.has_begun);
        self.has_begun = true;
        if (is_first && is_declaration(line)) || ["", "<log>", "</log>"].contains(&line) {
            return;
        }
        let mut element = self.open.take().unwrap_or_else(|| {
            let mut begun = Context::new(&SHA256);
            begun.update(&self.head.0);
            begun
        });
        element.update(line.as_bytes());
        element.update(b"\n");
        if line.starts_with("</") {
            let digest = element.finish();
            self.head = LogDigest(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"));
            self.elements += 1;
        } else {
            self.open = Some(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::{LOG_BEGIN, LOG_END};

    use super::*;

    fn chain(text: &str) -> LogChain {
        let mut chain = LogChain::default();
        chain.text(text);
        chain
    }

    #[test]
    fn head_is_known_to_programs_of_others() {
        let text = format!("{LOG_BEGIN}\t<a>\n\t\t<x>1</x>\n\t</a>\n\t<b>\n\t</b>\n{LOG_END}");
        let chain = chain(&text);
        // By Python's hashlib: `<a>`, `<x>1</x>`, `</a>` behind 32 zeros, then `<b>`, `</b>` behind that digest; a line feed behind each line.
        let golden = "d5f1aacf41392ddb9c362c97ac99916ba0c2a9e5e1c7199d66f17a5efa82360a";
        assert_eq!(pares_keys::to_hex(&chain.head().0), golden);
        assert_eq!(chain.elements(), 2);
    }

    #[test]
    fn blanks_around_lines_change_no_head_others_do() {
        let head = |text: &str| chain(text).head();
        let log = "<log>\n<a>\n<x>1 2</x>\n</a>\n</log>\n";
        assert_eq!(
            head(log),
            head("<?xml version=\"1.0\"?>\r\n<log>\r\n\r\n  <a>\r\n<x>1 2</x> \r\n</a>\r\n</log>")
        );
        let declared = "<?xml version=\"1.0\"?>\n<?xml more?>\n<a>\n<x>1 2</x>\n</a>\n";
        let inside = "<a>\n<?xml>more</?xml>\n<x>1 2</x>\n</a>\n";
        let others = ["<a>\n<x>1  2</x>\n</a>\n", "<a>\n</a>\n", "<a>\n<x>1 2</x>\n</a>\n<a>\n</a>\n", ""];
        for changed in others.into_iter().chain([declared, inside]) {
            assert_ne!(head(log), head(changed), "{changed}");
        }
        assert_eq!(head("<log>\n</log>\n"), LogDigest::default(), "of nothing it is zero");
    }

    #[test]
    fn elements_in_another_order_have_another_head() {
        let (one, other) = ("<a>\n<x>1</x>\n</a>\n", "<a>\n<x>2</x>\n</a>\n");
        assert_ne!(chain(&[one, other].concat()).head(), chain(&[other, one].concat()).head());
    }
}
