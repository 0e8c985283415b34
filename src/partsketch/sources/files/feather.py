"""Rows of Feather files (Arrow IPC), read batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from partsketch.sources.files.file_rows import TypedFileRows, common_columns
from partsketch.sources.files.filesystems import reading
from partsketch.sources.files.paths import DataFiles
from partsketch.sources.storage import schema_columns


@dataclass(frozen=True)
class FeatherRows(TypedFileRows):
    """Rows of Feather files, in the order of the files; only whole files can be skipped."""

    def _file_batches(self, index: int, file_start: int) -> Iterator[Any]:
        position = {column.name: i for i, column in enumerate(self.schemas[index])}
        with reading(self.data_files.names[index], "Feather"):
            reader = _open(self.data_files, index, sorted(position[name] for name in self.chosen))
            for number in range(reader.num_record_batches):
                batch = reader.get_batch(number)
                # Arrow believes what a file says of its buffers; who reads them must not.
                batch.validate()
                yield batch


def feather_rows(data_files: DataFiles) -> FeatherRows:
    """Return the rows of Feather files from their schemas and the headers of their batches."""
    sizes, schemas = [], []
    for index, name in enumerate(data_files.names):
        with reading(name, "Feather"):
            schemas.append(schema_columns(_open(data_files, index, []).schema))
            sizes.append(_count_rows(data_files, index))
    return FeatherRows(data_files, tuple(sizes), common_columns(data_files, schemas), tuple(schemas))


def _open(data_files: DataFiles, index: int, fields: list[int]) -> Any:
    from pyarrow import ipc

    file = data_files.filesystem().open_input_file(data_files.paths[index])
    return ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=fields, use_threads=False))


def _count_rows(data_files: DataFiles, index: int) -> int:
    """Count the rows by the headers of the batches; the reader itself can do so in new versions of Arrow only."""
    from pyarrow import dataset

    fragment = dataset.IpcFileFormat().make_fragment(data_files.paths[index], filesystem=data_files.filesystem())
    return int(fragment.count_rows())
