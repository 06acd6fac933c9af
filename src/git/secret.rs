//! Secrets in addresses and in what tools say: found, and never shown. It knows no network and no host.

/// Beginnings of tokens that hosts give out.
const TOKENS: [&str; 8] = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "gloas-"];
/// Headers whose value is a secret.
const HEADERS: [&str; 4] = ["authorization:", "proxy-authorization:", "private-token:", "cookie:"];
/// Variables whose value is a secret.
const VARIABLES: [&str; 5] =
    ["GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GITLAB_TOKEN"];
/// What stands where a secret stood.
const MASK: &str = "***";

/// Whether the address holds anything that lets its reader in: a password, or what may be a token. The user name that
/// ssh needs is none.
#[must_use]
pub fn has_credentials(url: &str) -> bool {
    match url.split_once("://") {
        Some((scheme, rest)) if is_ssh(scheme) => {
            // The last `@` and not the first: a password may hold one, raw.
            let authority = rest.split('/').next().unwrap_or(rest);
            let user = rest.rsplit_once('@').map_or("", |(user, _)| user);
            user.contains([':', '/', '@']) || authority.contains('?')
        }
        Some((scheme, rest)) => !scheme.eq_ignore_ascii_case("file") && rest.contains(['@', '?', '#']),
        // As scp writes it: `user@host:path`. What stands before the first colon can be no password.
        None => url.split_once('@').is_some_and(|(user, _)| user.contains(':') && !user.contains('/')),
    }
}

/// The text with every secret that can be recognised masked: whoever an address lets in, tokens, the values of headers
/// and of the variables that hold tokens.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    let shown: String = text.split_inclusive('\n').map(line_without_secrets).collect();
    VARIABLES.iter().filter_map(std::env::var_os).fold(shown, |shown, secret| match secret.to_string_lossy().trim() {
        "" => shown,
        secret => shown.replace(secret, MASK),
    })
}

fn line_without_secrets(line: &str) -> String {
    let lower = line.to_ascii_lowercase();
    let header = HEADERS.iter().filter_map(|name| lower.find(name).map(|at| at + name.len())).min();
    if let Some(at) = header {
        let end = if line.ends_with('\n') { "\n" } else { "" };
        return format!("{} {MASK}{end}", without_tokens(&without_users(&line[..at])));
    }
    without_tokens(&without_users(line))
}

/// Addresses without user names and passwords, and without what is asked of them.
fn without_users(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        out.push_str(before);
        let scheme = before[..at].rsplit(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).next();
        let end = address.find(char::is_whitespace).unwrap_or(address.len());
        // A password may hold anything but white space, so what stands before the last `@` is masked whole.
        let (address, after) = address.split_at(end);
        let mut host = address;
        if let Some((user, beyond)) = address.rsplit_once('@') {
            let named = is_ssh(scheme.unwrap_or_default()) && user.chars().all(|c| c.is_ascii_alphanumeric());
            out.push_str(if named { user } else { MASK });
            out.push('@');
            host = beyond;
        }
        match host.split_once('?') {
            Some((plain, _)) => {
                out.push_str(plain);
                out.push('?');
                out.push_str(MASK);
            }
            None => out.push_str(host),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

fn without_tokens(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((at, token)) = TOKENS.iter().filter_map(|token| Some((rest.find(token)?, *token))).min() {
        out.push_str(&rest[..at + token.len()]);
        out.push_str(MASK);
        let after = &rest[at + token.len()..];
        rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_-.".contains(c));
    }
    out.push_str(rest);
    out
}

fn is_ssh(scheme: &str) -> bool {
    matches!(scheme.to_ascii_lowercase().as_str(), "ssh" | "git+ssh" | "ssh+git")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_lets_its_reader_in_is_a_credential() {
        for bad in [
            "https://owner:hunter2@github.com/o/n.git",
            "https://ghp_x@github.com/o/n.git",
            "HTTPS://a:b@c",
            "http://h/o/n?private_token=x",
            "ssh://git:pw@github.com/o/n",
            "ssh://git:p/w@github.com/o/n",
            "https://u:p/w@github.com/o/n",
            "u:pw@host:path",
        ] {
            assert!(has_credentials(bad), "{bad}");
        }
        for good in [
            "https://github.com/o/n.git",
            "ssh://git@github.com/o/n.git",
            "git@github.com:o/n.git",
            "/srv/a:b/n@x.git",
            "file:///a@b",
            "../n.git",
        ] {
            assert!(!has_credentials(good), "{good}");
        }
    }

    #[test]
    fn what_tools_say_is_shown_without_its_secrets() {
        for (said, shown) in [
            ("unable to access 'https://u:p@h/o/n/': no", "unable to access 'https://***@h/o/n/': no"),
            ("to ssh://git@github.com/o/n.git", "to ssh://git@github.com/o/n.git"),
            ("a https://t@h/x?q=1 b http://c/d", "a https://***@h/x?*** b http://c/d"),
            ("bad token ghp_abcDEF123, again", "bad token ghp_***, again"),
            ("> Authorization: Basic abc\nnext", "> Authorization: ***\nnext"),
            ("nothing here", "nothing here"),
        ] {
            assert_eq!(without_secrets(said), shown);
        }
    }

    proptest! {
        #[test]
        fn no_password_gets_through(
            scheme in "https?|ssh|git",
            user in "[a-z]{0,8}",
            secret in "[!-~&&[^?#]]{1,40}",
            before in "[ -~]{0,20}",
            after in "[/a-z]{0,20}",
        ) {
            let secret = format!("S3{secret}cr");
            let url = format!("{scheme}://{user}:{secret}@github.com/o/n{after}");
            prop_assert!(has_credentials(&url));
            let shown = without_secrets(&format!("{before} fatal: unable to access '{url}/': The requested URL"));
            prop_assert!(!shown.contains(&secret), "{}", shown);
            prop_assert_eq!(without_secrets(&shown), shown.clone());
        }

        #[test]
        fn anything_is_survived(text in "\\PC{0,80}|[:/@ghp_?\\n ]{0,60}") {
            let _ = (has_credentials(&text), without_secrets(&text));
        }
    }
}
