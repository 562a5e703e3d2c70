//! A case of any length is shown a page at a time.

use std::collections::BTreeSet;

use casebook_protocol::{Event, FindingId, Recorded};
use casebook_runtime::store::Store;
use futures_util::StreamExt;
use reqwest::Client;

use crate::kit::{KEY, Served, served_with};

const MORE: usize = 450;

/// Puts copies of the first event that `change` knows behind it.
fn lengthen(log: &mut Vec<Recorded>, change: impl Fn(&Event, usize) -> Option<Event>) {
    let place = log.iter().position(|entry| change(&entry.event, 0).is_some()).unwrap();
    let first = log[place].clone();
    let copies = (0..MORE).map(|n| Recorded { event: change(&first.event, n).unwrap(), ..first.clone() });
    let copies: Vec<Recorded> = copies.collect();
    log.splice(place + 1..place + 1, copies);
}

fn long(log: &mut Vec<Recorded>) {
    lengthen(log, |event, n| {
        let Event::FindingSubmitted { finding } = event else { return None };
        let mut finding = finding.clone();
        finding.id = FindingId::of(finding.round, &finding.domain, 100 + n);
        Some(Event::FindingSubmitted { finding })
    });
    lengthen(log, |event, n| {
        let Event::Journaled { entry } = event else { return None };
        let mut entry = entry.clone();
        entry.seq = 100 + u32::try_from(n).unwrap();
        Some(Event::Journaled { entry })
    });
    for entry in log {
        if let Event::TimelineRewritten { timeline } = &mut entry.event {
            let first = timeline.events.first().cloned().into_iter();
            timeline.events.extend(first.cycle().take(MORE));
        }
    }
}

async fn page(server: &Served, path: &str) -> String {
    casebook_runtime::tls::install();
    let answer = Client::new().get(format!("{}{path}", server.base)).bearer_auth(KEY).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{path}");
    answer.text().await.unwrap()
}

fn ids(page: &str, mark: &str) -> Vec<String> {
    let mark = format!("id=\"{mark}-");
    page.split(&mark).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// Where the button with this text leads.
fn button(page: &str, text: &str) -> Option<String> {
    let before = page.split_once(&format!("\">{text}"))?.0;
    Some(before.rsplit_once("href=\"")?.1.replace("&amp;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn long_tabs_come_in_pages_and_each_row_is_on_one_of_them() {
    let server = served_with(usize::MAX, long).await;
    let id = &server.id;
    for (tab, mark) in [("findings", "f"), ("journal", "j"), ("timeline", "e")] {
        let (mut seen, mut rows, mut path) = (BTreeSet::new(), 0, format!("/i/{id}?tab={tab}&from=0"));
        loop {
            let page = page(&server, &path).await;
            let found = ids(&page, mark);
            assert!(found.len() <= 200, "{tab}: {} rows", found.len());
            rows += found.len();
            seen.extend(found);
            match button(&page, "After") {
                Some(next) => path = next,
                None => break,
            }
        }
        assert!(rows > MORE && rows == seen.len(), "{tab}: {rows} rows, {} of them different", seen.len());
    }
    let links = page(&server, &format!("/i/{id}?tab=findings&from=0")).await;
    let last: Vec<String> = links
        .split("tab=findings&amp;finding=")
        .skip(1)
        .map(|rest| rest.split('#').next().unwrap().to_owned())
        .collect();
    for finding in last.iter().rev().take(3) {
        let there = page(&server, &format!("/i/{id}?tab=findings&finding={finding}")).await;
        assert!(there.contains(&format!("id=\"f-{finding}\"")), "the link of {finding} leads to another page");
    }
    assert!(last.len() > 3, "no links to findings of other pages");
    let many = page(&server, &format!("/i/{id}?tab=channels&at={}", server.log.len() - 1)).await;
    assert!(many.contains("All 4") && many.matches("class=\"entry\"").count() <= 200, "the channels are not cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_only_the_events_that_it_does_not_have() {
    let server = served_with(usize::MAX, long).await;
    let path = format!("/i/{}?tab=events", server.id);
    let whole = page(&server, &path).await;
    let (all, last) = (ids(&whole, "s"), server.log.len());
    assert!(all.len() == 200 && !whole.contains("data-most"));
    for have in [0, last - 250, last - 7, last] {
        let part = page(&server, &format!("{path}&have={have}")).await;
        let newer: Vec<&String> = all.iter().filter(|seq| seq.parse::<usize>().unwrap() > have).collect();
        assert_eq!(ids(&part, "s").iter().collect::<Vec<_>>(), newer, "have {have}");
        assert!(part.contains("data-most=\"200\""), "the oldest rows do not make room");
        assert_eq!(button(&part, "Older"), button(&whole, "Older"), "have {have}");
    }
}

/// An investigation that records hundreds of events a second does not wake every browser for each of them.
#[tokio::test(flavor = "multi_thread")]
async fn many_events_at_once_are_one_notice_and_the_last_one_is_not_lost() {
    let server = crate::kit::served(1).await;
    casebook_runtime::tls::install();
    let ask = Client::new().get(format!("{}/api/v1/events", server.base)).bearer_auth(KEY);
    let answer = ask.send().await.unwrap();
    let mut stream = answer.bytes_stream();
    let mut text = String::from_utf8(stream.next().await.unwrap().unwrap().to_vec()).unwrap();
    let last = server.log.len();
    for entry in &server.log[1..] {
        server.store.append(&server.id, entry.seq - 1, std::slice::from_ref(entry)).await.unwrap();
    }
    let waited = tokio::time::timeout(std::time::Duration::from_secs(20), async {
        while !text.contains(&format!("\"seq\":{last}}}")) {
            text.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
        }
    });
    assert!(waited.await.is_ok(), "no notice of event {last}: {text}");
    let notices = text.matches("event: notice").count();
    assert!(text.contains("event: begin") && notices < last / 2, "{notices} notices of {last} events");
}
