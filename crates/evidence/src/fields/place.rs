//! Finds the time in lines that do not begin with one: `https 2020-01-11T16:55:20Z app/web …`, `10.0.0.9 | https
//! | admin | 2022-04-12 05:39:57,408 | …`. Nearly all lines of the file must have it at the same place, because
//! a single line may contain any text.

use casebook_protocol::Precision;
use serde::{Deserialize, Serialize};

use super::begins_with_time;
use crate::time::epoch::epoch;
use crate::time::text::{Reading, prefix};

const CELLS_MAX: usize = 7;
/// Fewer if blanks separate, because any text has blanks.
const WORDS_MAX: usize = 3;
/// In order of preference.
const SEPARATORS: [u8; 5] = [b'\t', b'|', b';', b',', b' '];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    separator: u8,
    cell: usize,
}

impl Place {
    /// The first place with a time in 70 % of the lines. None if 30 % begin with a time.
    pub(crate) fn of(lines: &[&str]) -> Option<Self> {
        let share = |count: usize, tenths: usize| count > 0 && count * 10 >= lines.len() * tenths;
        let begin = lines.iter().filter(|line| begins_with_time(line).is_some()).count();
        if share(begin, 3) {
            return None;
        }
        let places = SEPARATORS.into_iter().flat_map(|separator| {
            let most = if separator == b' ' { WORDS_MAX } else { CELLS_MAX };
            (1..=most).map(move |cell| Self { separator, cell })
        });
        places.into_iter().find(|place| {
            let times: Vec<&str> = lines.iter().filter_map(|line| place.time_of(line)).collect();
            // Numbers of ten digits are often not times, so require 90 %.
            share(times.len(), if times.iter().any(|time| time.len() == 10 && epoch(time).is_some()) { 9 } else { 7 })
        })
    }

    /// The time at this place: a date with a clock time, or a number since an epoch that fills its cell.
    pub(crate) fn time_of(self, line: &str) -> Option<&str> {
        let from = self.start(line)?;
        let rest = line.get(from..)?;
        let open = rest.len() - rest.trim_start_matches([' ', '[', '(', '"']).len();
        let rest = rest.get(open..)?;
        if let Some((moment, used)) = prefix(rest, Reading::default()) {
            return (moment.dated && moment.precision != Precision::Day).then(|| rest.get(..used)).flatten();
        }
        let cell = rest.split(char::from(self.separator)).next()?.trim_end();
        epoch(cell).map(|_| cell)
    }

    fn start(self, line: &str) -> Option<usize> {
        let bytes = line.as_bytes();
        let mut at = 0;
        for _ in 0..self.cell {
            at += memchr::memchr(self.separator, bytes.get(at..)?)? + 1;
            while self.separator == b' ' && bytes.get(at) == Some(&b' ') {
                at += 1;
            }
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use casebook_table::{blocks, expect_file};

    use super::*;

    #[test]
    fn the_lines_of_a_text_share_the_place_of_their_times() {
        blocks(&expect_file!["place.txt"], |_, text| {
            let lines: Vec<&str> = text.lines().collect();
            let place = Place::of(&lines);
            lines
                .iter()
                .map(|line| format!("{}\n", place.and_then(|place| place.time_of(line)).unwrap_or("-")))
                .collect()
        });
    }
}
