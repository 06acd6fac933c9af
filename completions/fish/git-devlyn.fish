# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_git_devlyn_global_optspecs
    string join \n json h/help V/version
end

function __fish_git_devlyn_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_git_devlyn_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_git_devlyn_using_subcommand
    set -l cmd (__fish_git_devlyn_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -s V -l version -d 'Print version'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "check" -d 'Report every fault of a package'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "add" -d 'Put a package into the queue'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "status" -d 'Show where every loop stands'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "drain" -d 'Work the queue until nothing can go on'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "report" -d 'Show what the last drain left'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "acceptance" -d 'Run the declared checks of a task on its candidate'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "task" -d 'Lead a single task by hand, one step at a time'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "fsck" -d 'Check everything that is kept against everything else'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "recover" -d 'Undo an allocation that was never finished'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "init" -d 'Install the hooks that guard the queue'
complete -c git-devlyn -n "__fish_git_devlyn_needs_command" -f -a "verify" -d 'Judge every commit of a range by the rules of the hooks'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand check" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand check" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand add" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand add" -l materialize -d 'Let the loop stand for the pending row in LINE of docs/specs/queue.md' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand add" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand status" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand status" -l local-only -l no-push -d 'Push nothing and fetch nothing'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand status" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand drain" -l worktree-root -d 'Make the tasks\' worktrees below DIR' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand drain" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand drain" -l local-only -l no-push -d 'Push nothing and fetch nothing'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand drain" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand drain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand report" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand report" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand acceptance; and not __fish_seen_subcommand_from run" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand acceptance; and not __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand acceptance; and not __fish_seen_subcommand_from run" -f -a "run" -d 'Run the declared checks on the committed candidate'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand acceptance; and __fish_seen_subcommand_from run" -l packet -d 'The task\'s packet' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand acceptance; and __fish_seen_subcommand_from run" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand acceptance; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -f -a "allocate" -d 'Give a task a worktree and a branch of its own'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -f -a "accept" -d 'Bind a result to its task, once and for all'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -f -a "attach" -d 'Attach the commit that says how the task ended'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -f -a "complete" -d 'Deliver a bound task, or say what its delivery waits for'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and not __fish_seen_subcommand_from allocate accept attach complete clean-scratch" -f -a "clean-scratch" -d 'Empty a task\'s scratch directory'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l task -d 'What the task is called in its receipt' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l branch -d 'The branch to create' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l worktree -d 'Where to make the worktree; must not exist yet' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l base -d 'The branch that the work is meant for' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l start -d 'Start from this commit of the fetched base, given in full' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l local-base -d 'Start from this commit, given in full, and stay local' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l from-receipt -d 'Start from the accepted source of another task, and stay local' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l remote -d 'The remote to fetch from and to deliver to' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l repository -d 'The repository that the remote must be' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from allocate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from accept" -l receipt -d 'The task\'s receipt.json' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from accept" -l acceptance -d 'The acceptance to bind, a file inside the task\'s worktree' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from accept" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from accept" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from attach" -l receipt -d 'The task\'s receipt.json' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from attach" -l commit -d 'The terminal commit, given in full' -r
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from attach" -l file -d 'The queue file that the commit changes, docs/specs/<loop>/queue.md' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from attach" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from attach" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -l receipt -d 'The task\'s receipt.json' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -l acceptance -d 'Bind this acceptance first' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -l mode -d 'How the pull request is merged' -r -f -a "auto\t'Ask for a merge as soon as the repository\'s rules allow it'
pr\t'Open the pull request and leave the merge to a person'"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -l local-only -l no-push -d 'Push nothing and fetch nothing'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -l writers-stopped -d 'Declare that every process that wrote to the task\'s worktree has ended'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from complete" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from clean-scratch" -l receipt -d 'The task\'s receipt.json' -r -F
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from clean-scratch" -l writers-stopped -d 'Declare that every process that wrote to the task\'s worktree has ended'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from clean-scratch" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand task; and __fish_seen_subcommand_from clean-scratch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand fsck" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand fsck" -l rebuild-notes -d 'Write the notes on refs/notes/devlyn anew from the receipts'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand fsck" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand fsck" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand recover" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand recover" -l dry-run -d 'Show what would be removed, and remove nothing'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand recover" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand recover" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -l uninstall -d 'Take the hooks out again and put everything back as it was'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -l protect-refs -d 'Guard the capture and recovery refs too'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -l notes -d 'Show results in `git log` of this repository'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -l dry-run -d 'Say what would be done, and do nothing'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand verify" -l repo -d 'Work in the repository of DIR instead of the current directory\'s' -r -f -a "(__fish_complete_directories)"
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand verify" -l json -d 'Print one JSON object instead of text for people'
complete -c git-devlyn -n "__fish_git_devlyn_using_subcommand verify" -s h -l help -d 'Print help (see more with \'--help\')'

function __fish_git_devlyn_through_git
    set -l words (commandline -opc)
    set -l at (contains -i -- devlyn $words)
    or return
    set -e words[1..$at]
    complete -C "git-devlyn $words "(commandline -ct)
end

complete -c git -n __fish_git_needs_command -f -a devlyn -d 'Leave coding agents alone with a repository, and find proven work in the morning'
complete -c git -n '__fish_git_using_command devlyn' -f -a '(__fish_git_devlyn_through_git)'
