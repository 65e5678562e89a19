from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kbtui.knowledge.entries.entry import parse_entry
from kbtui.search.index.markdown import read_properties
from kbtui.workspace.files import decode

if TYPE_CHECKING:
    from pathlib import Path


def test_the_other_properties_are_searched_as_text() -> None:
    found = read_properties("knowledge/a.md", "---\nauthor: '[[Jane]]'\nrating: 7\n---\nBody")
    assert found.extra.split() == ["[[Jane]]", "7"]
    assert found.offset == len("---\nauthor: '[[Jane]]'\nrating: 7\n---\n")


@pytest.mark.parametrize("line", ["private: true", "private: Yes", 'private: "on"'])
def test_private_is_private_even_where_the_frontmatter_is_broken(line: str) -> None:
    assert read_properties("knowledge/a.md", f"---\n{line}\n---\n").private
    assert read_properties("knowledge/a.md", f"---\n{line}\nbroken: [\n---\n").private


def test_broken_frontmatter_is_still_searched() -> None:
    found = read_properties("knowledge/a.md", "---\nauthor: [Jane\n---\n# Title\n")
    assert "Jane" in found.extra
    assert found.title == "Title"


@pytest.mark.data
@pytest.mark.parametrize(
    "vault", ["obsidian-help-en", "kepano-obsidian", "foam", "odd-frontmatter"]
)
def test_properties_are_those_of_the_entry(data_dir: Path, vault: str) -> None:
    compared = 0
    for file in sorted((data_dir / "vaults" / vault).rglob("*.md")):
        data = file.read_bytes()
        path = f"knowledge/{file.name}"
        entry = parse_entry(path, data)
        found = read_properties(path, decode(data).text.replace("\r\n", "\n").replace("\r", "\n"))
        assert (found.title, found.type or None) == (entry.title, entry.type)
        assert (found.tags, found.aliases) == (entry.tags, entry.aliases)
        assert found.private or not entry.private
        compared += 1
    assert compared


def test_page_properties_of_logseq_are_tags_as_in_the_catalogue() -> None:
    found = read_properties(
        "knowledge/Mint.md", "tags:: herbs, [[long tag]]\nalias:: Minze\n\n- x #y\n"
    )
    assert found.tags == ("herbs", "long tag", "y")
    assert found.aliases == ("Minze",)


@pytest.mark.parametrize("name", ["area___kitchen", "area%2Fkitchen"])
def test_a_page_that_says_no_title_is_called_as_in_the_catalogue(name: str) -> None:
    path = f"knowledge/{name}.md"
    assert read_properties(path, "Words.").title == parse_entry(path, b"Words.").title
    assert read_properties(path, "Words.").title == "area/kitchen"
