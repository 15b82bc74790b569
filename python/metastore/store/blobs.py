"""What a store says to a put-if-absent."""

from __future__ import annotations

import enum


class CreateReply(enum.Enum):
    """An answer to a put-if-absent; only the first one is certain to mean what it says."""

    CREATED = "created"
    EXISTS = "exists"
    UNKNOWN = "unknown"
