//! What `gh` answers when it is asked to look. Bytes in, values out: what is not wholly of the shape that was asked for,
//! or tells of another repository, is believed in nothing.

use serde::Deserialize;

use super::{MergeRequest, RepositoryView, Slug, State};
use crate::git::{Oid, without_secrets};
use crate::json::{self, Map, Value};

/// The repository `slug` in an answer.
///
/// # Errors
/// What was answered instead.
pub fn read_repository(slug: &Slug, answer: &[u8]) -> Result<RepositoryView, String> {
    let shown: ShownRepository =
        serde_json::from_value(value(answer)?).map_err(|error| misshapen(&error.to_string()))?;
    if Slug::parse(&shown.name_with_owner).as_ref() != Some(slug) {
        return Err(format!("of {:?}; was it renamed?", shown.name_with_owner));
    }
    Ok(RepositoryView { default_branch: shown.default_branch_ref.name, merge_commits: shown.merge_commit_allowed })
}

/// The one request of the repository `slug` in an answer.
///
/// # Errors
/// What was answered instead.
pub fn read_request(slug: &Slug, answer: &[u8]) -> Result<MergeRequest, String> {
    request(slug, value(answer)?)
}

/// The list of requests of the repository `slug` in an answer.
///
/// # Errors
/// What was answered instead; one request that cannot be believed is enough.
pub fn read_requests(slug: &Slug, answer: &[u8]) -> Result<Vec<MergeRequest>, String> {
    let Value::Array(rows) = value(answer)? else { return Err(misshapen("no list")) };
    rows.into_iter().map(|row| request(slug, row)).collect()
}

/// The number of the request of the repository `slug` with that address.
pub(super) fn number_of(slug: &Slug, url: &str) -> Option<u64> {
    let path = url.strip_prefix("https://github.com/")?;
    let (named, number) = path.rsplit_once("/pull/")?;
    // No sign and no zero in front: an address is taken over as it is.
    let number = number.parse().ok().filter(|parsed: &u64| *parsed > 0 && parsed.to_string() == number)?;
    (Slug::parse(named)? == *slug).then_some(number)
}

fn value(answer: &[u8]) -> Result<Value, String> {
    json::parse(answer).map_err(|error| format!("no JSON ({error})"))
}

fn misshapen(why: &str) -> String {
    format!("another thing than was asked ({why})")
}

/// The request that `value` describes.
fn request(slug: &Slug, value: Value) -> Result<MergeRequest, String> {
    let Value::Object(raw) = value else { return Err(misshapen("no object")) };
    let shown: Shown =
        serde_json::from_value(Value::Object(raw.clone())).map_err(|error| misshapen(&error.to_string()))?;
    if number_of(slug, &shown.url) != Some(shown.number) {
        return Err(misshapen(&format!("a request at {}", without_secrets(&shown.url))));
    }
    let state = match shown.state.as_str() {
        "OPEN" => State::Open,
        "CLOSED" => State::Closed,
        "MERGED" => State::Merged,
        other => return Err(misshapen(&format!("the state {other:?}"))),
    };
    let of_ours =
        |login: &str, name: &str| login.eq_ignore_ascii_case(slug.owner()) && name.eq_ignore_ascii_case(slug.name());
    let own = !shown.is_cross_repository
        && shown.head_repository_owner.zip(shown.head_repository).is_some_and(|(o, r)| of_ours(&o.login, &r.name));
    Ok(MergeRequest {
        number: shown.number,
        url: shown.url,
        state,
        head: shown.head_ref_name,
        commit: shown.head_ref_oid,
        base: shown.base_ref_name,
        own,
        auto_merge: shown.auto_merge_request.is_some(),
        merge_commit: shown.merge_commit.map(|commit| commit.oid),
        raw,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownRepository {
    name_with_owner: String,
    default_branch_ref: Named,
    merge_commit_allowed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    number: u64,
    url: String,
    state: String,
    head_ref_name: String,
    head_ref_oid: Oid,
    base_ref_name: String,
    is_cross_repository: bool,
    head_repository: Option<Named>,
    head_repository_owner: Option<Owner>,
    merge_commit: Option<Commit>,
    auto_merge_request: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
}

#[derive(Deserialize)]
struct Commit {
    oid: Oid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn ours() -> Slug {
        Slug::parse("test/project").unwrap()
    }

    fn read(value: &Value) -> Result<MergeRequest, String> {
        read_request(&ours(), value.to_string().as_bytes())
    }

    fn shown() -> Value {
        json!({
            "number": 7, "url": "https://github.com/Test/Project/pull/7", "state": "OPEN", "headRefName": "devlyn/x/t1",
            "headRefOid": "a".repeat(40), "baseRefName": "main", "isCrossRepository": false,
            "headRepository": {"id": "R", "name": "project"}, "headRepositoryOwner": {"id": "U", "login": "test"},
            "mergeCommit": null, "mergedAt": null, "autoMergeRequest": null
        })
    }

    #[test]
    fn a_request_is_read_whole_or_not_at_all() {
        let request = read(&shown()).unwrap();
        assert_eq!((request.number, request.state, request.own, request.auto_merge), (7, State::Open, true, false));
        for (key, value) in [
            ("url", json!("https://github.com/test/other/pull/7")),
            ("url", json!("https://github.com/test/project/pull/8")),
            ("url", json!("https://evil.example/test/project/pull/7")),
            ("state", json!("DRAFT")),
            ("headRefOid", json!("abc")),
            ("number", json!("7")),
            ("isCrossRepository", json!(null)),
            ("mergeCommit", json!({})),
        ] {
            let mut bad = shown();
            bad[key] = value;
            read(&bad).unwrap_err();
            read_requests(&ours(), json!([shown(), bad]).to_string().as_bytes()).unwrap_err();
        }
        for bad in [json!(null), json!([]), json!({}), json!(7)] {
            read(&bad).unwrap_err();
        }
        assert_eq!(read_requests(&ours(), json!([shown(), shown()]).to_string().as_bytes()).unwrap().len(), 2);
        read_requests(&ours(), shown().to_string().as_bytes()).unwrap_err();
    }

    #[test]
    fn a_branch_of_another_repository_is_not_ours() {
        for (key, value) in [
            ("isCrossRepository", json!(true)),
            ("headRepository", json!({"name": "other"})),
            ("headRepositoryOwner", json!({"login": "stranger"})),
            ("headRepository", json!(null)),
        ] {
            let mut other = shown();
            other[key] = value;
            assert!(!read(&other).unwrap().own, "{key}");
        }
    }

    #[test]
    fn the_number_of_a_new_request_is_read_from_its_address() {
        assert_eq!(number_of(&ours(), "https://github.com/test/project/pull/12"), Some(12));
        for bad in ["", "0", "+7", "007", "7/files", "-7", "18446744073709551616"] {
            assert_eq!(number_of(&ours(), &format!("https://github.com/test/project/pull/{bad}")), None, "{bad}");
        }
        for bad in ["12", "x/pull/1"] {
            assert_eq!(number_of(&ours(), bad), None, "{bad}");
        }
    }
}
