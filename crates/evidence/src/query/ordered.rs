//! Records in an order that the index knows, of as few blocks as possible.

use std::collections::BTreeMap;

use crate::ReadError;
use crate::index::Entry;
use crate::index::blocks::Extent;

use super::scan::Window;

/// Records with equal times are in order of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Records without a time come last.
    Time,
    /// Records without a time come first, as in SQL.
    NullsFirst,
    /// Records without a time come last.
    TimeDesc,
    File,
    /// By distance from this time, in nanoseconds since 1970. Records without a time come last.
    Near(i64),
}

pub(crate) type Key = (bool, i64, i64);

impl Order {
    pub(crate) fn key(self, entry: &Entry) -> Key {
        self.of(entry.time, entry.id)
    }

    fn of(self, time: Option<i64>, id: i64) -> Key {
        let untimed = time.is_none();
        let time = time.unwrap_or(0);
        match self {
            Self::Time => (untimed, time, id),
            Self::NullsFirst => (!untimed, time, id),
            Self::TimeDesc => (untimed, time.saturating_neg(), -id),
            Self::File => (false, 0, id),
            Self::Near(center) => (untimed, time.saturating_sub(center).saturating_abs(), id),
        }
    }

    /// No record of the block has a smaller key.
    fn least(self, extent: &Extent) -> Key {
        let untimed = extent.timed < extent.records();
        let time = match (self, extent.times) {
            (Self::NullsFirst, _) if untimed => None,
            (Self::TimeDesc, Some((_, late))) => Some(late),
            (Self::Near(center), Some((early, late))) => Some(center.clamp(early, late)),
            (_, times) => times.map(|(early, _)| early),
        };
        self.of(time, if self == Self::TimeDesc { extent.last } else { extent.id })
    }
}

/// Reads blocks when their first record may be the next.
#[derive(Debug)]
pub(crate) struct Ordered {
    order: Order,
    window: Window,
    /// The block that is read next is last.
    blocks: Vec<(Key, i64)>,
    open: BTreeMap<Key, Entry>,
    /// How many records may still be asked for.
    most: usize,
}

/// Records of blocks that are open at once.
const OPEN_MAX: usize = 1 << 20;

impl Ordered {
    /// At most `most` records can be read.
    pub(crate) fn new(order: Order, window: Window, extents: &[Extent], most: usize) -> Self {
        let mut blocks: Vec<(Key, i64)> = extents.iter().map(|extent| (order.least(extent), extent.id)).collect();
        blocks.sort_unstable_by(|a, b| b.cmp(a));
        Self { order, window, blocks, open: BTreeMap::new(), most }
    }

    /// `read` gives the records of a block.
    pub(crate) fn next(
        &mut self,
        read: &mut dyn FnMut(i64) -> Result<Vec<Entry>, ReadError>,
    ) -> Result<Option<Entry>, ReadError> {
        if self.most == 0 {
            return Ok(None);
        }
        loop {
            let due = self.blocks.last().map(|(key, _)| *key);
            match self.open.first_entry() {
                Some(first) if due.is_none_or(|due| *first.key() <= due) => {
                    self.most -= 1;
                    return Ok(Some(first.remove()));
                }
                _ => {}
            }
            let Some((_, id)) = self.blocks.pop() else { return Ok(None) };
            for entry in read(id)? {
                if self.window.has(entry.time) {
                    self.open.insert(self.order.key(&entry), entry);
                }
                if self.open.len() > self.most {
                    self.open.pop_last();
                }
            }
            if self.open.len() > OPEN_MAX {
                return Err(ReadError::Query(
                    "too many records are not in the order of time: give a narrower time, or order by id".to_owned(),
                ));
            }
        }
    }
}
