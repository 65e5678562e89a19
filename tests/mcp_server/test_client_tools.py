"""The tools and prompts that only other agents have, asked for by the official client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from mcp.shared.exceptions import MCPError

from kbtui.knowledge_base import KnowledgeBase
from kbtui.mcp_server.backend import Backend
from tests.mcp_server.conftest import connected, connected_over_http, served, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.mcp_server.conftest import Client

OVERRIDES = {"search": {"semantic": False}}


@pytest.fixture(scope="module", params=["stdio", "http"])
def place(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder for the server's home and workspace, called as the transport is."""
    return tmp_path_factory.mktemp(request.param)


@pytest.fixture(scope="module")
def client(place: Path) -> Iterator[Client]:
    """A server on a chain of entries: kite -> wind -> sea, and a document."""
    with KnowledgeBase.open(place / "notes", create=True, overrides=OVERRIDES) as kb:
        library = kb.library
        library.create("topic", "Sea", body="Salty water.", tags=["water"])
        library.create("topic", "Wind", body="Comes from [[topics/sea]].", tags=["air"])
        library.create("project", "Kite", body="We fly it in the [[topics/wind]].", tags=["air"])
        old = library.create("project", "Ancient kite", body="A kite of paper.").path
        file = kb.workspace.root / old
        file.write_text(file.read_text().replace("updated: 2", "updated: 1"))
        docs = kb.workspace.docs / "sailing.md"
        docs.parent.mkdir(exist_ok=True)
        docs.write_text("# Sailing\n\nReef the mainsail before the squall.\n")
        talk = kb.sessions.create("test")
        talk.append("user", "The zanzibar parcel came today.", turn="t1")
    if place.name.startswith("stdio"):
        with connected(place / "notes", place) as opened:
            yield opened
    else:
        with (
            served(place / "notes", place) as (address, token),
            connected_over_http(address, token) as opened,
        ):
            yield opened


def test_what_search_finds_fetch_reads_in_the_shapes_that_connectors_ask_for(
    client: Client,
) -> None:
    for query, path in (
        ("fly a kite", "knowledge/projects/kite.md"),
        ("mainsail squall", "docs/sailing.md"),
    ):
        found = client.call("search", query=query)
        assert json.loads(text_of(found)) == found.structured_content
        assert found.structured_content is not None
        first = found.structured_content["results"][0]
        assert set(first) == {"id", "title", "url"}
        assert first["id"] == path
        fetched = client.ok("fetch", id=first["id"])
        assert set(fetched) == {"id", "title", "text", "url", "metadata"}
        assert query.split()[-1] in fetched["text"].lower()
        (resource,) = client.ask("read_resource", fetched["url"]).contents
        assert resource.text == fetched["text"]
    assert client.ok("search", query="qwxyz vbnmk")["results"] == []


def test_nothing_outside_the_areas_for_agents_is_fetched(client: Client) -> None:
    for path in ("kbtui.toml", ".kbtui/format", "../../etc/passwd", "sessions", "no such thing"):
        assert "Traceback" not in client.error("fetch", id=path)


def test_search_is_narrowed_by_type_tag_and_date(client: Client) -> None:
    def found(**filters: str) -> set[str]:
        hits = client.ok("memory_search", query="kite wind", **filters)["hits"]
        return {hit["path"].rpartition("/")[2] for hit in hits}

    assert found() >= {"kite.md", "wind.md", "ancient-kite.md"}
    assert found(type="project") == {"kite.md", "ancient-kite.md"}
    assert found(type="project", tag="air") == {"kite.md"}
    assert found(type="project", until="1999-12-31") == {"ancient-kite.md"}
    assert "kite.md" in found(since="2000")
    assert "ancient-kite.md" not in found(since="2000")
    listed = client.ok("list_entries", since="2000", type="project")["entries"]
    assert [each["path"] for each in listed] == ["knowledge/projects/kite.md"]
    assert "'soon' is no date" in client.error("memory_search", query="kite", since="soon")


def test_links_are_followed_two_steps_in_both_directions(client: Client) -> None:
    near = client.ok("entry_links", entry="kite")["links"]
    assert [(each["path"], each["direction"]) for each in near] == [
        ("knowledge/topics/wind.md", "to")
    ]
    far = client.ok("entry_links", entry="sea", depth=2)["links"]
    assert [(each["title"], each["distance"], each["via"]) for each in far] == [
        ("Wind", 1, None),
        ("Kite", 2, "knowledge/topics/wind.md"),
    ]


def test_what_a_client_moves_or_deletes_waits_for_the_user(client: Client, place: Path) -> None:
    client.ok("write_entry", type="fact", title="Misplaced", body="Belongs elsewhere.")
    client.ok("write_entry", type="fact", title="Needless", body="Nobody needs it.")
    moved = client.ok("move_entry", entry="misplaced", category="topics")
    gone = client.ok("delete_entry", entry="needless")
    facts = place / "notes/knowledge/facts"
    assert (facts / "misplaced.md").is_file()
    assert (facts / "needless.md").is_file()
    with KnowledgeBase.open(place / "notes", overrides=OVERRIDES) as kb:
        for proposal in {moved["proposal"], gone["proposal"]}:
            kb.memory.inbox.accept(proposal)
    assert not (facts / "misplaced.md").exists()
    assert not (facts / "needless.md").exists()
    assert (place / "notes/knowledge/topics/misplaced.md").is_file()


def test_an_edit_on_what_was_changed_meanwhile_is_refused_with_the_present_text(
    client: Client, place: Path
) -> None:
    made = client.ok("write_entry", type="topic", title="Tide", body="Low.")
    read = client.ok("read_entry", entry="tide")
    file = place / "notes" / made["path"]
    file.write_text(file.read_text().replace("Low.", "High."))
    told = client.error("edit_entry", entry="tide", append="- wet", base_hash=read["hash"])
    assert "was changed since you read it" in told
    assert "High." in told
    assert "- wet" not in file.read_text()
    now = client.ok("read_entry", entry="tide")["hash"]
    assert now in told
    client.ok("edit_entry", entry="tide", append="- wet", base_hash=now)
    assert "- wet" in file.read_text()


def test_a_person_picks_prompts_to_remember_and_to_recall(client: Client) -> None:
    prompts = {each.name: each for each in client.ask("list_prompts").prompts}
    assert set(prompts) == {"remember", "recall"}
    got = client.ask("get_prompt", "remember", {"what": "The {} key is under the mat."})
    assert "Keep this in my knowledge base: The {} key is under the mat." in (
        got.messages[0].content.text
    )
    for name, arguments in (("remember", {}), ("recall", {"about": " "}), ("forget", {})):
        with pytest.raises(MCPError):
            client.ask("get_prompt", name, arguments)


def test_conversations_are_searched_only_where_the_user_allows_it(
    client: Client, place: Path, tmp_path: Path
) -> None:
    assert client.ok("memory_search", query="zanzibar parcel")["hits"] == []
    allowed = {"mcp": {"search_conversations": True}, **OVERRIDES}
    with KnowledgeBase.open(tmp_path / "notes", create=True, overrides=allowed) as kb:
        kb.sessions.create("test").append("user", "The zanzibar parcel came.", turn="t1")
        asked = Backend(lambda: kb, "b").call("memory_search", '{"query":"zanzibar parcel"}', "c")
        assert "zanzibar parcel came" in asked.output
