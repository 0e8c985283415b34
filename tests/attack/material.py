"""Valid inputs, small and made once: what attacks start from."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq

from partsketch.sites.disclosure.concerns import CONCERNS

ROWS = 80
#: Names that columns of a .npy file have.
_NPY = ("x0", "x1", "x2", "x3")
FORMATS = ("parquet", "csv", "feather", "npy")
#: Tables of attacks are small: files that show single rows are what is attacked.
ALLOW = [part for name in CONCERNS for part in ("--allow", name)]

#: Commands on the files that `lay_out` makes; what they write is in the folder too.
COMMANDS: dict[str, list[str]] = {
    "fit": ["fit", "{data}", "-t", "{target}"],
    "fit a sketch": ["fit", "{data}", "-t", "{target}", "--method", "stack", "-k", "3", "--seed", "1"],
    "fit averages": ["fit", "{data}", "-t", "{target}", "--method", "average", "-k", "3", "--summary"],
    "fit to files": ["fit", "{data}", "-t", "{target}", "--model", "{out}.json", "--report", "{out}.html"],
    "keep": ["fit", "{data}", "-t", "{target}", "--method", "partition", "--checkpoint", "{out}-kept"],
    "predict": ["predict", "{model}", "{data}", "-o", "{out}.parquet"],
    "predict text": ["predict", "{model}", "{data}", "-o", "{out}.csv", "--missing", "drop"],
    "sketch": ["sketch", "{data}", "-t", "{target}", "-o", "{out}.psk", "--seed", "1", *ALLOW],
    "sketch parts": [
        "sketch",
        "{data}",
        "-o",
        "{out}-{{partition}}.psk",
        "-k",
        "2",
        "--sketch",
        "triangular",
        *ALLOW,
    ],
    "combine": ["combine", "{north}", "{south}", "-t", "{target}", "--model", "{out}.json", "--summary"],
    "inspect": ["combine", "{north}", "{south}", "--inspect"],
    "summarise": ["summarise", "{data}", "-o", "{out}.psk"],
    "summarise parts": ["summarise", "{data}", "-o", "{out}.psk", "--partition-by", "shuffle", "-k", "4"],
    "ask": ["ask", "{kept}", "-t", "{target}", "--vcov", "CRV1", "--model", "{out}.json"],
    "ask for a path": ["ask", "{kept}", "-t", "{target}", "--ridge", "--folds", "3"],
    "ask a list": ["ask", "{kept}", "--compare", "{list}", "--report", "{out}.html"],
    "ask for effects": ["ask", "{kept}", "-t", "{target}", "--meta"],
    "inspect a file": ["inspect", "{kept}"],
    "inspect a promise": ["inspect", "{noisy}"],
    "fit a formula": ["fit", "{data}", "--formula", "{target} ~ .", "--vcov", "HC3", "--model", "{out}.json"],
    "predict intervals": ["predict", "{model}", "{data}", "-o", "{out}.parquet", "--interval", "prediction"],
    "promise": [
        "sketch",
        "{data}",
        "-t",
        "{target}",
        "--site",
        "n",
        "--epsilon",
        "1",
        "--bounds",
        "{bounds}",
        "--ledger",
        "{out}.jsonl",
        "-o",
        "{out}.psk",
        *ALLOW,
    ],
    "combine promises": ["combine", "{noisy}", "--model", "{out}.json", "--summary"],
    "refine": ["refine", "begin", "{north}", "{south}", "-t", "{target}", "-o", "{out}-rounds"],
    "answer": ["refine", "answer", "{rounds}/question-1.psq", "{data}", "--site", "north", *ALLOW, "-o", "{out}.psa"],
    "step": ["refine", "step", "{rounds}", "{answer}", "{folder}/south.psa", "--model", "{out}.json"],
    "report": ["report", "{model}", "-o", "{out}.html", "--data", "{data}"],
    "plan": ["plan", "{data}", "-t", "{target}"],
    "plan sizes": ["plan", "--rows", "1e5", "--columns", "7", "-k", "4"],
    "diagnose": ["diagnose", "{data}", "-t", "{target}", "-k", "3"],
    "explore": ["explore", "--json", "--rows", "1e5"],
    "completion": ["completion", "bash"],
}


def table(seed: int = 0, rows: int = ROWS) -> pa.Table:
    """Return rows with two features, a target, a weight and a text."""
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=(2, rows))
    text = np.array(["u", "v", "w"])[np.arange(rows) % 3]
    y = 1 + a - 2 * b + draw.normal(size=rows)
    return pa.table({"a": a, "b": b, "y": y, "w": draw.uniform(0.5, 2, rows), "s": text})


def write(rows: pa.Table, path: Path) -> None:
    """Write a table in the format of the ending."""
    if path.suffix == ".parquet":
        pq.write_table(rows, path, row_group_size=max(1, rows.num_rows // 2))
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(rows, path, compression="uncompressed")
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(rows, path)
    else:
        np.save(path, np.column_stack([column.to_numpy() for column in rows.columns]))


def numbers(seed: int = 0) -> pa.Table:
    """Return the rows without the text."""
    return table(seed).drop_columns(["s"])


def target_of(path: Path) -> str:
    """Return the name of the target in a file that `lay_out` made."""
    return "x2" if path.suffix == ".npy" else "y"


def features_of(path: Path) -> str:
    """Return the names of the features in a file that `lay_out` made."""
    return "x0,x1" if path.suffix == ".npy" else "a,b"


@cache
def contents(format: str) -> dict[str, bytes]:
    """Return the files of a folder: rows in this format, a model of them, two sketches, summaries, and rounds."""
    import partsketch as ps

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = folder / f"rows.{format}"
        write(numbers(), data)
        target = target_of(data)
        features = features_of(data).split(",")
        # Models know where their rows were; that place is gone by then.
        model = ps.fit(str(data), target, features, method="exact")
        model.save(folder / "model.json")
        for site in ("north", "south"):
            made: Any = ps.sketch(str(data), target, features, site=site, random_state=1, sketch_size=20)
            made.save(folder / f"{site}.psk")
        ps.summarise(str(data), partition_by="shuffle", n_partitions=4).save(folder / "kept.psk")
        named = _NPY if format == "npy" else ("a", "b", "y", "w")
        (folder / "bounds.toml").write_text("".join(f"{name} = [-9, 9]\n" for name in named))
        (folder / "list.toml").write_text(f'[[model]]\nname = "one"\ntarget = "{target}"\nfeatures = {features!r}\n')
        promise: Any = {"epsilon": 50.0, "bounds": dict.fromkeys([*features, target], (-9, 9))}
        ps.sketch(str(data), target, features, ledger=folder / "ledger.jsonl", **promise).save(folder / "noisy.psk")
        rounds = ps.refine([str(folder / "north.psk"), str(folder / "south.psk")], target)
        rounds.save(folder / "rounds")
        for site in ("north", "south"):
            ps.answer(rounds.question, str(data), site=site).save(folder / f"{site}.psa")
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lay_out(folder: Path, format: str = "parquet") -> dict[str, str]:
    """Write valid files to a folder, and return what stands for them in `COMMANDS`."""
    for name, content in contents(format).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    data = folder / f"rows.{format}"
    return {
        "data": str(data),
        "target": target_of(data),
        "model": str(folder / "model.json"),
        "north": str(folder / "north.psk"),
        "south": str(folder / "south.psk"),
        "kept": str(folder / "kept.psk"),
        "rounds": str(folder / "rounds"),
        "noisy": str(folder / "noisy.psk"),
        "bounds": str(folder / "bounds.toml"),
        "list": str(folder / "list.toml"),
        "answer": str(folder / "north.psa"),
        "folder": str(folder),
        "out": str(folder / "out"),
    }


def command(name: str, places: dict[str, str]) -> list[str]:
    """Return the arguments of one of `COMMANDS`."""
    return [argument.format(**places) for argument in COMMANDS[name]]


def outputs_of(folder: Path) -> list[Path]:
    """Return what commands may write in a folder."""
    folders = (folder / "out-kept", folder / "out-rounds")
    kept = [path for place in folders for path in (place, *place.rglob("*"))]
    parts = [folder / f"out-{number}.psk" for number in range(4)]
    round_one = folder / "rounds" / "round-1"
    step = [round_one, *round_one.glob("*.psa"), folder / "rounds" / "question-2.psq"]
    endings = ("json", "html", "parquet", "csv", "psk", "psa", "jsonl", "jsonl.lock")
    return [*(folder / f"out.{ending}" for ending in endings), *parts, *kept, *step]


def is_whole(path: Path) -> bool:
    """Tell whether an output is whole: whatever reads such a file reads it to its end."""
    import partsketch as ps
    from partsketch.sites.noisy.ledger import read_ledger
    from partsketch.sites.rounds.answer import Answer
    from partsketch.sites.rounds.question import Question
    from partsketch.summaries.collection_file import load as load_summaries
    from partsketch.summaries.noisy_file import is_noisy

    try:
        if path.suffix == ".json" and path.name != "checkpoint.json":
            ps.load(path)
        elif path.suffix == ".psk":
            ps.NoisySummary.load(path) if is_noisy(path.read_bytes()[:16]) else load_summaries(path)
        elif path.suffix == ".jsonl":
            read_ledger(path)
        elif path.suffix == ".psq":
            Question.load(path)
        elif path.suffix == ".psa":
            Answer.load(path)
        elif path.suffix == ".parquet":
            return bool(pq.read_table(path).num_rows == ROWS)
        elif path.suffix == ".csv":
            return path.read_bytes().count(b"\n") == ROWS + 1
        elif path.suffix == ".html":
            return path.read_text().rstrip().endswith("</html>")
    except (ps.PartsketchError, pa.ArrowException, OSError, UnicodeDecodeError):
        return False
    return True


@cache
def run_once() -> None:
    """Load what commands load, so that processes split off from this one have it."""
    from tests.attack.judges import run_command

    with tempfile.TemporaryDirectory() as folder:
        places = lay_out(Path(folder))
        for name in (
            "fit to files",
            "fit averages",
            "sketch",
            "predict",
            "diagnose",
            "promise",
            "fit a formula",
            "ask",
        ):
            run_command(command(name, places))
