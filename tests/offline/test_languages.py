"""A language is a file of lists and takes no code."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kbtui
from kbtui.cache import COMPILED, cache_folder
from kbtui.offline import language as language_module
from kbtui.offline.frames import kin_of
from kbtui.offline.language import Language, known_stems, languages, of_all, stems_of
from kbtui.offline.message import Kind, read_message
from kbtui.offline.names import lines_by_name
from kbtui.search.index.time_words import says_when


def test_english_comes_first_and_every_language_has_every_list() -> None:
    found = languages()
    assert [each.code for each in found] == ["en", "de", "es", "fr", "it"]
    for each in found:
        lists = ("question", "greeting", "thanks", "talk", "remember", "decision", "task", "small")
        assert all(each.lists[name] for name in lists), each.code


def test_the_words_for_relatives_have_the_same_order_everywhere() -> None:
    texts = (
        "My brother Jo.",
        "Mein Bruder Jo.",
        "Mi hermano Jo.",
        "Mon frère Jo.",
        "Mio fratello Jo.",
    )
    assert {len(each.frames["kin"]) for each in languages()} == {16}
    assert {(kin_of(text, "Jo") or (None,))[0] for text in texts} == {3}


@pytest.mark.parametrize("language", languages(), ids=lambda each: each.code)
def test_numbers_days_and_months_have_their_place(language: Language) -> None:
    ordered = [language.lists[name] for name in ("numbers", "weekdays", "months")]
    assert list(map(len, ordered)) == [11, 7, 12]
    assert language.places["months"][language.lists["months"][4]] == 4
    assert "nothing" not in language.places["weekdays"]


@pytest.mark.parametrize("language", languages(), ids=lambda each: each.code)
def test_every_language_has_phrases_for_days_and_times_of_each_kind(language: Language) -> None:
    kinds = set(_kinds(language.times))
    assert kinds >= {"day", "week", "weekend", "month", "year", "past", "future", "vague"}
    assert kinds >= {"last", "next", "this", "named", "lastmonth", "nextmonth", "none"}
    assert kinds >= {"age", "birthday", "clock", "midnight"}
    assert {"before", "after"} == set(_kinds(language.halves))
    units = {value[0] for value in _leaves(language.slots["UNIT"])}
    assert units == {"minute", "hour", "day", "week", "month", "year"}
    assert set(_leaves(language.slots["NUMBER"])) >= {*range(1, 21), *range(30, 100, 10)}


def _kinds(place: dict[str, Any]) -> Iterator[str]:
    return (kind for kind, _ in _leaves(place))


def _leaves(place: dict[str, Any]) -> Iterator[Any]:
    for word, below in place.items():
        if word:
            yield from _leaves(below)
        else:
            yield below


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Bonjour", "greeting"),
        ("merci beaucoup", "thanks"),
        ("quand arrive le plombier", "question"),
        ("souviens-toi que maman ne mange pas de noix", "remember"),
        ("on a décidé de vendre la voiture", "decision"),
        ("rappelle-moi de payer le loyer", "task"),
        ("Le plombier passe jeudi à 9 h", "statement"),
        ("Je ne travaille plus le mercredi", "statement"),
        ("ciao", "greeting"),
        ("grazie mille", "thanks"),
        ("quando arriva l'idraulico", "question"),
        ("ricorda che mamma non mangia noci", "remember"),
        ("abbiamo deciso di vendere la macchina", "decision"),
        ("ricordami di pagare l'affitto", "task"),
        ("L'idraulico passa giovedì alle 9", "statement"),
        ("Non lavoro più il mercoledì", "statement"),
    ],
)
def test_two_languages_work_that_no_rule_was_written_for(text: str, kind: Kind) -> None:
    assert read_message(text).kind == kind


def test_a_word_of_one_language_is_none_of_another() -> None:
    assert read_message("come to dinner on Friday, it is at the Bauers").kind == "statement"
    assert read_message("que ella no viene el jueves lo dijo Ana").kind == "question"  # reads so


def test_names_are_told_in_each_of_them() -> None:
    assert set(lines_by_name(["Hier j'ai vu Amélie Poulain à Lyon"])) == {"Amélie Poulain", "Lyon"}
    assert set(lines_by_name(["Ieri ho visto Carlo a Bologna"])) == {"Carlo", "Bologna"}
    german = ["Gestern war Jonas Weber mit dem Hund im Park", "Der Hund von Jonas Weber ist krank"]
    assert dict(lines_by_name(german)) == {"Jonas Weber": (0, 1)}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The folder of languages in a package of one's own, as in a source checkout."""
    ours = Path(kbtui.__file__).parent
    copy = tmp_path / "kbtui"
    copy.mkdir()
    for each in ours.iterdir():
        if each.name != "offline":
            (copy / each.name).symlink_to(each)
    shutil.copytree(ours / "offline", copy / "offline")
    return copy / "offline" / "languages"


def _kind_of(text: str, package: Path) -> str:
    """The kind of a message, read by a process of its own."""
    code = "import sys; from kbtui.offline.message import read_message as read\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print(read(sys.argv[1]).kind)", text],
        env={**os.environ, "PYTHONPATH": str(package.parents[2])},
        cwd=package,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_an_edited_language_file_is_read_at_once(package: Path) -> None:
    assert _kind_of("salutations", package) == "statement"
    assert (cache_folder(COMPILED) / "languages.json").exists()
    file = package / "fr.ini"
    status = file.stat()
    file.write_text(file.read_text("utf-8").replace("bonjour", "salutations"), "utf-8")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert _kind_of("salutations", package) == "greeting"
    assert _kind_of("bonjour", package) == "statement"


def test_a_new_language_is_its_file_and_nothing_else(package: Path) -> None:
    assert _kind_of("goddag", package) == "statement"
    text = (package / "fr.ini").read_text("utf-8").replace("bonjour", "goddag")
    (package / "da.ini").write_text(text, "utf-8")
    assert _kind_of("goddag", package) == "greeting"
    (package / "da.ini").unlink()
    assert _kind_of("goddag", package) == "statement"


def test_lists_from_the_cache_are_those_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> list[object]:
        for cached in (language_module._compiled, languages, known_stems, stems_of):
            cached.cache_clear()
        return [languages(), known_stems(), *map(stems_of, ("change", "write", "claim"))]

    built = read()
    assert (cache_folder(COMPILED) / "languages.json").exists()
    compilations: list[object] = []
    monkeypatch.setattr(language_module, "_compile", compilations.append)
    assert read() == built
    assert not compilations


def test_a_phrase_is_matched_by_its_words_and_by_its_colon() -> None:
    text = "Rappelle-moi de payer"
    found = language_module.tokens(text)
    assert of_all("task").match(text, found) == 3
    assert "todo" in of_all("task").words
    assert "remind me to" not in of_all("task").words
    for typed, length in (("to do: pay", 2), ("to do pay", 0), ("TO-DO : pay", 2)):
        assert of_all("task").match(typed, language_module.tokens(typed)) == length


@pytest.mark.parametrize("kind", ["months", "weekdays"])
def test_search_knows_the_days_and_months_of_every_language(kind: str) -> None:
    """The lists of `kbtui/search/index/time_words.py`, which can't read the languages' files."""
    for language in languages():
        places = language.places[kind]
        known = {place for name, place in places.items() if says_when(name)}
        unknown = {name for name, place in places.items() if place not in known}
        assert unknown <= {"may", "mays"}, language.code  # which is mostly a verb


@pytest.mark.parametrize("word", ["hier", "été", "mes", "tag", "fall", "may"])
def test_a_common_word_of_another_language_says_no_time(word: str) -> None:
    assert not says_when(f"so {word} so")
