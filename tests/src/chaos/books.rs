//! The books: what the model server and the tools saw, held against what is recorded. A call is finished
//! when its result is recorded; from then on nobody may make it again, whatever was killed in between.
//! A call that was under way when something was struck is made again. Pure.

use std::collections::BTreeMap;

/// A time in milliseconds since 1970.
pub type Ms = i64;

/// How much later than the record a request may come in: whoever sends it looked before the record was
/// there, or recorded the step before it a tenth of a second ago, and both clocks are read a little late on a
/// busy machine. How many came in so late is counted.
pub const GRACE: Ms = 500;

/// Something that was begun: a request that came to the model, or a tool that was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Names it among all, such as the number of the request.
    pub number: u64,
    /// The same for the same call, whoever makes it.
    pub call: String,
    /// Which process of the team.
    pub by: usize,
    pub at: Ms,
}

/// A finished call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// What it is to us, such as `<investigation> r1.plan.m1`.
    pub name: String,
    /// The task that it belongs to, such as `<investigation> r1.plan`.
    pub task: String,
    /// [`Begun::call`] of what it came from.
    pub call: String,
    /// When its record was written.
    pub at: Ms,
}

/// A time in which a process, or with none the server, was away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Away {
    pub who: Option<usize>,
    pub from: Ms,
    pub until: Ms,
}

/// What the books say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balance {
    pub finished: usize,
    /// Calls that were begun more than once, since something was struck while they were under way.
    pub again: usize,
    /// Of those, calls that were begun once more within [`GRACE`] after they were recorded.
    pub late: usize,
    pub faults: Vec<String>,
}

/// When each task was begun, by its first call. A task that two hold since something was struck is held by
/// both until it ends: all of its calls may be made twice at once.
pub fn tasks(books: &[(Vec<Begun>, Vec<Finished>)]) -> BTreeMap<String, Ms> {
    let mut tasks = BTreeMap::new();
    for (begun, finished) in books {
        let task: BTreeMap<&str, &str> = finished.iter().map(|one| (one.call.as_str(), one.task.as_str())).collect();
        for one in begun {
            let Some(task) = task.get(one.call.as_str()) else { continue };
            let first = tasks.entry((*task).to_owned()).or_insert(one.at);
            *first = one.at.min(*first);
        }
    }
    tasks
}

/// Holds what was begun against what is finished. `lease` is the time after which a job that nobody
/// holds comes to another; `tasks` says when each task was begun.
pub fn balance(
    begun: &[Begun],
    finished: &[Finished],
    away: &[Away],
    (tasks, lease): (&BTreeMap<String, Ms>, Ms),
) -> Balance {
    let mut balance = Balance { finished: finished.len(), ..Balance::default() };
    let mut by_call: BTreeMap<&str, Vec<&Begun>> = BTreeMap::new();
    for one in begun {
        by_call.entry(&one.call).or_default().push(one);
    }
    let mut known: BTreeMap<&str, &Finished> = BTreeMap::new();
    for one in finished {
        if let Some(other) = known.insert(&one.call, one) {
            let same =
                format!("{} and {} were the same request: the books cannot tell them apart", other.name, one.name);
            balance.faults.push(same);
        }
        let Some(made) = by_call.get(one.call.as_str()) else {
            balance.faults.push(format!("{} is recorded and was never begun", one.name));
            continue;
        };
        balance.again += usize::from(made.len() > 1);
        balance.late += usize::from(made.iter().any(|m| (1..=GRACE).contains(&(m.at - one.at))));
        balance.faults.extend(made.iter().filter_map(|m| after_the_record(m, one, away)));
        balance.faults.extend(doubled(made, one, away, (tasks, lease)));
    }
    let lost = by_call.iter().filter(|(call, _)| !known.contains_key(*call));
    balance.faults.extend(lost.map(|(call, made)| {
        let numbers: Vec<u64> = made.iter().map(|m| m.number).collect();
        format!("what was begun as {numbers:?} ({call}) is recorded nowhere")
    }));
    balance
}

/// Begun although it was finished. A process that was paused between its look at the record and the
/// request could not know.
fn after_the_record(made: &Begun, finished: &Finished, away: &[Away]) -> Option<String> {
    let late = made.at - finished.at;
    let paused = away
        .iter()
        .any(|a| a.who == Some(made.by) && a.from <= finished.at && a.until + GRACE >= made.at && a.until <= made.at);
    (late > GRACE && !paused).then(|| {
        format!(
            "{} was made again {late} ms after its result was recorded (number {}, by {})",
            finished.name, made.number, made.by
        )
    })
}

/// Begun twice although nobody who held it, nor the server, was away.
fn doubled(
    made: &[&Begun],
    finished: &Finished,
    away: &[Away],
    (tasks, lease): (&BTreeMap<String, Ms>, Ms),
) -> Option<String> {
    let first = made.iter().map(|m| m.at).min()?;
    let last = made.iter().map(|m| m.at).max()?;
    let since = tasks.get(&finished.task).copied().unwrap_or(first).min(first);
    let holders: Vec<usize> = made.iter().map(|m| m.by).collect();
    let struck = away.iter().any(|a| {
        a.who.is_none_or(|who| holders.contains(&who)) && a.from <= last + GRACE && a.until >= since - lease - GRACE
    });
    (made.len() > 1 && !struck).then(|| {
        format!(
            "{} was made {} times within {} ms, and nothing was struck meanwhile",
            finished.name,
            made.len(),
            last - first
        )
    })
}

/// What was made again although it was not under way when its process was killed: each time but the
/// last, whoever had begun a call was killed after that and before it was recorded. For books in
/// which processes are killed and nothing else is done to them.
pub fn in_flight(begun: &[Begun], finished: &[Finished], killed: &[Away]) -> Vec<String> {
    let mut faults = Vec::new();
    for one in finished {
        let mut made: Vec<&Begun> = begun.iter().filter(|made| made.call == one.call).collect();
        made.sort_by_key(|made| made.at);
        made.pop();
        let idle = made
            .iter()
            .filter(|made| !killed.iter().any(|k| k.who == Some(made.by) && made.at <= k.until && one.at >= k.from));
        faults.extend(idle.map(|made| {
            format!("{} was made again, and nobody was killed while number {} was under way", one.name, made.number)
        }));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(number: u64, call: &str, by: usize, at: Ms) -> Begun {
        Begun { number, call: call.into(), by, at }
    }

    fn finished(call: &str, at: Ms) -> Finished {
        Finished { name: format!("call {call}"), task: "t".into(), call: call.into(), at }
    }

    fn faults(made: &[Begun], done: &[Finished], away: &[Away]) -> Vec<String> {
        balance(made, done, away, (&BTreeMap::new(), 3_000)).faults
    }

    #[test]
    fn each_call_made_once_balances() {
        let made = [begun(1, "a", 0, 0), begun(2, "b", 1, 10)];
        let found = balance(&made, &[finished("a", 300), finished("b", 310)], &[], (&BTreeMap::new(), 3_000));
        assert_eq!(found, Balance { finished: 2, again: 0, late: 0, faults: vec![] });
    }

    #[test]
    fn a_call_that_was_under_way_when_its_worker_was_killed_may_be_made_again() {
        let made = [begun(1, "a", 0, 0), begun(2, "a", 1, 3_200)];
        let killed = Away { who: Some(0), from: 100, until: 600 };
        let found = balance(&made, &[finished("a", 3_500)], &[killed], (&BTreeMap::new(), 3_000));
        assert_eq!((found.again, found.late, found.faults), (1, 0, vec![]));
        let found = balance(&made, &[finished("a", 3_180)], &[killed], (&BTreeMap::new(), 3_000));
        assert_eq!((found.again, found.late, found.faults), (1, 1, vec![]));
        let told = faults(&made, &[finished("a", 3_500)], &[Away { who: Some(7), ..killed }]);
        assert_eq!(told, ["call a was made 2 times within 3200 ms, and nothing was struck meanwhile"]);
    }

    #[test]
    fn a_task_that_two_hold_since_a_strike_may_be_doubled_to_its_end() {
        let made = [begun(1, "a", 0, 0), begun(2, "b", 0, 9_000), begun(3, "b", 1, 9_040)];
        let done = [finished("a", 8_000), finished("b", 9_400)];
        let struck = [Away { who: None, from: 100, until: 600 }];
        let tasks = tasks(&[(made.to_vec(), done.to_vec())]);
        assert_eq!(balance(&made, &done, &struck, (&tasks, 3_000)).faults, [""; 0]);
        let before = [Away { who: None, from: -9_000, until: -8_000 }];
        let told = balance(&made, &done, &before, (&tasks, 3_000)).faults;
        assert_eq!(told, ["call b was made 2 times within 40 ms, and nothing was struck meanwhile"]);
    }

    #[test]
    fn a_finished_call_is_never_made_again_whatever_was_struck() {
        let made = [begun(1, "a", 0, 0), begun(2, "a", 1, 9_000)];
        let server = Away { who: None, from: 100, until: 600 };
        let told = faults(&made, &[finished("a", 300)], &[server, Away { who: Some(0), from: 200, until: 900 }]);
        assert_eq!(told, ["call a was made again 8700 ms after its result was recorded (number 2, by 1)"]);
        // Paused from before the record until just before the request: it had looked before.
        let paused = Away { who: Some(1), from: 200, until: 8_990 };
        assert_eq!(faults(&made, &[finished("a", 300)], &[server, paused]), [""; 0]);
    }

    #[test]
    fn only_what_was_under_way_at_a_kill_is_made_again() {
        let made = [begun(1, "a", 0, 0), begun(2, "a", 0, 3_200)];
        let killed = |who, from| Away { who: Some(who), from, until: from + 5 };
        let told = |at, killed| in_flight(&made, &[finished("a", at)], &[killed]).len();
        assert_eq!((told(3_500, killed(0, 100)), told(3_500, killed(1, 100))), (0, 1));
        assert_eq!(told(50, killed(0, 100)), 1, "it was recorded before the kill");
    }

    #[test]
    fn what_is_in_one_book_alone_is_a_fault() {
        assert_eq!(faults(&[], &[finished("a", 1)], &[]), ["call a is recorded and was never begun"]);
        assert_eq!(faults(&[begun(4, "a", 0, 0)], &[], &[]), ["what was begun as [4] (a) is recorded nowhere"]);
        let told = faults(&[begun(1, "a", 0, 0)], &[finished("a", 1), finished("a", 2)], &[]);
        assert!(told[0].contains("the same request"), "{told:?}");
    }
}
