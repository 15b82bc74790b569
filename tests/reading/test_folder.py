from __future__ import annotations

from pathlib import Path

import pytest

from metastore.errors import StoreNotReadable
from metastore.store.folder import Folder


@pytest.mark.parametrize("ask", [Folder.exists, Folder.names, lambda folder: folder.read("a")])
def test_what_the_system_refuses_is_said(tmp_path, monkeypatch, ask):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refuse)
    monkeypatch.setattr(Path, "is_file", refuse)
    with pytest.raises(StoreNotReadable, match="Permission denied"):
        ask(Folder(str(tmp_path)))


def test_a_folder_that_cannot_be_listed(tmp_path, monkeypatch):
    def refuse(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(StoreNotReadable, match="Input/output"):
        Folder(str(tmp_path)).names()
