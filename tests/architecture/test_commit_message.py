"""The hook refuses messages that are not of the project's form."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools/commit_message.py"


def check_message(folder: Path, message: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a file with the message."""
    file = folder / "COMMIT_EDITMSG"
    file.write_text(message)
    return subprocess.run([sys.executable, SCRIPT, file], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "message",
    [
        "store: a lost object is named\n\nIts path alone says nothing.\n",
        "plain.json: ceilings follow\n# Please enter the commit message\n",
        "tests: " + "x" * 65,
    ],
)
def test_accepted(tmp_path: Path, message: str) -> None:
    assert check_message(tmp_path, message).returncode == 0


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("Mend the store", "is not of the form 'area: what it does'"),
        ("", "is not of the form"),
        ("tests: " + "x" * 66, "has 73 characters, at most 72 are allowed"),
        ("store: one\nand two", "is not followed by an empty line"),
    ],
)
def test_refused(tmp_path: Path, message: str, fault: str) -> None:
    checked = check_message(tmp_path, message)
    assert checked.returncode == 1
    assert fault in checked.stderr
