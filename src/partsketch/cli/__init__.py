"""The command line: a thin front on the library. Whatever goes wrong ends with one sentence."""

from __future__ import annotations

import gc
import re
import sys
import textwrap
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from partsketch._version import __version__
from partsketch.cli import last_resort
from partsketch.cli.printing import complain
from partsketch.common.errors import PartsketchError

COMMANDS = {
    "fit": "partsketch.cli.fit",
    "summarise": "partsketch.cli.summarise",
    "ask": "partsketch.cli.ask",
    "predict": "partsketch.cli.predict",
    "sketch": "partsketch.cli.sketch",
    "combine": "partsketch.cli.combine",
    "inspect": "partsketch.cli.inspect",
    "refine": "partsketch.cli.refine",
    "report": "partsketch.cli.report",
    "plan": "partsketch.cli.plan",
    "diagnose": "partsketch.cli.diagnose",
    "explore": "partsketch.cli.explore",
    "reproduce": "partsketch.cli.reproduce",
    "completion": "partsketch.cli.completion",
}

#: Objects made before the first look for garbage. Loading libraries makes hundreds of thousands and hardly any garbage;
#: Python would look through them a hundred times.
_OBJECTS_UNSEEN = 50_000
#: Lines of examples: help is 80 columns wide, indented by two, and a line ends with a blank and a backslash.
_EXAMPLE_WIDTH = 74


class _LazyCommands(click.Group):
    """Imports a command's module when the command is asked for; the modules themselves import what they use late."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name]).command
        _finish(command)
        return command


def _finish(command: click.Command) -> None:
    """Give a command, and the commands in it, the option that shows tracebacks and an example that can be copied."""
    if not any(parameter.name == "debug" for parameter in command.params):
        command.params.append(_debug_option())
        command.epilog = _in_lines(command.epilog or "")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _finish(inner)


def _in_lines(example: str) -> str:
    """Break an example where the shell reads on; click would break paths at their hyphens."""
    # An option stays with its value: no line is broken at the blank that textwrap does not know.
    kept = re.sub(r"(--[\w-]+) (?!-)", "\\1\xa0", example)
    lines = textwrap.wrap(kept, _EXAMPLE_WIDTH, break_long_words=False, break_on_hyphens=False)
    return "\b\n" + " \\\n    ".join(lines).replace("\xa0", " ")


def _debug_option() -> click.Option:
    # Read by `_run`, which outlives the command.
    return click.Option(
        ["--debug"], is_flag=True, expose_value=False, help="Show the traceback of an error that nobody foresaw."
    )


@click.group(
    cls=_LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: partsketch fit data.parquet --target y",
    params=[_debug_option()],
)
@click.version_option(__version__, prog_name="partsketch")
def commands() -> None:
    """Least squares on partitioned data, with the error known."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    0 on success, 1 when whoever read the output has gone, 2 on bad input or when the system refuses something, 70 on an
    error that nobody foresaw, 130 when interrupted.
    """
    if not last_resort.prepare_streams():
        complain("Error: The standard output is closed: lead it to a file or to /dev/null.")
        sys.exit(2)
    if not last_resort.has_room():
        complain("Error: The process may use less than 1 GB of addresses: raise the limit (ulimit -v).")
        sys.exit(2)
    gc.set_threshold(_OBJECTS_UNSEEN)
    code = run(arguments)
    # What there is goes with the process: Python need not look through it once more.
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str] | None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given
    name = " ".join(["partsketch", *(argument for argument in given if argument in COMMANDS)][:2])
    try:
        with last_resort.only_our_warnings(debug), last_resort.quiet_threads(debug):
            return _answer(given, name, debug)
    except BrokenPipeError:
        # The reader of a pipe has gone (as `head` does): nothing to say, and nobody to say it to.
        last_resort.silence(sys.stdout)
        last_resort.silence(sys.stderr)
        return 1
    except OSError as error:
        # Not even the sentence could be printed, or what was printed could not be written.
        last_resort.silence(sys.stdout)
        return last_resort.failed_system(error, name, debug)


def _answer(arguments: list[str], name: str, debug: bool) -> int:
    """Run the command and return its exit code; whatever goes wrong becomes one sentence."""
    try:
        result: Any = commands.main(args=arguments, prog_name="partsketch", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.NoArgsIsHelpError as help_text:
        click.echo(help_text.format_message())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        complain(f"Error: {error.format_message()}{hint}")
        return 2
    except PartsketchError as error:
        complain(f"Error: {error}")
        return 2
    except (click.Abort, KeyboardInterrupt):
        complain("Stopped.")
        return 130
    except MemoryError as error:
        return last_resort.without_memory(error, name, debug)
    except OSError:
        raise
    except ModuleNotFoundError as error:
        return last_resort.without_library(error, name, debug)
    except Exception as error:
        return last_resort.unexpected(error, name, debug)
    return result if isinstance(result, int) else 0
