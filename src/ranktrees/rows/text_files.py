"""Text files, compressed or not, read in blocks of whole lines, and written whole or not at all."""

from __future__ import annotations

import bz2
import codecs
import gzip
import importlib
import io
import itertools
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ranktrees.rows.values import as_seen
from ranktrees.support.files import replacing
from ranktrees.support.ordered import in_threads
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

_zstd: Any = None
for _module in ("compression.zstd", "backports.zstd"):  # the first since Python 3.14
    with suppress(ImportError):
        _zstd = _zstd or importlib.import_module(_module)

BLOCK_BYTES = 1 << 20
BEGINNINGS = {
    ".gz": rb"\x1f\x8b",
    ".xz": rb"\xfd7zXZ\0",
    ".bz2": rb"BZh[1-9]1AY&SY",
    ".zst": rb"\x28\xb5\x2f\xfd",
}
LONGEST_LINE = 1 << 26  # some four million pairs; a compressed file of little may hold a line of far more
OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_NOT_OPENED = {".zip", ".lz4", ".Z", ".7z", ".br"}
_DAMAGES: list[type[Exception]] = [EOFError, zlib.error, lzma.LZMAError, OSError]  # what openers raise
if _zstd is None:
    _NOT_OPENED.add(".zst")
else:
    OPENERS[".zst"] = _zstd.open
    _DAMAGES.append(_zstd.ZstdError)

# The most bytes of a query id, for which arrays have room in every row, and the most digits of an integer, of
# which Python reads 4300.
LONGEST = 1000
LARGEST_INT64 = 2**63 - 1

# No pattern matches a text in two ways: it would try both before it refused the text, which may be long.
INTEGER = re.compile(rb"[+-]?[0-9]{1,%d}" % LONGEST)
NUMBER = re.compile(rb"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf(inity)?)", re.IGNORECASE)


def name_of(path: Any) -> str:
    if hasattr(path, "read") or hasattr(path, "write"):
        return str(getattr(path, "name", "the open file"))
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(
            f"path is {as_seen(path)}; expected the path of a file, or an open one: read several files one "
            "after the other."
        )
    return os.fsdecode(path)


def _open(path: Any, mode: str) -> Any:
    name = name_of(path)
    if hasattr(path, "read") or hasattr(path, "write"):
        if isinstance(path, io.TextIOBase):
            raise ValueError(f"{name} is open as text; expected a path or a file open in mode {mode!r}.")
        return nullcontext(path)
    return OPENERS.get(_suffix(path), open)(path, mode)


def _suffix(path: PathLike) -> str:
    """The suffix of a path, which says how the file is compressed."""
    suffix = Path(path).suffix
    if suffix in _NOT_OPENED:
        otherwise = "; or install the package backports.zstd" if suffix == ".zst" else ""
        raise ValueError(
            f"{path} ends in {suffix!r}; expected a text file, or one whose name ends in "
            f"{', '.join(OPENERS)}: compress it in one of these formats, or not at all{otherwise}."
        )
    return suffix


@contextmanager
def writing(path: Any, what: str) -> Iterator[Any]:
    """Open a file to write ``what`` to. What was at a path is replaced once all is written."""
    if hasattr(path, "write"):
        with _open(path, "wb") as stream:
            yield stream
        return
    suffix = _suffix(path)
    with replacing(path, what) as file:
        if suffix == ".gz":
            opened: Any = gzip.GzipFile(os.fspath(path), "wb", fileobj=file)  # which has the name in it
        else:
            opened = OPENERS[suffix](file, "wb") if suffix in OPENERS else nullcontext(file)
        with opened as stream:
            yield stream


@contextmanager
def reading(path: Any) -> Iterator[Any]:
    try:
        with _open(path, "rb") as stream:
            yield stream
    except tuple(_DAMAGES) as error:
        if getattr(error, "errno", None) is not None:  # a file that is not there, for instance
            raise
        raise ValueError(
            f"{name_of(path)} is truncated, or not in the format of its suffix ({error}); expected a "
            "complete file: download it again, or rename it."
        ) from error


def blocks_of(stream: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, each with the number of its first line."""
    line = 1
    while block := stream.read(BLOCK_BYTES):
        if line == 1:
            _require_text(block, name)
        end = stream.readline(LONGEST_LINE)
        if len(end) == LONGEST_LINE and not end.endswith(b"\n"):
            line += block.count(b"\n")
            raise ValueError(
                f"{name}, line {line}: longer than {LONGEST_LINE >> 20} MiB; expected "
                "a row in each line, and line feeds between them."
            )
        block += end
        yield line, block.removeprefix(codecs.BOM_UTF8) if line == 1 else block
        line += block.count(b"\n")


def _require_text(block: bytes, name: str) -> None:
    """Refuse a file that begins as compressed files do."""
    if suffix := next((suffix for suffix, begins in BEGINNINGS.items() if re.match(begins, block)), ""):
        raise ValueError(
            f"{name} is compressed as files with the suffix {suffix!r} are; expected text: give it that "
            "suffix, or pass a file that decompresses it, as those of gzip.open do."
        )


def hint_of_returns(line: bytes) -> str:
    """What to add to the message about a line that may be several."""
    is_several = b"\r" in line.strip()
    return " It holds carriage returns; if lines end in them, replace them by line feeds." * is_several


def ahead(blocks: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Read, and decompress, the next block on another thread while one is used."""
    for block in in_threads(1, lambda _: next(blocks, None), itertools.count()):
        if block is None:
            return
        yield block


def line_at(block: bytes, first_line: int, place: int) -> int:
    """The number of the line that begins at a place of a block."""
    return first_line + block.count(b"\n", 0, place)


def decode(text: bytes, encoding: str = "utf-8") -> str:
    return text.decode(encoding, "surrogateescape")


def decoded(ids: Iterable[bytes], encoding: str) -> list[str]:
    """Return ids as strings, and warn of bytes that are none of the encoding, which remain as surrogates."""
    texts, strange = [], b""
    for one in ids:
        try:
            texts.append(one.decode(encoding))
        except UnicodeDecodeError:
            texts.append(decode(one, encoding))
            strange = strange or one
    if strange:
        warn(
            f"the id {strange!r} is no text in the encoding {encoding!r}: its bytes are kept as surrogates, "
            "which cannot be printed. Pass the encoding of the file, such as encoding='latin-1'.",
            FitWarning,
        )
    return texts


def quote(text: Any) -> str:
    text = decode(text)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def require_encoding(encoding: str) -> None:
    """Raise unless an encoding has ASCII in it."""
    try:
        is_of_ascii = "1 qid:a\n".encode(encoding) == b"1 qid:a\n"
    except (LookupError, TypeError):
        is_of_ascii = False
    if not is_of_ascii:
        raise ValueError(
            f"encoding={encoding!r}; expected the name of an encoding that has ASCII in it, as 'utf-8' and "
            "'latin-1' do: convert files of others."
        )


def as_int64(text: bytes) -> int | None:
    """The integer that a text spells, or None if it spells another thing, or one that is too large."""
    integer = int(text) if INTEGER.fullmatch(text) else None
    return None if integer is None or abs(integer) > LARGEST_INT64 else integer


def require_file(path: Any, call: str) -> None:
    """Raise unless something can be written to: a path or a file, as in a ``call``."""
    if not hasattr(path, "write") and not isinstance(path, (str, os.PathLike)):
        raise TypeError(
            f"path is {as_seen(path)}; expected a path or a file open in mode 'wb': pass it behind what is "
            f"written, as in {call}."
        )
