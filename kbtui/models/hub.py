"""Fetch a model of sentence-transformers from its hub into the hub's own cache.

``python -m kbtui.models.hub NAME CACHE``

Runs as a child process of `fetching.fetch`. Each line of its input asks for more, and is answered
by a line of JSON: ``{"done": bytes, "total": bytes}``, and at last ``{"ok": folder}`` or
``{"error": ..., "hint": ...}``.

The hub's library lists and links the files. It would begin a file again that was cut off, and
compares only its size, so the files are received here: each goes on where it was, and is put in its
place once its hash is the one that the hub has listed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from huggingface_hub import HfApi, constants, get_session, hf_hub_url, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
)
from huggingface_hub.utils import (  # type: ignore[attr-defined] # documented there, not in __all__
    build_hf_headers,
    hf_raise_for_status,
)

from kbtui.errors import KbtuiError, ModelError, ModelUnreachableError, StorageError
from kbtui.models.fetching import PREPARING_ROOM, search_offer
from kbtui.models.model_files import is_needed, why_unsafe
from kbtui.text import shorten

_PARTIAL = ".kbtui-part"
_BLOCK = 1 << 18
_TELL_SECONDS = 0.2
_TRIES = 5
_RETRY_SECONDS = 1.0
_TIMEOUT_SECONDS = 30.0
_AGAIN = "Do it again: what is there already is kept."

Progress = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _File:
    """A file of a model; the hub knows it by `blob`: its SHA-256, or its git hash if small."""

    path: str
    size: int
    blob: str
    is_large: bool

    def is_intact(self, file: Path) -> bool:
        """Return whether a file has this one's content."""
        digest = hashlib.sha256()
        if not self.is_large:
            digest = hashlib.sha1(f"blob {self.size}\0".encode(), usedforsecurity=False)
        with file.open("rb") as stream:
            while block := stream.read(_BLOCK):
                digest.update(block)
        return digest.hexdigest() == self.blob


class _Fetching:
    """One model that is being fetched."""

    def __init__(self, name: str, cache: Path) -> None:
        """List the files.

        Raises:
            ModelError: it can't be used, or isn't the one that kbtui knows.
        """
        info = HfApi().model_info(name, files_metadata=True, timeout=_TIMEOUT_SECONDS)
        self.name = name
        self.revision = str(info.sha)
        listed = [
            _File(
                each.rfilename,
                each.size or 0,
                (each.lfs.sha256 if each.lfs else each.blob_id) or "",
                is_large=each.lfs is not None,
            )
            for each in info.siblings or ()
        ]
        self._all = [each.path for each in listed]
        # The settings come first: they tell whether the rest is wanted.
        self.files = sorted(filter(lambda each: is_needed(each.path), listed), key=_by_size)
        self.total = sum(each.size for each in self.files)
        self._cache = cache
        folder = f"models--{name.replace('/', '--')}"
        self._blobs = cache / folder / "blobs"
        self._lock = cache / ".locks" / folder / "kbtui.lock"
        offer = search_offer()
        weights = {each.blob for each in self.files if each.path.endswith(".safetensors")}
        if name == offer.name and weights != {offer.sha256}:
            raise ModelError(
                f"{name} isn't the one that kbtui knows: its weights have changed.",
                "A newer kbtui may know them; another model can be named.",
            )

    def steps(self) -> Iterator[Progress]:
        """Fetch the files, telling the progress.

        Raises:
            ModelError: the model isn't safe to load, or what came isn't what was listed.
            StorageError: there is no room.
        """
        self._check_room()
        for folder in (self._blobs, self._lock.parent):
            folder.mkdir(parents=True, exist_ok=True)
        with self._lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ModelError(f"{self.name} is being fetched already.") from None
            small = [each for each in self.files if not each.is_large]
            large = [each for each in self.files if each.is_large]
            for file in small:
                yield from self._receive(file)
            self._check_safety()
            for file in large:
                yield from self._receive(file)
            paths = [each.path for each in self.files]
            snapshot = snapshot_download(self.name, cache_dir=self._cache, allow_patterns=paths)
        if Path(snapshot).name != self.revision:
            raise ModelError(f"{self.name} was changed at its hub while it was fetched.", _AGAIN)
        yield {"ok": snapshot}

    def _check_room(self) -> None:
        """Check that there is room to fetch the model and to prepare it.

        Raises:
            StorageError: there isn't.
        """
        weights = sum(each.size for each in self.files if each.path.endswith(".safetensors"))
        needed = self.total - self._done() + PREPARING_ROOM * weights
        place = next(each for each in (self._cache, *self._cache.parents) if each.exists())
        free = shutil.disk_usage(place).free
        if free < needed:
            raise StorageError(
                f"There is no room for {self.name}: {place} has {free >> 20:,} MB free; fetching"
                f" and preparing it takes {needed >> 20:,} MB.",
                "Free some space, and do it again.",
            )

    def _check_safety(self) -> None:
        """Check that loading the model runs none of its own code.

        Raises:
            ModelError: it would, or it is no model of sentence-transformers.
        """
        blobs = {each.path: self._blobs / each.blob for each in self.files}
        try:
            why = why_unsafe(self._all, lambda path: blobs[path].read_bytes())
        except ValueError as error:
            raise ModelError(f"The settings of {self.name} can't be read: {error}") from error
        if why:
            raise ModelError(f"{self.name} {why}: it is not fetched.", "Name another model.")

    def _done(self) -> int:
        """Return the number of bytes that are here."""
        return sum(
            file.stat().st_size
            for each in self.files
            for file in (self._blobs / each.blob, self._part(each))
            if file.exists()
        )

    def _part(self, file: _File) -> Path:
        return self._blobs / f"{file.blob}{_PARTIAL}"

    def _receive(self, file: _File) -> Iterator[Progress]:
        """Receive what is missing of a file, check it, and put it in its place.

        Raises:
            ModelError: it isn't the file that was listed.
        """
        place, part = self._blobs / file.blob, self._part(file)
        tries = 0 if place.exists() else _TRIES
        while tries and (before := _size(part)) < file.size:
            try:
                yield from self._stream(file, part)
                break
            except httpx.TransportError:
                tries = _TRIES if _size(part) > before else tries - 1
                if not tries:
                    raise
                time.sleep(_RETRY_SECONDS)
        if not file.is_intact(place if place.exists() else part):
            for each in (place, part):
                each.unlink(missing_ok=True)
            raise ModelError(
                f"{file.path} of {self.name} isn't what the hub has listed: its hash differs.",
                "Do it again; if it stays so, something between here and the hub changes files.",
            )
        if not place.exists():
            with part.open("rb") as stream:
                os.fsync(stream.fileno())
            part.replace(place)
        yield self._progress()

    def _stream(self, file: _File, part: Path) -> Iterator[Progress]:
        """Append to a partial file what the server sends from there on."""
        url = hf_hub_url(self.name, file.path, revision=self.revision)
        start = max(0, _size(part))
        headers = {**build_hf_headers(), "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        told = time.monotonic()
        with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_SECONDS) as answer:
            hf_raise_for_status(answer)
            is_rest = answer.status_code == httpx.codes.PARTIAL_CONTENT
            with part.open("ab" if is_rest else "wb") as stream:
                for block in answer.iter_bytes():  # as it comes, so that a cut loses nothing
                    stream.write(block)
                    if time.monotonic() - told > _TELL_SECONDS:
                        stream.flush()
                        told = time.monotonic()
                        yield self._progress()

    def _progress(self) -> Progress:
        return {"done": min(self._done(), self.total), "total": self.total}


def _by_size(file: _File) -> int:
    return file.size


def _size(file: Path) -> int:
    """Return a file's size; -1 if there is none."""
    return file.stat().st_size if file.exists() else -1


def _answers(name: str, cache: Path) -> Iterator[Progress]:
    """Yield the progress, and at last that the model is there, or what went wrong."""
    hub = urlsplit(constants.ENDPOINT).netloc
    try:
        yield from _Fetching(name, cache).steps()
    except KbtuiError as error:
        yield _error(error)
    except (GatedRepoError, RepositoryNotFoundError, HfHubHTTPError) as error:
        yield _error(_explained(error, name, hub))
    except HFValidationError:
        hint = "It is written OWNER/MODEL, as at https://huggingface.co/models."
        yield _error(ModelError(f"{name!r} is no name of a model at the hub.", hint))
    except (httpx.HTTPError, ConnectionError) as error:
        why = shorten(str(error), 160)
        yield _error(ModelUnreachableError(f"{hub} can't be reached: {why}.", f"{_AGAIN}"))
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            yield _error(StorageError(f"There is no room for {name}.", f"Free some. {_AGAIN}"))
        else:
            why = error.strerror or shorten(str(error), 160)
            yield _error(StorageError(f"{name} can't be kept in {cache}: {why}."))


def _explained(error: HfHubHTTPError, name: str, hub: str) -> ModelError:
    """Return what an answer of the hub's means."""
    status = error.response.status_code
    if isinstance(error, GatedRepoError) or status == httpx.codes.FORBIDDEN:
        return ModelError(
            f"{hub} gives {name} only to those who have agreed to its terms.",
            "Do so at its page, then log in by `hf auth login`.",
        )
    if isinstance(error, RepositoryNotFoundError) or status == httpx.codes.UNAUTHORIZED:
        return ModelError(
            f"{hub} has no model {name}, or only for those who are logged in.",
            "Check the name at https://huggingface.co/models, or log in by `hf auth login`.",
        )
    if status == httpx.codes.NOT_FOUND:
        return ModelError(f"{hub} lacks a file of {name} that it has listed.", _AGAIN)
    return ModelUnreachableError(f"{hub} failed with {status} while {name} was fetched.", _AGAIN)


def _error(error: KbtuiError) -> Progress:
    return {"error": error.message, "hint": error.hint, "kind": type(error).__name__}


def main() -> int:
    """Answer each line of the input by the next step; end with the input, or the last step."""
    name, cache = sys.argv[1:]
    answers = _answers(name, Path(cache))
    for _ in sys.stdin:
        answer = next(answers, None)
        if answer is None:
            break
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
