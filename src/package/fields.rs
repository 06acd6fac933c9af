//! Values that may be left out, read from a JSON object: nothing is a fault, null is.

use std::ops::RangeInclusive;

use super::diagnostics::Faults;
use super::places::{Data, Object};

/// `true` or `false`, `false` where left out; nothing where it is neither.
pub(crate) fn flag(object: &Object, key: &str, faults: &mut Faults) -> Option<bool> {
    let Some(value) = object.get(key) else { return Some(false) };
    if let Data::Bool(flag) = value.data {
        return Some(flag);
    }
    faults.push(value.at, format!("{key} is {}", value.shown()), "write true or false, without quotes");
    None
}

/// A whole number in `range`, `default` where left out; nothing where it is none. `words` say the range.
pub(crate) fn whole(
    object: &Object,
    key: &str,
    default: i128,
    range: RangeInclusive<i128>,
    words: &str,
    faults: &mut Faults,
) -> Option<i128> {
    let Some(value) = object.get(key) else { return Some(default) };
    let number = value.whole().filter(|number| range.contains(number));
    if number.is_none() {
        let message = format!("{key} is {}, not a whole number from {words}", value.shown());
        faults.push(value.at, message, format!("write a whole number such as {default}, without quotes"));
    }
    number
}

/// A list of texts with something in each: `Some(None)` where left out, nothing where it is no such list.
#[expect(clippy::option_option, reason = "left out and faulty are two things, and a fault is noted for one of them")]
pub(crate) fn texts(object: &Object, key: &str, help: &str, faults: &mut Faults) -> Option<Option<Vec<String>>> {
    let Some(value) = object.get(key) else { return Some(None) };
    let Some(items) = value.list() else {
        faults.push(value.at, format!("{key} is {}, not a list of texts", value.shown()), help);
        return None;
    };
    let before = faults.len();
    for item in items.iter().filter(|item| item.text().is_none_or(str::is_empty)) {
        faults.push(item.at, format!("{key} holds {}, not a text", item.shown()), help);
    }
    let texts = items.iter().filter_map(|item| item.text()).map(str::to_owned).collect();
    (faults.len() == before).then_some(Some(texts))
}
