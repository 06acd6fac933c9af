//! Completions for bash, zsh and fish, for `git devlyn` and for `git-devlyn`.

use super::File;
use clap::Command;
use clap_complete::Shell;

/// Called by Git's completion for `git devlyn`, with its `words`, `cword`, `cur` and `prev`.
const BASH: &str = r#"
_git_devlyn() {
    local at=0
    while [[ $at -lt $cword && ${words[at]} != devlyn ]]; do
        at=$((at + 1))
    done
    local COMP_WORDS=(git-devlyn "${words[@]:at + 1}") COMP_CWORD=$((cword - at))
    __git_devlyn_complete git-devlyn "$cur" "$prev"
}

if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -F __git_devlyn_complete -o nosort -o bashdefault -o default git-devlyn
else
    complete -F __git_devlyn_complete -o bashdefault -o default git-devlyn
fi
"#;

/// For `git devlyn`, which fish hands on by itself only in its later versions.
const FISH: &str = r#"
function __fish_git_devlyn_through_git
    set -l words (commandline -opc)
    set -l at (contains -i -- devlyn $words)
    or return
    set -e words[1..$at]
    complete -C "git-devlyn $words "(commandline -ct)
end

complete -c git -n __fish_git_needs_command -f -a devlyn -d 'ABOUT'
complete -c git -n '__fish_git_using_command devlyn' -f -a '(__fish_git_devlyn_through_git)'
"#;

/// The completion files, under the names by which the shells find them.
pub(super) fn completions(cli: &Command) -> Vec<File> {
    let about = cli.get_about().map(ToString::to_string).unwrap_or_default();
    // A dash in the name would give the bash functions names that do not agree with each other.
    let bash = generated(cli, Shell::Bash, "devlyn").replacen("_devlyn()", "__git_devlyn_complete()", 1);
    let bash = match bash.rfind("\nif [[") {
        Some(registration) => &bash[..registration],
        None => &bash,
    };
    let zsh = generated(cli, Shell::Zsh, "git-devlyn");
    // The second line is what `git <TAB>` shows.
    let zsh = zsh.replacen('\n', &format!("\n#description {}\n", lower_first(&about)), 1);
    let fish = generated(cli, Shell::Fish, "git-devlyn");
    [
        ("bash/git-devlyn", format!("{bash}{BASH}")),
        ("zsh/_git-devlyn", zsh),
        ("fish/git-devlyn.fish", format!("{fish}{}", FISH.replace("ABOUT", &about.replace('\'', "\\'")))),
    ]
    .map(|(path, text)| File { path: path.to_owned(), bytes: text.into_bytes() })
    .into()
}

fn generated(cli: &Command, shell: Shell, name: &'static str) -> String {
    let mut command = shown(cli).disable_help_subcommand(true);
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The command without what is hidden, which the generators would offer.
fn shown(command: &Command) -> Command {
    // clap keeps names for ever; so may we, in a program that ends when the files are written.
    let name: &'static str = command.get_name().to_owned().leak();
    let mut shown = Command::new(name).args(command.get_arguments().filter(|argument| !argument.is_hide_set()));
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if command.get_version().is_some() {
        shown = shown.version(env!("CARGO_PKG_VERSION"));
    }
    shown.subcommands(command.get_subcommands().filter(|sub| !sub.is_hide_set()).map(self::shown))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}
