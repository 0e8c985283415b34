"""What a report says in words and small tables: the certificate, costs, the record, and how to repeat the fit."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from partsketch.common.units import p_value_phrase
from partsketch.fitting.options import FitOptions
from partsketch.model.explained import explained_of
from partsketch.model.methods import METHODS, NOISY
from partsketch.model.model import Model
from partsketch.model.sentences import share_lost
from partsketch.model.summary_table import provenance
from partsketch.report.charts.scales import percent, short
from partsketch.report.page.entry import Entry

_FLAGS = {"n_partitions": "--partitions", "seed": "--seed", "method": "--method"}
#: A fit that repeats another starts from the rows, with the method that was chosen.
_NOT_REPEATED = ("checkpoint", "limits")
_DEFAULTS = {
    "partition_by": "order",
    "remainder": "spread",
    "sketch": "gaussian",
    "sketch_size": None,
    "engine": "local",
    **{field.name: field.default for field in fields(FitOptions) if field.default is not MISSING},
}


def repeat_command(model: Model) -> str:
    """Return the command, or the Python call for rows in memory, that makes this model again."""
    options, asked = dict(model.record.options), model.record.asked
    if "files" in options:
        return _combination(options, model)
    if "intercept" in options:
        return _question(options, model)
    if not asked or asked["paths"] is None:
        return _python_call(options, model)
    words = ["partsketch", "fit", *asked["paths"]]
    if asked["formula"] is not None:
        words += ["--formula", asked["formula"]]
    else:
        words += [word for name in asked["targets"] for word in ("--target", name)]
    if asked["features"] is not None:
        words += [word for name in asked["features"] for word in ("--features", name)]
    for name, value in options.items():
        if name == "fit_intercept":
            words += [] if value or asked["formula"] is not None else ["--no-intercept"]
        elif name in _NOT_REPEATED:
            continue
        elif name in _FLAGS:
            words += [_FLAGS[name], str(value)]
        elif value != _DEFAULTS.get(name):
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--weights", asked["weights"]] if asked["weights"] is not None else []
    words += ["--encode"] if asked["encode"] else []
    words += ["--missing", asked["missing"]] if asked["missing"] != "error" else []
    return shlex.join([*words, "--model", "model.json"])


def _combination(options: dict[str, Any], model: Model) -> str:
    """Return the call that makes a model of files again; `summaries` stands for what had no file."""
    names = [file["file"] for file in options["files"]]
    # Partitions of one file are told apart by what is in brackets behind its name.
    paths = list(dict.fromkeys(name.split(".psk (")[0] + ".psk" if ".psk (" in name else name for name in names))
    files = repr(paths) if all(path.endswith(".psk") for path in paths) else "summaries"
    target, features = list(model.target_names), list(model.feature_names)
    given = {"fit_intercept": True, "averaging": "equal", "weighting": "rows", "alpha": 0.0}
    changed = [f"{name}={options[name]!r}" for name, usual in given.items() if options.get(name, usual) != usual]
    changed += [f"method={options['method']!r}"] if options["method"] != NOISY else []
    return ", ".join([f"partsketch.combine({files}, {target!r}, {features!r}", *changed]) + ")"


def _question(options: dict[str, Any], model: Model) -> str:
    """Return the call that asks summaries the same again."""
    targets, features = list(model.target_names), list(model.feature_names)
    intercept = f"intercept={options['intercept']!r}"
    if "instruments" in options:
        endogenous = options["endogenous"]
        exogenous = [name for name in features if name not in endogenous]
        columns = f"{targets[0]!r}, {endogenous!r}, {options['instruments']!r}, {exogenous!r}"
        return f"summaries.instrument({columns}, {intercept}, vcov={options['vcov']!r})"
    if "l1_ratio" in options:
        # Of a single penalty folds choose nothing.
        penalty = f"alphas=[{options['alpha']!r}], l1_ratio={options['l1_ratio']!r}, folds=2"
        return f"summaries.lasso_path({targets[0]!r}, {features!r}, {penalty}, {intercept}).model()"
    penalty = f"alpha={options['alpha']!r}, vcov={options['vcov']!r}"
    return f"summaries.fit({targets!r}, {features!r}, {intercept}, {penalty})"


def _python_call(options: dict[str, Any], model: Model) -> str:
    given = {
        name: value
        for name, value in options.items()
        if name not in ("seed", *_NOT_REPEATED) and value != _DEFAULTS.get(name)
    }
    given["random_state"] = model.record.seed
    arguments = ", ".join(f"{name}={value!r}" for name, value in given.items())
    if model.record.asked:
        formula = model.record.asked["formula"]
        target = f"target={list(model.target_names)!r}" if formula is None else repr(formula)
        return f"partsketch.fit(data, {target}, {arguments})"
    return f"partsketch.SketchedRegression({arguments}).fit(X, y)"


def overview(entry: Entry) -> list[tuple[str, str]]:
    """Return the facts that models are compared by."""
    model, record = entry.model, entry.model.record
    method = METHODS[model.method]
    facts = [
        ("method", f"{model.method}: {method.description}"),
        ("data", record.data),
        ("rows", record.rows_in_words),
        ("rank", f"{record.rank:,} of {len(model.column_names):,} columns"),
    ]
    if method.by_partition or method.sketched:
        facts.append((f"{'partitions' if method.by_partition else 'sketches'} (k)", f"{len(record.partitions):,}"))
    if record.sketch_size is not None:
        facts.append(("sketch", f"{record.options.get('sketch', 'sketch')}, {record.sketch_size:,} rows (m)"))
        facts.append(("seed", str(record.seed)))
    for number, target in enumerate(model.target_names):
        certificate, inference = model.certificates[number], model.inferences[number]
        label = f" of {target}" if len(model.target_names) > 1 else ""
        if inference.r_squared is not None:
            of = provenance(inference.r_squared_of, inference.is_estimated)
            facts.append((f"R²{explained_of(record.options)}{label}", f"{inference.r_squared:.4f}{of}"))
        if inference.noise_variance is not None:
            of = provenance(inference.noise_variance_of, inference.is_estimated)
            facts.append((f"residual standard error{label}", f"{short(inference.noise_variance**0.5)}{of}"))
        relative = certificate.relative_excess_loss
        words = "unknown" if relative is None else share_lost(relative, certificate.kind, percent)
        facts.append((f"excess loss{label}", words))
    if entry.seconds is not None:
        facts.append(("time", f"{entry.seconds:.3g} s"))
    return facts


def certificate_words(entry: Entry) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return for every target its name, the sentence of its certificate, and the numbers behind it."""
    told = []
    for target, certificate in zip(entry.model.target_names, entry.model.certificates, strict=True):
        numbers = [
            ("kind", certificate.kind),
            ("why", certificate.reason),
            ("excess loss", _or_unknown(certificate.excess_loss)),
        ]
        known = {
            "its standard error": certificate.standard_error,
            "minimal loss": certificate.minimal_loss,
            "how unlike partitions are (divergence D)": certificate.divergence,
            "noise variance (σ²)": certificate.noise_variance,
        }
        numbers += [(name, short(value)) for name, value in known.items() if value is not None]
        test = certificate.heterogeneity
        if test is not None and test.p_value is not None:
            words = (
                f"F = {test.statistic:.4g} with {test.degrees_of_freedom:.3g} and "
                f"{test.residual_degrees_of_freedom:.3g} degrees of freedom, {p_value_phrase(test.p_value, 3)}"
            )
            numbers.append(("do partitions share coefficients", words))
        elif test is not None:
            numbers.append(("do partitions share coefficients", f"not tested: {test.reason}"))
        told.append((target, certificate.sentence, numbers))
    return told


def _or_unknown(value: float | None) -> str:
    return "unknown" if value is None else short(value)


def record_rows(model: Model) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the full record as titled lists of names and values."""
    record = model.record
    known = {"options", "versions", "reasons", "partitions", "warnings", "asked", "aliased"}
    aliased = [(column, "depends on " + ", ".join(others)) for column, others in record.aliased]
    return [
        ("options", _told(record.options)),
        ("data as asked", _told(record.asked or {})),
        ("outcome", _told({name: value for name, value in vars(record).items() if name not in known})),
        ("reasons", list(record.reasons.items())),
        ("warnings", [("", sentence) for sentence in record.warnings]),
        ("dependent columns", aliased),
        ("versions", list(record.versions.items())),
    ]


def _told(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what there is to tell: not what was left open, or is empty."""
    return [
        (name, _plain(value)) for name, value in values.items() if value is not None and value != () and value != ""
    ]


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(str(entry) for entry in value)
    return str(value)
