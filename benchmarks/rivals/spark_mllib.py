"""Spark MLlib's LinearRegression, in a session of this machine's cores, on a cached DataFrame of vectors."""

from __future__ import annotations

import os
import sys
from functools import cache
from typing import Any

import numpy as np

from benchmarks.problem import TARGET, Arrays, FloatArray


@cache
def _session() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    session = builder.config("spark.driver.memory", "8g").config("spark.log.level", "ERROR").getOrCreate()
    session.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    return session


def as_frame(arrays: Arrays) -> Any:
    """Load the rows into Spark's memory as vectors."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from benchmarks.problem import DATA

    names = [f"x{index}" for index in range(arrays.X.shape[1])]
    path = DATA / f"spark-{os.getpid()}-{len(arrays.X)}.parquet"
    columns = [np.ascontiguousarray(column) for column in arrays.X.T]
    pq.write_table(pa.table([*columns, arrays.y], names=[*names, TARGET]), path)
    rows = _session().read.parquet(str(path))
    frame = as_vectors(rows).cache()
    frame.count()
    path.unlink()
    return frame


def as_vectors(rows: Any) -> Any:
    """Put the features of a row into one column, as MLlib wants them."""
    from pyspark.ml.feature import VectorAssembler

    names = [name for name in rows.columns if name != TARGET]
    return VectorAssembler(inputCols=names, outputCol="features").transform(rows).select("features", TARGET)


def fit_frame(frame: Any) -> FloatArray:
    """Fit by its normal equations where it allows them, else by its iteration."""
    from pyspark.ml.regression import LinearRegression

    model = LinearRegression(labelCol=TARGET, regParam=0.0).fit(frame)
    return np.concatenate([[model.intercept], model.coefficients.toArray()])
