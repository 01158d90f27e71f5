//! The input of each session as the journal has it, and whether it explains what a program read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::outlive::home::Home;

/// Bytes for a terminal, in the order of their records.
#[derive(Debug)]
struct Input {
    /// Which of its members says what it is: `text`, `base64` or `secret`.
    form: String,
    bytes: Vec<u8>,
    /// How many of them the terminal took, at least and at most.
    taken: (usize, usize),
}

/// The inputs of each session.
#[derive(Debug, Default)]
pub(super) struct InputRecords(BTreeMap<String, Vec<Input>>);

impl InputRecords {
    pub(super) fn read(home: &Home) -> Self {
        let mut inputs = Self::default();
        // The inputs of each act by its session and their places there.
        let mut places = BTreeMap::<u64, (String, Vec<usize>)>::new();
        for line in home.printed("journal export").lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            let number = |name: &str| record[name].as_u64();
            let act = match record["kind"].as_str().unwrap() {
                "intent" => number("seq").unwrap(),
                "more" => number("of").unwrap(),
                "outcome" => {
                    let (written, queued) = (number("written"), number("queued"));
                    inputs.conclude(places.get(&number("of").unwrap()), written, queued);
                    continue;
                }
                _ => continue,
            };
            let form = ["text", "secret"].into_iter().find(|form| !record[form].is_null());
            let Some(form) = form else { continue };
            let bytes = record["text"].as_str().unwrap_or_default().as_bytes().to_vec();
            let session = record["session"].as_str().map(str::to_owned);
            let session = session.unwrap_or_else(|| places[&act].0.clone());
            let all = inputs.0.entry(session.clone()).or_default();
            places.entry(act).or_insert((session, Vec::new())).1.push(all.len());
            let taken = (0, bytes.len());
            all.push(Input { form: form.to_owned(), bytes, taken });
        }
        inputs
    }

    fn conclude(
        &mut self,
        places: Option<&(String, Vec<usize>)>,
        written: Option<u64>,
        queued: Option<u64>,
    ) {
        let (Some((session, places)), Some(written)) = (places, written) else { return };
        let [place] = places[..] else { panic!("typing says nothing of what was written") };
        let written = usize::try_from(written).unwrap();
        let queued = usize::try_from(queued.unwrap_or_default()).unwrap();
        self.0.get_mut(session).unwrap()[place].taken = (written, written + queued);
    }

    /// How many inputs of a session have this form.
    pub(super) fn count(&self, session: &str, form: &str) -> usize {
        let all = self.0.get(session).into_iter().flatten();
        all.filter(|input| input.form == form).count()
    }

    /// Fails unless what a program read is what was recorded: in this order, each input as far as it was taken.
    pub(super) fn explain(&self, session: &str, read: &[u8]) -> Result<(), String> {
        let mut ends = BTreeSet::from([0]);
        for input in &self.0[session] {
            let (least, most) = input.taken;
            let mut next = BTreeSet::new();
            for end in &ends {
                let same =
                    input.bytes.iter().zip(&read[*end..]).take_while(|(one, other)| one == other);
                let most = same.count().min(most);
                next.extend((least..=most).map(|taken| end + taken));
            }
            if next.is_empty() {
                let at = ends.last().unwrap();
                let rest = String::from_utf8_lossy(&read[*at..read.len().min(at + 80)]);
                let text = String::from_utf8_lossy(&input.bytes);
                return Err(format!(
                    "{text:?}, of which {least} were taken, is not {rest:?} at {at}"
                ));
            }
            ends = next;
        }
        match ends.contains(&read.len()) {
            true => Ok(()),
            false => Err(format!("{} bytes were read, and {ends:?} recorded", read.len())),
        }
    }
}
