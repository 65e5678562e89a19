"""Adding tags to an entry and taking them away, with everything else left as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.errors import UnreadableError, UsageError
from kbtui.history.change import Actor
from kbtui.knowledge import frontmatter
from kbtui.text import clean_line

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
        The tags that it has now.

    Raises:
        UsageError: there is no tag among the words.
        UnreadableError: its frontmatter can't be read, so it isn't rewritten.
        ConflictError: somebody else changed it meanwhile.
    """
    entry = library.get(path)
    if entry.problem:
        raise UnreadableError(f"{path} can't be tagged: {entry.problem}", "Correct it first.")
    tags = list(entry.tags)
    said = [clean_line(word) for word in words]
    names = [word.lstrip("-").lstrip("#").strip(",") for word in said]
    if not any(names):
        raise UsageError("There is no tag to add.", "Say it: /tag work -draft")
    for word, name in zip(said, names, strict=True):
        known = next((tag for tag in tags if tag.casefold() == name.casefold()), None)
        if word.startswith("-") and known is not None:
            tags.remove(known)
        elif name and known is None and not word.startswith("-"):
            tags.append(name)
    if tags != list(entry.tags):
        text = frontmatter.set_keys(entry.text, {"tags": tags})
        reason = f"tags: {', '.join(tags) or 'none'}"
        library.write(path, text, expecting=entry.blob, actor=Actor.YOU, reason=reason)
    return tuple(tags)
