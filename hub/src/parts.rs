//! Long lists are worked on by all cores.

use std::num::NonZeroUsize;
use std::panic::resume_unwind;

/// A thread with fewer items costs more than it saves: rows of several events, or single events to verify.
const LEAST: usize = 128;

/// Gives `work` parts of `all` in threads of their own, each with the place of its first item; the results in order.
pub(crate) fn in_parts<T: Sync, R: Send>(all: &[T], work: impl Fn(usize, &[T]) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let size = all.len().div_ceil(cores).max(LEAST);
    if all.len() <= size {
        return vec![work(0, all)];
    }
    let work = &work;
    std::thread::scope(|scope| {
        let parts = all.chunks(size).enumerate();
        let threads: Vec<_> = parts.map(|(n, part)| scope.spawn(move || work(n * size, part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_order_and_know_their_place() {
        for length in [0, 1, LEAST, LEAST + 1, 10 * LEAST + 7] {
            let all: Vec<usize> = (0..length).collect();
            let parts = in_parts(&all, |first, part| (first, part.to_vec()));
            assert!(parts.iter().all(|(first, part)| part.first().is_none_or(|one| one == first)));
            assert_eq!(parts.into_iter().flat_map(|(_, part)| part).collect::<Vec<_>>(), all);
        }
    }
}
