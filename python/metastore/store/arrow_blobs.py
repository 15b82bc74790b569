"""Writing objects where the data is computed: executors have pyarrow and numpy, no more."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """Writes an object into a store and returns its reference; it is there as a whole or not at all."""
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
        raise StoreNotWritable(uri, str(e).partition("\n")[0]) from e
    return make_reference(name, data, table.num_rows)


def read_object(uri: str, name: str, *, access: Credentials = FROM_ENVIRONMENT) -> bytes:
    """The bytes of an object, not verified."""
    object_kind(name)
    folder = local_path(uri)
    try:
        if folder is not None:
            return _there(LocalBlobs(uri, Path(folder)).get(f"objects/{name}", MAX_OBJECT_BYTES), uri, name)
        system, below = open_file_system(uri, access)
        with system.open_input_file(f"{below}/objects/{name}") as stream:
            return bytes(stream.readall())
    except FileNotFoundError as e:
        raise DamagedObject(name, f"it is missing in {uri}") from e
    except (OSError, pa.ArrowException) as e:
        raise StoreNotReadable(uri, str(e).partition("\n")[0]) from e


def open_object_part(uri: str, ref: ObjectRef, *, access: Credentials = FROM_ENVIRONMENT) -> ObjectPart:
    """An object of which only what is asked for is read, verified."""
    object_kind(ref.name)
    local = local_path(uri)
    if local is not None:
        blobs, path = LocalBlobs(uri, Path(local)), f"objects/{ref.name}"
        return ObjectPart(ref, lambda start, length: _there(blobs.get_range(path, start, length), uri, ref.name))
    system, folder = open_file_system(uri, access)

    def fetch(start: int, length: int) -> bytes:
        try:
            with system.open_input_file(f"{folder}/objects/{ref.name}") as stream:
                return bytes(stream.read_at(length, start))
        except FileNotFoundError as e:
            raise DamagedObject(ref.name, f"it is missing in {uri}") from e
        except (OSError, pa.ArrowException) as e:
            raise StoreNotReadable(uri, str(e).partition("\n")[0]) from e

    return ObjectPart(ref, fetch)


def _there(data: bytes | None, uri: str, name: str) -> bytes:
    if data is None:
        raise DamagedObject(name, f"it is missing in {uri}")
    return data


def _write_remote(uri: str, access: Credentials, name: str, data: bytes) -> None:
    system, folder = open_file_system(uri, access)
    with system.open_output_stream(f"{folder}/objects/{name}") as stream:
        stream.write(data)  # multi-part uploads become visible when they are closed
