"""Checks who can have written a file: names of programs are read only from files that nobody else can change."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def describe_foreign_access(file: Path) -> str:
    """Return the reason that others than this user and root may have written a file; empty if they cannot.

    The folders above it count, too: who can write one of them can put another file in its place. A folder such as
    `/tmp`, where users delete only their own files, does not count.
    """
    named = file.absolute()
    real = file.resolve()
    for path in (real, *real.parents, named, *named.parents):
        reason = _describe_access(path)
        if reason:
            return f"{path} {reason}"
    return ""


def _describe_access(path: Path) -> str:
    try:
        status = path.lstat()
    except OSError as error:
        return str(error.strerror)
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to {_user_name(status.st_uid)}"
    return _describe_writers(status)


def _describe_writers(status: os.stat_result) -> str:
    """Return which others than the owner can write a file or folder; empty if nobody can."""
    is_sticky_folder = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(status.st_mode) or is_sticky_folder:
        return ""
    if status.st_mode & stat.S_IWOTH:
        return "can be written by everybody"
    if status.st_mode & stat.S_IWGRP and not _is_group_of_one(status.st_gid, status.st_uid):
        return "can be written by its group"
    return ""


def _is_group_of_one(group_id: int, user_id: int) -> bool:
    """Return whether a group has the user alone: many systems make one for each user, of the user's name."""
    try:
        group = grp.getgrgid(group_id)
        user_name = pwd.getpwuid(user_id).pw_name
    except KeyError:
        return False
    return group.gr_name == user_name and set(group.gr_mem) <= {user_name}


def _user_name(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"
