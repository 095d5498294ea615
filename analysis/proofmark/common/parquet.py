"""Tables as files in the format Parquet."""

from __future__ import annotations

from io import BytesIO

import polars as pl


def parquet(table: pl.DataFrame) -> bytes:
    """Return the bytes of the file of a table. `write_whole_bytes` writes them."""
    content = BytesIO()
    table.write_parquet(content)
    return content.getvalue()
