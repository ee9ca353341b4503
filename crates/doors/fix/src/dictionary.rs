//! Which fields and messages there are.
//!
//! Dictionaries are data: `dictionary/*.txt`, facts of the standard restricted to what this exchange serves. `build.rs` makes tables of them.
//! A field's *place* in its dictionary is a byte: fields in order of their tags, from 1. So a set of fields is four words, and to
//! ask whether a message may have a field, has it already or lacks it is arithmetic on bits.

include!(concat!(env!("OUT_DIR"), "/dictionaries.rs"));

/// One version of FIX.
#[derive(Debug)]
pub struct FixDictionary {
    /// The value of tag 8.
    pub begin_string: &'static str,
    tags_max: u16,
    types: &'static [&'static str],
    places: &'static [u8],
    /// Places of the exchange's own tags, which no standard has.
    own: &'static [u8],
    /// Tags of data, and of the field before each that says how long it is; also of those that are not served.
    data: &'static [(u16, u16)],
    fields: &'static [FieldRule],
    groups: &'static [GroupRule],
    messages: &'static [MessageRule],
    /// By a type of one letter, one more than the number of its message, or 0.
    letters: [u8; 128],
    /// What a frame has: BeginString, BodyLength, CheckSum.
    framed: FieldSet,
    required: FieldSet,
}

/// What a field may be, and where.
#[derive(Debug)]
pub(crate) struct FieldRule {
    pub(crate) tag: u16,
    pub(crate) form: Form,
    pub(crate) values: Values,
    pub(crate) section: Section,
    /// One more than the number of the group that it counts, or 0.
    pub(crate) group: u8,
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    /// Single letters with spaces between them.
    Letters,
    Char,
    Flag,
    Integer,
    /// An integer without a sign.
    Count,
    Decimal,
    Timestamp,
    Date,
    Data,
}

/// Which values there are.
#[derive(Debug)]
pub(crate) enum Values {
    Any,
    /// One letter, whose bit is set.
    Letters(u128),
    Words(&'static [&'static str]),
}

/// Which part of a message a field belongs to. They follow each other in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Section {
    Header,
    Body,
    Trailer,
}

/// A repeating group.
#[derive(Debug)]
pub(crate) struct GroupRule {
    /// The field that says how many entries there are.
    pub(crate) count: u8,
    /// The field that begins an entry.
    pub(crate) first: u8,
    /// Another that does, if it begins the first one; or 0.
    pub(crate) or: u8,
    pub(crate) members: FieldSet,
}

/// A message.
#[derive(Debug)]
pub(crate) struct MessageRule {
    pub(crate) msg_type: &'static str,
    pub(crate) allowed: FieldSet,
    pub(crate) required: FieldSet,
}

/// Fields, by their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet([u64; 4]);

impl FieldSet {
    #[inline]
    pub(crate) fn has(&self, place: u8) -> bool {
        self.0[usize::from(place >> 6)] >> (place & 63) & 1 == 1
    }

    #[inline]
    pub(crate) fn add(&mut self, place: u8) {
        self.0[usize::from(place >> 6)] |= 1 << (place & 63);
    }

    /// The first place that is here and not in `other`.
    pub(crate) fn first_beside(&self, other: &Self) -> Option<u8> {
        let beside = self.0.iter().zip(other.0).map(|(here, there)| here & !there);
        let (word, bits) = beside.enumerate().find(|(_, bits)| *bits != 0)?;
        u8::try_from(word * 64 + bits.trailing_zeros() as usize).ok()
    }
}

impl FixDictionary {
    /// The place of a field, or 0.
    #[inline]
    pub(crate) fn place(&self, tag: i32) -> u8 {
        let Ok(tag) = usize::try_from(tag) else { return 0 };
        let own = || self.own.get(tag.checked_sub(OWN_FROM)?);
        self.places.get(tag).or_else(own).copied().unwrap_or_default()
    }

    #[inline]
    pub(crate) fn field(&self, place: u8) -> &'static FieldRule {
        &self.fields[usize::from(place)]
    }

    /// The group that a field counts, by the number in its rule.
    pub(crate) fn group(&self, number: u8) -> &'static GroupRule {
        &self.groups[usize::from(number) - 1]
    }

    pub(crate) fn message(&self, msg_type: &[u8]) -> Option<&'static MessageRule> {
        match *msg_type {
            [letter] => {
                let number = self.letters.get(usize::from(letter)).copied().unwrap_or_default();
                self.messages.get(usize::from(number).checked_sub(1)?)
            }
            _ => self.messages.iter().find(|message| message.msg_type.as_bytes() == msg_type),
        }
    }

    /// Whether the standard has such a type, served or not.
    pub(crate) fn is_type(&self, msg_type: &[u8]) -> bool {
        self.types.iter().any(|known| known.as_bytes() == msg_type)
    }

    /// Whether the standard has such a tag, served or not, or the exchange.
    pub(crate) fn is_tag(&self, tag: i32) -> bool {
        (1..=i32::from(self.tags_max)).contains(&tag) || self.place(tag) != 0
    }

    /// The field that says how long another is, if that is data.
    pub(crate) fn length_of(&self, tag: i32) -> Option<i32> {
        let data = self.data.iter().find(|(data, _)| i32::from(*data) == tag);
        data.map(|(_, length)| i32::from(*length))
    }

    /// Whether a field may have a value.
    pub(crate) fn allows(&self, tag: u16, value: &[u8]) -> bool {
        match self.field(self.place(i32::from(tag))).values {
            Values::Words(words) => words.iter().any(|word| word.as_bytes() == value),
            Values::Any | Values::Letters(_) => true,
        }
    }

    /// What the frame has of every message.
    pub(crate) fn framed(&self) -> FieldSet {
        self.framed
    }

    /// What every message must have besides its frame.
    pub(crate) fn required(&self) -> &FieldSet {
        &self.required
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_knows_its_fields_and_messages() {
        assert_eq!(FIX44.field(FIX44.place(11)).tag, tag::CL_ORD_ID);
        assert_eq!((FIX44.place(0), FIX44.place(-1), FIX44.place(999)), (0, 0, 0));
        assert_eq!(FIX42.message(b"D").map(|message| message.msg_type), Some("D"));
        assert!(FIX42.message(b"AF").is_none() && FIX44.message(b"AF").is_some());
        assert!(FIX42.is_type(b"B") && !FIX42.is_type(b"*"));
    }

    #[test]
    fn tags_of_the_exchange_s_own_are_known_by_name() {
        for dictionary in [&FIX42, &FIX44] {
            let place = dictionary.place(i32::from(tag::SELF_TRADE_PREVENTION));
            assert_eq!(dictionary.field(place).tag, 20_001);
            assert!(dictionary.is_tag(20_001) && !dictionary.is_tag(20_002) && !dictionary.is_tag(5_000));
        }
    }

    #[test]
    fn what_is_lacking_is_told_in_the_order_of_tags() {
        let (mut all, mut some) = (FieldSet::default(), FieldSet::default());
        [3, 70, 200].into_iter().for_each(|place| all.add(place));
        some.add(3);
        assert_eq!(all.first_beside(&some), Some(70));
        assert_eq!(some.first_beside(&all), None);
    }
}
