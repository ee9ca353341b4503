//! What the engine sends: new, again, or as a gap.

use pares_fix::dictionary::tag;
use pares_fix::writer::FixWriter;

use super::FixClient;
use super::orders::Sent;

impl FixClient {
    /// Sends a message under the next number.
    pub(super) fn say(&mut self, now_ns: u64, kind: &str, fields: &str, out: &mut Vec<u8>) {
        let number = self.next_out;
        self.next_out += 1;
        if matches!(kind, "D" | "F" | "G" | "q" | "AD") {
            let sent = Sent { kind: kind.to_owned(), fields: fields.to_owned(), sent_ns: now_ns };
            self.note_said(fields);
            self.sent.insert(number, sent);
        }
        self.write(now_ns, number, kind, (None, fields), out);
    }

    fn note_said(&mut self, fields: &str) {
        self.trades.note_said(fields);
        let name = fields.split('|').find_map(|field| field.strip_prefix("11=")?.parse().ok());
        *self.said.entry(name.unwrap_or_default()).or_default() += 1;
    }

    fn write(
        &self,
        now_ns: u64,
        number: u64,
        kind: &str,
        (first_ns, fields): (Option<u64>, &str),
        out: &mut Vec<u8>,
    ) {
        let mut writer = FixWriter::begin(out, self.dictionary.begin_string, kind.as_bytes());
        writer.number(tag::MSG_SEQ_NUM, number);
        writer.text(tag::SENDER_COMP_ID, self.comp_id.as_bytes());
        writer.time(tag::SENDING_TIME, now_ns);
        writer.text(tag::TARGET_COMP_ID, b"PARES");
        if let Some(first_ns) = first_ns {
            writer.letter(tag::POSS_DUP_FLAG, b'Y');
            writer.time(tag::ORIG_SENDING_TIME, first_ns);
        }
        writer.fields(fields.replace('|', "\x01").as_bytes());
        writer.finish();
    }

    /// Answers a ResendRequest: old orders again with 43=Y, or gaps; whatever the seed says.
    pub(super) fn send_again(&mut self, now_ns: u64, from: u64, to: u64, out: &mut Vec<u8>) {
        let last = self.next_out - 1;
        let to = if to == 0 { last } else { to.min(last) };
        let share = [0, 500, 1_000][self.random.index(3)];
        let mut gap = from;
        for number in from..=to {
            if !self.sent.contains_key(&number) || !self.random.chance(share) {
                continue;
            }
            self.fill(now_ns, gap, number, out);
            let Sent { kind, fields, sent_ns } = &self.sent[&number];
            self.write(now_ns, number, kind, (Some(*sent_ns), fields), out);
            let fields = fields.clone();
            self.note_said(&fields);
            (gap, self.counts.sent_again) = (number + 1, self.counts.sent_again + 1);
        }
        self.fill(now_ns, gap, to + 1, out);
        // What was filled as a gap is asked again under its name.
        self.open.values_mut().for_each(|open| open.retry_at_ns = open.retry_at_ns.min(now_ns + 1));
    }

    /// A Logon under the number 1, as a stranger could send it.
    pub(super) fn first_logon(&self, now_ns: u64) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(now_ns, 1, "A", (None, "98=0|108=30|"), &mut out);
        out
    }

    fn fill(&self, now_ns: u64, from: u64, next: u64, out: &mut Vec<u8>) {
        if from < next {
            self.write(now_ns, from, "4", (Some(now_ns), &format!("123=Y|36={next}|")), out);
        }
    }
}
