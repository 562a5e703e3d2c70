//! Variables in texts: `${VAR}`, `${VAR:-default}`, and `${env:VAR}` as some clients write it.

use casebook_runtime::config::is_variable;

use super::Variable;

/// `text` with its variables filled in. An unset or empty variable has its default. Errors contain no values.
pub(super) fn fill(text: &str, variable: Variable<'_>) -> Result<String, Vec<String>> {
    let mut filled = String::new();
    let mut faults = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        filled.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            faults.push("expected a } after ${; write ${NAME}".to_owned());
            rest = "";
            break;
        };
        match value(inside, variable) {
            Ok(value) => filled.push_str(&value),
            Err(fault) => faults.push(fault),
        }
        rest = behind;
    }
    filled.push_str(rest);
    if faults.is_empty() { Ok(filled) } else { Err(faults) }
}

fn value(inside: &str, variable: Variable<'_>) -> Result<String, String> {
    let (name, default) = inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
    let name = name.strip_prefix("env:").unwrap_or(name);
    if let Some((kind, asked)) = name.split_once(':') {
        let (kind, asked) = (shown(kind), shown(asked));
        return Err(match kind.as_str() {
            "input" => format!(
                "${{input:{asked}}} would ask a person, which is not supported; write ${{NAME}} and set that \
                 environment variable"
            ),
            _ => format!("${{{kind}:{asked}}} is not supported; write ${{NAME}} for an environment variable"),
        });
    }
    if !is_variable(name) {
        return Err(format!("expected the name of an environment variable, got ${{{}}}; write ${{NAME}}", shown(name)));
    }
    let set = variable(name).filter(|value| !value.is_empty() || default.is_none());
    set.or(default.map(str::to_owned))
        .ok_or_else(|| format!("the environment variable {name} is not set; set it, or write ${{{name}:-default}}"))
}

fn shown(text: &str) -> String {
    casebook_protocol::one_line(text, 40)
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn variables_are_filled_in_and_missing_ones_named() {
        let variable = |name: &str| match name {
            "TOKEN" => Some("hunter2".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        let check = |text: &str, expect: Result<&str, &str>| {
            let got = fill(text, &variable).map_err(|faults| faults.join("; "));
            match (&got, expect) {
                (Ok(got), Ok(expect)) => assert_eq!(got, expect, "{text}"),
                (Err(got), Err(expect)) => assert!(got.contains(expect), "{text}: {got}"),
                _ => panic!("{text}: {got:?}"),
            }
        };
        check("plain $HOME {x} $", Ok("plain $HOME {x} $"));
        check("a ${TOKEN} b ${TOKEN}", Ok("a hunter2 b hunter2"));
        check("${env:TOKEN}", Ok("hunter2"));
        check("${GONE:-fallback}", Ok("fallback"));
        check("${GONE:-}", Ok(""));
        check("${EMPTY:-fallback}", Ok("fallback"));
        check("${EMPTY}", Ok(""));
        check("${GONE:-http://h:1/}", Ok("http://h:1/"));
        check(
            "${GONE} ${LOST}",
            Err("GONE is not set; set it, or write ${GONE:-default}; the environment variable LOST"),
        );
        check("${input:key}", Err("${input:key} would ask a person"));
        check("${command:x}", Err("${command:x} is not supported"));
        check("${TOKEN", Err("expected a } after ${"));
        check("${}", Err("expected the name of an environment variable"));
        check("${a b}", Err("expected the name of an environment variable"));
    }
}
