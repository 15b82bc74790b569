"""Filters as programs write them, nested as deeply as they have terms."""

from __future__ import annotations

import sys
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import metastore
from metastore.errors import ColumnNotFound, InvalidArgument
from metastore.pruning.deep_stack import with_deep_stack
from nightly import others_nightly
from planner.written import describe_parquet_folder

SHAPES = {
    "parentheses": lambda n: "(" * n + "k = 1" + ")" * n,
    "NOT": lambda n: "NOT " * (n // 2 * 2) + "k = 1",
    "terms": lambda n: "k" + " + 1" * n + f" = {n + 1}",
    "signs": lambda n: "k = " + "- " * (n // 2 * 2) + "1",
    "OR to the right": lambda n: "".join(f"(k = -{i} OR " for i in range(n)) + "k = 1" + ")" * n,
    "OR to the left": lambda n: "(" * n + "k = 1" + "".join(f" OR k = -{i})" for i in range(n)),
    "AND and OR": lambda n: "".join(f"(k {'<>' if i % 2 else '='} -{i} {('OR', 'AND')[i % 2]} " for i in range(n))
    + "k = 1"
    + ")" * n,
    "patterns": lambda n: "k = 1 AND (" + " OR ".join(f"s LIKE '%{i}%'" for i in range(n)) + ")",
    "functions": lambda n: "k = 1 AND " + "trim(" * n + "s" + ")" * n + " = '1'",
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("deep")
    for number in range(4):
        keys = range(number * 5, number * 5 + 5)
        pq.write_table(pa.table({"k": keys, "s": [str(key) for key in keys]}), root / f"{number}.parquet")
    describe_parquet_folder(root).write("1")
    return root


@pytest.mark.parametrize("shape", SHAPES)
def test_a_thousand_levels_skip_files(files, shape):
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    pruned = metastore.open(files).prune(SHAPES[shape](1_000))
    assert ([path.rpartition("/")[2] for path in pruned], pruned.unused) == (["0.parquet"], {})
    assert (sys.getrecursionlimit(), threading.stack_size()) == (limit, size)


@pytest.mark.parametrize(
    "filter_", others_nightly([SHAPES["parentheses"](50_000), "(" * 50_000, "f(" * 50_000 + ")" * 50_000])
)
def test_more_are_one_error(files, filter_):
    with pytest.raises(InvalidArgument, match=r"filter: it is nested too deeply\. Join its parts"):
        metastore.open(files).prune(filter_)


def test_where_there_is_no_room_for_a_stack_it_is_the_same_error(files, monkeypatch):
    def start(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    for _ in range(2):
        with pytest.raises(InvalidArgument, match="nested too deeply"):
            metastore.open(files).prune(SHAPES["parentheses"](1_000))


def test_errors_of_deep_filters_are_told(files):
    with pytest.raises(ColumnNotFound, match="'j'"):
        metastore.open(files).prune(SHAPES["parentheses"](1_000).replace("k", "j"))


def test_several_threads_ask_at_once(files):
    answers = []
    table = metastore.open(files)
    threads = [
        threading.Thread(target=lambda: answers.append(len(table.prune(SHAPES["NOT"](1_000))))) for _ in range(4)
    ]
    limit = sys.getrecursionlimit()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (answers, sys.getrecursionlimit()) == ([1] * 4, limit)


def test_what_needs_no_more_stack_stays_in_its_thread():
    assert with_deep_stack(threading.get_ident) == threading.get_ident()
