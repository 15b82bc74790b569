"""Real Spark servers and shells of the installed pyspark, started as a user starts them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = Path(pyspark.__file__).parent
LIMIT = 240


def environment() -> dict[str, str]:
    """The environment of a shell in which Spark was installed by pip; no interpreter is named in it."""
    unset = ("PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    return {
        **environment,
        "SPARK_HOME": str(HOME),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }


def options(conf: Mapping[str, str]) -> list[str]:
    """A configuration as command line options."""
    return [part for name, value in conf.items() for part in ("--conf", f"{name}={value}")]


def run(program: str, *arguments: str, conf: Mapping[str, str] | None = None, folder: Path) -> str:
    """The output of a program of Spark's `bin` folder; its failure is an error that shows all it said."""
    command = [str(HOME / "bin" / program), *options(conf or {}), *arguments]
    done = subprocess.run(
        command, env=environment(), cwd=folder, check=False, capture_output=True, text=True, timeout=LIMIT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
