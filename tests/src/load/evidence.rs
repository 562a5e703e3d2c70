//! Evidence for load: four small sources of four domains, so that what is measured is not the reading
//! of evidence.

use std::io::Write;
use std::path::Path;

use casebook_protocol::{Alert, AlertError};

use crate::generate;

/// Writes it into `folder`.
pub fn write(folder: &Path) -> std::io::Result<()> {
    // The least that is generated: 200 records a source.
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

/// The text of the `n`th alert: the one of the generated evidence with an id of its own.
pub fn alert_text(n: usize) -> String {
    generate::ALERT.replace("\"generated-1\"", &format!("\"generated-{n:06}\""))
}

/// The `n`th alert.
pub fn alert(n: usize) -> Result<Alert, AlertError> {
    Alert::parse(alert_text(n).as_bytes())
}
