"""Column types of the oracle's tables, with the values that pruners have got wrong before."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from random import Random

INTEGER_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
FLOATS = ("float", "double")
DECIMALS = {"decimal(9,2)": (9, 2), "decimal(18,4)": (18, 4), "decimal(38,10)": (38, 10)}
TIMES = ("timestamp", "timestamp_ntz")
BYTES = ("string", "binary")
SCALARS = ("boolean", *INTEGER_BITS, *FLOATS, *DECIMALS, "date", *TIMES, *BYTES)
ICEBERG_SCALARS = tuple(t for t in SCALARS if t not in {"tinyint", "smallint"})

WIDE = Context(prec=80)  # the default context rounds to 28 digits

FIRST_DAY, LAST_DAY = -719162, 2932896  # 0001-01-01 and 9999-12-31
DAY = 86_400_000_000
EPOCH_2020 = 18262

ODD_NAMES = ("x.y", "a b", "we`ird", "日本", "MiXed", "select", "_1", 'q"uote', "é", "a-b", "Ünï.çode x")


@dataclass(frozen=True)
class Leaf:
    """A column of a scalar type: a top-level column or a field of a struct.

    Values in Python: bool, int (also days and microseconds), float, Decimal, bytes (strings as UTF-8).
    """

    path: tuple[str, ...]
    type: str

    @property
    def sql(self) -> str:
        """The column as SQL, every part quoted."""
        return ".".join("`" + part.replace("`", "``") + "`" for part in self.path)


def arrow_type(name: str) -> pa.DataType:
    """Returns the Arrow type that Spark reads from Parquet as `name`."""
    if name in DECIMALS:
        return pa.decimal128(*DECIMALS[name])
    return {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestamp_ntz": pa.timestamp("us"),
        "string": pa.string(),
        "binary": pa.binary(),
    }[name]


def arrow_array(name: str, values: list[Any]) -> pa.Array:
    """Returns the values as an Arrow array; bytes of a string column are not validated."""
    if name != "string":
        return pa.array(values, type=arrow_type(name))
    raw = pa.array(values, type=pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers(), raw.null_count)


def float32(value: float) -> float:
    """Rounds to the nearest value of a float column."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _decimal(name: str, unscaled: int) -> Decimal:
    return WIDE.scaleb(Decimal(unscaled), -DECIMALS[name][1])


def _special_text() -> list[bytes]:
    shared = b"shared prefix of many long values, longer than any cut bound is: " * 20
    texts = ["", " ", "a", "A", "a ", "ab", "b", "\x00", "%", "_", "\\", "'", "\ud7ff", "\ue000", "\uffff"]
    texts += [
        "\U00010000",
        "\U0010ffff",
        "a\U0010ffff",
        "z\uffff",
        "\U0010ffff" * 20,
        "é",
        "İ",
        "ß",
        "10",
        "2020-01-01",
    ]
    odd = [shared[:n] + tail for n in (63, 64, 65, 1024, 1025) for tail in (b"", b"a", b"\xff")]
    return [t.encode() for t in texts] + odd + [b"\xed\xa0\x80", b"\xff", b"a\xff\xff", b"\xff" * 70, b"\x80"]


def specials(name: str) -> list[Any]:
    """Returns the extreme and odd values of a type."""
    if name == "boolean":
        return [True, False]
    if name in INTEGER_BITS:
        top = 1 << (INTEGER_BITS[name] - 1)
        wide = [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1] if name == "bigint" else []
        return [-top, -top + 1, top - 1, top - 2, 0, 1, -1, *wide]
    if name in FLOATS:
        values = [math.nan, -0.0, 0.0, math.inf, -math.inf, 1.7976931348623157e308, 5e-324, -5e-324, 0.1, 1e-3]
        values += [3.4028234663852886e38, 1.401298464324817e-45, 16777217.0, 2.0**53, 2.0**53 + 2, -1.0, 1.0]
        return [float32(v) for v in values] if name == "float" else values
    if name in DECIMALS:
        top = 10 ** DECIMALS[name][0] - 1
        return [_decimal(name, v) for v in (-top, top, top - 1, 0, 1, -1, 10 ** DECIMALS[name][1])]
    if name == "date":
        return [FIRST_DAY, LAST_DAY, -141427, -141428, -1, 0, 1, 18993, 19358, -25567, -36525]
    if name in TIMES:
        instants = [FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1, -141427 * DAY, -1, 0, 1, 999, 1000, -999, -1001]
        # Both sides of clock changes in New York and Sao Paulo, and the end of local mean time.
        changes = [1699163999_999999, 1699164000_000000, 1699167600_000000, 1678604399_999999, -2717650800_000000]
        return instants + changes + [1541300400_000000, -3786825600_000000, 1704067199_999999, 1704067200_000000]
    if name == "string":
        return _special_text()
    return [b"", b"\x00", b"\x00\x00", b"\x7f", b"\x80", b"\xff", b"\xff" * 64, b"\xff" * 70, b"\xfe" + b"\xff" * 80]


def ranked(name: str, rank: int) -> Any:
    """Returns a value that grows with the rank: clustered files come from ranks close to each other."""
    if name == "boolean":
        return rank >= 20
    if name in INTEGER_BITS:
        return rank % 128 if name == "tinyint" else rank
    if name in FLOATS:
        return rank * 0.5
    if name in DECIMALS:
        return _decimal(name, rank * 10 ** (DECIMALS[name][1] - 1))
    if name == "date":
        return EPOCH_2020 + rank
    if name in TIMES:
        return EPOCH_2020 * DAY + rank * 3_600_000_001
    return b"k%05d" % max(rank, 0) + b"x" * (rank % 3)


def anything(name: str, rng: Random) -> Any:
    """Returns a random value from the whole domain of a type."""
    if name == "boolean":
        return rng.random() < 0.5
    if name in INTEGER_BITS:
        return rng.getrandbits(INTEGER_BITS[name]) - (1 << (INTEGER_BITS[name] - 1))
    if name in FLOATS:
        value = rng.choice([rng.uniform(-1000, 1000), rng.gauss(0, 1) * 10 ** rng.randint(-300, 300)])
        return float32(value) if name == "float" else value
    if name in DECIMALS:
        top = 10 ** DECIMALS[name][0] - 1
        return _decimal(name, rng.randint(-top, top))
    if name == "date":
        return rng.randint(FIRST_DAY, LAST_DAY)
    if name in TIMES:
        return rng.randint(FIRST_DAY * DAY, (LAST_DAY + 1) * DAY - 1)
    if name == "binary":
        return rng.randbytes(rng.choice([0, 1, 3, 8, 70]))
    letters = "aAbz09 _%éß\uffff\U00010000\U0010fffe"
    return "".join(rng.choice(letters) for _ in range(rng.choice([0, 1, 2, 5, 30, 80]))).encode()


def is_nan(value: Any) -> bool:
    """Tells NaN, for a value of any type."""
    return isinstance(value, float) and math.isnan(value)


def neighbours(name: str, value: Any) -> list[Any]:
    """Returns values right beside a value: where bounds are off by one, they show it."""
    if value is None or is_nan(value) or name == "boolean":
        return []
    if name in INTEGER_BITS:
        top = 1 << (INTEGER_BITS[name] - 1)
        return [v for v in (value - 1, value + 1) if -top <= v < top]
    if name in FLOATS:
        beside = [math.nextafter(value, -math.inf), math.nextafter(value, math.inf), -value]
        return [float32(v) for v in beside] if name == "float" else beside
    if name in DECIMALS:
        top = 10 ** DECIMALS[name][0] - 1
        unscaled = int(WIDE.scaleb(value, DECIMALS[name][1]))
        return [_decimal(name, v) for v in (unscaled - 1, unscaled + 1) if abs(v) <= top]
    if name == "date":
        return [v for v in (value - 1, value + 1) if FIRST_DAY <= v <= LAST_DAY]
    if name in TIMES:
        return [v for v in (value - 1, value + 1) if FIRST_DAY * DAY <= v < (LAST_DAY + 1) * DAY]
    cut = [value[:1], value[:64], value[:63], value[:-1], value + b"\x00", value + b"a"]
    return cut if name == "binary" else [v for v in cut if _decodes(v)]


def _decodes(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
