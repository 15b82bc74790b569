"""Members of Spark that the shim's classes use, and that a later line of Spark does not have.

    uv run python tests/versions/links.py --jars <jars folder of a pyspark> [--shim <jar>] [--package v41]

One build of the shim serves several lines of Spark (`contract/spark_builds.json`). This reads the constant pools of its
classes and looks for each class, method and field in the jars of another line, and whether a class has become an
interface. Constants that the compiler copied from Spark's Java classes leave no trace: the shim uses none that differ.
Prints what is missing and exits with 1.
"""

from __future__ import annotations

import argparse
import struct
import sys
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from metastore import jars

WIDE = {5, 6}
SIZES = {1: 0, 3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
UTF8, CLASS, FIELD, METHOD, INTERFACE_METHOD = 1, 7, 9, 10, 11
IS_INTERFACE = 0x0200
OF_JAVA = ("java/", "javax/", "jdk/", "[")


@dataclass(frozen=True)
class Reference:
    """A member that a class uses.

    Attributes:
        owner: The class that is named in the call.
        name: Of the method or field; empty for the class itself.
        kind: The tag of the constant: `CLASS`, `FIELD`, `METHOD` or `INTERFACE_METHOD`.
    """

    owner: str
    name: str
    descriptor: str
    kind: int


@dataclass(frozen=True)
class Declared:
    """The declarations of a class, and the classes that it inherits from."""

    parents: tuple[str, ...]
    members: frozenset[tuple[str, str]]
    is_interface: bool


class ClassFile:
    """The parts of a class file that linking looks at."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._constants: dict[int, tuple[int, int]] = {}
        (count,) = struct.unpack_from(">H", content, 8)
        position, number = 10, 1
        while number < count:
            tag = content[position]
            self._constants[number] = (tag, position + 1)
            position += 1 + SIZES[tag]
            if tag == UTF8:
                position += 2 + self._short(self._constants[number][1])
            number += 2 if tag in WIDE else 1
        self._after_constants = position

    def references(self) -> set[Reference]:
        """The classes and members of others that it names."""
        links = set()
        for tag, position in self._constants.values():
            if tag == CLASS:
                links.add(Reference(self._text(self._short(position)), "", "", CLASS))
            if tag in (FIELD, METHOD, INTERFACE_METHOD):
                owner = self._class_name(self._short(position))
                _, pair = self._constants[self._short(position + 2)]
                name, descriptor = self._text(self._short(pair)), self._text(self._short(pair + 2))
                links.add(Reference(owner, name, descriptor, tag))
        return links

    def declared(self) -> Declared:
        """Its own members, its parents, and whether it is an interface."""
        position = self._after_constants
        access, _, parent, count = struct.unpack_from(">HHHH", self._content, position)
        position += 8
        numbers = [parent, *struct.unpack_from(f">{count}H", self._content, position)]
        position += 2 * count
        members: set[tuple[str, str]] = set()
        for _ in ("fields", "methods"):
            position = self._read_members(position, members)
        parents = tuple(self._class_name(number) for number in numbers if number)
        return Declared(parents, frozenset(members), bool(access & IS_INTERFACE))

    def _read_members(self, position: int, members: set[tuple[str, str]]) -> int:
        count = self._short(position)
        position += 2
        for _ in range(count):
            _, name, descriptor, attributes = struct.unpack_from(">HHHH", self._content, position)
            members.add((self._text(name), self._text(descriptor)))
            position += 8
            for _ in range(attributes):
                (length,) = struct.unpack_from(">I", self._content, position + 2)
                position += 6 + length
        return position

    def _class_name(self, number: int) -> str:
        return self._text(self._short(self._constants[number][1]))

    def _text(self, number: int) -> str:
        _, position = self._constants[number]
        return self._content[position + 2 : position + 2 + self._short(position)].decode("utf-8", "replace")

    def _short(self, position: int) -> int:
        return int(struct.unpack_from(">H", self._content, position)[0])


class ClassPath:
    """The classes of some jars, read when they are looked at."""

    def __init__(self, files: list[Path]) -> None:
        self._archives = [zipfile.ZipFile(file) for file in files]
        self._places = {
            name.removesuffix(".class"): archive
            for archive in self._archives
            for name in archive.namelist()
            if name.endswith(".class")
        }
        self._declared: dict[str, Declared | None] = {}

    def find(self, name: str) -> Declared | None:
        """Find the declarations of a class, or None."""
        if name not in self._declared:
            archive = self._places.get(name)
            content = archive.read(f"{name}.class") if archive else None
            self._declared[name] = ClassFile(content).declared() if content else None
        return self._declared[name]

    def has_member(self, owner: str, member: tuple[str, str]) -> bool:
        """Whether a class declares a member or inherits it; members of Java's own classes are taken to be there."""
        declared = self.find(owner)
        if declared is None:
            return owner.startswith(OF_JAVA) and owner != "java/lang/Object"
        if member in declared.members:
            return True
        parents = [parent for parent in declared.parents if parent != "java/io/Serializable"]
        return any(self.has_member(parent, member) for parent in parents)


OBJECT_METHODS = {"getClass", "hashCode", "equals", "toString", "notify", "notifyAll", "wait", "clone"}


def missing(reference: Reference, path: ClassPath) -> str:
    """Why a reference cannot be resolved; empty where it can."""
    if reference.owner.startswith(OF_JAVA):
        return ""
    declared = path.find(reference.owner)
    if declared is None:
        return f"no class {reference.owner}"
    if reference.kind == METHOD and declared.is_interface:
        return f"{reference.owner} is an interface now: {reference.name}"
    if reference.kind == INTERFACE_METHOD and not declared.is_interface:
        return f"{reference.owner} is a class now: {reference.name}"
    if not reference.name or reference.name in OBJECT_METHODS:
        return ""
    if path.has_member(reference.owner, (reference.name, reference.descriptor)):
        return ""
    return f"{reference.owner} has no {reference.name}{reference.descriptor}"


def find_missing(shim: Path, package: str, folder: Path) -> dict[str, set[str]]:
    """Find the references of a build's classes that no jar of a folder has, each with the classes that use it."""
    other_jars = [file for file in sorted(folder.glob("*.jar")) if not file.name.startswith("metastore-")]
    path = ClassPath([shim, *other_jars])
    missing_by_class: dict[str, set[str]] = defaultdict(set)
    with zipfile.ZipFile(shim) as opened:
        for name in opened.namelist():
            if name.endswith(".class") and f"/{package}/" in name:
                for reference in ClassFile(opened.read(name)).references():
                    reason = missing(reference, path)
                    if reason:
                        missing_by_class[reason].add(Path(name).stem)
    return missing_by_class


def main() -> None:
    """Prints what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jars", type=Path, required=True, help="the jars folder of the Spark to look in")
    parser.add_argument("--shim", type=Path, default=jars.shim())
    parser.add_argument("--package", default="v41", help="of the build to look at")
    options = parser.parse_args()
    missing = find_missing(options.shim, options.package, options.jars)
    for reason, users in sorted(missing.items()):
        print(f"{reason}\n    used by {', '.join(sorted(users)[:5])}")
    print(f"{len(missing)} missing")
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
