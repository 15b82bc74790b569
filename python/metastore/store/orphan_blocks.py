"""Finding the work of an ANALYZE that did not live to commit it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from metastore.errors import DamagedObject, StoreNotWritable
from metastore.format.manifest import parse_block_description
from metastore.format.objects import BLOCK_KEY, decode_object, identify_object
from metastore.visible_text import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from metastore.format.manifest import Block, Manifest, TableIdentity
    from metastore.store.table_store import Store


_LOG = get_logger(__name__)

NEWEST = 256
OLDEST = timedelta(days=1)
"""Older blocks are left to garbage collection, which must not meet a commit that names them again."""


def find_orphan_blocks(
    store: Store,
    identity: TableIdentity,
    manifest: Manifest | None,
    *,
    settings: dict[str, Any] | None = None,
    wanted: Callable[[Block, pa.Table], bool] | None = None,
) -> list[Block]:
    """Blocks that were finished and that the manifest does not name, oldest first.

    These are blocks of an ANALYZE that was killed, of one that is still running, and blocks that were merged into
    others since. All of them are sound; `wanted` decides which of them are of use.
    """
    named = {block.files.name for block in manifest.blocks} if manifest else set()
    candidates = sorted((at, name) for name, at in store.list_objects("files").items() if name not in named)
    if not candidates:
        return []
    try:
        recent = store.read_clock() - OLDEST
    except StoreNotWritable as e:
        _LOG.info("unfinished work is passed over: %s", e)
        return []
    newest = (name for at, name in candidates[-NEWEST:] if at > recent)
    blocks = (_useful(store, name, identity, settings, wanted) for name in newest)
    return [block for block in blocks if block is not None]


def _useful(
    store: Store,
    name: str,
    identity: TableIdentity,
    settings: dict[str, Any] | None,
    wanted: Callable[[Block, pa.Table], bool] | None,
) -> Block | None:
    try:
        data = store.read_bytes(name)
        ref, texts = identify_object(name, data)
        block, table, made_with = parse_block_description(texts.get(BLOCK_KEY, ""), ref)
        if table.uuid != identity.uuid or settings not in (None, made_with):
            return None
        if wanted is not None and not wanted(block, decode_object(ref, data)):
            return None
        for summary in block.summary:
            store.get(summary.object, ["column", "file"])
        for zones in block.zones:
            store.get(zones.object, ["column", "zone"])
    except DamagedObject as e:
        _LOG.info("%s is passed over: %s", name, e)
        return None
    return block
