"""`partsketch refine`: more rounds, when sites can answer; from sketches to exact least squares."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from partsketch.cli.options import column_names, csv_options, intervals_option, keyword_option
from partsketch.cli.outputs import check_outputs
from partsketch.cli.paths import NamedPath
from partsketch.cli.printing import print_json, say, warn
from partsketch.common.errors import InputError
from partsketch.common.files import atomic_folder

if TYPE_CHECKING:
    from partsketch.sites.rounds.rounds import Rounds

_PATH = NamedPath()


@click.group("refine", epilog="Example: partsketch refine begin north.psk south.psk --output rounds")
def command() -> None:
    """Go from sketches to exact least squares in rounds: sites answer questions, no rows leave them.

    Each command has an example of its own, and prints JSON with --json.
    """


@command.command("begin", epilog="Example: partsketch refine begin north.psk south.psk --target fare --output rounds")
@click.argument("files", nargs=-1, required=True)
@click.option("--target", "-t", "targets", multiple=True, help="Any column of the files; repeat for several.")
@click.option("--features", "-f", multiple=True, help="Any columns of the files, comma-separated; default: all others.")
@keyword_option("fit_intercept", default=None)
@keyword_option("alpha", "Refused unless 0: rounds lead to exact least squares.")
@click.option("--output", "-o", "folder", type=_PATH, required=True, help="New folder for questions and answers.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def begin(
    files: tuple[str, ...],
    targets: tuple[str, ...],
    features: tuple[str, ...],
    fit_intercept: bool | None,
    alpha: float,
    folder: Path,
    as_json: bool,
) -> None:
    """Begin rounds from sketch FILES: writes the first question, which goes to every site."""
    from partsketch.sites.rounds.rounds import Rounds, check_penalty

    check_penalty(alpha)
    # An empty folder is taken, but not the one that this is called in.
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir()) or folder.samefile(".")):
        raise InputError(f"Cannot begin in {folder}: it is there already; name a new folder.")
    rounds = Rounds.begin(list(files), list(targets) or None, column_names(features), fit_intercept)
    _save_anew(rounds, folder)
    _tell(rounds, folder, as_json, None)


def _save_anew(rounds: Rounds, folder: Path) -> None:
    """Write a new folder, whole or not at all."""
    with atomic_folder(folder) as temporary:
        rounds.save(temporary)


@command.command(
    "answer", epilog="Example: partsketch refine answer question-1.psq north.parquet --site north --output north-1.psa"
)
@click.argument("question", type=_PATH)
@click.argument("data", nargs=-1, required=True)
@csv_options
@click.option("--site", help="Name of this site; default: that of the output, without its ending and round.")
@click.option("--label", default="", help="Label of these rows, as in their sketch.")
@click.option("--weights", help="Column of sample weights.")
@click.option(
    "--missing", type=click.Choice(["error", "drop"]), default="error", show_default=True, help="As in sketch."
)
@click.option("--private", is_flag=True, help="Do not tell the loss of these rows.")
@click.option("--round-rows", type=int, default=1, help="With --private: round the row count, as in the sketch.")
@click.option("--allow", multiple=True, help="Write the answer although it shows single rows: few-rows.")
@keyword_option("engine", "Where the answer is made.")
@click.option("--output", "-o", type=_PATH, required=True, help="File to write (.psa).")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def answer(
    question: Path,
    data: Any,
    site: str | None,
    label: str,
    weights: str | None,
    missing: Literal["error", "drop"],
    private: bool,
    round_rows: int,
    allow: tuple[str, ...],
    engine: str,
    output: Path,
    as_json: bool,
) -> None:
    """Answer QUESTION from the rows of this site in DATA: one number per column leaves it, and the number of rows."""
    from partsketch.engines.base import using_engine
    from partsketch.sites.rounds.answer import answer_data
    from partsketch.sites.rounds.question import Question

    check_outputs({"--output": output}, data, [question])
    asked = Question.load(question)
    name = re.sub(rf"[-_. ]{asked.number}$", "", output.stem) if site is None else site
    with using_engine(engine) as runner:
        made = answer_data(asked, data, weights, missing, runner, name, label, private, round_rows, allow)
    made.save(output)
    if as_json:
        told = {"file": str(output), "site": name, "label": label, "round": asked.number, "rows": made.row_count}
        print_json(told)
        return
    count = made.gradient.size
    say(f"round {asked.number}: answer of {name!r} for {made.row_count:,} rows written to {output}")
    say(f"it tells {count} sums over the rows{'' if private else ', their squared loss'} and their number")


@command.command("step", epilog="Example: partsketch refine step rounds north-1.psa south-1.psa --model model.json")
@click.argument("folder", type=_PATH)
@click.argument("answers", nargs=-1, required=True, type=_PATH)
@click.option("--model", "model_path", type=_PATH, help="Write the model after this round to this JSON file.")
@click.option("--summary", "with_summary", is_flag=True, help="Print standard errors, tests and intervals too.")
@intervals_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def step(
    folder: Path,
    answers: tuple[Path, ...],
    model_path: Path | None,
    with_summary: bool,
    intervals_of: str,
    as_json: bool,
) -> None:
    """Take the ANSWERS of all sites to the last question in FOLDER: a better model, and the next question."""
    from partsketch.sites.rounds.rounds import Rounds

    check_outputs({"--model": model_path}, files=[*answers, *folder.glob("*")])
    rounds = Rounds.load(folder).step(answers)
    model = rounds.model
    if model_path is not None:
        model.save(model_path)
    rounds.save(folder)
    _tell(rounds, folder, as_json, intervals_of if with_summary else None)
    if model_path is not None and not as_json:
        say(f"model written to {model_path}")


def _told_in_advance(rounds: Rounds) -> str:
    """Return what rounds will leave, by the law of the sketches alone."""
    later = rounds.forecast[1:]
    if not later:
        return "one round leaves nothing but rounding"
    parts = [f"{100 * entry.median:.2g}% after {entry.rounds}" for entry in later]
    most = f"at most {100 * later[-1].upper:.2g}% in 97.5 of 100 cases"
    told = f"of the minimal loss, rounds are expected to leave about {', '.join(parts)} ({most})"
    if rounds.needs_all_of_them:
        told += "; no method that asks all sites at the same points is likely to come below 0.0001% in fewer than "
        told += str(later[-1].rounds)
    return told


def _tell(rounds: Rounds, folder: Path, as_json: bool, intervals_of: str | None) -> None:
    """Print what the rounds so far have come to, and what is asked next."""
    from partsketch.sites.rounds.checks import spoken
    from partsketch.sites.rounds.rounds import question_name

    model, path = rounds.model, folder / question_name(rounds.question.number)
    for sentence in model.record.warnings:
        warn(sentence)
    if as_json:
        values: dict[str, Any] = {"rounds": rounds.finished, "question": str(path), "model": model.to_dict()}
        values["forecast"] = [asdict(entry) for entry in rounds.forecast]
        values["sites"] = [list(pair) for pair in rounds.question.sites]
        if intervals_of is not None:
            values["summary"] = model.summary(of=intervals_of).to_dict()
        print_json(values)
        return
    for target, certificate in zip(model.target_names, model.certificates, strict=True):
        say(f"{target}: {certificate.sentence}" if len(model.target_names) > 1 else certificate.sentence)
    if intervals_of is not None:
        print(model.summary(of=intervals_of), flush=True)
    if rounds.finished == 0:
        say(_told_in_advance(rounds))
    say(f"question of round {rounds.question.number} written to {path}")
    say(f"it is to {', '.join(map(spoken, rounds.question.sites))}; each answers with: partsketch refine answer")
