//! A message as its fields.

/// What differs each time a message is sent: frame, number, times, and that it may be known.
const OF_THE_SENDING: [u16; 6] = [8, 9, 10, 43, 52, 122];

/// The fields of a message that came, in order.
#[derive(Clone, Debug)]
pub(super) struct Message(Vec<(u16, String)>);

impl Message {
    /// Of a body that was parsed before.
    pub(super) fn read(body: &[u8]) -> Self {
        let fields = body.split(|byte| *byte == pares_fix::SOH).filter_map(|field| {
            let text = String::from_utf8_lossy(field).into_owned();
            let (tag, value) = text.split_once('=')?;
            Some((tag.parse().ok()?, value.to_owned()))
        });
        Self(fields.collect())
    }

    pub(super) fn get(&self, tag: u16) -> Option<&str> {
        self.0.iter().find(|(of, _)| *of == tag).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, tag: u16) -> u64 {
        self.get(tag).and_then(|text| text.parse().ok()).unwrap_or_default()
    }

    pub(super) fn kind(&self) -> &str {
        self.get(35).unwrap_or_default()
    }

    pub(super) fn is_duplicate(&self) -> bool {
        self.get(43) == Some("Y")
    }

    pub(super) fn may_be_known(&self) -> bool {
        self.is_duplicate() || self.get(97) == Some("Y")
    }

    /// All that must be the same whenever it is sent.
    pub(super) fn content(&self) -> String {
        let lasting = self.0.iter().filter(|(tag, _)| !OF_THE_SENDING.contains(tag));
        lasting.map(|(tag, value)| format!("{tag}={value}|")).collect()
    }
}
