"""Rounds lead from sketches to exact least squares, and say after each how far they are from it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import partsketch as ps
from partsketch.cli import run
from partsketch.sites.rounds.steps import advance
from partsketch.theory import read_sketch, stacked_fit
from partsketch.theory.rounds import RoundLaw, effective_sketch_rows, forecast_rounds, round_law

Array = NDArray[np.float64]


def tables(
    seed: int = 0, far: float = 0.0, columns: int = 4, sizes: tuple[int, ...] = (150, 400, 250)
) -> dict[str, Any]:
    """Sites with a text column, weights and two targets, columns at `far`."""
    rng = np.random.default_rng(seed)
    found = {}
    for site, rows in zip(("north", "south", "west", "east", "mid"), sizes, strict=False):
        X = rng.normal(size=(rows, columns)) * 3 + far * np.arange(columns)
        group = rng.choice(["A", "B", "C"], rows)
        y = X.sum(axis=1) + 2 * (group == "B") + rng.normal(size=rows)
        data = {f"x{number}": X[:, number] for number in range(columns)}
        found[site] = pa.table(
            {**data, "group": group, "w": rng.uniform(0.5, 2, rows), "y": y, "z": np.cos(y) + X[:, 0]}
        )
    return found


LEVELS = {"group": ["A", "B", "C"]}


def sketched(sites: dict[str, Any], size: int = 60, **options: Any) -> list[ps.Summary]:
    features = options.pop("features", ["x0", "x1", "x2", "x3", "group"])
    return [
        ps.sketch(table, ["y", "z"], features, site=site, sketch_size=size, levels=LEVELS, **options)
        for site, table in sites.items()
    ]


def stepped(rounds: ps.Rounds, sites: dict[str, Any], **options: Any) -> ps.Rounds:
    return rounds.step([ps.answer(rounds.question, table, site=site, **options) for site, table in sites.items()])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("far", "weights"), [(0.0, None), (1e6, "w")])
def test_rounds_end_at_exact_least_squares(far: float, weights: str | None, intercept: bool) -> None:
    sites = tables(far=far if intercept else 0.0)
    options: dict[str, Any] = {"weights": weights, "fit_intercept": intercept}
    rounds = ps.refine(sketched(sites, random_state=1, **options))
    # After as many rounds as columns nothing is left but rounding; one more lets that go.
    for _ in range(8):
        rounds = stepped(rounds, sites, weights=weights)
    exact = ps.combine(sketched(sites, size=None, sketch="triangular", **options))  # type: ignore[arg-type]
    np.testing.assert_allclose(rounds.model.coefficients, exact.coefficients, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(rounds.model.level, exact.level, rtol=1e-10)
    for certificate in rounds.model.certificates:
        assert "up to rounding" in certificate.sentence
    for ours, theirs in zip(rounds.model.inferences, exact.inferences, strict=True):
        assert ours.noise_variance == pytest.approx(theirs.noise_variance, rel=1e-9)


@cache
def law_of(columns: int, rows: int, number: int) -> RoundLaw:
    return round_law(columns, rows, number, 400)


def drawn_rounds(kind: str, parts: int, columns: int, rounds: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return excess losses after each round as parts of the minimum, and what was seen before its last step."""
    sizes = [200] * parts
    if kind == "sizes":
        sizes = [100] * (parts - 1) + [1500]
    tables = []
    for number, rows in enumerate(sizes):
        X = rng.normal(size=(rows, columns)) * (4.0 if kind == "scales" and number == 0 else 1.0)
        slopes = 1.0 + (rng.normal(size=columns) if kind == "coefficients" else 0.0)
        tables.append(np.column_stack([X, X @ (slopes * np.ones(columns)) + rng.normal(size=rows)]))
    every = np.vstack(tables)
    X, y = every[:, :-1], every[:, -1]
    answer = np.linalg.lstsq(X, y, rcond=None)[0]
    m = 4 * columns
    sketches = [read_sketch(rng.normal(size=(m, len(table))) / math.sqrt(m) @ table) for table in tables]
    fit = stacked_fit(sketches, sizes)
    effective = round(effective_sketch_rows(fit))
    points, gradients, losses, inside = [fit.pooled.solution], [], [], []
    for number in range(1, rounds + 1):
        gradients.append(X.T @ (y - X @ points[-1]))
        found = advance(points, gradients, fit.pooled)
        law = law_of(columns, effective, number)
        points.append(found.point + law.step * found.direction)
        loss = float(np.sum((X @ (points[-1] - answer)) ** 2))
        low, high = np.quantile(law.ratios, [0.025, 0.975]) * found.seen
        losses.append(loss / float(np.sum((y - X @ answer) ** 2)))
        inside.append(low <= loss <= high)
    return np.array(losses), np.array(inside)


@pytest.mark.parametrize(
    ("kind", "parts"), [("alike", 1), ("alike", 5), ("sizes", 5), ("scales", 5), ("coefficients", 5)]
)
def test_certificates_of_rounds_cover(kind: str, parts: int) -> None:
    # 100 runs of three rounds: a share of 0.95 has a standard error of 2.2 points in each round, less in all together.
    rng = np.random.default_rng(2)
    inside = [drawn_rounds(kind, parts, 12, 3, rng)[1] for _ in range(100)]
    assert np.mean(inside) > 0.91
    assert np.mean(inside, axis=0).min() > 0.87


def test_the_law_sees_sketches_that_are_taken_for_larger_ones() -> None:
    # Taken for twice as many rows, the sketches leave more than their intervals say.
    rng = np.random.default_rng(3)
    law, beyond = round_law(12, 96, 1, 400), 0
    for _ in range(60):
        X, S = rng.normal(size=(300, 12)), rng.normal(size=(48, 300)) / math.sqrt(48)
        y = rng.normal(size=300)
        answer, pooled = np.linalg.lstsq(X, y, rcond=None)[0], read_sketch(S @ np.column_stack([X, y]))
        found = advance([pooled.solution], [X.T @ (y - X @ pooled.solution)], pooled)
        left = X @ (found.point + law.step * found.direction - answer)
        beyond += bool(left @ left > np.quantile(law.ratios, 0.975) * found.seen)
    assert beyond > 30


# Medians of 20 runs with 20 columns and m = 80, each known to about an eighth of itself. Ten sites and more come below
# 1e-6; fewer cannot.
@pytest.mark.parametrize(("sites", "reached"), [(1, False), (5, False), (10, True), (20, True)])
def test_three_rounds_leave_what_was_forecast(sites: int, reached: bool) -> None:
    rng = np.random.default_rng(4)
    losses = [drawn_rounds("alike", sites, 20, 3, rng)[0] for _ in range(20)]
    median, forecast = float(np.median(losses, axis=0)[-1]), forecast_rounds(20, 80 * sites, 3)[-1]
    assert median == pytest.approx(forecast.median, rel=0.5)
    assert (median < 1e-6) is reached
    assert (forecast.median < 1e-6) is reached


def test_certificate_and_intervals_of_a_model_after_rounds() -> None:
    sites = tables(5)
    pooled = pa.concat_tables(sites.values())
    exact = ps.fit(pooled, ["y", "z"], ["x0", "x1", "x2", "x3", "group"], encode=True, method="exact")
    inside, covered, truth = 0, [], []
    for seed in range(25):
        rounds = stepped(stepped(ps.refine(sketched(sites, random_state=seed)), sites), sites)
        for number, target in enumerate(("y", "z")):
            certificate = rounds.model.certificates[number]
            residual = (rounds.model.predict(pooled) - exact.predict(pooled))[:, number]
            low, high = certificate.interval(0.95)
            inside += bool(low <= residual @ residual <= high)
            assert certificate.minimal_loss == pytest.approx(exact.certificates[number].minimal_loss, rel=1e-3), target
        ends = rounds.model.conf_int(of="exact")
        answer = exact.column_coefficients.T
        covered.append((ends[..., 0] <= answer) & (answer <= ends[..., 1]))
        errors: list[Any] = [fit.inferences[0].standard_errors for fit in (rounds.model, exact)]
        truth.append(errors[0] / errors[1])
    # Three standard errors of 50 numbers; of 25 × 14, of which those of one fit go together.
    assert inside / 50 > 0.95 - 0.09
    assert abs(np.mean(covered) - 0.95) < 0.05
    # What is left adds one percent to their mean; by the sketch they are known to 1/√(2·(Σm − d)), 5%.
    assert abs(np.mean(truth) - 1) < 0.04
    assert np.std(truth) < 0.1


def test_noise_and_errors_after_a_round_are_written_out() -> None:
    """The inverse of a sketched Gram matrix is too large by M/(M − d + 1), a third for sketches as short as these."""
    sites = tables(6)
    rounds = stepped(ps.refine(sketched(sites, size=12, random_state=1)), sites)
    start, number, columns, rows = rounds.preconditioner, 1, 7, 800
    known, certificate = start.by_target[number], rounds.model.certificates[number]
    assert certificate.noise_variance == pytest.approx((certificate.minimal_loss or 0) / (rows - columns), rel=1e-12)
    left = (certificate.excess_loss or 0) / columns
    square = float(start.coordinates.unit[columns + number]) ** 2
    shrunk = (known.rows - columns + 1) / known.rows
    assert shrunk < 0.85
    lead = start.coordinates.transformation(number)
    squares = np.diagonal(lead @ known.fit.pooled.inverse_gram @ lead.T) / square
    expected = np.sqrt(squares * shrunk * ((certificate.noise_variance or 0) + left))
    errors: Any = rounds.model.inferences[number].standard_errors
    np.testing.assert_allclose(errors, expected, rtol=1e-10)


def test_a_folder_keeps_the_rounds(tmp_path: Path) -> None:
    sites = tables(6)
    rounds = ps.refine(sketched(sites, random_state=1), "y", ["x0", "group"])
    for _ in range(2):
        rounds = stepped(rounds, sites)
    # A link that leads to no folder yet is followed, as it is for files.
    (tmp_path / "link").symlink_to("rounds")
    rounds.save(tmp_path / "link")
    again = ps.Rounds.load(tmp_path / "rounds")
    assert again.question.digest == rounds.question.digest
    assert np.array_equal(again.model.coefficients, rounds.model.coefficients)
    assert again.model.certificates == rounds.model.certificates
    again.model.save(tmp_path / "model.json")
    assert ps.load(tmp_path / "model.json").record.options["rounds"] == 2
    assert stepped(again, sites).question.digest == stepped(rounds, sites).question.digest


def test_answers_have_the_same_bits_wherever_rows_lie(tmp_path: Path) -> None:
    table = tables(7, sizes=(5000,))["north"]
    rounds = ps.refine(sketched({"north": table}, random_state=1))
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=700)
    from_memory = ps.answer(rounds.question, table, site="north")
    from_file = ps.answer(rounds.question, tmp_path / "rows.parquet", site="north", engine=ps.LocalEngine(2))
    assert from_memory.to_dict() == from_file.to_dict()


def test_a_private_answer_tells_no_loss_and_a_rounded_count() -> None:
    sites = tables(8)
    sketches = sketched(sites, private=True, round_rows=100)
    rounds = ps.refine(sketches)
    rounds = stepped(rounds, sites, private=True, round_rows=100)
    answer = rounds.answers[0][0]
    assert (answer.losses, answer.row_count, answer.rounded_to) == (None, 200, 100)
    assert rounds.model.certificates[0].kind == "approximate"
    assert "losses" not in {key for key, value in answer.to_dict().items() if value is not None}


def test_an_answer_of_few_rows_is_refused_unless_it_is_allowed() -> None:
    """Seven columns need 70 rows, however the count is rounded that the answer tells."""
    sites = {site: table.slice(0, 70) for site, table in tables(sizes=(150, 400)).items()}
    question = ps.refine(sketched(sites, size=20, private=True)).question
    few: dict[str, Any] = {"site": "north", "private": True, "round_rows": 100}
    ps.answer(question, sites["north"], allow=[], **few)
    with pytest.raises(ps.InputError, match=r"The answer stands for 69 rows and tells of 7 param.*--allow few-rows"):
        ps.answer(question, sites["north"].slice(1), allow=[], **few)
    allowed = ps.answer(question, sites["north"].slice(1), allow=["few-rows"], **few)
    assert allowed.to_dict() == ps.answer(question, sites["north"].slice(1), **few).to_dict()


def test_begin_says_where_no_method_needs_fewer_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Orthogonal sketches distort less than the law of Gaussian ones, so nothing is said of other methods there."""
    for size, kind, told in ((40, "gaussian", True), (60, "gaussian", False), (40, "orthogonal", False)):
        summaries = sketched(tables(9), size, random_state=1, sketch=kind)
        rounds = ps.Rounds.begin(summaries, "y")
        assert (rounds.forecast[-2].least > 1e-6) == (size == 40)
        assert rounds.needs_all_of_them == told
        for number, summary in enumerate(summaries):
            summary.save(tmp_path / f"{number}.psk")
        files = [str(tmp_path / f"{number}.psk") for number in range(3)]
        assert run(["refine", "begin", *files, "-t", "y", "-o", str(tmp_path / f"{size}{kind}")]) == 0
        ending = f"is likely to come below 0.0001% in fewer than {len(rounds.forecast) - 1}\n"
        assert (ending in capsys.readouterr().out) == told


def test_commands_walk_the_rounds(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    sites = tables(9)
    for summary, (site, table) in zip(sketched(sites, random_state=1), sites.items(), strict=True):
        summary.save(f"{site}.psk")
        pq.write_table(table, f"{site}.parquet")
    assert run(["refine", "begin", "north.psk", "south.psk", "west.psk", "-t", "y", "-o", "rounds"]) == 0
    told = capsys.readouterr().out
    assert "to 'north', 'south', 'west'" in told
    # Seven columns and 180 sketch rows, of sites that are not quite alike: γ² is 0.15%.
    (after,) = re.findall(r"rounds are expected to leave about ([0-9.e-]+)% after 1, .* after 2", told)
    assert 0.1 < float(after) < 0.3
    for number in (1, 2):
        for site in sites:
            question = f"rounds/question-{number}.psq"
            assert run(["refine", "answer", question, f"{site}.parquet", "-o", f"{site}-{number}.psa"]) == 0
        assert "their squared loss and their number" in capsys.readouterr().out
        answers = [f"{site}-{number}.psa" for site in sites]
        assert run(["refine", "step", "rounds", *answers, "--model", "model.json", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["rounds"] == number
        assert [entry["rounds"] for entry in told["forecast"]] == list(range(len(told["forecast"])))
        assert told["forecast"][-1]["median"] < 1e-6
    assert (ps.load("model.json").certificate.relative_excess_loss or 1.0) < 0.01
    assert run(["refine", "step", "rounds", "north-2.psa"]) == 2
    assert capsys.readouterr().err.startswith("Error: The answer of 'north' is to another question (round 2)")
    assert run(["refine", "begin", "north.psk", "-o", "rounds"]) == 2
    assert "it is there already" in capsys.readouterr().err
    assert run(["refine", "answer", "rounds/question-3.psq", "north.parquet", "-o", "someone.psa"]) == 2
    assert "say who answers with --site" in capsys.readouterr().err
    assert not Path("someone.psa").exists()


def test_ridge_fits_and_rows_are_refused_in_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sites = tables(10)
    sketches = sketched(sites, random_state=1)
    with pytest.raises(ps.InputError, match=r"^alpha=0.5 asks for a ridge fit, .* \(partsketch combine --alpha\)\.$"):
        ps.refine(sketches, alpha=0.5)
    sketches[0].save(tmp_path / "north.psk")
    folder = tmp_path / "rounds"
    assert run(["refine", "begin", str(tmp_path / "north.psk"), "--alpha", "2", "-o", str(folder)]) == 2
    assert "Error: alpha=2 asks for a ridge fit" in capsys.readouterr().err
    assert not folder.exists()
    for rows in (sites["north"], sites["north"].to_pandas()):
        with pytest.raises(ps.InputError, match=r"Cannot combine a .*: pass paths of sketch files, or summaries"):
            ps.refine(rows)


def test_errors_of_predictions_after_rounds_are_nearly_those_of_exact_least_squares() -> None:
    """The value at the centre had the variance from before the rounds: errors were four times as wide."""
    rng, sites = np.random.default_rng(0), {}
    for site in ("north", "south"):
        X = rng.normal(size=(400, 2)) * 3 + 1e6
        sites[site] = pa.table({"a": X[:, 0], "b": X[:, 1], "y": X.sum(axis=1) + rng.normal(size=400)})
    rounds = ps.Rounds.begin([ps.sketch(sites[site], "y", site=site, sketch_size=30) for site in sites], "y")
    for _ in range(4):
        rounds = stepped(rounds, sites)
    rows = pa.concat_tables(list(sites.values()))
    share = rounds.model.prediction_errors(rows) / ps.fit(rows, "y").prediction_errors(rows)
    # Sketches of 60 rows know the Gram matrix to 1/√60 = 13%, three times that is allowed.
    assert np.abs(share - 1).max() < 0.4


def test_answers_in_memory_are_checked_as_files_are() -> None:
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.normal(size=200), "y": rng.normal(size=200)})
    rounds = ps.Rounds.begin([ps.sketch(table, "y", site="north", sketch_size=20, random_state=1)])
    answer = ps.answer(rounds.question, table, site="north")
    for changed in ({"gradient": np.full((2, 1), np.nan)}, {"losses": np.array([np.nan])}):
        with pytest.raises(ps.InputError, match="answer of 'north' holds a gradient or a loss that is no number"):
            rounds.step([replace(answer, **changed)])
    # One site has one answer, in a list or not.
    np.testing.assert_array_equal(rounds.step(answer).model.coefficients, rounds.step([answer]).model.coefficients)
    with pytest.raises(ps.InputError, match=r"Cannot read nowhere\.psa"):
        rounds.step("nowhere.psa")
