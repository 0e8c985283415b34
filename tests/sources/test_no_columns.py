"""Models of nothing but an intercept need no columns: rows are counted, whatever they lie in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import partsketch as ps

Y = np.array([1.0, 2.0, 6.0, 7.0])


@pytest.mark.parametrize("ending", ["parquet", "csv", "feather"])
def test_an_intercept_alone_predicts(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    rows = pa.table({"y": Y, "s": ["u", "v", "u", "v"]})
    write = {"parquet": pq.write_table, "csv": pyarrow.csv.write_csv, "feather": pyarrow.feather.write_feather}
    write[ending](rows, path)
    model = ps.fit(str(path), "y ~ 1")
    np.testing.assert_array_equal(model.predict(str(path)), np.full(4, Y.mean()))
    with pytest.raises(ps.InputError, match="There is nothing to sketch: name at least one column"):
        ps.sketch(str(path), "~ 1")
