"""What the kernel raises."""

from __future__ import annotations


class UnsupportedDataFile(Exception):  # noqa: N818 - the name says what is wrong
    """pyarrow cannot open a data file, or might read it differently from Spark; Spark has to read it.

    Attributes:
        reason: Why, in one line.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
