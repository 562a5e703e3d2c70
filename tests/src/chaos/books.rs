//! Compares the calls that the model server and the tools received with the recorded ones. After the result of
//! a call is recorded, no process may make the call again. A call that was running during a kill or pause is
//! repeated. Pure.

use std::collections::BTreeMap;

/// Milliseconds since 1970.
pub type Ms = i64;

/// How much later than the record a request may arrive: its sender checked the record earlier, and the clocks
/// are read late on a busy machine. Such requests are counted.
pub const GRACE: Ms = 500;

/// The start of a call: a request to the model, or the run of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// Identifies it, such as the number of the request.
    pub number: u64,
    /// The same for repetitions of the same call.
    pub call: String,
    pub by: usize,
    pub at: Ms,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// Our name for it, such as `<investigation> r1.plan.m1`.
    pub name: String,
    /// Its task, such as `<investigation> r1.plan`.
    pub task: String,
    /// The matching [`Begun::call`].
    pub call: String,
    pub at: Ms,
}

/// When a process (`None`: the server) was killed or paused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Away {
    pub who: Option<usize>,
    pub from: Ms,
    pub until: Ms,
    /// How long after `until` a request may arrive that was sent before, since the network sends again after a pause. The
    /// same for a message that a server of several took before: its time is that of the proposal, and it is stored once
    /// a majority has it. 0 for one server.
    pub late: Ms,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Balance {
    pub finished: usize,
    /// Calls that were started again because of a kill or pause.
    pub again: usize,
    /// Of those, calls that were started within [`GRACE`] after they were recorded.
    pub late: usize,
    pub faults: Vec<String>,
}

/// The time of the first call of each task. Two processes may hold a task after a kill or pause, and then all
/// of its calls may be made twice.
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

/// Compares started with finished calls. After `lease`, a job without a holder goes to another process; `tasks`
/// has the start of each task.
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
            let same = format!("{} and {} have the same request and cannot be distinguished", other.name, one.name);
            balance.faults.push(same);
        }
        let Some(made) = by_call.get(one.call.as_str()) else {
            balance.faults.push(format!("{} is recorded but was never started", one.name));
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
        format!("the calls {numbers:?} ({call}) are not recorded")
    }));
    balance
}

/// A call that was started after it was recorded. A process that was paused before the request could not know
/// that.
fn after_the_record(made: &Begun, finished: &Finished, away: &[Away]) -> Option<String> {
    let late = made.at - finished.at;
    let paused = away.iter().any(|a| {
        a.who == Some(made.by) && a.from <= finished.at && a.until + GRACE + a.late >= made.at && a.until <= made.at
    });
    let proposed =
        away.iter().any(|a| a.who.is_none() && a.late > 0 && (a.from..=a.until + a.late).contains(&finished.at));
    (late > GRACE && !paused && !proposed).then(|| {
        format!(
            "{} was made again {late} ms after its result was recorded (number {}, by {})",
            finished.name, made.number, made.by
        )
    })
}

/// A call that was started twice although no holder of the task was killed or paused, nor the server.
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
        a.who.is_none_or(|who| holders.contains(&who))
            && a.from <= last + GRACE
            && a.until + a.late >= since - lease - GRACE
    });
    (made.len() > 1 && !struck).then(|| {
        format!("{} was made {} times within {} ms without a kill or pause", finished.name, made.len(), last - first)
    })
}

/// Repeated calls that were not running when their process was killed. For runs in which processes are only
/// killed.
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
            format!("{} was repeated, but no process was killed while number {} was running", one.name, made.number)
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
        let killed = Away { who: Some(0), from: 100, until: 600, ..Away::default() };
        let found = balance(&made, &[finished("a", 3_500)], &[killed], (&BTreeMap::new(), 3_000));
        assert_eq!((found.again, found.late, found.faults), (1, 0, vec![]));
        let found = balance(&made, &[finished("a", 3_180)], &[killed], (&BTreeMap::new(), 3_000));
        assert_eq!((found.again, found.late, found.faults), (1, 1, vec![]));
        let told = faults(&made, &[finished("a", 3_500)], &[Away { who: Some(7), ..killed }]);
        assert_eq!(told, ["call a was made 2 times within 3200 ms without a kill or pause"]);
    }

    #[test]
    fn a_task_that_two_hold_since_a_strike_may_be_doubled_to_its_end() {
        let made = [begun(1, "a", 0, 0), begun(2, "b", 0, 9_000), begun(3, "b", 1, 9_040)];
        let done = [finished("a", 8_000), finished("b", 9_400)];
        let struck = [Away { who: None, from: 100, until: 600, ..Away::default() }];
        let tasks = tasks(&[(made.to_vec(), done.to_vec())]);
        assert_eq!(balance(&made, &done, &struck, (&tasks, 3_000)).faults, [""; 0]);
        let before = [Away { who: None, from: -9_000, until: -8_000, ..Away::default() }];
        let told = balance(&made, &done, &before, (&tasks, 3_000)).faults;
        assert_eq!(told, ["call b was made 2 times within 40 ms without a kill or pause"]);
    }

    #[test]
    fn a_finished_call_is_never_made_again_whatever_was_struck() {
        let made = [begun(1, "a", 0, 0), begun(2, "a", 1, 9_000)];
        let server = Away { who: None, from: 100, until: 600, ..Away::default() };
        let told = faults(
            &made,
            &[finished("a", 300)],
            &[server, Away { who: Some(0), from: 200, until: 900, ..Away::default() }],
        );
        assert_eq!(told, ["call a was made again 8700 ms after its result was recorded (number 2, by 1)"]);
        // Paused from before the record until just before the request: it had looked before.
        let paused = Away { who: Some(1), from: 200, until: 8_990, ..Away::default() };
        assert_eq!(faults(&made, &[finished("a", 300)], &[server, paused]), [""; 0]);
        // Of several servers, one was away: the record can be stored long after it was proposed.
        let one_of_three = Away { late: 15_000, ..server };
        assert_eq!(faults(&made, &[finished("a", 300)], &[one_of_three]), [""; 0]);
        assert_eq!(faults(&made, &[finished("a", 50)], &[one_of_three]).len(), 1, "it was stored before");
    }

    #[test]
    fn only_what_was_under_way_at_a_kill_is_made_again() {
        let made = [begun(1, "a", 0, 0), begun(2, "a", 0, 3_200)];
        let killed = |who, from| Away { who: Some(who), from, until: from + 5, ..Away::default() };
        let told = |at, killed| in_flight(&made, &[finished("a", at)], &[killed]).len();
        assert_eq!((told(3_500, killed(0, 100)), told(3_500, killed(1, 100))), (0, 1));
        assert_eq!(told(50, killed(0, 100)), 1, "it was recorded before the kill");
    }

    #[test]
    fn what_is_in_one_book_alone_is_a_fault() {
        assert_eq!(faults(&[], &[finished("a", 1)], &[]), ["call a is recorded but was never started"]);
        assert_eq!(faults(&[begun(4, "a", 0, 0)], &[], &[]), ["the calls [4] (a) are not recorded"]);
        let told = faults(&[begun(1, "a", 0, 0)], &[finished("a", 1), finished("a", 2)], &[]);
        assert!(told[0].contains("the same request"), "{told:?}");
    }
}
