//! Packets and messages, read by the page alone (docs/protocols/ouch.md): nothing of the door's is used, so that what both have wrong shows.

use std::collections::BTreeMap;

/// A message as its fields and its appendage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: char,
    pub(super) fields: BTreeMap<&'static str, u64>,
    pub(super) tags: BTreeMap<u8, u64>,
}

/// Names and widths of fields. What is wider than eight bytes is always blank.
type Layout = &'static [(&'static str, usize)];

const TAKEN: Layout = &[
    ("side", 1),
    ("quantity", 4),
    ("symbol", 8),
    ("price", 8),
    ("time in force", 1),
    ("display", 1),
    ("order", 8),
    ("capacity", 1),
    ("sweep", 1),
    ("cross", 1),
    ("state", 1),
    ("ClOrdID", 14),
];

/// What follows type and time. A and U continue with [`TAKEN`].
fn layout(kind: char) -> Option<Layout> {
    Some(match kind {
        'A' => &[("number", 4)],
        'U' => &[("original", 4), ("number", 4)],
        'M' => &[("number", 4), ("side", 1), ("quantity", 4)],
        'E' => &[("number", 4), ("quantity", 4), ("price", 8), ("liquidity", 1), ("match", 8)],
        'C' => &[("number", 4), ("quantity", 4), ("reason", 1)],
        'D' => &[
            ("number", 4),
            ("quantity", 4),
            ("reason", 1),
            ("prevented", 4),
            ("price", 8),
            ("liquidity", 1),
            ("strategy", 1),
        ],
        'B' => &[("number", 4), ("match", 8), ("reason", 1), ("ClOrdID", 14)],
        'J' => &[("number", 4), ("reason", 2), ("ClOrdID", 14)],
        'I' => &[("number", 4)],
        'T' => &[("number", 4), ("price", 8), ("display", 1), ("order", 8)],
        'R' => &[("number", 4), ("reason", 1)],
        'X' => &[("number", 4), ("firm", 4), ("symbol", 8)],
        'S' => &[("event", 1)],
        _ => return None,
    })
}

fn fields_of(kind: char) -> Option<impl Iterator<Item = (&'static str, usize)>> {
    let more = if matches!(kind, 'A' | 'U') { TAKEN } else { &[] };
    Some([("time", 8)].into_iter().chain(layout(kind)?.iter().copied()).chain(more.iter().copied()))
}

/// What a field is that says nothing.
fn blank(field: &str, width: usize) -> u64 {
    match field {
        "time" | "number" | "original" | "quantity" | "price" | "order" | "match" | "prevented" => 0,
        _ => (0..width.min(8)).fold(0, |spaces, _| spaces << 8 | u64::from(b' ')),
    }
}

/// The widths of values in an appendage.
fn tag_width(tag: u8) -> Option<usize> {
    Some(match tag {
        22 | 212 => 4,
        213 => 1,
        23 | 210 | 211 | 214..=216 => 8,
        _ => return None,
    })
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

impl Message {
    /// One that says only that.
    pub(super) fn new(kind: char, said: &[(&'static str, u64)], tags: &[(u8, u64)]) -> Self {
        let fields = fields_of(kind).expect("a kind of the page");
        let mut fields: BTreeMap<_, _> = fields.map(|(field, width)| (field, blank(field, width))).collect();
        for (field, value) in said {
            *fields.get_mut(field).expect("a field of that message") = *value;
        }
        Self { kind, fields, tags: tags.iter().copied().collect() }
    }

    /// Reads a whole message, or says why it is none.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let (kind, mut rest) = bytes.split_first().ok_or("nothing")?;
        let kind = char::from(*kind);
        let mut fields = BTreeMap::new();
        for (field, width) in fields_of(kind).ok_or("an unknown type")? {
            let (value, after) = rest.split_at_checked(width).ok_or("it is too short")?;
            if width > 8 && value.iter().any(|byte| *byte != b' ') {
                return Err(format!("{field} is not blank"));
            }
            let value = if width > 8 { blank(field, width) } else { number(value) };
            fields.insert(field, value);
            rest = after;
        }
        let tags = if kind == 'S' && rest.is_empty() { BTreeMap::new() } else { appendage(rest)? };
        Ok(Self { kind, fields, tags })
    }

    pub(super) fn number(&self) -> u32 {
        self.fields.get("number").map_or(0, |number| u32::try_from(*number).unwrap_or_default())
    }
}

fn appendage(bytes: &[u8]) -> Result<BTreeMap<u8, u64>, String> {
    let (length, mut rest) = bytes.split_first_chunk::<2>().ok_or("no appendage")?;
    if number(length) != rest.len() as u64 {
        return Err("the appendage is of another length".into());
    }
    let mut tags = BTreeMap::new();
    while let [length, tag, after @ ..] = rest {
        let width = tag_width(*tag).ok_or_else(|| format!("tag {tag} is not of the page"))?;
        let (value, after) = after.split_at_checked(width).ok_or("a value is cut")?;
        if usize::from(*length) != width + 1 || tags.insert(*tag, number(value)).is_some() {
            return Err(format!("tag {tag} is wrong or comes twice"));
        }
        rest = after;
    }
    if rest.is_empty() { Ok(tags) } else { Err("half a value".into()) }
}

/// Takes the first packet from the bytes, if it is whole: its type and its payload.
pub(super) fn take_packet(bytes: &mut Vec<u8>) -> Option<(char, Vec<u8>)> {
    let length = number(bytes.get(..2)?) as usize;
    let packet = bytes.get(2..2 + length)?.to_vec();
    bytes.drain(..2 + length);
    let (kind, payload) = packet.split_first()?;
    Some((char::from(*kind), payload.to_vec()))
}

pub(super) fn put_packet(out: &mut Vec<u8>, kind: char, payload: &[u8]) {
    let length = u16::try_from(payload.len() + 1).expect("packets are short");
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind as u8);
    out.extend_from_slice(payload);
}
