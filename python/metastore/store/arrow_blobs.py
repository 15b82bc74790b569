"""Reads and writes objects in executors, which have only pyarrow and numpy."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from metastore.errors import DamagedObject, StoreNotReadable, StoreNotWritable
from metastore.format.object_part import ObjectPart
from metastore.format.objects import (
    MAX_OBJECT_BYTES,
    content_name,
    encode_object,
    make_reference,
    mark_unique,
    object_kind,
)
from metastore.store.credentials import FROM_ENVIRONMENT, Credentials, open_file_system
from metastore.store.local_blobs import LocalBlobs
from metastore.store.location import local_path
from metastore.visible_text import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from metastore.format.objects import ObjectRef


def write_object(
    uri: str,
    kind: str,
    table: pa.Table,
    row_groups: Sequence[int],
    extra: Mapping[str, str] | None = None,
    *,
    access: Credentials = FROM_ENVIRONMENT,
) -> ObjectRef:
    """Write an object into a store and return its reference; the object is complete or absent."""
    data = encode_object(kind, table, row_groups, mark_unique(extra))
    name = content_name(kind, data)
    folder = local_path(uri)
    try:
        if folder is None:
            _write_remote(uri, access, name, data)
        else:
            local = LocalBlobs(uri, Path(folder))
            local.create_folder()
            local.put(f"objects/{name}", data)
    except (OSError, pa.ArrowException) as e:
        raise StoreNotWritable(uri, first_line(e)) from e
    return make_reference(name, data, table.num_rows)


def read_object(uri: str, name: str, *, access: Credentials = FROM_ENVIRONMENT) -> bytes:
    """Read the bytes of an object, not verified."""
    object_kind(name)
    folder = local_path(uri)
    if folder is not None:
        data = LocalBlobs(uri, Path(folder)).get(f"objects/{name}", MAX_OBJECT_BYTES)
        return _require_data(data, uri, name)
    with _translate_errors(uri, name):
        system, root = open_file_system(uri, access)
        with system.open_input_file(f"{root}/objects/{name}") as stream:
            return bytes(stream.readall())


def open_object_part(uri: str, ref: ObjectRef, *, access: Credentials = FROM_ENVIRONMENT) -> ObjectPart:
    """Open an object to read and verify some of its columns and row groups."""
    object_kind(ref.name)
    folder = local_path(uri)
    if folder is not None:
        blobs = LocalBlobs(uri, Path(folder))

        def fetch_local(start: int, length: int) -> bytes:
            data = blobs.get_range(f"objects/{ref.name}", start, length)
            return _require_data(data, uri, ref.name)

        return ObjectPart(ref, fetch_local)
    system, root = open_file_system(uri, access)

    def fetch(start: int, length: int) -> bytes:
        with _translate_errors(uri, ref.name), system.open_input_file(f"{root}/objects/{ref.name}") as stream:
            return bytes(stream.read_at(length, start))

    return ObjectPart(ref, fetch)


@contextmanager
def _translate_errors(uri: str, name: str) -> Iterator[None]:
    """Raise errors of a read as errors of this package."""
    try:
        yield
    except FileNotFoundError as e:
        raise DamagedObject(name, f"it is missing in {uri}") from e
    except (OSError, pa.ArrowException) as e:
        raise StoreNotReadable(uri, first_line(e)) from e


def _require_data(data: bytes | None, uri: str, name: str) -> bytes:
    if data is None:
        raise DamagedObject(name, f"it is missing in {uri}")
    return data


def _write_remote(uri: str, access: Credentials, name: str, data: bytes) -> None:
    system, folder = open_file_system(uri, access)
    with system.open_output_stream(f"{folder}/objects/{name}") as stream:
        stream.write(data)  # multi-part uploads become visible when they are closed
