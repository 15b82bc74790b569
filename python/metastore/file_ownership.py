"""Who can have written a file: what names programs is taken only from files that nobody else can change."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def describe_foreign_access(file: Path) -> str:
    """Why a file may have been written by others than this user and root; empty where it cannot have been.

    The folders that lead to it count too: who can write one of them can put another file of the user's in its place.
    A folder as `/tmp`, where everybody deletes only what is theirs, does not let them.
    """
    named, real = file.absolute(), file.resolve()
    for place in (real, *real.parents, named, *named.parents):
        reason = _reason(place)
        if reason:
            return f"{place} {reason}"
    return ""


def _reason(place: Path) -> str:
    try:
        found = place.lstat()
    except OSError as error:
        return str(error.strerror)
    if found.st_uid not in (os.geteuid(), 0):
        return f"belongs to {_user(found.st_uid)}"
    if stat.S_ISLNK(found.st_mode) or (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
        return ""
    if found.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if found.st_mode & stat.S_IWGRP and not _is_group_of_one(found.st_gid, found.st_uid):
        return "can be written by its group"
    return ""


def _is_group_of_one(group: int, user: int) -> bool:
    """Whether a group is the one that many systems make for each user, by the user's name."""
    try:
        found, name = grp.getgrgid(group), pwd.getpwuid(user).pw_name
    except KeyError:
        return False
    return found.gr_name == name and not set(found.gr_mem) - {name}


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
