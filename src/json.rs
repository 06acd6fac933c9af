//! Strict JSON, in the one form that every state file has. Never opens a file.
//!
//! Reading refuses what a second reader could understand otherwise: a key given twice, `NaN` and `Infinity`,
//! anything after the value, more than 128 levels. Writing is two-space indented with sorted keys, non-ASCII as
//! it is, and one final newline (formats, "Where state lives").

use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
pub use serde_json::{Map, Value, json};

/// Bytes that are no strict JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct JsonError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in bytes.
    pub column: usize,
    /// What is wrong, without its place.
    pub message: String,
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line().max(1), error.column().max(1));
        let whole = error.to_string();
        let message = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(head, _)| head).to_owned();
        Self { line, column, message }
    }
}

/// The value that `bytes` hold.
///
/// # Errors
/// [`JsonError`] where the bytes are not UTF-8, no JSON, hold a key twice, or go on after the value.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        JsonError {
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            column: before.len() - start + 1,
            message: "not UTF-8".to_owned(),
        }
    })?;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let Strict(value) = Strict::deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The object that `bytes` hold.
///
/// # Errors
/// As [`parse`], and where the value is no object.
pub fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, JsonError> {
    match parse(bytes)? {
        Value::Object(map) => Ok(map),
        _ => Err(JsonError { line: 1, column: 1, message: "not an object".to_owned() }),
    }
}

/// The value as a state file holds it.
///
/// # Errors
/// Where `value` has a map whose keys are no strings; none of ours has.
pub fn to_state(value: &impl Serialize) -> Result<Vec<u8>, JsonError> {
    // Through `Value`, whose maps are sorted, so that the order of a struct's fields never reaches a file.
    let mut bytes = serde_json::to_vec_pretty(&serde_json::to_value(value)?)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The value on one line with sorted keys, as a command prints it.
///
/// # Errors
/// As [`to_state`].
pub fn to_line(value: &impl Serialize) -> Result<String, JsonError> {
    Ok(serde_json::to_string(&serde_json::to_value(value)?)?)
}

/// The key in quotes, cut where it is long: a stranger chose it.
fn quoted(key: &str) -> String {
    const LONGEST: usize = 60;
    match key.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &key[..end]),
        None => format!("{key:?}"),
    }
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Strict(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key {} is given twice", quoted(&key))));
            }
            let Strict(value) = access.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_strict_is_refused_with_its_place() {
        for bad in ["", "{", "[1,]", r#"{"a":1,"a":2}"#, r#"{"a":NaN}"#, r#"{"a":-Infinity}"#, "{} {}", "nul"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        let error = parse(b"{\n  \"a\": 1,\n  \"a\": 2\n}").unwrap_err();
        assert_eq!((error.line, error.message.as_str()), (3, "the key \"a\" is given twice"));
        let long = format!("{{\"{0}\": 1, \"{0}\": 2}}", "\\n".repeat(100_000));
        assert_eq!(
            parse(long.as_bytes()).unwrap_err().message,
            format!("the key \"{}\"… is given twice", "\\n".repeat(60))
        );
        assert_eq!(parse(b"{\n\"\xff").unwrap_err(), JsonError { line: 2, column: 2, message: "not UTF-8".into() });
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse_object(b"[]").is_err());
    }

    #[test]
    fn a_number_is_the_same_however_often_it_is_written() {
        for text in ["-9223373420685775808", "0.30000000000000004", "5e-324", "1.7976931348623157e308", "-0.0"] {
            let value = parse(text.as_bytes()).unwrap();
            assert_eq!(parse(to_line(&value).unwrap().as_bytes()), Ok(value), "{text}");
        }
    }

    #[test]
    fn a_state_file_is_sorted_indented_and_keeps_non_ascii() {
        let value = parse(r#"{"b": [], "a": {"y": "\ud55c", "x": null}, "c": {}}"#.as_bytes()).unwrap();
        let text = String::from_utf8(to_state(&value).unwrap()).unwrap();
        assert_eq!(text, "{\n  \"a\": {\n    \"x\": null,\n    \"y\": \"한\"\n  },\n  \"b\": [],\n  \"c\": {}\n}\n");
        assert_eq!(to_line(&value).unwrap(), r#"{"a":{"x":null,"y":"한"},"b":[],"c":{}}"#);
    }
}
