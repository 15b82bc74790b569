"""Checks commit messages: `area: what it does` in at most 72 characters, an empty line, then why.

python tools/commit_message.py FILE            a message; `git config core.hooksPath tools/hooks` runs it at each commit
python tools/commit_message.py --since main    the messages of a branch
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

LONGEST_SUBJECT = 72
SUBJECT = re.compile(r"[a-z0-9][\w ./,-]*: \S.*")


def find_fault(message: str) -> str | None:
    """Say what is wrong with a message, or None."""
    lines = [line for line in message.rstrip().splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if not SUBJECT.fullmatch(subject):
        return f"{subject!r} is not of the form 'area: what it does'"
    if len(subject) > LONGEST_SUBJECT:
        return f"{subject!r} has {len(subject)} characters, at most {LONGEST_SUBJECT} are allowed"
    if len(lines) > 1 and lines[1]:
        return f"{subject!r} is not followed by an empty line"
    return None


def read_messages(since: str) -> list[str]:
    """Read the messages of the commits after another."""
    command = ["git", "log", "--no-merges", "--format=%B%x00", f"{since}..HEAD"]
    log = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [message.strip() for message in log.split("\0") if message.strip()]


def main() -> None:
    """Check the messages and end with 1 if one has a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("file", nargs="?", type=Path, help="a file that holds a message")
    source.add_argument("--since", metavar="COMMIT", help="check every commit after this one")
    options = parser.parse_args()
    messages = read_messages(options.since) if options.since else [options.file.read_text("utf-8")]
    faults = list(filter(None, map(find_fault, messages)))
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
