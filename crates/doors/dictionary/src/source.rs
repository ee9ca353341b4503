//! A dictionary as it is written, and whether it can be believed.
//!
//! A fault in a dictionary is no compile error: a group that nothing counts, or a field that stands twice, is a message that is refused or taken
//! wrongly years later. So a dictionary is taken whole and sound, or refused with its line and the reason.

use std::collections::{BTreeMap, BTreeSet};

/// Fields of one dictionary have places 1 to 255; a place is a bit of a set of four words.
const FIELDS_MAX: usize = 255;
/// The first tag of the exchange's own; they follow each other.
pub(super) const OWN_FROM: u16 = 20_001;
/// BeginString, BodyLength and CheckSum are the frame's, not the parser's.
pub(super) const FRAMED: [u16; 3] = [8, 9, 10];
/// Forms of values, and what the tables call them.
const FORMS: [(&str, &str); 14] = [
    ("STRING", "Text"),
    ("CHAR", "Char"),
    ("BOOLEAN", "Flag"),
    ("INT", "Integer"),
    ("LENGTH", "Count"),
    ("SEQNUM", "Count"),
    (COUNT, "Count"),
    ("QTY", "Decimal"),
    ("PRICE", "Decimal"),
    ("FLOAT", "Decimal"),
    ("WORDS", "Letters"),
    ("UTCTIMESTAMP", "Timestamp"),
    ("LOCALMKTDATE", "Date"),
    DATA,
];
/// Fields of which one begins the entries of a group.
const FIRSTS_MAX: usize = 2;
/// The form of a field that counts the entries of a group.
const COUNT: &str = "NUMINGROUP";
/// The form of a field whose length another one says, and what the tables call it.
const DATA: (&str, &str) = ("DATA", "Data");

/// A dictionary.
#[derive(Default)]
pub(super) struct Source {
    pub(super) version: String,
    pub(super) tags_max: u16,
    pub(super) types: Vec<String>,
    pub(super) fields: BTreeMap<u16, Field>,
    pub(super) groups: BTreeMap<u16, Group>,
    /// By the tag of data the tag of their length: all of the version, also those that are not served.
    pub(super) data: BTreeMap<u16, u16>,
    pub(super) header: Vec<(u16, bool)>,
    pub(super) trailer: Vec<(u16, bool)>,
    pub(super) messages: Vec<Body>,
}

pub(super) struct Field {
    pub(super) name: String,
    /// What the tables call it.
    pub(super) form: &'static str,
    pub(super) values: Vec<String>,
    is_count: bool,
}

/// A repeating group.
pub(super) struct Group {
    /// One or two: either of them begins an entry; the first entry says which.
    pub(super) firsts: Vec<u16>,
    pub(super) members: BTreeSet<u16>,
}

/// A message.
pub(super) struct Body {
    pub(super) kind: String,
    pub(super) fields: Vec<(u16, bool)>,
}

impl Source {
    /// Reads a dictionary and holds it against itself.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut source = Self::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            source.take(&words).map_err(|why| format!("line {}: {why}", at + 1))?;
        }
        source.check()?;
        Ok(source)
    }

    fn take(&mut self, words: &[&str]) -> Result<(), String> {
        match *words {
            [] => {}
            ["version", version] => self.version = version.into(),
            ["tags", most] => self.tags_max = number(most)?,
            ["types", ref types @ ..] => self.types.extend(types.iter().map(|&kind| kind.to_owned())),
            ["field", tag, name, form, ref values @ ..] => {
                let before = self.fields.insert(number(tag)?, Field::of(name, form, values)?);
                return before.map_or(Ok(()), |_| Err(format!("field {tag} stands twice")));
            }
            ["group", count, firsts, ref others @ ..] => {
                self.take_group(count, firsts, others)?;
            }
            ["data", ref pairs @ ..] => pairs.iter().try_for_each(|pair| self.take_data(pair))?,
            ["header", ref tags @ ..] => self.header = starred(tags)?,
            ["trailer", ref tags @ ..] => self.trailer = starred(tags)?,
            ["message", kind, _, ref tags @ ..] => {
                if self.messages.iter().any(|before| before.kind == kind) {
                    return Err(format!("message {kind} stands twice"));
                }
                self.messages.push(Body { kind: kind.into(), fields: starred(tags)? });
            }
            _ => return Err(format!("`{}` is no line of a dictionary", words.join(" "))),
        }
        Ok(())
    }

    fn take_group(&mut self, count: &str, firsts: &str, others: &[&str]) -> Result<(), String> {
        let firsts = firsts.split('|').map(number).collect::<Result<Vec<_>, _>>()?;
        if firsts.len() > FIRSTS_MAX {
            return Err(format!("group {count}: an entry begins with one of {FIRSTS_MAX} fields at most"));
        }
        let others = others.iter().map(|tag| number(tag)).collect::<Result<Vec<_>, _>>()?;
        let members = firsts.iter().copied().chain(others).collect();
        let before = self.groups.insert(number(count)?, Group { firsts, members });
        before.map_or(Ok(()), |_| Err(format!("group {count} stands twice")))
    }

    /// Takes `LENGTH:DATA`.
    fn take_data(&mut self, pair: &str) -> Result<(), String> {
        let (length, data) = pair.split_once(':').ok_or_else(|| format!("{pair}: not a pair of tags"))?;
        let before = self.data.insert(number(data)?, number(length)?);
        before.map_or(Ok(()), |_| Err(format!("data {data} stand twice")))
    }

    /// What no line says by itself.
    fn check(&self) -> Result<(), String> {
        if self.version.is_empty() || self.fields.is_empty() || self.messages.is_empty() {
            return Err("it lacks its version, fields or messages".into());
        }
        if self.fields.len() >= FIELDS_MAX {
            return Err(format!("{} fields: a place is a byte", self.fields.len()));
        }
        let is_legal = |tag: &u16| (1..=self.tags_max).contains(tag) || *tag >= OWN_FROM;
        if let Some(tag) = self.fields.keys().find(|tag| !is_legal(tag)) {
            return Err(format!("field {tag}: a tag is the standard's, or from {OWN_FROM} on"));
        }
        self.are_fields(FRAMED.iter(), "a frame")?;
        self.check_groups()?;
        self.check_data()?;
        self.check_sections()
    }

    fn check_groups(&self) -> Result<(), String> {
        for (count, group) in &self.groups {
            if !self.fields.get(count).is_some_and(|field| field.is_count) {
                return Err(format!("group {count}: no field {count} of the form {COUNT} counts it"));
            }
            self.are_fields(group.members.iter(), &format!("group {count}"))?;
            self.check_depth(*count, &[])?;
        }
        let uncounted =
            self.fields.iter().find(|(tag, field)| field.is_count && !self.groups.contains_key(tag));
        uncounted.map_or(Ok(()), |(tag, _)| Err(format!("field {tag} counts a group that is not there")))
    }

    /// No group holds itself, not even through others.
    fn check_depth(&self, count: u16, around: &[u16]) -> Result<(), String> {
        if around.contains(&count) {
            return Err(format!("group {count} holds itself, through {around:?}"));
        }
        let around = [around, &[count]].concat();
        let members = self.groups.get(&count).into_iter().flat_map(|group| &group.members);
        members
            .filter(|tag| self.groups.contains_key(tag))
            .try_for_each(|tag| self.check_depth(*tag, &around))
    }

    /// All data have a length, and it is served where they are.
    fn check_data(&self) -> Result<(), String> {
        for (tag, _) in self.fields.iter().filter(|(_, field)| field.form == DATA.1) {
            let length = self.data.get(tag).ok_or_else(|| format!("field {tag}: no line says its length"))?;
            self.are_fields([*length].iter(), &format!("data {tag}"))?;
        }
        let is_other = |tag: &&u16| self.fields.get(*tag).is_some_and(|field| field.form != DATA.1);
        let other = self.data.keys().find(is_other);
        other.map_or(Ok(()), |tag| Err(format!("data {tag}: the field has another form")))
    }

    /// Header, trailer and messages name fields that are there, each once; and each field stands somewhere.
    fn check_sections(&self) -> Result<(), String> {
        let ends = [("header", &self.header), ("trailer", &self.trailer)];
        let ends = ends.map(|(name, fields)| (name.to_owned(), fields));
        let bodies = self.messages.iter().map(|body| (format!("message {}", body.kind), &body.fields));
        let mut used: BTreeSet<u16> =
            self.groups.values().flat_map(|group| group.members.iter().copied()).collect();
        for (name, fields) in ends.into_iter().chain(bodies) {
            let tags: BTreeSet<u16> = fields.iter().map(|(tag, _)| *tag).collect();
            if tags.len() < fields.len() {
                return Err(format!("{name}: a field stands twice"));
            }
            self.are_fields(tags.iter(), &name)?;
            used.extend(tags);
        }
        let unknown = self.messages.iter().find(|body| !self.types.contains(&body.kind));
        if let Some(body) = unknown {
            return Err(format!("message {}: not among the types", body.kind));
        }
        match self.fields.keys().find(|tag| !used.contains(tag)) {
            Some(tag) => Err(format!("field {tag} is of no message")),
            None => Ok(()),
        }
    }

    fn are_fields<'a>(&self, mut tags: impl Iterator<Item = &'a u16>, whose: &str) -> Result<(), String> {
        let unknown = tags.find(|tag| !self.fields.contains_key(tag));
        unknown.map_or(Ok(()), |tag| Err(format!("{whose}: {tag} is no field")))
    }
}

impl Field {
    fn of(name: &str, form: &str, values: &[&str]) -> Result<Self, String> {
        let known = FORMS.iter().find(|(known, _)| *known == form);
        let (_, table) = known.ok_or_else(|| format!("{form}: no such form"))?;
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Ok(Self { name: name.into(), form: table, values, is_count: form == COUNT })
    }
}

fn number(word: &str) -> Result<u16, String> {
    word.parse().map_err(|_| format!("{word}: not a tag"))
}

fn starred(words: &[&str]) -> Result<Vec<(u16, bool)>, String> {
    words.iter().map(|word| Ok((number(word.trim_end_matches('*'))?, word.ends_with('*')))).collect()
}
