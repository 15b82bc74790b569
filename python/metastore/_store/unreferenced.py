"""Finding the work of an ANALYZE that did not live to commit it."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

from metastore._format.manifest import block_from_footer
from metastore._format.objects import BLOCK_KEY, decode, unnamed
from metastore.errors import DamagedObject

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from metastore._format.manifest import Block, Manifest, TableIdentity
    from metastore._store.store import Store

_LOG = logging.getLogger(__name__)

NEWEST = 256
OLDEST = timedelta(days=1)
"""Older blocks are left to garbage collection, which must not meet a commit that names them again."""


def find_unreferenced_blocks(
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

    Args:
        store: Where to look.
        identity: The table: blocks of another one are passed over.
        manifest: The newest manifest.
        settings: If given, blocks that were made with other settings are passed over.
        wanted: Asked for every block with the rows of its `files` object, before its summaries are verified.

    Returns:
        Blocks whose objects are all there and whole, from the newest 256 candidates of the last day.
    """
    named = {block.files.name for block in manifest.blocks} if manifest else set()
    recent = datetime.now(timezone.utc) - OLDEST
    found = store.objects("files").items()
    candidates = sorted((at, name) for name, at in found if name not in named and at > recent)
    blocks = (_useful(store, name, identity, settings, wanted) for _, name in candidates[-NEWEST:])
    return [block for block in blocks if block is not None]


def _useful(
    store: Store,
    name: str,
    identity: TableIdentity,
    settings: dict[str, Any] | None,
    wanted: Callable[[Block, pa.Table], bool] | None,
) -> Block | None:
    try:
        data = store.raw(name)
        ref, texts = unnamed(name, data)
        block, table, made_with = block_from_footer(texts.get(BLOCK_KEY, ""), ref)
        if table.uuid != identity.uuid or settings not in (None, made_with):
            return None
        if wanted is not None and not wanted(block, decode(ref, data)):
            return None
        for summary in block.summary:
            store.get(summary.object, ["column", "file"])
        for zones in block.zones:
            store.get(zones.object, ["column", "zone"])
    except DamagedObject as e:
        _LOG.info("%s is passed over: %s", name, e)
        return None
    return block
