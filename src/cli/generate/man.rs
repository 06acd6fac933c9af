//! The pages of section 1: what clap knows, in the order of a manual, with the sections that only we know.

use super::File;
use super::sections::{self, Block, Section};
use clap::{Arg, ArgAction, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use std::io;

/// The day of the last change to what the pages say.
const DATE: &str = "2026-11-30";

/// One page a command, hooks included, which servers install by hand.
pub(super) fn pages(cli: &Command) -> io::Result<Vec<File>> {
    let mut cli = cli.clone().disable_help_subcommand(true);
    cli.build();
    let mut files = Vec::new();
    collect(&cli, "git-devlyn", &mut files)?;
    Ok(files)
}

fn collect(command: &Command, name: &str, files: &mut Vec<File>) -> io::Result<()> {
    files.push(File { path: format!("{name}.1"), bytes: page(command, name)? });
    for sub in command.get_subcommands().filter(|sub| !matches!(sub.get_name(), "help" | "generate")) {
        collect(sub, &format!("{name}-{}", sub.get_name()), files)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(DATE)
        .source(concat!("git-devlyn ", env!("CARGO_PKG_VERSION")))
        .manual("git devlyn manual");
    let own = sections::of(name);
    let mut bytes = Vec::new();
    man.render_title(&mut bytes)?;
    heading(name, command).to_writer(&mut bytes)?;
    man.render_description_section(&mut bytes)?;
    subcommands(command, name).to_writer(&mut bytes)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        options(&man, &mut bytes)?;
    }
    examples(command).to_writer(&mut bytes)?;
    for section in own {
        written(section).to_writer(&mut bytes)?;
    }
    exit_status(name).to_writer(&mut bytes)?;
    see_also(name, command).to_writer(&mut bytes)?;
    Ok(with_one_preamble(&String::from_utf8_lossy(&bytes)).into_bytes())
}

/// Each part begins with the definition of the apostrophe; once is enough.
fn with_one_preamble(page: &str) -> String {
    const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";
    format!("{PREAMBLE}{}", page.replace(PREAMBLE, ""))
}

fn heading(name: &str, command: &Command) -> Roff {
    let mut roff = Roff::new();
    // Names of pages and paths must stay whole; the register is for YS and EE, which would turn hyphenation on again.
    roff.control("nr", ["HY", "0"]).control("nh", []).control("ad", ["l"]);
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    roff.control("SH", ["NAME"]).text([roman(format!("{name} - {}", about.to_lowercase_first()))]);
    let typed = name.replacen("git-devlyn", "git devlyn", 1).replace("devlyn-", "devlyn ");
    let typed = typed.replace("task-", "task ").replace("acceptance-", "acceptance ");
    roff.control("SH", ["SYNOPSIS"]).control("SY", [typed.as_str()]);
    for words in synopsis(command) {
        roff.text(words);
    }
    roff.control("YS", []);
    roff
}

/// The parts of a command line, each on a line of its own so that the page can break between them.
fn synopsis(command: &Command) -> Vec<Vec<Inline>> {
    let alternatives = alternatives(command);
    let is_help = |argument: &&Arg| matches!(argument.get_id().as_str(), "help" | "version");
    let options = || command.get_opts().chain(flags(command)).filter(|a| !a.is_hide_set() && !is_help(a));
    let mut lines = Vec::new();
    for argument in options().filter(|argument| argument.is_required_set()) {
        lines.push(option(argument));
    }
    for group in &alternatives {
        let mut words = vec![roman("[")];
        for (at, argument) in group.iter().enumerate() {
            if at > 0 {
                words.push(roman(" | "));
            }
            words.extend(option(argument));
        }
        words.push(roman("]"));
        lines.push(words);
    }
    let grouped = |argument: &Arg| alternatives.iter().flatten().any(|other| other.get_id() == argument.get_id());
    for argument in options().filter(|argument| !argument.is_required_set() && !grouped(argument)) {
        lines.push([vec![roman("[")], option(argument), vec![roman("]")]].concat());
    }
    for argument in command.get_positionals() {
        let many = if matches!(argument.get_action(), ArgAction::Append) { " ..." } else { "" };
        let value = vec![italic(value(argument)), roman(many)];
        let dashes = if argument.is_last_set() { vec![bold("--"), roman(" ")] } else { Vec::new() };
        let (open, close) = if argument.is_required_set() { ("", "") } else { ("[", "]") };
        lines.push([dashes, vec![roman(open)], value, vec![roman(close)]].concat());
    }
    if command.has_subcommands() {
        lines.push(vec![italic("command"), roman(" ...")]);
    }
    lines
}

fn flags(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|a| !a.is_positional() && !a.get_action().takes_values())
}

/// The options of which at most one may be given.
fn alternatives(command: &Command) -> Vec<Vec<&Arg>> {
    let groups = command.get_groups().filter(|group| !(*group).clone().is_multiple());
    let members = groups.map(|group| {
        let ids: Vec<_> = group.get_args().collect();
        command.get_arguments().filter(|argument| ids.contains(&argument.get_id())).collect::<Vec<_>>()
    });
    members.filter(|members| members.len() > 1).collect()
}

fn option(argument: &Arg) -> Vec<Inline> {
    let mut words = vec![bold(format!("--{}", argument.get_long().unwrap_or_default()))];
    if argument.get_action().takes_values() {
        words.extend([roman(" "), italic(value(argument))]);
    }
    words
}

fn value(argument: &Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn subcommands(command: &Command, name: &str) -> Roff {
    let mut roff = Roff::new();
    let subs: Vec<_> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    if !subs.is_empty() {
        roff.control("SH", ["COMMANDS"]);
    }
    for sub in subs {
        roff.control("TP", []).text([bold(format!("{name}-{}", sub.get_name())), roman("(1)")]);
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        roff.text([roman(format!("{about}."))]);
    }
    roff
}

/// The options as clap_mangen has them, less the two breaks in a row above possible values, which mandoc minds.
fn options(man: &Man, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut section = Vec::new();
    man.render_options_section(&mut section)?;
    bytes.extend(String::from_utf8_lossy(&section).replace("\n.br\n\n.br\n", "\n.sp\n").bytes());
    Ok(())
}

/// What the long help shows as lines under comments.
fn examples(command: &Command) -> Roff {
    let mut roff = Roff::new();
    let Some(help) = command.get_after_long_help() else { return roff };
    roff.control("SH", ["EXAMPLES"]);
    for line in help.to_string().lines().skip(1) {
        match line.trim_start().strip_prefix("# ") {
            Some(comment) => roff.control("TP", []).text([roman(format!("{}:", comment.to_uppercase_first()))]),
            None => roff.text([bold(line.trim_start())]),
        };
    }
    roff
}

fn written(section: &Section) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [section.heading]);
    for (at, block) in section.blocks.iter().enumerate() {
        match block {
            Block::Text(text) if at == 0 => roff.text([roman(*text)]),
            Block::Text(text) => roff.control("PP", []).text([roman(*text)]),
            Block::Term(term, text) => roff.control("TP", []).text([bold(*term)]).text([roman(*text)]),
            Block::Code(lines) => {
                roff.control("PP", []).control("RS", ["4"]).control("EX", []);
                for line in lines.lines() {
                    roff.text([roman(line)]);
                }
                roff.control("EE", []).control("RE", [])
            }
        };
    }
    roff
}

fn exit_status(name: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    for (status, meaning) in sections::exit_status(name) {
        roff.control("TP", []).text([bold(status)]).text([roman(meaning)]);
    }
    roff
}

fn see_also(name: &str, command: &Command) -> Roff {
    let parent = name.rsplit_once('-').map(|(parent, _)| parent).filter(|parent| parent.contains("devlyn"));
    let parents = if name.starts_with("git-devlyn-task-clean") { Some("git-devlyn-task") } else { parent };
    let mut pages: Vec<(String, char)> = parents.map(|parent| (parent.to_owned(), '1')).into_iter().collect();
    if parents.is_none() {
        let subs = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        pages.extend(subs.map(|sub| (format!("{name}-{}", sub.get_name()), '1')));
        pages.extend([("git-worktree".to_owned(), '1'), ("git-notes".to_owned(), '1')]);
    }
    pages.extend([("gitdevlyn-formats".to_owned(), '5'), ("gitdevlyn-workflow".to_owned(), '7')]);
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    let last = pages.len() - 1;
    for (at, (page, section)) in pages.into_iter().enumerate() {
        roff.text([bold(page), roman(format!("({section}){}", if at == last { "" } else { "," }))]);
    }
    roff
}

/// A sentence that goes on, and one that begins.
trait First {
    fn to_lowercase_first(&self) -> String;
    fn to_uppercase_first(&self) -> String;
}

impl First for str {
    fn to_lowercase_first(&self) -> String {
        let mut chars = self.chars();
        chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
    }

    fn to_uppercase_first(&self) -> String {
        let mut chars = self.chars();
        chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
    }
}
