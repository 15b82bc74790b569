"""The Python reader at the limits that both readers have."""

from __future__ import annotations

import pytest

from format import hostile, limits
from metastore.errors import DamagedObject, FormatTooNew
from metastore.format.manifest import Manifest
from metastore.format.objects import decode_object

MANIFESTS, OBJECTS = limits.manifests(), limits.objects()


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests(name):
    data, expected = MANIFESTS[name]
    try:
        Manifest.from_bytes(data)
        found = limits.READ
    except (DamagedObject, FormatTooNew):
        found = limits.REFUSED
    assert found == expected


@pytest.mark.parametrize("name", OBJECTS)
def test_objects(name):
    data, expected = OBJECTS[name]
    ref = hostile.reference_of("summary", data, 15)
    try:
        decode_object(ref, data)
        found = limits.READ
    except DamagedObject:
        found = limits.REFUSED
    assert found == expected
