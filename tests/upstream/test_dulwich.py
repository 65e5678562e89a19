"""What kbtui works around in dulwich."""

from __future__ import annotations

import inspect
import random
import zlib
from contextlib import closing
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pytest
from dulwich import pack
from dulwich.client import SSHGitClient, SubprocessSSHVendor, TCPGitClient, read_pkt_refs_v1
from dulwich.config import ConfigFile, apply_instead_of
from dulwich.object_format import SHA1
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob
from dulwich.pack import PackFileDisappeared

from kbtui.history.objects.pack_folder import PackRecord
from kbtui.history.objects.repository import as_unpacked

if TYPE_CHECKING:
    from pathlib import Path

_SLOWEST = "`{}` of kbtui/history/sync/transport.py can go: it takes a timeout"


@pytest.mark.parametrize(
    ("function", "ours"),
    [
        (TCPGitClient.__init__, "PatientClient"),
        (SSHGitClient.__init__, "_add_timeout"),
        (SubprocessSSHVendor.run_command, "_add_timeout"),
    ],
)
def test_a_connection_by_git_or_ssh_takes_no_timeout(function: Any, ours: str) -> None:
    assert "timeout" not in inspect.signature(function).parameters, _SLOWEST.format(ours)


@pytest.mark.parametrize(
    ("of", "name"),
    [
        (TCPGitClient, "_connect"),
        (SSHGitClient, "_connect"),
        (TCPGitClient("a"), "_host"),
        (TCPGitClient("a"), "_port"),
    ],
)
def test_what_the_timeouts_hook_into_is_there(of: object, name: str) -> None:
    assert hasattr(of, name), f"kbtui/history/sync/transport.py has to do without {name}"


def test_a_pack_may_keep_96_megabytes_of_bases() -> None:
    assert pack.DEFAULT_DELTA_BASE_CACHE_LIMIT > 16 << 20, (
        "`_DELTA_CACHE` of kbtui/history/objects/repository.py can go"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with one pack, which a test deletes."""
    (tmp_path / "pack").mkdir()
    with closing(DiskObjectStore(tmp_path)) as store:
        store.add_objects([(Blob.from_string(b"one"), None)])
    return tmp_path


def _delete_packs(folder: Path) -> None:
    for file in (folder / "pack").iterdir():
        file.unlink()


def test_a_pack_that_is_gone_stays_open_until_packs_are_asked_for(folder: Path) -> None:
    with closing(DiskObjectStore(folder)) as store:
        (opened,) = store.packs
        _delete_packs(folder)
        assert opened in store._pack_cache.values(), (
            "`close_missing_packs` of kbtui/history/objects/repository.py can go"
        )
        _ = store.packs
        assert opened not in store._pack_cache.values()


def test_a_pack_that_is_gone_ends_a_walk_over_all_objects(folder: Path) -> None:
    with closing(DiskObjectStore(folder)) as store:
        (opened,) = store.packs
        _delete_packs(folder)
        # When nothing is raised, the retries of `Repository._query_packs` can go.
        with pytest.raises(PackFileDisappeared):
            list(opened.index.iterentries())


def test_what_is_dense_is_compressed_unless_it_comes_compressed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    levels: list[int] = []
    plain = zlib.compressobj

    def noted(level: int = -1, *rest: Any, **more: Any) -> Any:
        levels.append(level)
        return plain(level, *rest, **more)

    monkeypatch.setattr(zlib, "compressobj", noted)
    dense = random.Random(1).randbytes(30_000)
    for comes_compressed in (False, True):
        (unpacked,) = as_unpacked([PackRecord("0" * 40, b"blob", dense)])
        if not comes_compressed:
            unpacked.comp_chunks = None
        pack.write_pack_data(lambda _: 0, [unpacked], num_records=1, object_format=SHA1)
    assert levels == [-1], "`_is_dense` of kbtui/history/objects/repository.py can go"


def test_addresses_are_not_rewritten_as_git_does() -> None:
    settings = ConfigFile.from_file(
        BytesIO(
            b'[URL "/a/"]\n insteadOf = a:\n[url "/long/"]\n insteadOf = bb:b\n'
            b'[url "/push/"]\n pushInsteadOf = bb:\n'
        )
    )
    ours = "`rewrite` of kbtui/history/sync/git_settings.py can use dulwich's: "
    assert apply_instead_of(settings, "a:x") == "a:x", f"{ours}sections in capitals count"
    pushed = apply_instead_of(settings, "bb:bx", push=True)
    assert pushed == "/long/x", f"{ours}an address for pushing comes first"


def test_a_shallow_line_of_the_first_protocol_is_taken_for_a_ref() -> None:
    lines = [b"1" * 40 + b" refs/heads/main\0agent=x\n", b"shallow " + b"2" * 40 + b"\n"]
    refs, _ = read_pkt_refs_v1(lines)
    assert b"shallow" in refs.values(), "`_SHALLOW` of kbtui/history/sync/transport.py can go"
