"""What follows a note's rename in somebody's own folder: headings in links, canvases."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge_base import KnowledgeBase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CANVAS = (
    '{\n\t"nodes":[\n'
    '\t\t{"id":"1","type":"file","file":"sub/Alpha.md","subpath":"#Alpha","x":0},\n'
    '\t\t{"id":"2","type":"file","file":"sub/Alpha.md","subpath":"#Goals","x":0},\n'
    '\t\t{"id":"3","type":"file","file":"B.md","subpath":"#Alpha","x":0},\n'
    '\t\t{"id":"4","type":"text","text":"[[Alpha#Alpha]] \\u65e5 \\"{\\" [b]\\u001b"}\n'
    '\t],\n\t"edges":[]\n}'
)


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    notes = {
        "sub/Alpha.md": "# Alpha\n\n## Goals\n\n[[#Alpha]] and [[#Goals]].\n",
        "B.md": "# B\n",
        "Map.canvas": CANVAS,
        "Broken.canvas": '{"nodes":[{"file":"sub/Alpha.md"',
        "Other.canvas": '["sub/Alpha.md"]',
    }
    for name, text in notes.items():
        file = tmp_path / "vault" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    with KnowledgeBase.open(tmp_path / "vault", create=True) as kb:
        yield kb


def _text(kb: KnowledgeBase, name: str) -> str:
    return (kb.workspace.root / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[Alpha#Alpha]]", "[[New name#New name]]"),
        ("![[sub/Alpha#Alpha#Goals|x]]", "![[sub/New name#New name#Goals|x]]"),
        ("[x](sub/Alpha.md#Alpha)", "[x](sub/New%20name.md#New%20name)"),
        ("[x](sub/Alpha.md#alpha)", "[x](sub/New%20name.md#new-name)"),
        ("[[ Alpha # Alpha ]]", "[[ New name # New name ]]"),
        ("[[Alpha#Goals]]", "[[New name#Goals]]"),
        ("[[Alpha#^alpha]]", "[[New name#^alpha]]"),
        ("[[B#Alpha]]", "[[B#Alpha]]"),
        ("`[[Alpha#Alpha]]`", "`[[Alpha#Alpha]]`"),
        ("[a]: sub/Alpha.md#Alpha 'T'", "[a]: sub/New%20name.md#New%20name 'T'"),
    ],
)
def test_a_heading_in_a_link_follows_the_title_that_it_names(
    kb: KnowledgeBase, before: str, after: str
) -> None:
    (kb.workspace.root / "B.md").write_text(f"# B\n\n{before}\n", "utf-8")
    kb.library.refresh()
    kb.library.rename("Alpha", "New name")
    assert _text(kb, "B.md") == f"# B\n\n{after}\n"


def test_a_heading_is_the_same_in_either_form_of_its_letters_and_line_ends_stay(
    kb: KnowledgeBase,
) -> None:
    (kb.workspace.root / "Caf\u00e9.md").write_bytes("\ufeff# Caf\u00e9\r\n\r\nx\r\n".encode())
    (kb.workspace.root / "B.md").write_bytes(b"[[Cafe\xcc\x81#Cafe\xcc\x81]] [x](Caf%C3%A9.md)\r\n")
    kb.library.refresh()
    kb.library.rename("Caf\u00e9", "Th\u00e9")
    assert (kb.workspace.root / "B.md").read_bytes() == (
        "[[Th\u00e9#Th\u00e9]] [x](Th%C3%A9.md)\r\n".encode()
    )
    assert (
        (kb.workspace.root / "Th\u00e9.md")
        .read_bytes()
        .endswith("# Th\u00e9\r\n\r\nx\r\n".encode())
    )


def test_a_link_within_the_note_follows_and_undo_brings_all_back(kb: KnowledgeBase) -> None:
    before = _text(kb, "sub/Alpha.md")
    made = kb.library.rename("Alpha", "New name")
    assert "[[#New name]] and [[#Goals]]." in _text(kb, "sub/New name.md")
    assert made.commit is not None
    kb.history.undo(made.commit.id)
    assert _text(kb, "sub/Alpha.md") == before
    assert _text(kb, "Map.canvas") == CANVAS


def test_a_heading_holds_where_only_the_file_is_called_otherwise(kb: KnowledgeBase) -> None:
    (kb.workspace.root / "B.md").write_text("[[Alpha#Alpha]]\n", "utf-8")
    kb.library.refresh()
    kb.library.rename("Alpha", "beta")
    assert _text(kb, "B.md") == "[[beta#Alpha]]\n"


def test_a_canvas_follows_and_keeps_every_other_byte(kb: KnowledgeBase) -> None:
    kb.library.rename("Alpha", "New name")
    wanted = CANVAS.replace(
        '"sub/Alpha.md","subpath":"#Alpha"', '"sub/New name.md","subpath":"#New name"'
    )
    wanted = wanted.replace('"sub/Alpha.md"', '"sub/New name.md"')
    lines = _text(kb, "Map.canvas").split("\n")
    assert lines[:5] + lines[6:] == wanted.split("\n")[:5] + wanted.split("\n")[6:]
    text = json.loads(_text(kb, "Map.canvas"))["nodes"][3]["text"]
    assert text == '[[New name#New name]] \u65e5 "{" [b]\x1b'
    assert _text(kb, "Broken.canvas") == '{"nodes":[{"file":"sub/Alpha.md"'
    assert _text(kb, "Other.canvas") == '["sub/Alpha.md"]'


def test_what_somebody_changes_in_a_canvas_afterwards_is_theirs_and_stays(
    kb: KnowledgeBase,
) -> None:
    kb.library.rename("Alpha", "New name")
    file = kb.workspace.root / "Map.canvas"
    file.write_text('{"nodes":[]}', "utf-8")
    kb.library.rename("B", "Bee")
    kb.history.adopt(settle=0)
    assert file.read_text("utf-8") == '{"nodes":[]}'
    newest = next(kb.history.log("knowledge/Map.canvas", limit=1))
    assert kb.history.read("knowledge/Map.canvas", newest.id) == b'{"nodes":[]}'


def test_foams_definitions_keep_the_names_of_their_wikilinks(kb: KnowledgeBase) -> None:
    before = (
        "[[Alpha]] [[sub/Alpha|why]] [see][a] [text][Alpha two]\n\n"
        '[Alpha]: sub/Alpha.md "Alpha"\n[sub/Alpha|why]: sub/Alpha.md "Alpha"\n'
        "[a]: <sub/Alpha.md>\n[B]: B.md\n"
    )
    (kb.workspace.root / "B.md").write_text(before, "utf-8")
    kb.library.refresh()
    kb.library.rename("Alpha", "New name")
    assert _text(kb, "B.md") == (
        "[[New name]] [[sub/New name|why]] [see][a] [text][Alpha two]\n\n"
        '[New name]: sub/New%20name.md "Alpha"\n[sub/New name|why]: sub/New%20name.md "Alpha"\n'
        "[a]: <sub/New%20name.md>\n[B]: B.md\n"
    )


GRAPH = {
    "logseq/config.edn": "{:meta/version 1}",
    "pages/Bobby.md": "alias:: Bob\ntags:: people\n\n- [[proj/alpha]] #[[proj/alpha]]\n",
    "pages/proj___alpha.md": "- [[Bobby]] on [[Nov 3rd, 2026]]\n",
    "journals/2026_11_03.md": "- [[proj/alpha]] with [[bob]]\n",
}


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for name, text in GRAPH.items():
        file = tmp_path / "graph" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    with KnowledgeBase.open(tmp_path / "graph", create=True) as kb:
        yield kb


def test_a_page_of_logseqs_is_called_and_linked_by_its_title(graph: KnowledgeBase) -> None:
    graph.library.rename("proj/alpha", "proj/What is: it?")
    assert _text(graph, "pages/Bobby.md") == GRAPH["pages/Bobby.md"].replace(
        "proj/alpha", "proj/What is: it?"
    )
    page = "pages/proj___What is%3A it%3F.md"
    assert _text(graph, page) == f"alias:: proj/alpha\n{GRAPH['pages/proj___alpha.md']}"
    graph.library.rename("Bobby", "people/Bobby")
    assert "[[people/Bobby]] on" in _text(graph, page)
    assert _text(graph, "pages/people___Bobby.md").startswith("alias:: Bob, Bobby\ntags:: people\n")
    assert graph.library.find("bob").title == "people/Bobby"


def test_a_new_page_of_logseqs_lies_in_pages_in_its_namespace(graph: KnowledgeBase) -> None:
    for title, name in (
        ("a/b: c", "a___b%3A c"),
        ("日本 [x] 50%", "日本 %5Bx%5D 50%25"),
        ("..", "untitled"),
    ):
        made = graph.library.create("topic", title)
        assert made.path == f"knowledge/pages/{name}.md" or name == "untitled"
    (graph.workspace.root / "pages" / "x%2Fy.md").write_text("- y\n")
    (graph.workspace.root / "pages" / "x%2Fz.md").write_text("- z\n")
    (graph.workspace.root / "pages" / "x%2Fw.md").write_text("- w\n")
    graph.library.refresh()
    assert graph.library.find("x/y").title == "x/y"
    assert graph.library.create("topic", "p/q").path == "knowledge/pages/p%2Fq.md"


def test_a_day_of_logseqs_is_found_by_its_title(graph: KnowledgeBase) -> None:
    (day,) = [each.path for each in graph.library.outgoing("knowledge/pages/proj___alpha.md")][1:]
    assert day == "knowledge/journals/2026_11_03.md"
    assert graph.library.daily_note(date(2026, 11, 24)) == ("knowledge/journals/2026_11_24.md", "")


@pytest.mark.parametrize(
    ("file", "format_", "title"),
    [
        ("", "EEEE, dd.MM.yyyy", "Thursday, 26.11.2026"),
        ("yyyy-MM-dd", "d.M.yy", "26.11.26"),
        ("dd-MM-yyyy", "EEE, MMM do, yyyy", "Thu, Nov 26th, 2026"),
    ],
)
def test_days_of_logseqs_have_the_titles_of_its_settings(
    tmp_path: Path, file: str, format_: str, title: str
) -> None:
    names = {"": "2026_11_26", "yyyy-MM-dd": "2026-11-26", "dd-MM-yyyy": "26-11-2026"}
    config = f':journal/page-title-format "{format_}"'
    config += f' \n:journal/file-name-format "{file}"' if file else ""
    for name, text in (
        ("logseq/config.edn", f"{{:meta/version 1\n{config}}}"),
        (f"journals/{names[file]}.md", "- frost\n"),
        ("journals/99_99_9999.md", "- none\n"),
        ("pages/d.md", f"- see [[{title}]]\n"),
    ):
        place = tmp_path / "graph" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
    for is_new in (True, False):  # the second time from the cache
        with KnowledgeBase.open(tmp_path / "graph", create=is_new) as kb:
            (link,) = kb.library.outgoing("knowledge/pages/d.md")
            assert link.path == f"knowledge/journals/{names[file]}.md"
            assert title in {info.title for info in kb.library.infos()}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[../sub/Alpha]]", "[[../sub/New name]]"),
        ("[[../sub/Alpha|A]]", "[[../sub/New name|A]]"),
        ("![[../sub/Alpha.md]]", "![[../sub/New name.md]]"),
        ("[[./Beside]]", "[[./Beside]]"),
    ],
)
def test_relative_wikilinks_are_mended_in_kind(kb: KnowledgeBase, before: str, after: str) -> None:
    kb.workspace.root.joinpath("other").mkdir()
    place = kb.workspace.root / "other/n.md"
    place.write_text(f'---\nwho: "{before}"\n---\n{before}\n', "utf-8")
    place.with_name("Beside.md").write_text("# Beside\n", "utf-8")
    kb.history.adopt(settle=0.0)
    kb.library.rename("Alpha", "New name")
    assert place.read_text("utf-8") == f'---\nwho: "{after}"\n---\n{after}\n'


def test_links_in_a_head_that_cannot_be_read_are_known_and_named(kb: KnowledgeBase) -> None:
    place = kb.workspace.root / "n.md"
    place.write_text("---\nrelated: [[Alpha]], [[B]]\n---\n# n\n", "utf-8")
    kb.history.adopt(settle=0.0)
    done = kb.library.rename("Alpha", "New name")
    assert [kb.workspace.file(path) for path in done.unmended] == ["n.md"]
    assert place.read_text("utf-8").startswith("---\nrelated: [[Alpha]], [[B]]\n---\n")


def test_a_link_with_an_anchor_changes_in_place(kb: KnowledgeBase) -> None:
    text = '---\nup: &x "[[Alpha]]" # [[Alpha]]\nall: [*x, &y B, *y]\n---\n[[Alpha]]\n'
    place = kb.workspace.root / "n.md"
    place.write_text(text, "utf-8")
    kb.history.adopt(settle=0.0)
    assert not kb.library.rename("Alpha", "New name").unmended
    head, _, rest = text.partition(" # ")
    mended = rest.replace("\n[[Alpha]]", "\n[[New name]]")
    assert place.read_text("utf-8") == f"{head.replace('Alpha', 'New name')} # {mended}"


def test_a_title_that_an_alias_repeats_is_renamed(kb: KnowledgeBase) -> None:
    place = kb.workspace.root / "sub/Alpha.md"
    place.write_text("---\ntitle: &t Alpha\naliases: [*t, A]\n---\n# Alpha\n", "utf-8")
    kb.history.adopt(settle=0.0)
    kb.library.rename("Alpha", "New name")
    text = place.with_name("New name.md").read_text("utf-8")
    assert text == "---\ntitle: &t New name\naliases: [Alpha, A]\n---\n# New name\n"


@pytest.mark.parametrize(
    ("head", "wanted"),
    [
        ("up: [[Alpha]]\n", "up: [[New name]]\n"),
        ("up: [[Alpha#Goals|a]] # why\n", "up: [[New name#Goals|a]] # why\n"),
        ("all:\n  - [[Alpha]]\n  - [[B]]\n", "all:\n  - [[New name]]\n  - [[B]]\n"),
        ("all: [[[Alpha]], [[B]], x]\n", "all: [[[New name]], [[B]], x]\n"),
        ("src: '[x](sub/Alpha.md#a) y'\n", "src: '[x](sub/New%20name.md#a) y'\n"),
        ("src: '[x](sub/Alpha) ![](Alpha.png)'\n", "src: '[x](sub/Alpha) ![](Alpha.png)'\n"),
        ("up: &a [[Alpha]]\nz: *a\n", "up: &a [[New name]]\nz: *a\n"),
        ("tags: [[Alpha]]\naliases: [[Alpha]]\n", "tags: [[Alpha]]\naliases: [[Alpha]]\n"),
    ],
)
def test_links_without_quotes_are_mended_in_place(
    kb: KnowledgeBase, head: str, wanted: str
) -> None:
    place = kb.workspace.root / "n.md"
    place.write_text(f"---\n{head}---\nbody\n", "utf-8")
    kb.history.adopt(settle=0.0)
    assert not kb.library.rename("Alpha", "New name").unmended
    assert place.read_text("utf-8") == f"---\n{wanted}---\nbody\n"
    kb.library.delete("New name")
    assert "[[New name" not in place.read_text("utf-8")


def _noted(kb: KnowledgeBase, text: str) -> Path:
    """Write a note in a folder beside Alpha's, and have it read."""
    place = kb.workspace.root / "other/n.md"
    place.parent.mkdir()
    place.write_text(text, "utf-8")
    kb.history.adopt(settle=0.0)
    return place


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('<a href="../sub/Alpha.md">x</a>', '<a href="../sub/Ne\'w.md">x</a>'),
        ("<a class='c' href='../sub/Alpha.md#a'>x\ny</a>", None),
        (
            '<a href="../sub/Alpha.md">in [[Alpha]]</a>',
            "<a href=\"../sub/Ne'w.md\">in [[Ne'w]]</a>",
        ),
        ("[see [[Alpha]] now](../sub/Alpha.md)", "[see [[Ne'w]] now](../sub/Ne'w.md)"),
        ("[[Alpha|a [b](../sub/Alpha.md) c]]", "[[Ne'w|a [b](../sub/Ne'w.md) c]]"),
        ("[[Alpha|see [[Alpha]] x]]", "[[Ne'w|see [[Ne'w]] x]]"),
        ("[![p](../sub/Alpha.md)](../sub/Alpha.md)", "[![p](../sub/Ne'w.md)](../sub/Ne'w.md)"),
        ("[a `code](../sub/Alpha.md) b`", "[a `code](../sub/Alpha.md) b`"),
        ('<A HREF = "../sub/Alpha.md">x</A>', '<A HREF = "../sub/Ne\'w.md">x</A>'),
        ('`<a href="../sub/Alpha.md">x</a>`', '`<a href="../sub/Alpha.md">x</a>`'),
        (
            '<a href="https://e.example/Alpha.md">x</a>',
            '<a href="https://e.example/Alpha.md">x</a>',
        ),
    ],
)
def test_links_in_links_and_html_anchors_follow(
    kb: KnowledgeBase, before: str, after: str | None
) -> None:
    place = _noted(kb, f"{before}\n")
    kb.library.rename("Alpha", "Ne'w")
    wanted = before.replace("Alpha", "Ne%27w") if after is None else after
    assert place.read_text("utf-8") == f"{wanted}\n"


def test_links_in_links_to_a_deleted_note_become_text(kb: KnowledgeBase) -> None:
    place = _noted(
        kb,
        "[see [[Alpha|A]] now](../sub/Alpha.md) [[Alpha|a [b](../sub/Alpha.md)]]"
        ' <a href="../sub/Alpha.md">c [[Alpha|d]]</a> [![p](p.png)](../sub/Alpha.md)\n',
    )
    kb.library.delete("Alpha")
    assert place.read_text("utf-8") == "see A now a b c d ![p](p.png)\n"


def test_functions_of_bases_that_take_a_link_follow(kb: KnowledgeBase) -> None:
    base = kb.workspace.root / "all.base"
    text = (
        "filters:\n  and:\n"
        '    - file.hasLink("Alpha") # who\n'
        '    - \'file.hasLink(link("sub/Alpha.md")) || up == link("[[Alpha]]")\'\n'
        '    - "related.contains(link(\\"Alpha#x\\", \\"Alpha\\"))"\n'
        '    - file.path == "sub/Alpha.md" && "sub/Alpha.md" != title\n'
        '    - file.name == "Alpha"\n'
        '    - file.hasTag("Alpha")\n'
    )
    base.write_text(text, "utf-8")
    kb.history.adopt(settle=0.0)
    made = kb.library.rename("Alpha", "New name")
    wanted = text.replace('hasLink("Alpha")', 'hasLink("New name")')
    wanted = wanted.replace("sub/Alpha.md", "sub/New name.md").replace("[[Alpha]]", "[[New name]]")
    wanted = wanted.replace('"sub/New name.md" !=', '"sub/Alpha.md" !=')
    assert base.read_text("utf-8") == wanted.replace('\\"Alpha#x', '\\"New name#x')
    assert made.commit is not None
    kb.history.undo(made.commit.id)
    assert base.read_text("utf-8") == text


def test_links_to_the_address_of_a_site_are_counted_at_a_rename(kb: KnowledgeBase) -> None:
    text = "[a](/sub/Alpha/) [b](/alpha/#x) [c](/blog/sub/alpha) [d](/other/alpha/) [e](/beta/)\n"
    place = _noted(kb, text)
    done = kb.library.rename("Alpha", "sub/New-name")
    assert [kb.workspace.file(path) for path in done.addresses] == ["other/n.md"] * 3
    assert place.read_text("utf-8") == text


def test_references_of_hugo_follow_in_kind(kb: KnowledgeBase) -> None:
    text = (
        '[a]({{< ref "Alpha" >}}) [b]({{% relref "/sub/Alpha.md#goals" %}}) [c *d*]({{<ref "Alpha.md">}})'
        ' [e]({{< relref path="../sub/Alpha.md" lang="de" >}}) [f]({{< ref Alpha >}}#x)'
        ' {{< include "../sub/Alpha.md" >}} {% link sub/Alpha.md %} [j]({%- link sub/Alpha.md -%}#x)'
        ' [g]({{< figure "Alpha" >}}) `[h]({{< ref "Alpha" >}})` [i]({{< ref "B" >}})\n'
    )
    place = _noted(kb, text)
    made = kb.library.rename("Alpha", "sub/New name")
    wanted = text.replace("Alpha", "New name").replace('figure "New name', 'figure "Alpha')
    wanted = wanted.replace("ref New name", 'ref "New name"')
    assert place.read_text("utf-8") == wanted.replace(
        '`[h]({{< ref "New name"', '`[h]({{< ref "Alpha"'
    )
    assert made.commit is not None
    kb.history.undo(made.commit.id)
    kb.library.delete("Alpha")
    kept = ' [g]({{< figure "Alpha" >}}) `[h]({{< ref "Alpha" >}})` [i]({{< ref "B" >}})\n'
    assert place.read_text("utf-8") == f"a b c *d* e f   j{kept}"


def _moved_by_another_program(root: Path) -> dict[str, str]:
    """Write a vault whose folders and a note are moved by hand; return the texts before."""
    texts = {
        "a/n.md": '---\nup: "[[b/Leek]]"\n---\n[[b/Leek]] [x](../b/Leek.md) [[Pan]] [m](sub/m.md)'
        " ![p](../b/p.png) [[dead]]\n",
        "a/sub/m.md": "[n](../n.md) [l](../../b/Leek.md)\n",
        "b/Leek.md": "# Leek\n\nA long text about the leek.\n[n](../a/n.md)\n",
        "b/Pan.md": "A text about the pan that is long enough.\n",
        "b/p.png": "no picture\n",
        "c.canvas": '{"nodes":[{"id":"1","type":"file","file":"b/Leek.md"}],"edges":[]}',
        "d.md": "[[Pan]] ![[p.png]] ![](b/p.png)\n",
    }
    for name, text in texts.items():
        root.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
        root.joinpath(name).write_text(text, "utf-8")
    return texts


def test_links_are_led_to_where_another_program_moved_folders_and_notes(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    _moved_by_another_program(root)
    with KnowledgeBase.open(root, create=True) as kb:
        assert kb.library.moved_outside() == {}
        (root / "deep").mkdir()
        (root / "b").rename(root / "deep/beds")
        (root / "a").rename(root / "deep/alpha")
        (root / "deep/beds/Pan.md").rename(root / "deep/beds/Skillet.md")
        kb.history.adopt(settle=0.0)
        kb.library.refresh()
        assert any("--mend" in each.hint for each in kb.checking.run())
        commit = kb.library.catch_up()
        assert commit is not None
        assert _text(kb, "deep/alpha/n.md") == (
            '---\nup: "[[deep/beds/Leek]]"\n---\n[[deep/beds/Leek]] [x](../beds/Leek.md)'
            " [[Skillet]] [m](sub/m.md) ![p](../beds/p.png) [[dead]]\n"
        )
        assert _text(kb, "deep/alpha/sub/m.md") == "[n](../n.md) [l](../../beds/Leek.md)\n"
        assert "[n](../alpha/n.md)" in _text(kb, "deep/beds/Leek.md")
        assert '"file":"deep/beds/Leek.md"' in _text(kb, "c.canvas")
        assert _text(kb, "d.md") == "[[Skillet]] ![[p.png]] ![](deep/beds/p.png)\n"
        assert kb.library.moved_outside() == {}
        kb.history.undo(commit.id)
        assert _text(kb, "d.md") == "[[Pan]] ![[p.png]] ![](b/p.png)\n"


def test_links_to_a_name_that_another_note_has_now_stay(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    _moved_by_another_program(root)
    with KnowledgeBase.open(root, create=True) as kb:
        (root / "b/Pan.md").rename(root / "b/Skillet.md")
        kb.history.adopt(settle=0.0)
        (root / "Pan.md").write_text("Another one.\n", "utf-8")
        kb.history.adopt(settle=0.0)
        kb.library.refresh()
        assert kb.library.moved_outside() == {}
