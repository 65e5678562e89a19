"""Adding tags to an entry and taking them away, with everything else left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbtui.errors import UnreadableError, UsageError
from kbtui.history.change import Actor
from kbtui.knowledge import frontmatter
from kbtui.text import clean_line
from kbtui.workspace.layout import short_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kbtui.knowledge.library import Library


def retag(library: Library, path: str, words: Iterable[str]) -> tuple[str, ...]:
    """Change the tags of an entry.

    Args:
        library: Where it is.
        path: Which one.
        words: Tags to add, with or without a leading ``#``; one behind a ``-`` is taken away.

    Returns:
        The tags that it has now, those in its text among them.

    Raises:
        UsageError: there is no tag among the words, or one to be taken away stands in the text.
        UnreadableError: its frontmatter can't be read, so it isn't rewritten.
        ConflictError: somebody else changed it meanwhile.
    """
    entry = library.get(path)
    if entry.problem:
        raise UnreadableError(f"{path} can't be tagged: {entry.problem}", "Correct it first.")
    added, removed = _asked(words)
    # What stands in the text is a tag already, and none that could be taken away here.
    key, items = frontmatter.items(entry.frontmatter, "tags")
    written = {tag.casefold() for tag in frontmatter.tags(entry.frontmatter)}
    every = {tag.casefold() for tag in entry.tags}
    if in_text := sorted(removed & every - written):
        raise UsageError(
            f"#{in_text[0]} stands in the text of {short_name(path)}, not among its tags.",
            "Take it out of the text.",
        )
    kept = [item for item in items if removed.isdisjoint(_names(item))]
    fresh = [name for name in added if name.casefold() not in every]
    if fresh or kept != items:
        tags = [*kept, *fresh]
        text = frontmatter.set_keys(entry.text, {key: tags})
        reason = f"tags: {', '.join(frontmatter.words(tags)) or 'none'}"
        library.write(path, text, expecting=entry.blob, actor=Actor.YOU, reason=reason)
    return library.get(path).tags


def _asked(words: Iterable[str]) -> tuple[list[str], set[str]]:
    """The tags to add, and those to take away, in lower case."""
    said = [clean_line(word) for word in words]
    names = [(word, word.lstrip("-").lstrip("#").strip(",")) for word in said]
    if not any(name for _, name in names):
        raise UsageError("There is no tag to add.", "Say it: /tag work -draft")
    added = {name.casefold(): name for word, name in names if name and word[:1] != "-"}
    removed = {name.casefold() for word, name in names if name and word[:1] == "-"}
    return list(added.values()), removed


def _names(item: Any) -> set[str]:
    """The name of an item of the list, in lower case."""
    return {tag.casefold() for tag in frontmatter.tags({"tags": [item]})}
