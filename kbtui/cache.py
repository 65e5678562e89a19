"""The cache folder: data that may be deleted at any time, and is believed when it is read.

It is kbtui's own folder in the platform's. A part of it that others could write to is never read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

_Result = TypeVar("_Result")
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
COMPILED = "compiled"
"""The folder of what `compiled` keeps. Nothing in it comes from a workspace."""


def cache_folder(name: str) -> Path:
    """Return a folder for derived data, creating it if needed; else a temporary one.

    Its content is trusted, so a folder that others can write to is never read.
    """
    return _own_folder(name) or _temporary_folder(name)


def compiled(
    name: str, files: Iterable[bytes], code: Iterable[str], build: Callable[[], _Result]
) -> _Result:
    """Return what `build` makes of files of the package, from the cache if it was made before.

    It is kept as JSON, with a hash of itself, of the files and of the code that made it. So what is
    damaged, or was made of other files or by another version, is never taken; it is built again.
    Where nothing can be kept, it is built in each process.

    Args:
        name: The name of the result.
        files: The content of the files.
        code: The modules whose source decides what `build` returns.
        build: Makes the result, which JSON can hold as it is.
    """
    folder = _own_folder(COMPILED)
    identity = _identity(files, code) if folder is not None else None
    if folder is None or identity is None:
        return build()
    file = folder / f"{name}.json"
    with contextlib.suppress(OSError):
        digest, _, data = file.read_bytes().partition(b"\n")
        if digest == _digest(identity, data):
            kept: _Result = json.loads(data)
            return kept
    from kbtui.whole_file import replace_file

    result = build()
    data = json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode()
    with contextlib.suppress(OSError):
        replace_file(file, _digest(identity, data) + b"\n" + data)
    return result


def discard(place: Path) -> None:
    """Delete a file or folder of the cache, if it is there; what a link leads to stays."""
    if place.is_dir() and not place.is_symlink():
        from shutil import rmtree

        rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


def _identity(files: Iterable[bytes], code: Iterable[str]) -> bytes | None:
    """Return a hash of files, the source of modules, and Python; None if a source isn't there."""
    found = hashlib.sha256(sys.version.encode())
    try:
        for content in (*files, *map(_source, code)):
            found.update(hashlib.sha256(content).digest())
    except OSError:
        return None
    return found.digest()


def _source(module: str) -> bytes:
    """Return a module's source without importing it.

    Raises:
        OSError: It has none in a file.
    """
    package, *parts = module.split(".")
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(package)
    place = Path(spec.origin)
    return (place.parent.joinpath(*parts).with_suffix(".py") if parts else place).read_bytes()


def _digest(identity: bytes, data: bytes) -> bytes:
    return hashlib.sha256(identity + data).hexdigest().encode()


def _own_folder(name: str) -> Path | None:
    """Return a folder that only this user can write to, creating it if needed; None if none can."""
    from platformdirs import user_cache_path

    folder = user_cache_path("kbtui") / name
    with contextlib.suppress(OSError):
        if _is_ours(folder.parent, keep=True) and _is_ours(folder):
            return folder
    return None


def _is_ours(folder: Path, *, keep: bool = False) -> bool:
    """Make sure that only this user can write to a cache folder, creating or emptying it.

    With `keep`, the content of a folder that others could write to is kept. Returns False if it
    isn't possible.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700, parents=True)
        return True
    try:
        status = folder.stat() if keep else folder.lstat()
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
        if not status.st_mode & _WRITABLE_BY_OTHERS:
            return keep or os.access(folder, os.R_OK | os.X_OK)
        if keep:
            folder.chmod(stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS)
            return True
        from shutil import rmtree

        rmtree(folder, ignore_errors=True)
    elif stat.S_ISLNK(status.st_mode) and not keep:
        folder.unlink()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return False
    return True


@functools.cache
def _temporary_folder(name: str) -> Path:
    import atexit
    import tempfile
    from shutil import rmtree

    folder = tempfile.mkdtemp(prefix=f"kbtui-{name}-")
    atexit.register(rmtree, folder, ignore_errors=True)
    return Path(folder)
