//! JSON that says which version it is of, and what its content hashes to.
//!
//! A list of files with their hashes protects those files, not itself: with one digit changed, or a file left out, it is as good a list as before.
//! So it carries the SHA-256 of its content, written without spaces. That finds damage. Who changes a list on purpose can hash it
//! again: what two recorders agree on is no forgery.
//!
//! ```text
//! {"version": 2, "sha256": "9f86...", ...content}
//! ```

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::manifest::sha256;

/// 1 had no hash of itself.
const VERSION: u32 = 2;

/// Why sealed text is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Flaw {
    #[error("it is damaged, or something else")]
    Unreadable,
    #[error("it was written by an earlier version of Pares (version {0}), which is needed to read it")]
    Earlier(u32),
    #[error("it was written by a later version of Pares (version {0}), which is needed to read it")]
    Later(u32),
    #[error("it is damaged: its content does not match its SHA-256")]
    Changed,
    #[error("it is damaged: it has impossible values")]
    Impossible,
    #[error("it belongs to another day, {0}: it, or its folder, was moved here")]
    OtherDay(String),
}

#[derive(Serialize, Deserialize)]
struct Sealed<T> {
    version: u32,
    sha256: String,
    #[serde(flatten)]
    content: T,
}

/// What another build wrote has this at least.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// The text of a file with that content.
pub(crate) fn seal<T: Serialize>(content: &T) -> Vec<u8> {
    let sealed = Sealed { version: VERSION, sha256: hash(content), content };
    serde_json::to_vec_pretty(&sealed).expect("a list is always valid JSON")
}

/// The content of such a text.
pub(crate) fn open<T: Serialize + DeserializeOwned>(text: &[u8]) -> Result<T, Flaw> {
    let Versioned { version } = serde_json::from_slice(text).map_err(|_| Flaw::Unreadable)?;
    match version {
        VERSION => {}
        0..VERSION => return Err(Flaw::Earlier(version)),
        _ => return Err(Flaw::Later(version)),
    }
    let sealed: Sealed<T> = serde_json::from_slice(text).map_err(|_| Flaw::Unreadable)?;
    if hash(&sealed.content) == sealed.sha256 { Ok(sealed.content) } else { Err(Flaw::Changed) }
}

fn hash<T: Serialize>(content: &T) -> String {
    sha256(&serde_json::to_vec(content).expect("a list is always valid JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct List {
        until: u64,
        names: Vec<String>,
    }

    #[test]
    fn what_is_changed_in_any_byte_is_not_believed() {
        let list = List { until: u64::MAX, names: vec!["a".to_owned(), "b".to_owned()] };
        let text = seal(&list);
        assert_eq!(open(&text), Ok(list));
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            assert!(open::<List>(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn other_versions_are_named() {
        assert_eq!(open::<List>(br#"{"version": 1, "until": 3, "names": []}"#), Err(Flaw::Earlier(1)));
        assert_eq!(open::<List>(br#"{"version": 3}"#), Err(Flaw::Later(3)));
        assert_eq!(open::<List>(br#"{"until": 3, "names": []}"#), Err(Flaw::Unreadable));
    }
}
