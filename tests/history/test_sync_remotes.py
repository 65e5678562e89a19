"""What a remote is: git's newer formats, copies that aren't whole, and addresses git rewrites."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dulwich.errors import HangupException

from kbtui.errors import RefusedHistoryError, RemoteError, UsageError
from kbtui.history.sync.git_settings import read_settings, ssh_command
from kbtui.history.sync.remote import parse_address, parse_ssh_short, remote_error
from tests.history.sync_room import Machine, fsck, plumb

if TYPE_CHECKING:
    from collections.abc import Callable

A = "knowledge/topics/a.md"
pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git isn't installed")


def _git(*arguments: object, at: Path | None = None) -> None:
    command = ["git", *(str(each) for each in arguments)]
    subprocess.run(command, check=True, capture_output=True, cwd=at)


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    """A machine that has synced three commits with a bare repository."""
    remote = tmp_path / "whole.git"
    _git("init", "-q", "--bare", "-b", "main", remote)
    machine = Machine(tmp_path / "here", remote)
    for text in ("one\n", "two\n", "three\n"):
        machine.write(A, text)
        machine.sync()
    return machine


@pytest.fixture
def fresh(tmp_path: Path) -> Callable[[Path | str], Machine]:
    return lambda remote: Machine(tmp_path / "fresh", remote)


def _shallow(whole: Path, copy: Path) -> None:
    _git("clone", "-q", "--bare", "--depth", "1", whole.as_uri(), copy)


def _partial(whole: Path, copy: Path) -> None:
    plumb(whole, "config", "uploadpack.allowFilter", "true")
    _git("clone", "-q", "--bare", "--filter=blob:none", whole.as_uri(), copy)


def _borrowing(whole: Path, copy: Path) -> None:
    _git("clone", "-q", "--bare", "--shared", whole, copy)
    (copy / "objects" / "info" / "alternates").write_text("/nowhere/objects\n", "utf-8")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (_shallow, r"shallow copy.*unshallow"),
        (_partial, r"partial copy.*refetch"),
        (_borrowing, r"borrows from /nowhere/objects.*repack"),
    ],
)
def test_a_copy_that_is_not_whole_is_named(
    here: Machine,
    fresh: Callable[[Path | str], Machine],
    tmp_path: Path,
    make: Callable[[Path, Path], None],
    what: str,
) -> None:
    copy = tmp_path / "copy.git"
    make(tmp_path / "whole.git", copy)
    other = fresh(copy)
    with pytest.raises(RefusedHistoryError) as caught:
        other.sync()
    sentence = f"{caught.value.message} {caught.value.hint}"
    assert re.search(what, sentence)
    assert other.history.head() is None
    here.check()


def test_a_shallow_copy_of_what_is_here_anyway_is_synced_with(
    here: Machine, tmp_path: Path
) -> None:
    _shallow(tmp_path / "whole.git", tmp_path / "copy.git")
    here.remote = str(tmp_path / "copy.git")
    here.write(A, "four\n")
    assert here.sync().sent == 1
    fsck(tmp_path / "copy.git")


def _sha_256(place: Path) -> None:
    _git("init", "-q", "--bare", "-b", "main", "--object-format=sha256", place)


def _sha_256_with_a_commit(place: Path) -> None:
    _git("init", "-q", "-b", "main", "--object-format=sha256", place)
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    _git(*who, "commit", "-q", "--allow-empty", "-m", "one", at=place)


def _with_settings(**settings: str) -> Callable[[Path], None]:
    def make(place: Path) -> None:
        _git("init", "-q", "--bare", "-b", "main", place)
        with (place / "config").open("a", encoding="utf-8") as file:
            for key, value in settings.items():
                section, _, name = key.partition("_")
                file.write(f"[{section}]\n\t{name} = {value}\n")

    return make


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (_sha_256, "keeps SHA-256 ids.*--object-format=sha1"),
        (_sha_256_with_a_commit, "keeps SHA-256 ids.*--object-format=sha1"),
        (
            _with_settings(core_repositoryformatversion="1", extensions_refStorage="reftable"),
            "reftables.*git refs migrate",
        ),
        (
            _with_settings(core_repositoryformatversion="1", extensions_fromTomorrow="true"),
            "extension fromTomorrow",
        ),
        (_with_settings(core_repositoryformatversion="2"), "newer format"),
    ],
)
def test_a_format_that_kbtui_cannot_write_is_told_and_nothing_is_sent(
    here: Machine, tmp_path: Path, make: Callable[[Path], None], what: str
) -> None:
    place = tmp_path / "other.git"
    make(place)
    before = sorted(path for path in place.rglob("*") if path.is_file())
    here.remote = str(place)
    with pytest.raises(RemoteError) as caught:
        here.sync()
    assert re.search(what, f"{caught.value.message} {caught.value.hint}")
    assert sorted(path for path in place.rglob("*") if path.is_file()) == before
    here.check()


def test_a_branch_whose_commit_is_gone_is_told(here: Machine, tmp_path: Path) -> None:
    remote = tmp_path / "whole.git"
    (remote / "refs" / "heads" / "main").write_text(f"{'ab' * 20}\n", "utf-8")
    here.write(A, "four\n")
    with pytest.raises(RemoteError, match="names the commit ababababab, which isn't there"):
        here.sync()


@pytest.mark.parametrize(
    ("file", "data", "what"),
    [
        ("refs/heads/main", b"\0" * 41, "is damaged"),
        ("packed-refs", b"torn\n", "is damaged"),
        ("config", b"[core]\n bare = perhaps\n", "has settings that git refuses"),
        ("config", b"[core\n", "has settings that git refuses"),
    ],
)
def test_a_damaged_file_of_a_repository_is_told(
    here: Machine, tmp_path: Path, file: str, data: bytes, what: str
) -> None:
    (tmp_path / "whole.git" / file).write_bytes(data)
    here.write(A, "four\n")
    with pytest.raises(RemoteError, match=what):
        here.sync()


def test_a_bundle_is_named(here: Machine, tmp_path: Path) -> None:
    bundle = tmp_path / "notes.bundle"
    plumb(tmp_path / "whole.git", "bundle", "create", "-q", str(bundle), "main")
    here.remote = str(bundle)
    with pytest.raises(RemoteError, match="is a bundle") as caught:
        here.sync()
    assert "git clone --bare notes.bundle" in caught.value.hint


@pytest.mark.parametrize("named", ["work", "work/.git", "tree"])
def test_a_branch_that_some_worktree_is_on_is_not_written(
    here: Machine, tmp_path: Path, named: str
) -> None:
    work, tree = tmp_path / "work", tmp_path / "tree"
    _git("clone", "-q", tmp_path / "whole.git", work)
    _git("checkout", "-q", "-b", "side", at=work)
    _git("worktree", "add", "-q", tree, "main", at=work)
    here.write(A, "four\n")
    here.remote = str(tmp_path / named)
    with pytest.raises(RemoteError, match="checked out"):
        here.sync()
    shutil.rmtree(tree)  # nothing is left that could stay behind
    if named != "tree":
        assert here.sync().sent


def test_a_worktree_in_a_rebase_holds_its_branch(here: Machine, tmp_path: Path) -> None:
    work = tmp_path / "work"
    _git("clone", "-q", tmp_path / "whole.git", work)
    _git("checkout", "-q", "--detach", at=work)
    here.write(A, "four\n")
    here.remote = str(work)
    (work / ".git" / "rebase-merge").mkdir()
    (work / ".git" / "rebase-merge" / "head-name").write_text("refs/heads/main\n", "utf-8")
    with pytest.raises(RemoteError, match="checked out"):
        here.sync()
    shutil.rmtree(work / ".git" / "rebase-merge")
    assert here.sync().sent == 1


def test_a_bare_repository_is_found_without_its_ending(here: Machine, tmp_path: Path) -> None:
    here.remote = str(tmp_path / "whole")
    here.write(A, "four\n")
    assert here.sync().sent == 1
    assert not (tmp_path / "whole").exists()


def test_a_name_alone_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folder origin") as caught:
        parse_address("origin", tmp_path)
    assert "./origin" in caught.value.hint
    assert parse_address("./origin", tmp_path).folder == tmp_path / "origin"


def test_the_topmost_folder_has_no_name_and_is_taken_for_a_folder() -> None:
    assert parse_address("/").folder == parse_address("file:///").folder == Path("/")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """git's settings of a user without any."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_SSH_COMMAND", "GIT_SSH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return home / ".gitconfig"


def _as_git_has_it(address: str) -> str:
    run = subprocess.run(
        ["git", "ls-remote", "--get-url", address], check=True, capture_output=True, text=True
    )
    return run.stdout.strip()


@pytest.mark.parametrize(
    "address", ["work:a.git", "work:deep/a.git", "big:a.git", "more:a.git", "git@example.org:a.git"]
)
def test_an_address_leads_where_it_leads_for_git(settings: Path, address: str) -> None:
    settings.with_name("more").write_text('[url "/more/"]\n insteadOf = more:\n', "utf-8")
    settings.write_text(
        """[url "/srv/"]
    insteadOf = work:
[url "ssh://me@example.org/"]
    insteadOf = "work:deep/"
[URL "/big/"]
    INSTEADOF = big: ; in capitals
[include]
    path = more
""",
        "utf-8",
    )
    found = parse_address(address)
    assert found.text == address
    assert found.url == _as_git_has_it(address)
    assert found.push is None


def test_a_rule_of_the_environment_counts(settings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not settings.exists()
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "url./srv/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "work:")
    assert parse_address("work:a.git").url == _as_git_has_it("work:a.git") == "/srv/a.git"


def test_a_rule_that_leads_nowhere_is_refused(settings: Path) -> None:
    settings.write_text('[url "ext::sh -c x "]\n insteadOf = work:\n', "utf-8")
    with pytest.raises(UsageError):
        parse_address("work:a.git")


def test_settings_that_cannot_be_read_change_no_address(settings: Path) -> None:
    settings.write_bytes(b'[url "/srv/\n\xff')
    assert parse_address("work:a.git").url == "work:a.git"


def test_notes_arrive_where_a_rewritten_address_leads(
    settings: Path, here: Machine, tmp_path: Path
) -> None:
    settings.write_text(f'[url "{tmp_path}/"]\n insteadOf = work:\n', "utf-8")
    here.remote = "work:whole.git"
    here.write(A, "four\n")
    report = here.sync()
    assert report.sent == 1
    assert report.remote == f"work:whole.git ({tmp_path / 'whole.git'})"


def test_what_is_sent_takes_the_address_for_sending(
    settings: Path, here: Machine, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "whole.git", tmp_path / "push" / "whole.git")
    settings.write_text(f'[url "{tmp_path}/push/"]\n pushInsteadOf = {tmp_path}/\n', "utf-8")
    before = plumb(tmp_path / "whole.git", "rev-parse", "main")
    here.write(A, "four\n")
    assert here.sync().sent == 1
    assert plumb(tmp_path / "whole.git", "rev-parse", "main") == before
    assert plumb(tmp_path / "push" / "whole.git", "rev-parse", "main") == here.history.head()


def test_a_folder_for_sending_is_looked_at_as_well(
    settings: Path, here: Machine, tmp_path: Path
) -> None:
    settings.write_text(f'[url "{tmp_path}/push/"]\n pushInsteadOf = {tmp_path}/\n', "utf-8")
    (tmp_path / "push").mkdir()
    _sha_256(tmp_path / "push" / "whole.git")
    here.write(A, "four\n")
    with pytest.raises(RemoteError, match="SHA-256"):
        here.sync()
    here.check()


def test_the_program_for_ssh_is_looked_up_in_gits_order(settings: Path) -> None:
    assert "BatchMode" in ssh_command({})
    assert ssh_command({"GIT_SSH": "a"}) == "a"
    settings.write_text("[core]\n sshCommand = b -i key\n", "utf-8")
    assert ssh_command({"GIT_SSH": "a"}) == "b -i key"
    assert ssh_command({"GIT_SSH": "a", "GIT_SSH_COMMAND": "c"}) == "c"


def test_ssh_asks_nothing_with_options_of_gits_settings_either(settings: Path) -> None:
    settings.write_text("[core]\n sshCommand = ssh -i ~/.ssh/work\n", "utf-8")
    assert ssh_command({}).startswith("ssh -i ~/.ssh/work -oBatchMode=yes ")


def test_the_path_of_the_program_for_ssh_may_have_blanks(settings: Path) -> None:
    assert not settings.exists()
    assert shlex.split(ssh_command({"GIT_SSH": "/opt/my tools/ssh"})) == ["/opt/my tools/ssh"]


def test_paths_in_settings_for_https_lead_home(settings: Path) -> None:
    settings.write_text("[http]\n sslCAInfo = ~/ca.pem\n sslVerify = true\n", "utf-8")
    found = read_settings()
    assert found is not None
    assert found.get((b"http",), b"sslCAInfo") == os.fsencode(settings.with_name("ca.pem"))
    assert "~" in settings.read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("git@example.org:me/a.git", ("git", "example.org", None, "me/a.git")),
        ("me@nas:/volume1/a.git", ("me", "nas", None, "/volume1/a.git")),
        ("nas:~/a.git", (None, "nas", None, "~/a.git")),
        ("me@[fe80::1]:/a.git", ("me", "fe80::1", None, "/a.git")),
        ("[nas:2222]:a.git", (None, "nas", 2222, "a.git")),
        ("C:/notes", None),
        ("https:/example.org/a.git", None),
        ("https://example.org/a.git", None),
        ("ext::sh", None),
    ],
)
def test_short_addresses_for_ssh(
    text: str, parts: tuple[str | None, str, int | None, str] | None
) -> None:
    assert parse_ssh_short(text) == parts


@pytest.fixture
def by_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh that runs the command here, as a server that knows git's first protocol only."""
    program = tmp_path / "ssh"
    script = 'unset GIT_PROTOCOL\nwhile [ $# -gt 1 ]; do shift; done\nexec sh -c "$1"\n'
    program.write_text(f"#!/bin/sh\n{script}", "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    return program


def test_notes_travel_by_a_short_address_with_an_absolute_path(
    here: Machine, tmp_path: Path, by_ssh: Path
) -> None:
    here.remote = f"me@nas:{tmp_path / 'whole.git'}"
    here.write(A, "four\n")
    assert by_ssh.exists()
    assert here.sync().sent == 1
    fsck(tmp_path / "whole.git")


def test_a_machine_that_is_not_there_is_no_missing_repository() -> None:
    said = "ssh: Could not resolve hostname nas: Name or service not known"
    error = remote_error(HangupException([said.encode()]), parse_address("nas:a.git"))
    assert error is not None
    assert error.message == "nas:a.git can't be reached: there is no such machine, or no network."


@pytest.mark.parametrize(("make", "what"), [(_sha_256, "SHA-256"), (None, "shallow copy")])
def test_a_server_of_the_first_protocol_is_told_as_well(
    here: Machine,
    fresh: Callable[[Path | str], Machine],
    tmp_path: Path,
    by_ssh: Path,
    make: Callable[[Path], None] | None,
    what: str,
) -> None:
    copy = tmp_path / "copy.git"
    if make is None:
        _shallow(tmp_path / "whole.git", copy)
    else:
        make(copy)
    assert by_ssh.exists()
    other = fresh(f"nas:{copy}")
    other.write(A, "mine\n")
    with pytest.raises((RemoteError, RefusedHistoryError), match=what):
        other.sync()
    here.check()
