"""Names and frontmatter in somebody's own folder follow what is there already."""

from __future__ import annotations

import json
import re
from datetime import date
from typing import TYPE_CHECKING

import pytest

from kbtui.errors import UsageError
from kbtui.history.change import Actor
from kbtui.knowledge.entries.habits import KEBAB, TITLED, Naming, naming_of
from kbtui.knowledge.library.reader import PastLibrary
from kbtui.knowledge_base import KnowledgeBase
from kbtui.tui.notes.documents import load_document, load_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TITLED_VAULT = {
    "Home.md": "See [[My Great Note]], [it](My%20Great%20Note.md) and ![[My Great Note#Part]].\n",
    "My Great Note.md": "Some text about kestrels.\n",
    "People/Ada Lovelace.md": "---\ntags: [person]\n---\nWrote programs.\n",
    "Daily/2024-01-02.md": "A day.\n",
}


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[dict[str, str]], KnowledgeBase]]:
    kbs: list[KnowledgeBase] = []

    def open_vault(notes: dict[str, str]) -> KnowledgeBase:
        for name, text in notes.items():
            file = tmp_path / "vault" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        kbs.append(KnowledgeBase.open(tmp_path / "vault", create=True))
        return kbs[-1]

    yield open_vault
    for kb in kbs:
        kb.close()


def _text(kb: KnowledgeBase, name: str) -> str:
    return (kb.workspace.root / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("stem", "naming"),
    [
        ("My Great Note", TITLED),
        ("my great note", TITLED),
        ("Home", TITLED),
        ("my-great-note", KEBAB),
        ("My-Great-Note", Naming("-", lower=False)),
        ("my_great_note", Naming("_", lower=True)),
        ("2024-01-02 A walk", TITLED),
        ("2024-01-02-a-walk", KEBAB),
        ("note", None),
    ],
)
def test_the_way_in_which_a_name_was_made_shows_in_it(stem: str, naming: Naming | None) -> None:
    assert naming_of(stem) == naming


@pytest.mark.parametrize(
    ("naming", "name"),
    [
        (TITLED, "TCP-IP - what is it"),
        (KEBAB, "tcp-ip-what-is-it"),
        (Naming("_", lower=False), "TCP_IP_what_is_it"),
    ],
)
def test_a_name_holds_nothing_that_a_file_or_a_link_cant(naming: Naming, name: str) -> None:
    assert naming.stem("TCP/IP: what is it?") == name


def test_a_rename_keeps_the_title_as_typed_repairs_each_link_and_adds_no_date(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(TITLED_VAULT)
    made = kb.library.rename("My Great Note", "My Better Note")
    assert kb.workspace.file(made.path) == "My Better Note.md"
    assert kb.library.get(made.path).title == "My Better Note"
    assert _text(kb, "Home.md") == (
        "See [[My Better Note]], [it](My%20Better%20Note.md) and ![[My Better Note#Part]].\n"
    )
    text = _text(kb, "My Better Note.md")
    assert "My Great Note" in kb.library.get(made.path).aliases
    assert "created" not in text
    assert "updated" not in text
    assert made.commit is not None
    assert "My Great Note renamed to My Better Note" in made.commit.subject


def test_a_note_that_moves_keeps_its_name(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(TITLED_VAULT)
    made = kb.library.rename("My Great Note", "People/My Great Note")
    assert kb.workspace.file(made.path) == "People/My Great Note.md"


def test_a_new_note_is_named_by_its_title_where_the_others_are_and_goes_to_its_kind(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(TITLED_VAULT)
    person = kb.library.create("person", "Grace Hopper", related=["home"], actor=Actor.AGENT)
    assert kb.workspace.file(person.path) == "People/Grace Hopper.md"
    text = _text(kb, "People/Grace Hopper.md")
    assert "[[home]]" in text
    assert "created" not in text
    topic = kb.library.create("topic", "Compilers")
    assert kb.workspace.file(topic.path) == "Compilers.md"


def test_in_a_folder_of_kebab_names_a_new_one_is_kebab(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({f"posts/a-post-{number}.md": "Text.\n" for number in range(4)})
    made = kb.library.create("topic", "A New Post", folder="posts")
    assert kb.workspace.file(made.path) == "posts/a-new-post.md"


def test_a_date_before_a_name_stays_before_the_new_one(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({"2024-01-02 A walk.md": "Far.\n"})
    made = kb.library.rename("2024-01-02 A walk", "The Hike")
    assert kb.workspace.file(made.path) == "2024-01-02 The Hike.md"


def test_a_dotted_name_stays_in_its_hierarchy(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({"proj.kestrel.plan.md": "---\ntitle: Plan\n---\nText.\n"})
    made = kb.library.rename("Plan", "Better Plan")
    assert kb.workspace.file(made.path) == "proj.kestrel.better-plan.md"


DENDRON_VAULT = {
    "dendron.yml": "version: 5\n",
    "root.md": "See [[The Plan|proj.kestrel.plan#Costs]], [[proj.kestrel.plan|as in Obsidian]]"
    " and [[proj.kestrel.plan]].\n",
    "proj.kestrel.plan.md": "---\ntitle: Plan\n---\n# Plan\n",
}


def test_in_a_vault_of_dendrons_the_note_of_a_link_may_stand_behind_its_label(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(DENDRON_VAULT)
    led = [each.path for each in kb.library.outgoing(kb.library.find_path("root"))]
    assert led == ["knowledge/proj.kestrel.plan.md"] * 3
    assert len(kb.library.backlinks("knowledge/proj.kestrel.plan.md")) > 0
    kb.library.rename("Plan", "Better Plan")
    assert _text(kb, "root.md") == (
        "See [[The Plan|proj.kestrel.better-plan#Costs]],"
        " [[proj.kestrel.better-plan|as in Obsidian]] and [[proj.kestrel.better-plan]].\n"
    )


def test_a_note_deleted_from_a_vault_of_dendrons_leaves_the_labels_of_its_links(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(DENDRON_VAULT)
    kb.library.delete("Plan")
    assert _text(kb, "root.md") == "See The Plan, as in Obsidian and proj.kestrel.plan.\n"


def test_the_note_of_a_dead_link_is_that_behind_the_label_only_in_a_vault_of_dendrons(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({"a.md": "[[one|two]]\n"})
    assert [each.link.target for each in kb.library.outgoing("knowledge/a.md")] == ["one"]
    kb.close()
    kb = opened({"dendron.yml": ""})
    assert [each.link.target for each in kb.library.outgoing("knowledge/a.md")] == ["two"]


def test_links_of_dendrons_lead_where_they_led_in_an_older_version(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(DENDRON_VAULT)
    past = PastLibrary(kb.history, "HEAD", kb.library)
    now = [link.path for link in kb.library.outgoing("knowledge/root.md")]
    assert [link.path for link in past.outgoing("knowledge/root.md")] == now
    assert "knowledge/proj.kestrel.plan.md" in now


def test_a_link_with_its_label_first_is_shown_by_its_label(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(DENDRON_VAULT)
    document = load_document(kb, "knowledge/root.md")
    links = load_links(kb, document)
    assert links.shown(document).startswith("See [[proj.kestrel.plan#Costs|The Plan]], [[proj.k")


def test_a_name_that_is_a_number_stays_when_the_title_changes(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({"202401021530.md": "# Kestrels\n\nText.\n"})
    made = kb.library.rename("Kestrels", "Falcons")
    assert kb.workspace.file(made.path) == "202401021530.md"
    assert "# Falcons" in _text(kb, "202401021530.md")


@pytest.mark.parametrize(
    ("settings", "names", "new"),
    [
        ("", ["a1b2", "c3d4", "k9z0"], r"[a-z0-9]{4}"),
        (
            "[note]\nid-charset = 'hex'\nid-length = 8\nid-case = 'upper'",
            ["0A1B2C3D"],
            "[0-9A-F]{8}",
        ),
        ("[note]\nfilename = '{{id}}-{{slug title}}'", ["a1b2-one"], "[a-z0-9]{4}-the-kestrel"),
        ("[note]\nfilename = '{{slug title}}'", ["my-one", "my-two", "my-three"], "the-kestrel"),
        ("", ["my-one", "my-two", "my-three"], "the-kestrel"),
        (
            "[note]\nfilename = \"{{format-date now '%Y'}}-{{id}}\"",
            ["one"],
            "20[0-9]{2}-[a-z0-9]{4}",
        ),
        ("[note]\nfilename = \"{{date now '%Y%m'}} {{title}}\"", ["one"], "20[0-9]{4} The Kestrel"),
        ("no settings of [zk", ["my-one", "my-two", "my-three"], "the-kestrel"),
    ],
)
def test_a_new_note_in_a_notebook_of_zks_gets_an_id_where_its_neighbours_have_one(
    opened: Callable[[dict[str, str]], KnowledgeBase], settings: str, names: list[str], new: str
) -> None:
    kb = opened({".zk/config.toml": settings} | {f"{name}.md": "Text.\n" for name in names})
    made = kb.library.create("topic", "The Kestrel")
    assert re.fullmatch(f"{new}\\.md", kb.workspace.file(made.path))
    assert kb.library.find_path("The Kestrel") == made.path


ZK_GROUPS = """
[note]
filename = "{{id}}"
[group.daily]
paths = ["journal/daily"]
[group.daily.note]
filename = "{{format-date now '%Y-%m-%d'}}"
[group.log.note]
filename = "{{slug title}}-{{id}}"
id-length = 6
[group.broken]
paths = 3
"""


def test_groups_of_zks_have_folders_and_names_of_their_own(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({".zk/config.toml": ZK_GROUPS, "a1b2.md": "Text.\n"})
    made = kb.library.create("topic", "The Kestrel", folder="log/2026")
    assert re.fullmatch("log/2026/the-kestrel-[a-z0-9]{6}.md", kb.workspace.file(made.path))
    found = kb.library.daily_note(date(2026, 11, 22))
    assert found == ("knowledge/journal/daily/2026-11-22.md", "")


def test_a_note_keeps_its_id_in_a_notebook_of_zks_when_its_title_changes(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({".zk/config.toml": "", "a1b2.md": "# Kestrels\n", "c3d4.md": "[[a1b2]]\n"})
    made = kb.library.rename("Kestrels", "Peregrine Falcons")
    assert kb.workspace.file(made.path) == "a1b2.md"
    assert "# Peregrine Falcons" in _text(kb, "a1b2.md")


def test_obsidians_folder_for_new_notes_is_taken(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    settings = {"newFileLocation": "folder", "newFileFolderPath": "Inbox"}
    kb = opened({"Home.md": "Hi.\n", ".obsidian/app.json": json.dumps(settings)})
    made = kb.library.create("topic", "Ideas")
    assert kb.workspace.file(made.path) == "Inbox/Ideas.md"


def test_an_edit_adds_no_date_to_a_note_that_has_none(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(TITLED_VAULT)
    entry = kb.library.find("Ada Lovelace")
    text = entry.text + "More.\n"
    kb.library.write(entry.path, text, expecting=entry.blob, actor=Actor.AGENT, reason="more")
    assert _text(kb, "People/Ada Lovelace.md") == text


def test_a_name_that_is_there_already_is_known_before_a_second_one_is_made(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(TITLED_VAULT)
    assert [info.slug for info in kb.library.same_name("topic", "my great note")] == [
        "My Great Note"
    ]
    assert kb.library.same_name("topic", "Another") == []


def test_the_daily_note_is_where_obsidian_has_it_and_begins_with_its_template(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    settings = {"folder": "Daily", "format": "YYYY/MM/DD dddd [note]", "template": "T/Day"}
    kb = opened(
        {
            ".obsidian/daily-notes.json": json.dumps(settings),
            "T/Day.md": "# {{title}}\n{{date:D MMM}}\n",
        }
    )
    assert kb.library.daily_note(date(2024, 3, 5)) == (
        "knowledge/Daily/2024/03/05 Tuesday note.md",
        "# 05 Tuesday note\n5 Mar\n",
    )


@pytest.mark.parametrize(
    ("files", "path"),
    [
        (
            {".obsidian/daily-notes.json": '{"format": "gggg-[W]ww/Do MMMM", "folder": "/J/"}'},
            "J/2026-W45/3rd November",
        ),
        (
            {
                ".obsidian/plugins/periodic-notes/data.json": json.dumps(
                    {"daily": {"enabled": True, "format": "YYYYMMDD", "folder": "P"}}
                ),
                ".obsidian/daily-notes.json": '{"folder": "Old"}',
            },
            "P/20261103",
        ),
        ({".obsidian/core-plugins.json": '{"daily-notes": true}'}, "2026-11-03"),
        ({".obsidian/core-plugins.json": '{"daily-notes": false}'}, None),
        ({".obsidian/daily-notes.json": "[1"}, None),
        ({"logseq/config.edn": ';; :journals-directory "x"\n'}, "journals/2026_11_03"),
        (
            {
                "logseq/config.edn": '{:journals-directory "days"\n'
                ' :journal/file-name-format "yyyy-MM-dd EEE"}'
            },
            "days/2026-11-03 Tue",
        ),
        (
            {".vscode/settings.json": '{// c\n"foam.openDailyNote.directory": "./log/"}'},
            "log/2026-11-03",
        ),
        ({}, None),
    ],
)
def test_the_note_of_a_day_is_where_the_program_has_it(
    opened: Callable[[dict[str, str]], KnowledgeBase], files: dict[str, str], path: str | None
) -> None:
    found = opened({"A.md": "a\n", **files}).library.daily_note(date(2026, 11, 3))
    assert (found and found[0]) == (path and f"knowledge/{path}.md")


def test_templates_are_what_lies_where_obsidian_makes_notes_of(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(
        {
            ".obsidian/templates.json": json.dumps({"folder": "Vorlagen"}),
            ".obsidian/daily-notes.json": json.dumps({"template": "T/Day"}),
            ".obsidian/plugins/templater-obsidian/data.json": '{"templates_folder": "/Meta/Tp/"}',
            **dict.fromkeys(
                [
                    *("Vorlagen/A.md", "Vorlagen/Sub/B.md", "T/Day.md", "Meta/Tp/C.md"),
                    *("Work/_templates/D.md", "T/Days.md", "Meta/E.md", "Vorlagen.md", "F.md"),
                ],
                "# {{title}}\n",
            ),
        }
    )
    habits = kb.library.overlay().habits()
    notes = {info.slug for info in kb.library.infos() if not habits.is_template(info)}
    assert notes == {"Days", "E", "Vorlagen", "F"}


def test_a_type_of_the_owners_is_made_by_the_owners_template(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened(
        {"Templates/Meeting Template.md": "---\ntype: meeting\n---\nWith whom? {{title}}\n"}
    )
    made = kb.library.create("meeting", "Plan of May")
    assert kb.workspace.file(made.path) == "Plan of May.md"
    assert _text(kb, "Plan of May.md") == "---\ntype: meeting\n---\nWith whom? Plan of May\n"
    with pytest.raises(UsageError):
        kb.library.create("dinner", "X")


def test_each_template_of_the_owners_is_offered_for_a_new_note(
    opened: Callable[[dict[str, str]], KnowledgeBase],
) -> None:
    kb = opened({"Templates/Trip.md": "# {{title}}\n", "Templates/Topic template.md": "x\n"})
    assert [*kb.library.kinds()][:2] == ["Trip", "topic"]
    made = kb.library.create("Trip", "Rome")
    assert _text(kb, kb.workspace.file(made.path)) == "# Rome\n"


@pytest.mark.parametrize(
    ("typed", "folder", "title"),
    [
        ("people/Grace Hopper", "People", "Grace Hopper"),
        ("/Trips/2026/Rome", "Trips/2026", "Rome"),
        ("and/or", "", "and/or"),
        ("/", "", "/"),
        ("People/", "", "People/"),
        ("[b]/\u202ex", "", "[b]/\u202ex"),
    ],
)
def test_a_folder_before_a_title_is_one_where_it_is_there_or_a_slash_begins(
    opened: Callable[[dict[str, str]], KnowledgeBase], typed: str, folder: str, title: str
) -> None:
    library = opened(TITLED_VAULT).library
    named, name = library.split_folder(typed)
    assert (library.overlay().habits().spelled(named) if named else "", name) == (folder, title)


def test_line_breaks_are_kept_in_a_vault_unless_its_setting_is_strict(
    opened: Callable[[dict[str, str]], KnowledgeBase], tmp_path: Path
) -> None:
    library = opened(TITLED_VAULT).library
    assert not library.keeps_line_breaks, "another program's folder"
    settings = tmp_path / "vault/.obsidian/app.json"
    settings.parent.mkdir()
    assert library.keeps_line_breaks, "Obsidian shows them by default"
    settings.write_text('{"strictLineBreaks": true}')
    assert not library.keeps_line_breaks
    settings.write_text("{")
    assert library.keeps_line_breaks, "a broken file says nothing"
