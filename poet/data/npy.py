"""Writes a .npy file row by row, for data sets larger than memory."""

from typing import BinaryIO

import numpy as np

_HEADER_BYTES = 128


class RowWriter:
    """Appends rows (n, length) of `dtype` to `file`; `finish` writes the header, once the number of rows is
    known."""

    def __init__(self, file: BinaryIO, length: int, dtype: np.dtype):
        self._file, self._length, self._dtype = file, length, dtype.newbyteorder("<")
        self.rows = 0
        file.write(bytes(_HEADER_BYTES))

    def append(self, rows: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self.rows += len(rows)

    def finish(self) -> None:
        """The header as version 1.0 of the format has it, padded to a fixed size, over the bytes left
        free."""
        fields = {"descr": self._dtype.str, "fortran_order": False, "shape": (self.rows, self._length)}
        magic = np.lib.format.magic(1, 0)
        n_text = _HEADER_BYTES - len(magic) - 2
        text = repr(fields).encode("ascii").ljust(n_text - 1) + b"\n"
        assert len(text) == n_text
        self._file.seek(0)
        self._file.write(magic + n_text.to_bytes(2, "little") + text)
