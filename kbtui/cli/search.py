"""`kbtui search`: one query, or a stream of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, TextIO

import click

from kbtui.cli.context import WorkspaceOption, entry_argument, json_option, pass_place
from kbtui.cli.output import (
    coloured,
    hit_shape,
    note,
    result_shape,
    say_json,
    say_json_line,
    say_line,
    say_styled,
)
from kbtui.cli.text_input import MOST_OF_FACT, GivenText, TextCommand, text_argument
from kbtui.errors import UsageError
from kbtui.search.results import QUERY_LANGUAGE
from kbtui.text import clean, counted

if TYPE_CHECKING:
    from kbtui.knowledge_base import KnowledgeBase
    from kbtui.search.results import Hit, SearchResult
    from kbtui.workspace.layout import Layout


class _Search(TextCommand):
    """A command whose help describes the query language."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("A query may hold"):
            formatter.write_dl(QUERY_LANGUAGE, col_max=38)


@click.command(cls=_Search)
@text_argument("query", metavar="[QUERY|-]", one_word=True)
@click.option("-n", "limit", metavar="N", type=click.IntRange(1, 1000), default=10, help="Hits.")
@click.option(
    "--scope",
    metavar="S",
    default="default",
    help="knowledge, memory, docs, docs/PROJECT, sessions, all; several with commas.",
)
@click.option("--at", metavar="REV", help="Search the entries as of a revision.")
@click.option(
    "--semantic/--lexical",
    "semantic",
    default=None,
    help="Wait for the search by meaning, or search by words alone.",
)
@click.option(
    "--queries",
    type=click.File("r", encoding="utf-8", errors="replace"),
    metavar="FILE|-",
    help='Answer lines {"id","text"} with lines {"id","hits"}.',
)
@click.option(
    "--explain", is_flag=True, help="Say what was run, and why a hit stands where it does."
)
@click.option("--weak", is_flag=True, help="Include weak hits, without a word of the query.")
@json_option
@pass_place
def search(  # noqa: PLR0913, PLR0917 — click's options, by name
    place: WorkspaceOption,
    query: GivenText,
    limit: int,
    scope: str,
    at: str | None,
    semantic: bool | None,
    queries: TextIO | None,
    explain: bool,
    weak: bool,
    as_json: bool,
) -> int:
    """Search for passages by words and by meaning.

    Without QUERY, and for `-`, standard input is read.
    """
    if query.words is not None and queries is not None:
        raise UsageError("Search takes a query or --queries, not both.", "Leave one of them out.")
    options: dict[str, Any] = {"scope": scope, "limit": limit, "at": at}
    if queries is not None:
        with place.opened() as kb:
            return _answer_many(kb, queries, options, semantic=semantic)
    words = query.read("search for", most=MOST_OF_FACT)
    with place.opened() as kb:
        result = kb.search.search(
            words, **options, semantic=semantic is not False, wait=semantic is True
        )
        elsewhere = 0 if at else kb.search.in_conversations(words, scope)
        if not at:
            result = _with_newer(kb, result)
    if as_json:
        say_json({**result_shape(result, kb.workspace), "in_conversations": elsewhere})
    else:
        _print(result, kb.workspace, elsewhere, weak=weak, explain=explain)
    return 0 if result.hits else 1


@click.command()
@entry_argument("entry")
@click.option("-n", "limit", metavar="N", type=click.IntRange(1, 100), default=5, help="Notes.")
@json_option
@pass_place
def similar(place: WorkspaceOption, entry: str, limit: int, as_json: bool) -> int:
    """Show the notes that are most like one, by meaning.

    Each comes with its sentence that is most alike.
    """
    with place.opened() as kb:
        path = kb.library.find_path(entry)
        found = kb.search.similar(path, limit)
        file = kb.workspace.file
    if as_json:
        notes = [{**asdict(each), "path": file(each.path)} for each in found.notes]
        say_json({"path": file(path), "notes": notes, "notice": found.notice})
        return 0 if found.notes else 1
    for each in found.notes:
        where = f"{file(each.path)}:{each.line}"
        say_line(say_styled(where, fg="cyan"), "  ", say_styled(clean(each.title), bold=True))
        say_line("    ", clean(each.sentence))
    _note_missing(found.notice, has_any=bool(found.notes))
    sys.stdout.flush()
    return 0 if found.notes else 1


def _note_missing(notice: str, *, has_any: bool) -> None:
    if notice:
        note(f"kbtui: {notice}")
    elif not has_any:
        note("kbtui: No note is like it.")


def _answer_many(
    kb: KnowledgeBase, queries: Iterable[str], options: dict[str, Any], *, semantic: bool | None
) -> int:
    """Answer a stream of queries, after syncing the index and loading the model once."""
    kb.search.sync()
    last_notice = ""
    for name, text in _read(queries):
        result = kb.search.search(
            text, **options, semantic=semantic is not False, wait=semantic is not False
        )
        result = _with_newer(kb, result)
        if result.notice and result.notice != last_notice:
            last_notice = result.notice
            note(f"kbtui: {last_notice}")
        say_json_line({"id": name, "hits": [hit_shape(hit, kb.workspace) for hit in result.hits]})
    return 0


def _with_newer(kb: KnowledgeBase, result: SearchResult) -> SearchResult:
    """Return a result with the newer line of each hit that shows an older one."""
    from kbtui.views.view import Audience

    if not result.hits:
        return result
    view = kb.seen_by(Audience.OWN_MODEL)
    view.catch_up(result.hits)
    return replace(result, hits=view.with_newer(result.hits))


def _read(queries: Iterable[str]) -> Iterator[tuple[Any, str]]:
    for number, line in enumerate(queries, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            yield record["id"], str(record["text"])
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"Line {number} of the queries is not what it should be: {error}.",
                'Each line must be JSON with "id" and "text".',
            ) from error


def _print(
    result: SearchResult, layout: Layout, elsewhere: int, *, weak: bool, explain: bool
) -> None:
    from kbtui.search.results import answers_by_meaning, without_weak

    strong, below = without_weak(result.hits)
    is_listed = weak or answers_by_meaning(strong, below)
    for hit in [*strong, *below] if is_listed else strong:
        # Messages go by their number, as in citations.
        where = f"{layout.file(hit.path)}:{hit.messages[0] if hit.messages else hit.line}"
        why = say_styled(f"  {hit.why_weak}", dim=True) if hit.why_weak else ""
        say_line(say_styled(where, fg="cyan"), "  ", say_styled(hit.heading, bold=True), why)
        say_line("    ", _highlighted(hit))
        if hit.newer is not None:
            place = f"{layout.file(hit.newer.path)}:{hit.newer.line}"
            newer = f"newer, {hit.newer.day}: {clean(hit.newer.text)} ({clean(place)})"
            say_line("    ", say_styled(newer, fg="yellow"))
        if explain:
            say_line("    ", say_styled(_explained(hit), dim=True))
        if hit.also:
            places = ", ".join(
                f"{clean(layout.file(other.path))}:{other.line}" for other in hit.also
            )
            say_line(
                "    ", say_styled(f"also in {counted(len(hit.also), 'place')}: {places}", dim=True)
            )
    _print_notes(result, elsewhere, 0 if is_listed else len(below))
    if explain:
        ran = f"Whoosh's searcher: {result.conditions}" if result.conditions else "plain words"
        note(f"kbtui: Ran {ran}, scored by BM25F{' and by meaning' * result.semantic}.")
    sys.stdout.flush()


def _explained(hit: Hit) -> str:
    """Say by which words and how a hit was found."""
    why = hit.explain
    by_words = f"{why.lexical:.2f} (no. {why.lexical_rank})" if why.lexical_rank else "none"
    by_meaning = f"{why.semantic:.2f} (no. {why.semantic_rank})" if why.semantic_rank else "none"
    boosts = "".join(f", {name} {factor:.2f}" for name, factor in sorted(why.boosts.items()))
    return f"{hit.score:.2f}: words {by_words}, meaning {by_meaning}{boosts}"


def _print_notes(result: SearchResult, elsewhere: int, folded: int) -> None:
    """Print notices about the result, weak hits and hits elsewhere."""
    from kbtui.search.results import counted_in_conversations

    if result.notice:
        note(f"kbtui: {result.notice}")
    if folded:
        note(f"kbtui: {counted(folded, 'weaker hit')} without a word of it: --weak lists them.")
    if not result.hits:
        note("kbtui: Nothing was found.")
    if elsewhere:
        note(f"kbtui: {counted_in_conversations(elsewhere)}: add --scope sessions to see them.")
    if result.suggestion:
        note(f"kbtui: Did you mean: {result.suggestion}")


def _highlighted(hit: Hit) -> str:
    """Return the snippet on one line, with matches in bold."""
    if not coloured():
        return " ".join(clean(hit.snippet).split())
    parts: list[str] = []
    at = 0
    for start, end in hit.matches:
        parts += [
            clean(hit.snippet[at:start]),
            click.style(clean(hit.snippet[start:end]), bold=True, fg="yellow"),
        ]
        at = end
    parts.append(clean(hit.snippet[at:]))
    return " ".join("".join(parts).split())
