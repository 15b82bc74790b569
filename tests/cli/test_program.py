"""The installed program, as a shell starts it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "metastore"


def program(*arguments, **environment):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], check=False, capture_output=True, text=True, env={**os.environ, **environment}
    )


def on_a_terminal(*arguments, **environment):
    """Run the program on a terminal of 100 columns, and return its output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [PROGRAM, *map(str, arguments)],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", **environment},
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    assert process.wait() == 0
    return written.decode()


def test_a_terminal_gets_a_table_with_colours(location):
    output = on_a_terminal("summary", location)
    assert "\x1b[" in output
    assert "cat.db.t, 20 rows, 2 files, snapshot 2 (current)" in output


def test_no_color_is_obeyed(location):
    output = on_a_terminal("summary", location, NO_COLOR="1")
    assert "\x1b[3" not in output
    assert "cat.db.t" in output


def test_a_narrow_terminal_keeps_what_matters_most(location):
    lines = on_a_terminal("summary", location, COLUMNS="70", NO_COLOR="1", TERM="dumb").splitlines()
    heads = next(line for line in lines if line.startswith("column"))
    assert "null %" in heads
    assert "q25" not in heads
    assert max(map(len, lines)) <= 70


def test_a_pipe_gets_plain_text_and_a_script_the_exit_code(location, tmp_path):
    done = program("files", location)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith("path")
    assert "\x1b" not in done.stdout
    assert program("summary", tmp_path).returncode == 4


def test_help_imports_nothing_slow():
    arguments = ["--help"]
    code = (
        f"import sys; sys.argv = ['metastore', *{arguments!r}]\nfrom metastore.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "import json; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert not loaded & {"pyarrow", "numpy", "pandas", "pyspark", "pydantic", "obstore", "rich", "jinja2"}


def test_a_summary_of_a_location_imports_neither_spark_nor_pandas(location):
    code = (
        "import sys, metastore\n"
        f"print(metastore.open({str(location)!r}).summary())\n"
        "assert not {'pyspark', 'pandas', 'pydantic', 'rich.console'} & {*sys.modules}"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
