"""`partsketch completion`: the script that makes a shell complete commands, options and choices."""

from __future__ import annotations

import click

from partsketch.cli.printing import print_json

#: What to type, per shell, so that the completion is there in every new shell.
_HOW = {
    "bash": "partsketch completion bash > ~/.local/share/bash-completion/completions/partsketch",
    "zsh": "partsketch completion zsh > ~/.zfunc/_partsketch   (with ~/.zfunc in fpath)",
    "fish": "partsketch completion fish > ~/.config/fish/completions/partsketch.fish",
}


@click.command("completion", epilog="Example: " + _HOW["bash"])
@click.argument("shell", type=click.Choice(list(_HOW)))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(shell: str, as_json: bool) -> None:
    """Print a completion script for SHELL, to be sourced or put where the shell looks for it."""
    from click.shell_completion import get_completion_class

    from partsketch.cli import commands

    made = get_completion_class(shell)
    assert made is not None
    script = made(commands, {}, "partsketch", "_PARTSKETCH_COMPLETE").source_template
    text = script % made(commands, {}, "partsketch", "_PARTSKETCH_COMPLETE").source_vars()
    if as_json:
        print_json({"shell": shell, "script": text, "install": _HOW[shell]})
    else:
        click.echo(text)
