//! What a hit of a rule says, by the rule's `casebook:` block or its level.

use casebook_protocol::{Bearing, Weight};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Level, Origin};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    pub bearing: Bearing,
    pub strength: Weight,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look_next: Option<String>,
    /// What the records of a correlation must show besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<Pattern>,
}

/// What Sigma has no word for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// The records come at nearly the same distance in time.
    EvenIntervals,
    /// Two places are too far apart for the time between them.
    ImpossibleTravel,
    /// The log has nothing more of the host, while other logs go on.
    ThenSilence,
}

const LOOK_NEXT_MAX: usize = 500;

impl Judgement {
    /// Errors: What is wrong in the block, and what to write.
    pub(super) fn of(block: Option<&Value>, level: Level, origin: &Origin) -> Result<Self, String> {
        let graded = if level >= Level::High { Weight::Moderate } else { Weight::Weak };
        let bearing = if level == Level::Informational { Bearing::Neutral } else { Bearing::Incriminating };
        let mut judgement = Self { bearing, strength: graded, look_next: None, pattern: None };
        let Some(block) = block else { return Ok(judgement) };
        let Value::Object(map) = block else {
            return Err("casebook: expected bearing, strength and look_next below it".into());
        };
        for (key, value) in map {
            let text = value.as_str().unwrap_or_default();
            match key.as_str() {
                "bearing" => judgement.bearing = bearing_of(text, origin)?,
                "strength" => {
                    let known = "casebook.strength: expected weak, moderate, strong or decisive";
                    judgement.strength = serde_json::from_value(value.clone()).map_err(|_| known.to_owned())?;
                }
                "look_next" if (1..=LOOK_NEXT_MAX).contains(&text.len()) => judgement.look_next = Some(text.to_owned()),
                "look_next" => {
                    return Err(format!(
                        "casebook.look_next: expected a question of at most {LOOK_NEXT_MAX} characters"
                    ));
                }
                "pattern" => {
                    let known = "casebook.pattern: expected even_intervals, impossible_travel or then_silence";
                    judgement.pattern = Some(serde_json::from_value(value.clone()).map_err(|_| known.to_owned())?);
                }
                other => {
                    let other = casebook_protocol::one_line(other, 40);
                    return Err(format!(
                        "casebook: unknown key \"{other}\"; there are bearing, strength, look_next, pattern"
                    ));
                }
            }
        }
        Ok(judgement)
    }
}

fn bearing_of(text: &str, origin: &Origin) -> Result<Bearing, String> {
    match (text, origin) {
        ("incriminating", _) => Ok(Bearing::Incriminating),
        ("context", _) => Ok(Bearing::Neutral),
        ("exonerating", Origin::BuiltIn) => Ok(Bearing::Exonerating),
        // A planted rule must not clear an alert.
        ("exonerating", Origin::User) => {
            Err("casebook.bearing: a rule of your own cannot clear an alert; write incriminating or context".into())
        }
        _ => Err("casebook.bearing: expected incriminating or context".into()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rule_without_a_block_is_weighed_by_its_level() {
        let of = |level| {
            let judgement = Judgement::of(None, level, &Origin::User).unwrap();
            (judgement.bearing, judgement.strength)
        };
        assert_eq!(of(Level::Critical), (Bearing::Incriminating, Weight::Moderate));
        assert_eq!(of(Level::High), (Bearing::Incriminating, Weight::Moderate));
        assert_eq!(of(Level::Medium), (Bearing::Incriminating, Weight::Weak));
        assert_eq!(of(Level::Low), (Bearing::Incriminating, Weight::Weak));
        assert_eq!(of(Level::Informational), (Bearing::Neutral, Weight::Weak));
    }

    #[test]
    fn no_rule_of_a_user_is_exonerating() {
        for level in [Level::Critical, Level::High, Level::Medium, Level::Low, Level::Informational] {
            for block in [json!(null), json!({}), json!({"strength": "decisive"})] {
                let block = Some(&block).filter(|b| !b.is_null());
                assert_ne!(Judgement::of(block, level, &Origin::User).unwrap().bearing, Bearing::Exonerating);
            }
            let clears = json!({"bearing": "exonerating", "strength": "decisive"});
            assert!(Judgement::of(Some(&clears), level, &Origin::User).is_err());
            assert!(Judgement::of(Some(&clears), level, &Origin::BuiltIn).is_ok());
        }
    }

    #[test]
    fn a_block_that_is_wrong_is_refused() {
        for (block, what) in [
            (json!("fine"), "expected bearing"),
            (json!({"bearing": 1}), "expected incriminating"),
            (json!({"strength": "huge"}), "expected weak"),
            (json!({"verdict": "benign"}), "unknown key"),
            (json!({"look_next": ""}), "expected a question"),
        ] {
            let why = Judgement::of(Some(&block), Level::High, &Origin::User).unwrap_err();
            assert!(why.contains(what), "{why}");
        }
    }
}
