"""The command line: a thin front on the library. Bad input ends with one sentence and exit code 2."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from partsketch._version import __version__
from partsketch.common.errors import PartsketchError

COMMANDS = {
    "fit": "partsketch.cli.fit",
    "summarise": "partsketch.cli.summarise",
    "ask": "partsketch.cli.ask",
    "predict": "partsketch.cli.predict",
    "sketch": "partsketch.cli.sketch",
    "combine": "partsketch.cli.combine",
    "inspect": "partsketch.cli.inspect",
    "report": "partsketch.cli.report",
    "plan": "partsketch.cli.plan",
    "diagnose": "partsketch.cli.diagnose",
    "explore": "partsketch.cli.explore",
    "reproduce": "partsketch.cli.reproduce",
    "completion": "partsketch.cli.completion",
}


class _LazyCommands(click.Group):
    """Imports a command's module when the command is asked for; the modules themselves import what they use late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        return command


@click.group(
    cls=_LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: partsketch fit data.parquet --target y",
)
@click.version_option(__version__, prog_name="partsketch")
def commands() -> None:
    """Least squares on partitioned data, with the error known."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 on success, 2 on bad input, 130 when interrupted."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None) -> int:
    """Run the command line and return its exit code."""
    try:
        result: Any = commands.main(args=arguments, prog_name="partsketch", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_text:
        click.echo(help_text.format_message())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        click.echo(f"Error: {error.format_message()}{hint}", err=True)
        return 2
    except PartsketchError as error:
        click.echo(f"Error: {error}", err=True)
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return 130
    except BrokenPipeError:
        # The reader of a pipe has gone (as `head` does): nothing to say, and nobody to say it to.
        sys.stderr.close()
        return 0
    return result if isinstance(result, int) else 0
