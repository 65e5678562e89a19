from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import UsageError
from kbtui.settings import SearchSettings
from tests.search.helpers import only, paths

if TYPE_CHECKING:
    from tests.search.helpers import Desk


def entry(title: str, body: str, **properties: object) -> str:
    head = "".join(f"{key}: {value}\n" for key, value in properties.items())
    return f"---\n{head}---\n# {title}\n\n{body}\n"


@pytest.fixture
def notes(desk: Desk) -> Desk:
    desk.write(
        "knowledge/decisions/2026-03-auth.md",
        entry("Session tokens", "We keep session tokens in the database.", type="decision",
              tags="[auth, area/backend]", created="2026-03-14", updated="2026-03-20"),
    )  # fmt: skip
    desk.write(
        "knowledge/topics/docker.md",
        entry("Docker", "Containers share the kernel. Tokens are not mentioned.", type="topic",
              tags="[ops]", created="2025-01-02"),
    )  # fmt: skip
    desk.write("knowledge/people/zoé.md", entry("Zoé", "Leads the auth team.", type="person"))
    desk.write("memory/2026-03-25.md", "# Notes\n\n- The user prefers tabs.\n")
    desk.write("docs/nanobot/README.md", "# Nanobot\n\nRun `kb_tui --serve` to start.\n")
    desk.write("docs/other/plan.txt", "Plan for the winter: insulate the attic.\n")
    said = {
        "id": 1,
        "time": "2026-03-25T10:00:00+00:00",
        "role": "user",
        "content": "My dog is Rex.",
    }
    desk.write("sessions/tui_1.jsonl", json.dumps(said) + "\n")
    return desk


def test_a_hit_tells_where_it_is_and_why(notes: Desk) -> None:
    result = notes.index().search("session tokens", limit=1)
    hit = only(result)
    assert hit.path == "knowledge/decisions/2026-03-auth.md"
    assert (hit.title, hit.heading) == ("Session tokens", "Session tokens")
    assert hit.lines == (7, 9)
    marked = {hit.snippet[start:end].lower() for start, end in hit.matches}
    assert marked == {"session", "tokens"}
    assert hit.explain.lexical_rank == 1
    assert hit.explain.semantic_rank is None
    assert 0 < hit.score <= 1
    assert hit.updated == "2026-03-20"
    assert not result.semantic


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("type:decision tokens", ["2026-03-auth.md"]),
        ("tag:auth", ["2026-03-auth.md"]),
        ("tag:area", ["2026-03-auth.md"]),
        ("#area/backend", ["2026-03-auth.md"]),
        ("updated:2026-03", ["2026-03-25.md", "2026-03-auth.md"]),
        ("created:<2026 containers", ["docker.md"]),
        ("tokens -database", ["docker.md"]),
        ('"session tokens"', ["2026-03-auth.md"]),
        ('"tokens session"', []),
        ('tokens -"session tokens"', ["docker.md"]),
        ("+kernel tokens", ["docker.md"]),
        ("title:docker", ["docker.md"]),
        ("path:people auth", ["zoé.md"]),
        ("zoe", ["zoé.md"]),
        ("kontain*", []),
        ("contain*", ["docker.md"]),
        ("insul", ["plan.txt"]),
        ("kb_tui", ["README.md"]),
        ("attic winter", ["plan.txt"]),
    ],
)
def test_the_query_language_does_what_it_says(notes: Desk, query: str, expected: list[str]) -> None:
    found = paths(notes.index().search(query))
    assert sorted(path.rpartition("/")[2] for path in found) == sorted(expected)


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("default", set()),
        ("sessions", {"sessions/tui_1.jsonl"}),
        ("all", {"sessions/tui_1.jsonl"}),
        ("memory,sessions", {"sessions/tui_1.jsonl"}),
        ("nowhere", set()),
    ],
)
def test_conversations_are_searched_when_asked_for(
    notes: Desk, scope: str, expected: set[str]
) -> None:
    assert set(paths(notes.index().search("rex", scope))) == expected


def test_a_scope_is_any_folder(notes: Desk) -> None:
    index = notes.index()
    assert paths(index.search("start plan", "docs/other")) == ["docs/other/plan.txt"]
    assert paths(index.search("tokens", "knowledge/topics")) == ["knowledge/topics/docker.md"]


def test_a_message_is_found_with_its_session_and_number(notes: Desk) -> None:
    hit = only(notes.index().search("what is my dog called rex", "sessions"))
    assert (hit.session, hit.messages) == ("tui_1", (1, 1))


def test_a_long_question_finds_what_answers_part_of_it(notes: Desk) -> None:
    asked = "Could you tell me where on earth we decided to keep the tokens of a session?"
    assert paths(notes.index().search(asked))[0] == "knowledge/decisions/2026-03-auth.md"


@pytest.mark.parametrize(
    "query", ["", " ", "-", "*", '"', "type:", "the", "🙂", "\0", "a" * 100_000]
)
def test_any_query_has_an_answer(notes: Desk, query: str) -> None:
    result = notes.index().search(query)
    assert isinstance(result.hits, tuple)


def test_a_misspelt_word_is_pointed_out(notes: Desk) -> None:
    result = notes.index().search("databse tokens")
    assert result.suggestion == "database tokens"
    assert notes.index().search("database tokens").suggestion is None


def test_no_other_word_is_offered_for_one_that_asks(desk: Desk) -> None:
    desk.write("knowledge/topics/hosts.md", "# Hosts\n\nThe three hosts.\n")
    assert desk.index().search("where do we host and why").suggestion is None


def test_the_first_hits_do_not_depend_on_the_limit(desk: Desk) -> None:
    for i in range(60):
        desk.write(f"knowledge/topics/n{i}.md", f"# Note {i}\n\n{'apple ' * (i % 7)} pear\n")
    index = desk.index()
    full = paths(index.search("apple pear", limit=60))
    assert len(full) == 60
    for limit in (1, 5, 10, 33):
        assert paths(index.search("apple pear", limit=limit)) == full[:limit]


def test_equal_hits_stand_in_the_order_of_their_paths(desk: Desk) -> None:
    for name in ("c", "a", "b"):
        desk.write(f"knowledge/topics/{name}.md", "Same words here.\n")
    index = desk.index()
    assert [path[-4] for path in paths(index.search("same words"))] == ["a", "b", "c"]


def test_filters_alone_list_the_newest_first(desk: Desk) -> None:
    for day in ("2026-01-01", "2026-03-01", "2026-02-01"):
        desk.write(f"knowledge/topics/{day}.md", entry("T", "x", tags="[a]", updated=day))
    found = desk.index().search("tag:a").hits
    assert [hit.updated for hit in found] == ["2026-03-01", "2026-02-01", "2026-01-01"]


def test_an_entry_is_one_hit_and_a_long_document_several(desk: Desk) -> None:
    text = "\n\n".join(f"## Part {i}\n\napple {'filler words follow. ' * 120}" for i in range(8))
    desk.write("knowledge/topics/long.md", text)
    desk.write("docs/p/long.md", text)
    found = paths(desk.index().search("apple"))
    assert found.count("knowledge/topics/long.md") == 1
    assert found.count("docs/p/long.md") == 5


def test_a_change_is_found_once_it_was_told(notes: Desk) -> None:
    index = notes.index()
    index.sync()
    notes.write("knowledge/topics/new.md", "# Quokka\n")
    (notes.root / "knowledge/topics/docker.md").unlink()
    assert not index.search("quokka").hits
    index.refresh(["knowledge/topics/new.md", "knowledge/topics/docker.md"])
    assert paths(index.search("quokka")) == ["knowledge/topics/new.md"]
    assert not index.search("kernel").hits


def test_a_folder_that_was_renamed_is_found_under_its_new_name(notes: Desk) -> None:
    index = notes.index()
    index.sync()
    (notes.root / "docs/nanobot").rename(notes.root / "docs/renamed")
    index.refresh(["docs/nanobot", "docs/renamed"])
    assert paths(index.search("nanobot serve")) == ["docs/renamed/README.md"]


def test_sync_says_what_changed(notes: Desk) -> None:
    index = notes.index()
    first = index.sync()
    assert (first.files, first.added, first.changed, first.removed) == (7, 7, 0, 0)
    notes.write("memory/2026-03-25.md", "# Notes\n\nOther.\n")
    (notes.root / "docs/other/plan.txt").unlink()
    notes.write("docs/other/new.txt", "New.\n")
    second = index.sync()
    assert (second.added, second.changed, second.removed) == (1, 1, 1)
    third = index.sync()
    assert (third.added, third.changed, third.removed) == (0, 0, 0)


def test_what_is_ignored_is_not_found_even_when_it_was_told(notes: Desk) -> None:
    notes.write(".kbtuiignore", "docs/secret/\n")
    index = notes.index()
    index.sync()
    notes.write("docs/secret/a.md", "quokka\n")
    index.refresh(["docs/secret/a.md"])
    assert not index.search("quokka").hits


def test_another_index_over_the_same_cache_sees_the_changes(notes: Desk) -> None:
    one, other = notes.index(), notes.index()
    one.sync()
    assert other.search("kernel").hits
    notes.write("knowledge/topics/new.md", "# Quokka\n")
    one.refresh(["knowledge/topics/new.md"])
    one.refresh_now()
    assert paths(other.search("quokka")) == ["knowledge/topics/new.md"]


def test_opening_again_reads_no_file(notes: Desk) -> None:
    notes.index().sync()
    report = notes.index().sync()
    assert (report.files, report.added, report.changed, report.rebuilt) == (7, 0, 0, "")


def test_further_folders_of_the_workspace_can_be_searched(notes: Desk) -> None:
    from kbtui.settings import SearchSettings

    notes.write("Clippings/a.md", "quokka\n")
    index = notes.index(settings=SearchSettings(semantic=False, roots=("Clippings",)))
    assert paths(index.search("quokka")) == ["Clippings/a.md"]


def test_searching_at_a_revision_searches_the_files_of_then(notes: Desk) -> None:
    then = {
        "first": [("knowledge/topics/old.md", b"# Old\n\nWe used Mercurial.\n")],
        "second": [("knowledge/topics/old.md", b"# Old\n\nWe use git.\n")],
    }
    index = notes.index(tree_at=lambda revision: then[revision])
    assert only(index.search("mercurial", at="first")).snippet.endswith("We used Mercurial.")
    assert not index.search("mercurial", at="second").hits
    assert not index.search("mercurial").hits
    assert paths(index.search('"use git" path:topics', at="second")) == ["knowledge/topics/old.md"]


def test_searching_at_a_revision_needs_a_history(notes: Desk) -> None:
    with pytest.raises(UsageError):
        notes.index().search("x", at="HEAD")


def test_appending_to_a_conversation_leaves_its_other_messages_alone(desk: Desk) -> None:
    def line(number: int) -> str:
        return (
            json.dumps({"id": number, "role": "user", "content": f"Message number{number}."}) + "\n"
        )

    log = desk.write("sessions/tui_1.jsonl", "".join(line(n) for n in range(1, 51)))
    index = desk.index()
    index.sync()
    store = index._generations().serving.store
    before = {number for number, _, _ in store.passage_keys()}
    with log.open("a") as stream:
        stream.write(line(51))
    index.refresh(["sessions/tui_1.jsonl"])
    index.refresh_now()
    after = {number for number, _, _ in store.passage_keys()}
    # The new message, and the previous one, whose context has changed.
    assert len(after - before) == 2
    assert only(index.search("number51", "sessions", limit=1)).messages == (51, 51)


def test_lines_that_moved_are_right_again_without_indexing_the_words_again(desk: Desk) -> None:
    section = "Filler words stand here. " * 40
    text = "\n\n".join(f"## S{i}\n\n{section}\n\nneedle{i}" for i in range(6))
    desk.write("docs/p/a.md", text)
    index = desk.index()
    first = only(index.search("needle5", limit=1)).lines
    desk.write("docs/p/a.md", "Two new\nlines\n\n" + text)
    index.refresh(["docs/p/a.md"])
    moved = only(index.search("needle5", limit=1)).lines
    assert (moved[0] - first[0], moved[1] - first[1]) == (3, 3)


def test_old_hits_fade_in_the_folders_that_are_told_to(desk: Desk) -> None:
    desk.write("memory/2020-01-01.md", "The tokens rotate weekly, tokens and tokens.")
    desk.write(f"memory/{datetime.now(UTC).date()}.md", "The tokens rotate daily now, they say.")
    desk.write("memory/MEMORY.md", "A note of no date at all about wombats.")
    desk.write("docs/p/2020-01-02.md", "Once a week tokens rotate: tokens and tokens.")

    def order(**decay: float) -> list[str]:
        index = desk.index(settings=SearchSettings(semantic=False, decay_days=decay))
        return paths(index.search("tokens rotate", scope="memory"))

    assert order()[0] == "memory/2020-01-01.md"
    assert order(memory=30)[0] != "memory/2020-01-01.md"
    assert order(docs=30)[0] == "memory/2020-01-01.md"
    index = desk.index(settings=SearchSettings(semantic=False, decay_days={"memory": 30}))
    boosts = {hit.path: hit.explain.boosts for hit in index.search("tokens rotate").hits}
    assert 0 <= boosts["memory/2020-01-01.md"]["recency"] < 0.01
    assert not boosts["docs/p/2020-01-02.md"]


def test_it_is_rebuilt_on_request(notes: Desk) -> None:
    index = notes.index()
    before = index.search("session tokens").hits
    report = index.rebuild()
    assert report.added == report.files > 0
    assert index.search("session tokens").hits == before


def test_the_archive_of_a_year_is_searched_by_record(desk: Desk) -> None:
    record = {"cursor": 1, "timestamp": "2024-05-01 10:00", "content": "Chose the quagga store."}
    desk.write("memory/history-2024.jsonl", json.dumps(record | {"session": "tui_9"}) + "\n")
    hit = only(desk.index().search("quagga", scope="memory"))
    assert (hit.path, hit.session, hit.updated) == (
        "memory/history-2024.jsonl",
        "tui_9",
        "2024-05-01",
    )


@pytest.mark.parametrize("head", ["# Docker\n\n", "Docker\n===\n", "---\ntitle: Docker\n---\n", ""])
def test_an_entry_whose_title_is_asked_for_comes_first(desk: Desk, head: str) -> None:
    desk.write("knowledge/topics/other.md", "# Other\n\n" + "Docker docker docker. " * 30)
    desk.write("knowledge/topics/docker.md", f"{head}Containers, images and volumes.")
    assert paths(desk.index().search("docker"))[0] == "knowledge/topics/docker.md"


def test_what_a_question_quotes_need_not_stand_there_word_for_word(desk: Desk) -> None:
    desk.write("knowledge/topics/book.md", "Kim read the web of Charlotte twice.")
    index = desk.index()
    assert paths(index.search('Who read "Charlotte\'s Web"?')) == ["knowledge/topics/book.md"]
    assert paths(index.search('read "Charlotte\'s Web"')) == []


def test_hits_of_equal_score_come_in_the_order_people_count(desk: Desk) -> None:
    for number in (10, 9, 100):
        desk.write(f"docs/p/note-{number}.md", "---\ntitle: Same\n---\nThe very same words.")
    found = paths(desk.index().search("same words"))
    assert found == [f"docs/p/note-{number}.md" for number in (9, 10, 100)]


def test_words_that_stand_together_in_the_question_do_so_in_the_answer(desk: Desk) -> None:
    desk.write("docs/p/a.md", "The market for shares is open, the stock of the shop is full.")
    desk.write("docs/p/b.md", "The stock market is open, for the shares of the shop are full.")
    desk.write("docs/p/c.md", "Something else.")
    assert paths(desk.index().search("stock market shop"))[0] == "docs/p/b.md"


def test_a_title_counts_the_same_wherever_a_note_says_it(desk: Desk) -> None:
    bodies = (f"It keeps {word} for everybody in town.\n" for word in ("hay", "ink", "oil", "tea"))
    desk.write("docs/frontmatter.md", f"---\ntitle: Login service\n---\n{next(bodies)}")
    desk.write("docs/heading.md", f"# Login service\n\n{next(bodies)}")
    desk.write("docs/underlined.md", f"Login service\n====\n\n{next(bodies)}")
    desk.write("docs/Login service.md", f"---\naliases: named\n---\n{next(bodies)}")
    desk.write("docs/other.md", "# Kitchen\n\nNothing of the kind.\n")
    hits = desk.index().search("which login service", "docs").hits
    assert [hit.title for hit in hits] == ["Login service"] * 4
    assert len({round(hit.explain.lexical, 4) for hit in hits}) == 1


@pytest.mark.parametrize("who", ["Jolene", "Deborah"])
def test_whose_a_note_is_counts_for_more_than_how_often_it_says_a_word(
    desk: Desk, who: str
) -> None:
    retreats = {4: "retreat retreat yoga", 6: "retreat yoga retreat"}
    long = "We were at the retreat by the lake with all of our friends, and it was number"
    for number in range(60):
        of = "Jolene" if number % 2 == (who == "Jolene") else "Deborah"
        said = retreats.get(number, f"{long}{number}" if number in {5, 7} else f"the {number}th")
        desk.write(f"docs/t/{number}.md", f"# {of} — session {number}\n\n{said}\n")
    hits = desk.index().search(f"{who} retreat", limit=4).hits
    assert [hit.title.split()[0] for hit in hits[:2]] == [who, who]


def test_a_long_note_is_no_label_of_its_many_passages(desk: Desk) -> None:
    sections = "\n\n".join(f"## Part {n}\n\n{'other words ' * 200}" for n in range(30))
    desk.write("docs/t/long.md", f"# Harvest\n\n{sections}\n")
    for number in range(60):
        desk.write(f"docs/t/{number}.md", f"# Note {number}\n\nabout the {number}th tree\n")
    desk.write("docs/t/60.md", "# Orchard\n\nThe harvest is of apples, and the harvest is good.\n")
    assert desk.index().search("harvest", limit=5).hits[0].path == "docs/t/60.md"


def test_a_note_is_lifted_by_one_of_the_same_title_in_its_folder(desk: Desk) -> None:
    calm = "The lake was calm, and we paddled until it was dark."
    desk.write("docs/talk/7.md", "# Kim, 3 May\n\nThe kayak was new, a kayak for the lake.\n")
    desk.write("docs/talk/8.md", f"# Kim, 3 May\n\n{calm}\n")
    desk.write("docs/talk/2.md", f"# Ann, 4 May\n\n{calm}\n")
    desk.write("docs/other/1.md", f"# Kim, 3 May\n\n{calm}\n")
    found = paths(desk.index().search("kayak lake"))
    assert found[:2] == ["docs/talk/7.md", "docs/talk/8.md"]
    assert set(found[2:]) == {"docs/talk/2.md", "docs/other/1.md"}


def test_a_title_that_many_notes_bear_lifts_none_of_them(desk: Desk) -> None:
    calm = "The lake was calm, and we paddled until it was dark."
    desk.write("docs/talk/7.md", "# Standup\n\nThe kayak was new, a kayak for the lake.\n")
    for number in range(100, 170):
        desk.write(f"docs/talk/{number}.md", f"# Standup\n\n{calm}\n")
    desk.write("docs/other/1.md", "# Lake\n\nOf the lake.\n")
    assert paths(desk.index().search("kayak lake"))[:2] == ["docs/talk/7.md", "docs/other/1.md"]


def test_the_exact_title_comes_before_an_alias(desk: Desk) -> None:
    desk.write("knowledge/a.md", entry("Garden house", "garden " * 9, aliases=["Shed"]))
    desk.write("knowledge/b.md", entry("Shed", "Tools hang on the wall, and more stands outside."))
    assert paths(desk.index().search("shed")) == ["knowledge/b.md", "knowledge/a.md"]
