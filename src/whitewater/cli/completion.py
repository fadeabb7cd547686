"""`whitewater completion`: a script that lets bash and zsh complete commands, applications and steps."""

import argparse
from collections.abc import Sequence

from whitewater.application import applications, in_project
from whitewater.cli.cluster import COMMANDS as CLUSTER_COMMANDS
from whitewater.cli.main import COMMANDS

SCRIPT = """\
[ -z "$ZSH_VERSION" ] || {{ autoload -U +X compinit bashcompinit && compinit && bashcompinit; }}
_whitewater() {{
    local words=""
    case "$COMP_CWORD,${{COMP_WORDS[1]}}" in
        1,*) words="{commands}" ;;
{steps}
    esac
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _whitewater whitewater"""


def main(arguments: Sequence[str]) -> int:
    """Print the script for the applications of this project: ``eval "$(whitewater completion)"``."""
    argparse.ArgumentParser(prog="whitewater completion", description=__doc__).parse_args(list(arguments))
    known = applications(in_project())
    words = {name: [*application.steps, *application.commands] for name, application in known.items()}
    words["cluster"] = list(CLUSTER_COMMANDS)
    steps = [f'        2,{name}) words="{" ".join(choices)}" ;;' for name, choices in words.items()]
    print(SCRIPT.format(commands=" ".join([*known, *COMMANDS, "--version", "--help"]), steps="\n".join(steps)))
    return 0
