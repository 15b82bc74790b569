"""The first cause of a failed Spark job, in one line."""

from __future__ import annotations

import re

_OURS = re.compile(r"\[METASTORE_[A-Z_]+\] [^\n]+")
_PYTHON = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Refused|Exit)(?:: [^\n]+)?)$", re.MULTILINE)


def cause_of(failure: Exception) -> str:
    r"""Find what a person wants to know in the text of a failed job.

    Args:
        failure: What PySpark raised.

    Returns:
        Our own error, else the last Python exception of the task, else the first line.

    Example:
        >>> cause_of(ValueError("job aborted\\nTraceback\\nOSError: disk full"))
        'OSError: disk full'
    """
    text = str(failure)
    ours = _OURS.search(text)
    if ours is not None:
        return ours.group().rstrip(".")
    raised = _PYTHON.findall(text)
    return str(raised[-1] if raised else text.strip().split("\n", 1)[0]).rstrip(".")
