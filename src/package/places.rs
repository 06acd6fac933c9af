//! Strict JSON that remembers where each key and value stands, so that a fault can point at it.
//!
//! As strict as [`crate::json`], which the property tests hold it to. A key given twice is a fault of its own, not
//! the end of reading: the other faults of the file are wanted too.

use std::ops::Range;

use super::diagnostics::{Faults, instead_of, quoted};

/// As deep as values may nest; the reader recurses, and the stack is not endless.
const DEEPEST: usize = 127;

/// A value and the byte it begins at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) at: usize,
    pub(crate) data: Data,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    /// A whole number.
    Whole(i128),
    /// Any other number.
    Fraction(f64),
    Text(String),
    List(Vec<Node>),
    Object(Object),
}

/// The members of an object in the order of the text, each key once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Object {
    /// Where it opens.
    pub(crate) at: usize,
    pub(crate) members: Vec<Member>,
}

/// A key, where it stands, and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Member {
    pub(crate) at: usize,
    pub(crate) key: String,
    pub(crate) value: Node,
}

impl Node {
    /// The value as a message shows it.
    pub(crate) fn shown(&self) -> String {
        match &self.data {
            Data::Null => "null".to_owned(),
            Data::Bool(value) => value.to_string(),
            Data::Whole(value) => value.to_string(),
            Data::Fraction(value) => value.to_string(),
            Data::Text(text) => quoted(text),
            Data::List(items) if items.is_empty() => "an empty list".to_owned(),
            Data::List(_) => "a list".to_owned(),
            Data::Object(_) => "an object".to_owned(),
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn whole(&self) -> Option<i128> {
        match self.data {
            Data::Whole(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    pub(crate) const fn object(&self) -> Option<&Object> {
        match &self.data {
            Data::Object(object) => Some(object),
            _ => None,
        }
    }
}

impl Object {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.members.iter().find(|member| member.key == key).map(|member| &member.value)
    }

    /// The value of `key`; a fault of `subject` where there is none.
    pub(crate) fn required(&self, key: &str, subject: &str, help: &str, faults: &mut Faults) -> Option<&Node> {
        let value = self.get(key);
        if value.is_none() {
            faults.push(self.at, format!("{subject} has no {key:?}"), help);
        }
        value
    }

    /// Notes every key that is none of `known`. `help` may know better than the nearest known key.
    pub(crate) fn refuse_others(
        &self,
        known: &[&str],
        subject: &str,
        help: impl Fn(&str) -> Option<String>,
        faults: &mut Faults,
    ) {
        for member in self.members.iter().filter(|member| !known.contains(&member.key.as_str())) {
            let message = format!("unknown key {} in {subject}", quoted(&member.key));
            let help = help(&member.key).unwrap_or_else(|| instead_of(&member.key, known));
            faults.push(member.at, message, help);
        }
    }
}

/// The value in `text[range]`, offsets counted from the beginning of `text`. What is no strict JSON is a fault; only
/// a key given twice still leaves a value, with the first of the two.
pub(crate) fn parse(text: &str, range: Range<usize>, faults: &mut Faults) -> Option<Node> {
    let mut reader = Reader { text, at: range.start, end: range.end.min(text.len()), faults };
    let read = reader.value(0).and_then(|node| {
        reader.blank();
        if reader.at == reader.end { Ok(node) } else { Err(reader.refusal("something follows the JSON value")) }
    });
    match read {
        Ok(node) => Some(node),
        Err(Refusal { at, message }) => {
            reader.faults.push(at, format!("not JSON: {message}"), "write one strict JSON value and nothing behind it");
            None
        }
    }
}

struct Refusal {
    at: usize,
    message: String,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    end: usize,
    faults: &'a mut Faults,
}

impl Reader<'_> {
    fn refusal(&self, message: impl Into<String>) -> Refusal {
        Refusal { at: self.at, message: message.into() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied().filter(|_| self.at < self.end)
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Goes past `byte` where it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self, depth: usize) -> Result<Node, Refusal> {
        self.blank();
        let at = self.at;
        let data = match self.peek() {
            Some(b'{' | b'[') if depth == DEEPEST => return Err(self.refusal("it nests too deep")),
            Some(b'{') => Data::Object(self.object(depth)?),
            Some(b'[') => Data::List(self.list(depth)?),
            Some(b'"') => Data::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.word()?,
            Some(b'}' | b']' | b',') => return Err(self.refusal("a value is missing here")),
            Some(_) => return Err(self.refusal("no value begins like this")),
            None => return Err(self.refusal("it ends before its value does")),
        };
        Ok(Node { at, data })
    }

    fn word(&mut self) -> Result<Data, Refusal> {
        let rest = &self.text[self.at..self.end];
        let length = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let data = match &rest[..length] {
            "null" => Data::Null,
            "true" => Data::Bool(true),
            "false" => Data::Bool(false),
            word => return Err(self.refusal(format!("{} is no JSON value", quoted(word)))),
        };
        self.at += length;
        Ok(data)
    }

    fn number(&mut self) -> Result<Data, Refusal> {
        let start = self.at;
        let digits = |reader: &mut Self| {
            let from = reader.at;
            while matches!(reader.peek(), Some(b'0'..=b'9')) {
                reader.at += 1;
            }
            reader.at > from
        };
        self.take(b'-');
        let mut good = if self.take(b'0') { !matches!(self.peek(), Some(b'0'..=b'9')) } else { digits(self) };
        let mut whole = true;
        if good && self.take(b'.') {
            (good, whole) = (digits(self), false);
        }
        if good && (self.take(b'e') || self.take(b'E')) {
            if !self.take(b'+') {
                self.take(b'-');
            }
            (good, whole) = (digits(self), false);
        }
        let written = &self.text[start..self.at];
        let value = if whole { written.parse().ok().map(Data::Whole) } else { None };
        let value = value.or_else(|| written.parse().ok().filter(|f: &f64| f.is_finite()).map(Data::Fraction));
        value.filter(|_| good).ok_or_else(|| Refusal { at: start, message: "this is no JSON number".to_owned() })
    }

    fn string(&mut self) -> Result<String, Refusal> {
        let start = self.at;
        let mut plain = true;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    plain = false;
                    self.at += 2;
                }
                Some(0..0x20) => return Err(self.refusal("a string holds a line end or a control character")),
                Some(_) => self.at += 1,
                None => return Err(Refusal { at: start, message: "the string is never closed".to_owned() }),
            }
        }
        self.at += 1;
        let written = &self.text[start..self.at];
        if plain {
            return Ok(written[1..written.len() - 1].to_owned());
        }
        serde_json::from_str(written).map_err(|_| Refusal {
            at: start,
            message: "the string holds an escape that JSON does not have".to_owned(),
        })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Refusal> {
        let mut items = Vec::new();
        self.at += 1;
        self.blank();
        if self.take(b']') {
            return Ok(items);
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.blank();
            if self.take(b']') {
                return Ok(items);
            }
            if !self.take(b',') {
                return Err(self.refusal("a comma or the list's end is missing"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Object, Refusal> {
        let mut object = Object { at: self.at, members: Vec::new() };
        let mut keys = std::collections::HashSet::new();
        self.at += 1;
        self.blank();
        if self.take(b'}') {
            return Ok(object);
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err(self.refusal("a key in double quotes is missing here"));
            }
            let at = self.at;
            let key = self.string()?;
            self.blank();
            if !self.take(b':') {
                return Err(self.refusal("a colon is missing behind the key"));
            }
            let value = self.value(depth + 1)?;
            if keys.insert(key.clone()) {
                object.members.push(Member { at, key, value });
            } else {
                let message = format!("the key {} is given twice", quoted(&key));
                self.faults.push(at, message, "keep one of them");
            }
            self.blank();
            if self.take(b'}') {
                return Ok(object);
            }
            if !self.take(b',') {
                return Err(self.refusal("a comma or the object's end is missing"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json;

    fn read(text: &str) -> (Option<Node>, Vec<super::super::Fault>) {
        let mut faults = Faults::new("f".into());
        let node = parse(text, 0..text.len(), &mut faults);
        (node, faults.into_sorted(text.as_bytes()))
    }

    fn plain(node: &Node) -> json::Value {
        match &node.data {
            Data::Null => json::Value::Null,
            Data::Bool(value) => (*value).into(),
            Data::Whole(value) => serde_json::from_str(&value.to_string()).unwrap(),
            Data::Fraction(value) => (*value).into(),
            Data::Text(text) => text.as_str().into(),
            Data::List(items) => items.iter().map(plain).collect(),
            Data::Object(object) => {
                object.members.iter().map(|m| (m.key.clone(), plain(&m.value))).collect::<json::Map<_, _>>().into()
            }
        }
    }

    #[test]
    fn a_fault_points_at_what_is_wrong() {
        for (text, line, column) in [
            ("", 1, 1),
            ("{\n \"한\": 1\n \"b\": 2}", 3, 2),
            ("[1,\n]", 2, 1),
            ("{\"a\": NaN}", 1, 7),
            ("[-Infinity]", 1, 2),
            ("{} {}", 1, 4),
            ("[\"a\n\"]", 1, 4),
            ("[01]", 1, 2),
            ("[\"\\ud800\"]", 1, 2),
        ] {
            let (node, faults) = read(text);
            assert_eq!((node, faults.len()), (None, 1), "{text:?}");
            assert_eq!((faults[0].line, faults[0].column), (line, column), "{text:?}: {}", faults[0]);
        }
        let (node, faults) = read("{\"a\": 1,\n \"\\u0061\": 2, \"b\": 3}");
        assert_eq!(faults[0].to_string(), "f:2:2: the key \"a\" is given twice");
        let object = node.unwrap().object().unwrap().clone();
        assert_eq!(object.get("a").unwrap().whole(), Some(1));
        assert_eq!(object.get("b").unwrap().whole(), Some(3));
    }

    #[test]
    fn depth_is_bounded_as_elsewhere() {
        for depth in [126, 127, 128, 129, 100_000] {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            assert_eq!(read(&text).0.is_some(), json::parse(text.as_bytes()).is_ok(), "{depth}");
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"b\"",
            "\"\\n\"",
            "\"\\u00e9\"",
            "1",
            "-0",
            "1.5",
            "1e3",
            "1e999",
            "01",
            "-",
            "null",
            "true",
            "nul",
            "\n",
            " ",
            "\"",
            "\\",
            "한",
            "99999999999999999999999",
        ]);
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn it_is_as_strict_as_the_other_reader(text in texts()) {
            let (node, faults) = read(&text);
            let other = json::parse(text.as_bytes());
            prop_assert_eq!(faults.is_empty(), other.is_ok(), "{:?} {:?}", &text, faults);
            if let (Some(node), Ok(value)) = (&node, &other) {
                // Numbers beyond 64 bits and minus zero are kept apart by one reader only.
                if !text.contains("999") && !text.contains("-0") {
                    prop_assert_eq!(&plain(node), value);
                }
            }
            for fault in faults {
                let line = text.split('\n').nth(fault.line - 1);
                prop_assert!(line.is_some_and(|line| fault.column <= line.chars().count() + 1));
            }
        }

        #[test]
        fn nothing_panics(text in ".*") {
            read(&text);
        }
    }
}
