//! Turns the texts of FIX dictionaries into tables, for the build of `pares-fix`.
//!
//! A dictionary is lines of words; `#` begins a comment.
//!
//! | line | says |
//! |---|---|
//! | `version V` | the BeginString |
//! | `tags N` | the standard defines tags up to N; a field beyond is the exchange's own, from 20001 on |
//! | `types T ...` | the standard's message types, also those that are not served |
//! | `field TAG NAME FORM VALUE ...` | a field, and its values if only some are allowed |
//! | `data LENGTH:TAG ...` | fields of the standard that may contain any byte, also those that are not served, and before each the field that says how long it is |
//! | `group COUNT TAG ...` | a repeating group by the tag of its count; its first tag begins an entry; of `A\|B` whichever begins the first entry |
//! | `header TAG ...`, `trailer TAG ...` | fields of every message |
//! | `message TYPE NAME TAG ...` | a message, its name for people, and the fields of its body; `*` marks what is required, here and in the header |

use std::collections::BTreeMap;
use std::fmt::Write as _;

mod source;

use source::{Body, FRAMED, Field, Group, OWN_FROM, Source};

/// The tables of dictionaries, each given by the name of its file and its text; or which file cannot be taken, and why.
pub fn tables(files: &[(&str, &str)]) -> Result<String, String> {
    let mut sources = Vec::new();
    for (file, text) in files {
        let source = Source::read(text).map_err(|why| format!("{file}: {why}"))?;
        sources.push((*file, source));
    }
    let mut code = String::new();
    tags(&sources, &mut code)?;
    let depth = sources.iter().flat_map(|(_, source)| source.groups.keys().map(|count| source.depth(*count)));
    let depth = depth.max().unwrap_or_default();
    writeln!(code, "/// Groups within groups.\npub(crate) const DEPTH_MAX: usize = {depth};")
        .expect("a text");
    for (file, source) in &sources {
        dictionary(&file.trim_end_matches(".txt").to_uppercase(), source, &mut code);
    }
    Ok(code)
}

/// Constants for the tags of all dictionaries, by name. A tag that was renamed has both names.
fn tags(sources: &[(&str, Source)], code: &mut String) -> Result<(), String> {
    let mut names = BTreeMap::new();
    for (file, source) in sources {
        for (tag, Field { name, .. }) in &source.fields {
            if names.insert(name, *tag).is_some_and(|before| before != *tag) {
                return Err(format!("{file}: {name} names two tags"));
            }
        }
    }
    writeln!(code, "/// The first tag of the exchange's own.\nconst OWN_FROM: usize = {OWN_FROM};")
        .expect("a text");
    code.push_str("/// Tags by name.\npub mod tag {\n");
    for (name, tag) in names {
        writeln!(code, "    /// `{name}`.\n    pub const {}: u16 = {tag};", screaming(name)).expect("a text");
    }
    code.push_str("}\n");
    Ok(())
}

/// `ClOrdID` as `CL_ORD_ID`.
fn screaming(name: &str) -> String {
    let letters: Vec<char> = name.replace("IDs", "Ids").chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let begins = before.is_some_and(|before| !before.is_uppercase())
            || after.is_some_and(|after| after.is_lowercase());
        if letter.is_uppercase() && at > 0 && begins {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

fn dictionary(name: &str, source: &Source, code: &mut String) {
    let header: Vec<_> = source.header.iter().copied().filter(|(tag, _)| !FRAMED.contains(tag)).collect();
    let parts = [
        ("begin_string", format!("{:?}", source.version)),
        ("tags_max", source.tags_max.to_string()),
        ("types", format!("&{:?}", source.types)),
        ("places", format!("&{:?}", source.places(0..=source.tags_max))),
        ("own", format!("&{:?}", source.own())),
        ("data", format!("&{:?}", source.data.iter().collect::<Vec<_>>())),
        ("fields", format!("&[{}]", source.field_rules().join(", "))),
        ("groups", format!("&[{}]", source.group_rules().join(", "))),
        ("messages", format!("&[{}]", source.message_rules().join(", "))),
        ("letters", format!("{:?}", source.letters())),
        ("framed", source.set(FRAMED)),
        ("required", source.required(&header)),
    ];
    let parts: Vec<String> =
        parts.into_iter().map(|(part, value)| format!("    {part}: {value},\n")).collect();
    let about = format!("/// {} as it is served.", source.version);
    writeln!(code, "{about}\npub static {name}: FixDictionary = FixDictionary {{\n{}}};", parts.concat())
        .expect("a text");
}

impl Source {
    fn place(&self, tag: u16) -> usize {
        let before = self.fields.keys().position(|known| *known == tag);
        1 + before.expect("a dictionary was held against itself")
    }

    fn places(&self, tags: std::ops::RangeInclusive<u16>) -> Vec<usize> {
        tags.map(|tag| if self.fields.contains_key(&tag) { self.place(tag) } else { 0 }).collect()
    }

    /// The places of the exchange's own tags.
    fn own(&self) -> Vec<usize> {
        let last = self.fields.keys().next_back().copied().filter(|last| *last > self.tags_max);
        last.map_or_else(Vec::new, |last| self.places(OWN_FROM..=last))
    }

    fn set(&self, tags: impl IntoIterator<Item = u16>) -> String {
        let mut words = [0u64; 4];
        tags.into_iter().map(|tag| self.place(tag)).for_each(|place| words[place / 64] |= 1 << (place % 64));
        format!("FieldSet({words:?})")
    }

    fn required(&self, tags: &[(u16, bool)]) -> String {
        self.set(tags.iter().filter(|(_, star)| *star).map(|(tag, _)| *tag))
    }

    fn field_rules(&self) -> Vec<String> {
        // Place 0 is that of no field.
        let none = rule(self, 0, "Text", "Values::Any");
        let fields = self.fields.iter().map(|(tag, field)| rule(self, *tag, field.form, &values(field)));
        std::iter::once(none).chain(fields).collect()
    }

    fn group_rules(&self) -> Vec<String> {
        let rule = |(count, group): (&u16, &Group)| {
            let count = self.place(*count);
            let firsts: Vec<usize> = group.firsts.iter().map(|tag| self.place(*tag)).collect();
            let members = self.set(group.members.iter().copied());
            let (first, or) = (firsts[0], firsts.get(1).copied().unwrap_or_default());
            format!("GroupRule {{ count: {count}, first: {first}, or: {or}, members: {members} }}")
        };
        self.groups.iter().map(rule).collect()
    }

    /// How deep groups lie in each other, from this one on.
    fn depth(&self, count: u16) -> usize {
        let inner =
            self.groups.get(&count).map(|group| group.members.iter().map(|tag| self.depth(*tag)).max());
        inner.map_or(0, |inner| 1 + inner.unwrap_or_default())
    }

    fn message_rules(&self) -> Vec<String> {
        let rule = |body: &Body| {
            let allowed = self.set(body.fields.iter().map(|(tag, _)| *tag));
            let (kind, required) = (&body.kind, self.required(&body.fields));
            format!("MessageRule {{ msg_type: {kind:?}, allowed: {allowed}, required: {required} }}")
        };
        self.messages.iter().map(rule).collect()
    }

    /// By the letter of a type, one more than the number of its message.
    fn letters(&self) -> Vec<usize> {
        let mut letters = vec![0; 128];
        for (at, body) in self.messages.iter().enumerate() {
            if let [letter] = body.kind.as_bytes() {
                letters[usize::from(*letter)] = at + 1;
            }
        }
        letters
    }
}

fn rule(source: &Source, tag: u16, form: &str, values: &str) -> String {
    let group = source.groups.keys().position(|count| *count == tag).map_or(0, |at| at + 1);
    let within = |tags: &[(u16, bool)]| tags.iter().any(|(other, _)| *other == tag);
    let section = match () {
        () if within(&source.header) => "Header",
        () if within(&source.trailer) => "Trailer",
        () => "Body",
    };
    format!(
        "FieldRule {{ tag: {tag}, form: Form::{form}, values: {values}, section: Section::{section}, group: {group} }}"
    )
}

fn values(field: &Field) -> String {
    if field.values.is_empty() {
        return "Values::Any".into();
    }
    if field.values.iter().all(|value| value.len() == 1) {
        let mask = field.values.iter().fold(0u128, |mask, value| mask | 1 << value.as_bytes()[0]);
        return format!("Values::Letters({mask:#x})");
    }
    format!("Values::Words(&{:?})", field.values)
}
