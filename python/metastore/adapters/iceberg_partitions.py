"""Partition values of Iceberg's data files, each under the spec that it was written with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from metastore.format.value_encoding import to_stored_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from metastore.format.table_column import Column


_FIRST_ID = 1000


class Partitions:
    """The partition tuples of all files of a listing.

    The `files` metadata table shows one struct for all specs: its fields are the partition fields ever used, in the
    order of their ids, without those whose source column was dropped. Names cannot tell them apart, for a field may
    have been renamed. Where the fields are others than these, no partition value is known.
    """

    def __init__(
        self,
        specs: Mapping[int, Sequence[Mapping[str, Any]]],
        columns: Sequence[Column],
        rows: pa.Table,
        fields: int,
    ) -> None:
        """Prepare the values."""
        self._specs = {spec: _with_ids(described) for spec, described in specs.items()}
        sources = {field["field-id"]: field["source-id"] for spec in self._specs.values() for field in spec}
        present = {int(column.key) for column in columns}
        ids = sorted(field for field, source in sources.items() if source in present)
        self._places = {field: place for place, field in enumerate(ids)} if fields == len(ids) else {}
        self._lost = fields != len(ids)
        self._texts = [rows.column(f"text_{place}").to_pylist() for place in self._places.values()]
        top_level = {int(column.key): column for column in columns if len(column.path) == 1}
        self._stored: dict[tuple[int, int], list[Any]] = {}
        for described in self._specs.values():
            for field in described:
                column = top_level.get(field["source-id"])
                place = self._places.get(field["field-id"])
                # A value inside a struct is read from the file: the struct may be null where the value is not.
                if column is not None and place is not None and field["transform"] == "identity":
                    values = rows.column(f"value_{place}").combine_chunks()
                    self._stored[field["source-id"], place] = to_stored_values(values, column)

    def texts(self, index: int, spec: int) -> dict[str, str | None]:
        """Return the values of a listed file as text, by partition field."""
        return {field["name"]: self._texts[place][index] for field, place in self._fields(spec)}

    def constants(self, index: int, spec: int) -> dict[str, Any]:
        """Return the stored values that identity partitioning gives to all rows of a listed file, by column key."""
        return {
            str(field["source-id"]): self._stored[field["source-id"], place][index]
            for field, place in self._fields(spec)
            if field["transform"] == "identity" and (field["source-id"], place) in self._stored
        }

    def unknown(self, spec: int) -> frozenset[str]:
        """Return the keys of the columns whose values partitioning decides in a way that is not known."""
        described = self._specs[spec] if self._lost else ()
        return frozenset(str(field["source-id"]) for field in described if field["transform"] == "identity")

    def _fields(self, spec: int) -> Iterator[tuple[Mapping[str, Any], int]]:
        for field in self._specs[spec]:
            if field["transform"] != "void" and field["field-id"] in self._places:
                yield field, self._places[field["field-id"]]


def _with_ids(fields: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    # Version 1 did not write ids of partition fields: they count from 1000.
    return [{"field-id": _FIRST_ID + place, **field} for place, field in enumerate(fields)]
