from __future__ import annotations

import json
import os
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING

from kbtui.search.embedding import prepared
from kbtui.search.index.chunker import passage_key
from kbtui.search.query import reading
from kbtui.search.query.privacy_filter import PrivacyFilter
from kbtui.search.results import answers_by_meaning, without_weak
from kbtui.settings import (
    BUNDLED_EMBEDDING_MODEL,
    MULTILINGUAL_EMBEDDING_MODEL,
    RoleSettings,
    SearchSettings,
)
from tests.search.fakes import ReadyModel, SlowEmbedder, WordEmbedder
from tests.search.helpers import GERMAN, eventually, paths, write_old_segment

if TYPE_CHECKING:
    import pytest

    from kbtui.search.search_index import SearchIndex
    from tests.search.helpers import Desk


def test_what_means_the_same_is_found_without_the_word(desk: Desk) -> None:
    desk.write("knowledge/topics/vehicle.md", "# Garage\n\nAn automobile needs oil.\n")
    desk.write("knowledge/topics/cook.md", "# Kitchen\n\nBread needs flour.\n")
    index = desk.index(model=ReadyModel(WordEmbedder()))
    result = index.search("car", wait=True)
    assert result.semantic
    hit = result.hits[0]
    assert hit.path == "knowledge/topics/vehicle.md"
    assert hit.explain.lexical_rank is None
    assert hit.explain.semantic_rank == 1
    assert not hit.matches


def test_what_only_has_the_word_is_not_lost(desk: Desk) -> None:
    desk.write("knowledge/topics/odd.md", "# Odd\n\nzyzzyva " + "unrelated stuff. " * 60)
    for i in range(150):
        desk.write(f"knowledge/topics/n{i}.md", f"holiday vacation number {i}\n")
    index = desk.index(model=ReadyModel(WordEmbedder()))
    assert "knowledge/topics/odd.md" in paths(
        index.search("vacation zyzzyva", limit=200, wait=True)
    )


def test_meaning_can_be_left_out(desk: Desk) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    index = desk.index(model=ReadyModel(WordEmbedder()))
    assert not index.search("car", semantic=False, wait=True).hits


def test_a_renamed_file_is_not_embedded_again(desk: Desk) -> None:
    embedder = WordEmbedder()
    file = desk.write("knowledge/topics/a.md", "# Car\n\nAn automobile needs oil.\n")
    index = desk.index(model=ReadyModel(embedder))
    index.search("car", wait=True)
    count = len(embedder.seen)
    file.rename(file.with_name("b.md"))
    index.sync()
    assert paths(index.search("car", wait=True)) == ["knowledge/topics/b.md"]
    assert len(embedder.seen) == count > 0


def test_vectors_of_an_earlier_version_are_not_made_again(desk: Desk) -> None:
    desk.write("knowledge/topics/a.md", "# Car\n\nAn automobile needs oil.\n")
    first, again = WordEmbedder(), WordEmbedder()
    desk.index(model=ReadyModel(first)).search("car", wait=True)
    desk.close()
    folder = desk.workspace.cache / "search" / "vectors" / first.identity
    for file in folder.iterdir():
        file.unlink()
    texts = list(first.seen)
    write_old_segment(folder, [passage_key(text) for text in texts], first.documents(texts))
    assert desk.index(model=ReadyModel(again)).search("car", wait=True).semantic
    assert not again.seen


def test_what_was_stored_bit_by_bit_ends_in_one_file(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BATCH", 1)
    monkeypatch.setattr(reading, "_STORE_BATCH", 1)
    for number in range(30):
        desk.write(f"knowledge/topics/n{number}.md", f"Automobile number{number}.\n")
    index = desk.index(model=ReadyModel(WordEmbedder()))
    assert len(index.search("car", wait=True, limit=100).hits) == 30
    assert len(list(desk.workspace.cache.rglob("*.rows"))) == 1


def test_vectors_survive_a_restart_and_another_model_makes_its_own(desk: Desk) -> None:
    desk.write("knowledge/topics/a.md", "# Car\n\nAn automobile needs oil.\n")
    desk.index(model=ReadyModel(WordEmbedder())).search("car", wait=True)
    again, other = WordEmbedder(), WordEmbedder(identity="words-2")
    assert desk.index(model=ReadyModel(again)).search("car", wait=True).semantic
    assert not again.seen
    assert desk.index(model=ReadyModel(other)).search("car", wait=True).semantic
    assert other.seen


def test_private_entries_stay_on_this_machine(desk: Desk) -> None:
    desk.write("knowledge/people/kim.md", "---\nprivate: true\n---\nsecretword one\n")
    desk.write("knowledge/people/lee.md", "secretword two\n")
    desk.write("knowledge/people/ann.md", "secretword three\n")
    remote = WordEmbedder(is_local=False)
    privacy = PrivacyFilter(
        desk.workspace, lambda path: path.endswith("lee.md"), lambda _session: False
    )
    index = desk.index(model=ReadyModel(remote), privacy=privacy)
    found = paths(index.search("secretword", wait=True))
    assert len(found) == 3
    assert [text for text in remote.seen if "secretword" in text] == ["ann\nsecretword three"]


def test_while_the_model_is_prepared_words_answer_and_a_notice_says_so(desk: Desk) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    gate = threading.Event()
    index = desk.index(model=ReadyModel(WordEmbedder(), gate))
    index.start()
    eventually(lambda: index.status().state == "preparing")
    result = index.search("automobile")
    assert result.hits
    assert not result.semantic
    assert "Preparing" in result.notice
    gate.set()
    eventually(lambda: index.status().state == "ready")
    result = index.search("car")
    assert (result.semantic, result.notice) == (True, "")
    assert result.hits


def test_embedding_ends_when_its_time_is_over_and_goes_on_where_it_was(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(40):
        desk.write(f"knowledge/topics/n{number:02}.md", f"# Note\n\nThe word of n{number:02}.\n")
    embedder = WordEmbedder()
    clock = SimpleNamespace(monotonic=lambda: float(len(embedder.seen)))  # a passage a second
    monkeypatch.setattr(reading, "time", clock)
    index = desk.index(model=ReadyModel(embedder))
    index.sync()
    assert index.load_model()
    assert index.embed_missing(seconds=20.0) == 20
    assert index.status().state == "embedding"
    assert index.embed_missing(seconds=20.0) == 20
    assert index.status().state == "ready"
    assert len(set(embedder.seen)) == 40


def test_a_model_that_fails_leaves_words_and_says_why(desk: Desk) -> None:
    desk.write("knowledge/topics/vehicle.md", "An automobile needs oil.\n")
    embedder = WordEmbedder()
    index = desk.index(model=ReadyModel(embedder))
    index.search("automobile", wait=True)
    embedder.fail = True
    result = index.search("automobile", wait=True)
    assert result.hits
    assert not result.semantic
    assert "away" in index.search("automobile").notice
    embedder.fail = False
    assert index.search("automobile", wait=True).semantic
    assert not index.search("automobile").notice


def test_a_revision_is_searched_by_meaning_where_its_texts_have_vectors(desk: Desk) -> None:
    car, bread = b"An automobile needs oil.\n", b"Bread needs flour.\n"
    path, other = "knowledge/topics/a.md", "knowledge/topics/b.md"
    desk.write(path, car)
    desk.write(other, bread)
    then = {
        "now": [(path, car), (other, bread)],
        "mostly": [(f"knowledge/topics/n{i}.md", car) for i in range(9)] + [(other, b"New.\n")],
        "before": [(path, b"An automobile needs fuel.\n"), (other, b"Old bread.\n")],
    }
    embedder = WordEmbedder()
    index = desk.index(model=ReadyModel(embedder), tree_at=lambda revision: then[revision])
    for i in range(9):
        desk.write(f"knowledge/topics/n{i}.md", car)
    index.search("car", wait=True)
    seen = len(embedder.seen)
    desk.write(path, "Something else by now.\n")
    index.refresh([path])
    assert index.search("else").semantic
    result = index.search("car", at="now")
    assert (result.semantic, result.notice, paths(result)[0]) == (True, "", path)
    assert result.hits[0].explain.semantic_rank == 1
    result = index.search("car", at="mostly", limit=20)
    assert result.semantic
    assert [hit.score for hit in result.hits] == sorted(
        (h.score for h in result.hits), reverse=True
    )
    assert paths(index.search("new", at="mostly"))[0] == other
    result = index.search("fuel", at="before")
    assert (result.semantic, paths(result)) == (False, [path])
    assert not index.search("car", at="now", semantic=False).hits
    assert not index.search("path:topics", at="now").semantic
    assert len(embedder.seen) == seen + 1  # the one edit of today


def test_a_revision_is_searched_by_words_where_the_model_fails(desk: Desk) -> None:
    text = b"An automobile needs oil.\n"
    desk.write("knowledge/topics/a.md", text)
    embedder = WordEmbedder()
    index = desk.index(
        model=ReadyModel(embedder), tree_at=lambda _: [("knowledge/topics/a.md", text)]
    )
    index.search("car", wait=True)
    embedder.fail = True
    result = index.search("automobile", at="then")
    assert (result.semantic, len(result.hits)) == (False, 1)
    assert "away" in result.notice
    embedder.fail = False
    assert index.search("car", at="then").semantic


def test_the_weights_of_words_and_meaning_are_settings(desk: Desk) -> None:
    desk.write("knowledge/topics/words.md", "car " * 3 + "and a lot of other things. " * 30)
    desk.write("knowledge/topics/meaning.md", "automobile\n")
    only_words = SearchSettings(vector_weight=0, text_weight=1)
    only_meaning = SearchSettings(vector_weight=1, text_weight=0)
    first = desk.index(model=ReadyModel(WordEmbedder()), settings=only_words)
    assert paths(first.search("car", wait=True))[0] == "knowledge/topics/words.md"
    second = desk.index(model=ReadyModel(WordEmbedder()), settings=only_meaning)
    assert paths(second.search("car", wait=True))[0] == "knowledge/topics/meaning.md"


def test_what_is_open_comes_first_then_its_links_then_what_is_recent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.search.query.reading._BATCH", 16)
    names = [f"n{number:02}" for number in range(60)]
    for age, name in enumerate(names):  # n00 is the newest
        file = desk.write(f"knowledge/topics/{name}.md", f"# Note\n\nThe word of {name}.\n")
        os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))
    embedder = SlowEmbedder(rougher=False)
    index = desk.index(model=ReadyModel(embedder))
    index.prioritize([f"knowledge/topics/{name}.md" for name in ("n57", "n33", "n58")])
    index.start()
    embedder.let.release()
    eventually(lambda: len(embedder.seen) == 16)
    assert [text.rpartition(" ")[2] for text in reversed(embedder.seen)] == [
        *("n58.", "n33.", "n57."),
        *(f"{name}." for name in names[:13]),
    ]
    index.prioritize(["knowledge/topics/n59.md"])  # opened meanwhile
    embedder.let.release(2)
    eventually(lambda: len(embedder.seen) == 48)
    assert any("n59" in text for text in embedder.seen)
    embedder.let.release(100)
    eventually(lambda: index.status().state == "ready")


def test_the_model_before_answers_until_another_one_has_read_enough(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbtui.search.query.reading._BATCH", 16)
    for number in range(60):
        desk.write(f"knowledge/topics/n{number:02}.md", f"# Note {number}\n\nNothing of it.\n")
    desk.write("knowledge/topics/aa.md", "# Trip\n\nThe holiday was wet.\n")
    old = WordEmbedder(identity="words-1")

    def answered_by(index: SearchIndex, *embedders: WordEmbedder) -> list[bool]:
        before = [len(each.asked) for each in embedders]
        found = eventually(lambda: (r := index.search("vacation")).semantic and r)
        assert paths(found)[0] == "knowledge/topics/aa.md"
        return [len(each.asked) > one for each, one in zip(embedders, before, strict=True)]

    index = desk.index(model=ReadyModel(old))
    index.search("vacation", wait=True)
    index.close()
    cut = SlowEmbedder(identity="words-2", rougher=False)
    index = desk.index(model=ReadyModel(cut, before=[old]))
    index.start()
    assert answered_by(index, old, cut) == [True, False]
    cut.let.release(2)
    eventually(lambda: len(cut.seen) == 32)
    assert answered_by(index, old, cut) == [True, False]
    cut.fail = True
    cut.let.release()
    index.close()

    new = SlowEmbedder(identity="words-2", rougher=False)
    index = desk.index(model=ReadyModel(new, before=[old]))
    index.start()
    assert answered_by(index, old, new) == [True, False]
    new.let.release(2)
    eventually(lambda: index.status().state == "ready")
    assert len(cut.seen) + len(new.seen) == len(old.seen)
    assert answered_by(index, old, new) == [False, True]
    index.close()

    back = WordEmbedder(identity="words-1")
    index = desk.index(model=ReadyModel(back, before=[new]))
    index.start()
    assert answered_by(index, new, back) == [False, True]
    eventually(lambda: index.status().state == "ready")
    assert not back.seen


def test_the_model_before_answers_while_another_one_is_prepared(desk: Desk) -> None:
    desk.write("knowledge/topics/aa.md", "# Trip\n\nThe holiday was wet.\n")
    old, new = WordEmbedder(identity="words-1"), WordEmbedder(identity="words-2")
    desk.index(model=ReadyModel(old)).search("vacation", wait=True)
    is_prepared = threading.Event()
    command = desk.index(model=ReadyModel(new, is_prepared, before=[old]))
    result = command.search("vacation")
    assert (paths(result), result.semantic) == (["knowledge/topics/aa.md"], True)
    assert result.notice == "The embedding model isn't prepared. words answers until then."
    assert [each.path for each in command.similar("knowledge/topics/aa.md").notes] == []
    app = desk.index(model=ReadyModel(new, is_prepared, before=[old]))
    app.start()
    eventually(lambda: app.status().state == "preparing")
    assert app.search("vacation").semantic
    assert "words answers meanwhile" in app.search("vacation").notice
    assert "words answers meanwhile" in app.status().message
    assert not new.seen
    is_prepared.set()
    eventually(lambda: app.status().state == "ready")
    app.search("vacation")
    assert (len(new.seen), new.asked) == (1, ["vacation"])


def test_a_model_that_cannot_be_had_is_not_stood_in_for(desk: Desk) -> None:
    desk.write("knowledge/topics/aa.md", "# Trip\n\nThe holiday was wet.\n")
    desk.index(model=ReadyModel(WordEmbedder())).search("vacation", wait=True)
    index = desk.index(settings=SearchSettings(), embed=RoleSettings(model="BAAI/bge-m3"))
    result = index.search("vacation", wait=True)
    assert not result.semantic
    assert result.notice.endswith("Searching by words.")


def test_the_model_is_changed_and_changed_back_while_the_app_runs(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both models of before answer until the new one has read the notes; nothing is read twice."""
    first, second, new = (WordEmbedder(identity=f"words-{n}") for n in range(3))
    first.name, new.name = BUNDLED_EMBEDDING_MODEL, "moon"
    is_prepared = threading.Event()
    models = {
        None: ReadyModel(first, before=[new]),
        MULTILINGUAL_EMBEDDING_MODEL: ReadyModel(second),
        "moon": ReadyModel(new, is_prepared, before=[first]),
    }
    monkeypatch.setattr(prepared, "ConfiguredModel", lambda role: models[role.model])
    desk.write("knowledge/topics/car.md", GERMAN)

    def answered_by(*embedders: WordEmbedder) -> list[bool]:
        before = [len(each.asked) for each in embedders]
        assert index.search("Wagen").semantic
        return [len(each.asked) > one for each, one in zip(embedders, before, strict=True)]

    index = desk.index(settings=SearchSettings())
    index.start()
    eventually(lambda: index.status().state == "ready" and second.seen)
    assert answered_by(first, second, new) == [True, True, False]
    index.use_model(RoleSettings(model="moon"))
    eventually(lambda: index.status().state == "preparing")
    assert answered_by(first, second, new) == [True, True, False]
    is_prepared.set()
    eventually(lambda: index.status().state == "ready" and index.status().model == "moon")
    assert answered_by(first, second, new) == [False, False, True]
    index.use_model(RoleSettings())
    eventually(lambda: index.status().model == BUNDLED_EMBEDDING_MODEL)
    eventually(lambda: index.status().state == "ready")
    assert answered_by(first, second, new) == [True, True, False]
    assert (len(first.seen), len(second.seen), len(new.seen)) == (1, 1, 1)


def test_a_folder_that_changes_all_the_time_is_read_for_meaning_all_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_BATCH", "_STORE_BATCH"):
        monkeypatch.setattr(f"kbtui.search.query.reading.{name}", 16)
    names = [f"n{number:02}" for number in range(100)]
    for name in names:
        desk.write(f"knowledge/topics/{name}.md", f"# Note\n\nThe word of {name}.\n")
    embedder = SlowEmbedder(rougher=False)
    index = desk.index(model=ReadyModel(embedder))
    index.start()
    for turn in range(20):  # every other note, while a batch is embedded
        for name in names[::2]:
            desk.write(f"knowledge/topics/{name}.md", f"# Note\n\nTurn {turn} of {name}.\n")
        index.refresh([f"knowledge/topics/{name}.md" for name in names[::2]])
        before = len(embedder.seen)
        embedder.let.release()
        eventually(lambda before=before: len(embedder.seen) > before)
    quiet = {text.rpartition(" ")[2] for text in embedder.seen if "The word of" in text}
    assert quiet >= {f"{name}." for name in names[1::2]}  # none of those that rest waits for ever
    embedder.let.release(100)
    eventually(lambda: index.status().state == "ready" and index.status().embedded >= 100)
    # Each text about once, and not all thousand versions; some were being embedded as they changed.
    assert len(embedder.seen) < 20 * 16 + 200
    assert index.search("n02 turn 19").semantic


def test_what_has_no_word_of_the_query_stands_below_what_has_one(desk: Desk) -> None:
    desk.write("knowledge/car.md", "# Car\n\nIt needs oil.\n")
    desk.write("knowledge/vehicle.md", "# Garage\n\nAn automobile needs oil.\n")
    result = desk.index(model=ReadyModel(WordEmbedder())).search("car", wait=True, by_chance=True)
    strong, weak = without_weak(result.hits)
    assert [hit.path for hit in strong] == ["knowledge/car.md"]
    assert [hit.path for hit in weak] == ["knowledge/vehicle.md"]


def test_a_message_next_to_the_word_stands_below_the_one_that_has_it(desk: Desk) -> None:
    said = ["The boiler is loud.", "Yes, it is.", "Who can mend such a thing?"]
    log = [
        {"id": number, "time": f"2026-03-25T14:0{number}:00+00:00", "role": "user", "content": text}
        for number, text in enumerate(said, 1)
    ]
    desk.write("sessions/s1.jsonl", "".join(json.dumps(each) + "\n" for each in log))
    strong, weak = without_weak(desk.index().search("boiler", "sessions").hits)
    assert [hit.messages for hit in strong] == [(1, 1)]
    assert [hit.why_weak for hit in weak] == ["next to the words"] * len(weak) != []


def test_what_no_note_has_the_word_of_is_by_meaning_alone_among_ten_notes(desk: Desk) -> None:
    for number in range(9):
        desk.write(f"knowledge/{number}.md", f"# Note {number}\n\nCall the plumber on friday.\n")
    desk.write("knowledge/vehicle.md", "# Garage\n\nAn automobile needs oil.\n")
    result = desk.index(model=ReadyModel(WordEmbedder())).search("car", wait=True, by_chance=True)
    strong, weak = without_weak(result.hits)
    assert not strong
    assert weak[0].path == "knowledge/vehicle.md"
    assert answers_by_meaning(strong, weak) == any(hit.is_relevant for hit in weak)
