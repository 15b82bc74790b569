"""`python -m metastore`: the command line, for a Python whose programs are not on the PATH."""

from __future__ import annotations

from metastore.cli import main

if __name__ == "__main__":
    main()
