//! Names of accounts: which notations mean the same account, and which accounts belong to no person.

/// Without the domain, in lower case: `CORP\\mara`, `mara@corp.example` and `mara` are the same.
pub(crate) fn bare(name: &str) -> String {
    let name = name.rsplit('\\').next().unwrap_or(name);
    name.split('@').next().unwrap_or(name).trim().to_lowercase()
}

/// An account of a Windows system and its services, or of a machine. Two records with it need not belong
/// together.
pub(crate) fn of_system(name: &str) -> bool {
    let domain = name.rsplit_once('\\').map(|(domain, _)| domain.to_ascii_lowercase()).unwrap_or_default();
    let bare = bare(name);
    let numbered = |prefix: &str| bare.strip_prefix(prefix).is_some_and(|n| n.parse::<u32>().is_ok());
    const BUILT_IN: &str = "system|localsystem|local system|local service|localservice|network service|networkservice|\
        anonymous logon|nt authority|s-1-5-18|s-1-5-19|s-1-5-20|s-1-5-7|s-1-0-0";
    BUILT_IN.split('|').any(|known| known == bare)
        || matches!(domain.as_str(), "nt service" | "window manager" | "font driver host" | "nt virtual machine")
        || numbered("dwm-")
        || numbered("umfd-")
        || (bare.len() > 1 && bare.ends_with('$'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_of_the_system_are_nobody_in_particular() {
        for name in
            ["NT AUTHORITY\\SYSTEM", "NT AUTHORITY", "S-1-5-19", "WEB01$", "corp\\web01$@CORP", "Window Manager\\DWM-3"]
        {
            assert!(of_system(name), "{name}");
        }
        for name in ["CORP\\mara", "systemadmin", "dwm-mara", "svc_backup", "root"] {
            assert!(!of_system(name), "{name}");
        }
        assert_eq!(bare("CORP\\Mara"), bare("mara@corp.example"));
    }
}
