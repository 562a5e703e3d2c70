//! Answers of calls. An Expert asks again in each round, and the evidence of a catalog does not change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the kept calls and answers.
const BYTES_MAX: usize = 32 << 20;

/// The visible sources, the tool and its arguments.
pub(crate) type Call = (Arc<[usize]>, String, String);

#[derive(Debug, Default)]
pub(crate) struct Answers(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<Arc<Call>, Arc<str>>,
    /// The oldest first.
    order: VecDeque<Arc<Call>>,
    bytes: usize,
}

impl Answers {
    pub(crate) fn get(&self, call: &Call) -> Option<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).answers.get(call).map(Arc::clone)
    }

    /// Keeps the answer. Drops the oldest answers until all of them fit.
    pub(crate) fn keep(&self, call: Call, answer: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = size(&call, answer);
        if bytes > BYTES_MAX / 8 || kept.answers.contains_key(&call) {
            return;
        }
        let call = Arc::new(call);
        kept.answers.insert(Arc::clone(&call), answer.into());
        kept.bytes += bytes;
        kept.order.push_back(call);
        while kept.bytes > BYTES_MAX
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.bytes -= kept.answers.remove(&oldest).map_or(0, |answer| size(&oldest, &answer));
        }
    }
}

/// A client may ask much and get little.
fn size((visible, tool, arguments): &Call, answer: &str) -> usize {
    const OF_MAPS: usize = 200;
    std::mem::size_of_val(&**visible) + tool.len() + arguments.len() + answer.len() + OF_MAPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_answers_make_room_for_new_ones() {
        let answers = Answers::default();
        let call = |n: usize| (Arc::from([n]), "search".to_owned(), "{}".to_owned());
        let large = "x".repeat(BYTES_MAX / 8 - 400);
        (0..9).for_each(|n| answers.keep(call(n), &large));
        assert_eq!(answers.get(&call(0)), None);
        assert_eq!(answers.get(&call(1)).as_deref(), Some(large.as_str()));
        answers.keep(call(9), &"x".repeat(BYTES_MAX / 8));
        assert_eq!(answers.get(&call(9)), None, "too large");
        let long = |n: usize| (Arc::from([n]), "search".to_owned(), large.clone());
        (0..9).for_each(|n| answers.keep(long(n), "{}"));
        assert_eq!(answers.get(&long(0)), None, "arguments count, too");
        assert!(answers.0.lock().unwrap().bytes <= BYTES_MAX);
        answers.keep(call(8), &large);
        assert!(answers.get(&call(8)).is_some());
    }
}
