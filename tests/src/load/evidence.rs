//! Evidence for load tests: four small sources of four domains, so that reading them takes little time.

use std::io::Write;
use std::path::Path;

use casebook_protocol::{Alert, AlertError};

use crate::generate;

pub fn write(folder: &Path) -> std::io::Result<()> {
    // The minimum is 200 records per source.
    generate::write(folder, 0, 42)?;
    let mut logins = std::fs::File::create(folder.join("auth.log"))?;
    for n in 0..200_u32 {
        let (hour, minute) = (n / 9 % 24, n * 7 % 60);
        writeln!(
            logins,
            "Jan 15 {hour:02}:{minute:02}:11 web-{:03} sshd[{}]: Accepted publickey for svc{} from 10.0.2.{} port {} ssh2",
            n % 40,
            2000 + n,
            n % 30,
            n % 250,
            40_000 + n
        )?;
    }
    Ok(())
}

/// The text of the `n`th alert: the generated one with another id.
pub fn alert_text(n: usize) -> String {
    generate::ALERT.replace("\"generated-1\"", &format!("\"generated-{n:06}\""))
}

pub fn alert(n: usize) -> Result<Alert, AlertError> {
    Alert::parse(alert_text(n).as_bytes())
}
