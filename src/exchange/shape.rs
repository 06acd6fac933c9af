//! Reading an object that a stranger wrote: every key of it that is not as it must be, in words of bounded length.

use std::fmt;

use crate::json::{Map, Value};

/// More faults of one object than anybody reads; the rest is counted.
const MOST: usize = 20;
/// The most characters of a stranger's text that are repeated.
const LONGEST: usize = 80;

/// An object, and what was found wrong with it so far.
pub(super) struct Shape<'a> {
    map: &'a Map<String, Value>,
    /// What it is called in front of its keys: nothing, or `findings[0] `.
    name: String,
    wrong: Vec<String>,
    more: usize,
}

impl<'a> Shape<'a> {
    /// The object `map`, called `name`.
    pub(super) fn new(map: &'a Map<String, Value>, name: impl Into<String>) -> Self {
        Self { map, name: name.into(), wrong: Vec::new(), more: 0 }
    }

    /// What stands under `key`; that nothing does is no fault.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// Notes one more fault.
    pub(super) fn fault(&mut self, what: impl fmt::Display) {
        if self.wrong.len() < MOST {
            self.wrong.push(format!("{}{what}", self.name));
        } else {
            self.more += 1;
        }
    }

    /// Notes every key that is not of `known`.
    pub(super) fn only(&mut self, known: &[&str]) {
        let map = self.map;
        for key in map.keys().filter(|key| !known.contains(&key.as_str())) {
            self.fault(format_args!("has the unknown key {}", quoted(key)));
        }
    }

    /// Notes a `schema_version` other than 1.
    pub(super) fn version(&mut self) {
        match self.get("schema_version") {
            Some(value) if value.as_u64() == Some(1) => {}
            found => self.fault(format_args!("schema_version is {}, not 1", shown(found))),
        }
    }

    /// The text under `key`, which must be there and not blank.
    pub(super) fn text(&mut self, key: &str) -> Option<&'a str> {
        let found = self.get(key);
        let text = found.and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        if text.is_none() {
            self.fault(format_args!("{key} is {}, not a text", shown(found)));
        }
        text
    }

    /// Notes what stands under `key` and is neither a text nor null; it may be absent.
    pub(super) fn maybe_text(&mut self, key: &str) {
        let found = self.get(key);
        if !matches!(found, None | Some(Value::Null | Value::String(_))) {
            self.fault(format_args!("{key} is {}, not a text", shown(found)));
        }
    }

    /// The items under `key`; none where it is absent and may be.
    pub(super) fn items(&mut self, key: &str, required: bool) -> &'a [Value] {
        match self.get(key) {
            Some(Value::Array(items)) => items,
            None if !required => &[],
            found => {
                self.fault(format_args!("{key} is {}, not a list", shown(found)));
                &[]
            }
        }
    }

    /// The texts in the list under `key`.
    pub(super) fn texts(&mut self, key: &str, required: bool) -> Vec<String> {
        let items = self.items(key, required);
        for (at, item) in items.iter().enumerate().filter(|(_, item)| !item.is_string()) {
            self.fault(format_args!("{key}[{at}] is {}, not a text", shown(Some(item))));
        }
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// The object at `at` of the list under `key`, as a shape of its own.
    pub(super) fn object(&mut self, key: &str, at: usize, item: &'a Value) -> Option<Shape<'a>> {
        let name = format!("{key}[{at}] ");
        match item.as_object() {
            Some(map) => Some(Shape::new(map, name)),
            None => {
                self.fault(format_args!("{name}is {}, not an object", shown(Some(item))));
                None
            }
        }
    }

    /// Takes over what was found wrong with a part.
    pub(super) fn absorb(&mut self, part: Shape<'_>) {
        for fault in part.wrong {
            self.fault(fault);
        }
        self.more += part.more;
    }

    /// Everything that was found wrong; nothing where all is as it must be.
    pub(super) fn faults(mut self) -> Vec<String> {
        if self.more > 0 {
            self.wrong.push(format!("{}has {} faults more", self.name, self.more));
        }
        self.wrong
    }
}

/// The text in quotes, cut where it is long, control characters made visible.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}…", &text[..end]),
    }
}

/// What a value is, in few words.
pub(super) fn shown(value: Option<&Value>) -> String {
    match value {
        None => "missing".to_owned(),
        Some(Value::Null) => "null".to_owned(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => quoted(text),
        Some(Value::Array(_)) => "a list".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
    }
}
