"""Changes of the shim that lose rows of a command, and that the campaign has to notice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lakes
from mutation.build import compile_changed

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif("iceberg" not in lakes.FORMATS, reason="the files of Iceberg's commands are replaced"),
]

CAMPAIGN = Path(__file__).with_name("campaign.py")
NO_MUTANT: dict[str, tuple[str, str]] = {}
READ_HOOK = {
    "scan/IcebergScanProxy.scala": (
        """case "toBatch" => Some(batchOnce(() => forward(method, arguments)))""",
        """case "toBatch" => Some(batchOnce { () =>
          val all = IcebergTasks.currentTasks(delegate)
          val isReplaced = delegate.getClass.getName.endsWith("SparkCopyOnWriteScan")
          if (!isReplaced || all.tasks.size < 2) forward(method, arguments)
          else {
            all.at(all.tasks.indices.tail).giveTo(delegate)
            try forward(method, arguments)
            finally all.giveTo(delegate)
          }
        })""",
    )
}
"""The scan of a copy-on-write command reads one file less than it replaces.

Where its list of files loses the file too, Iceberg replaces what is read, and nothing is lost.
"""


@pytest.mark.parametrize(("changes", "notices"), [(NO_MUTANT, False), (READ_HOOK, True)], ids=["none", "read hook"])
def test_the_campaign_notices(tmp_path, changes, notices):
    results = tmp_path / "results.jsonl"
    command = [sys.executable, str(CAMPAIGN), "--kind", "copy-on-write", "--commands", "16", "--seed", "3"]
    command += ["--results", str(results)]
    if changes:
        command += ["--classes", str(compile_changed(changes, tmp_path))]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, env=dict(os.environ))
    (line,) = map(json.loads, results.read_text("utf-8").splitlines())
    assert line["commands"] == 16, done.stderr[-2000:]
    assert bool(line["differences"]) == notices, line
    assert done.returncode == int(notices)
