"""Messages of a job: on a terminal of 80 columns, and in a pipe."""

from __future__ import annotations

import io
import time

import pytest

from metastore.spark_jobs.progress import ProgressLine, StageProgress

READING = StageProgress(files=12, total=40, rows=3_000_000, share=0.25)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def said(stream, label, done=None, seconds=0.8):
    ticker = ProgressLine(label, stream)
    ticker.begin("reading", done and (lambda: done))
    time.sleep(seconds)
    ticker.close()
    return stream.getvalue()


def test_a_pipe_gets_whole_lines():
    lines = said(io.StringIO(), "db.sales", READING)
    assert lines.startswith("db.sales: reading 12/40 files, ")
    assert "M rows/s, " in lines
    assert lines.endswith(" s left\n")
    assert len(lines.splitlines()) == 1
    assert "\r" not in lines


def test_what_is_over_soon_says_nothing_in_a_pipe():
    assert said(io.StringIO(), "db.sales", seconds=0) == ""


@pytest.mark.parametrize("label", ["t", "catalog.database." + "long" * 30])
def test_a_terminal_gets_one_line_that_fits_and_goes(monkeypatch, label):
    monkeypatch.setenv("COLUMNS", "80")
    written = said(Terminal(), label, READING)
    _, *updates, blank, end = written.split("\r")
    assert updates
    assert all(len(line) < 80 and "reading 12/40 files" in line and line.rstrip().endswith("left") for line in updates)
    assert (blank.strip(), end) == ("", "")
    assert "[#####" in written or len(label) > 80


def test_a_label_acts_on_no_terminal():
    assert "\x1b" not in said(Terminal(), "db.\x1b[31mred")


def test_who_no_longer_listens_does_not_end_the_job():
    closed = io.StringIO()
    ticker = ProgressLine("t", closed)
    closed.close()
    ticker.begin("reading")
    time.sleep(0.8)
    ticker.close()
