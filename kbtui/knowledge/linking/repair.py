"""Updates names and links when an entry is renamed, merged or deleted.

A link's target is rewritten in the style it was written in.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from kbtui.clock import local_now
from kbtui.errors import UnreadableError, UsageError
from kbtui.knowledge.entries.entry import DATED, Entry, EntryInfo, page_name, slug_of
from kbtui.knowledge.entries.habits import (
    KEBAB,
    Habits,
    PageNames,
    hierarchy_of,
    is_number,
    naming_of,
)
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.body import is_named, shows_title
from kbtui.knowledge.format.document import read_body
from kbtui.knowledge.format.links import (
    IN_VAULT,
    Link,
    PlacedLink,
    in_table_row,
    links_in_body,
    links_in_value,
    related_link,
)
from kbtui.knowledge.linking.resolve import RULES, EntryNames, Found, LinkIndex
from kbtui.text import MAX_SLUG, clean_line, slugify, storable
from kbtui.workspace.files import checked_path

_SLUG = re.compile(r"[^\W_A-Z]+(?:[-._][^\W_A-Z]+)*")
_ROOT = "knowledge/"
_Edit = tuple[int, int, str]  # start, end, replacement
_NOT_IN_HEADING = re.compile(r"[#^|\[\]\\]")
_MUST_ESCAPE = re.compile(r"[\s()<>%#?\"\\]")


@dataclass(frozen=True, slots=True)
class NewName:
    """The new name of an entry: its path, and its title if that changes too."""

    path: str
    title: str | None


def new_name(info: Entry | EntryInfo, wanted: str, habits: Habits) -> NewName:
    """Parse the new name a person gives an entry: a title, a slug or category/slug.

    A title becomes a file name in the style of the entry's current one.

    Raises:
        UsageError: the name is empty.
        UnsafePathError: the name leads out of the workspace.
    """
    # Surrogates from a terminal with another encoding can't be written.
    wanted = clean_line(storable(wanted)).removeprefix("knowledge/")
    category, slash, name = wanted.rpartition("/")
    pages = isinstance(habits.naming_in(info.category), PageNames)
    is_move = (name == info.slug and not pages) or habits.is_folder(category)
    if not name or (slash and (" " in category or pages) and not is_move):
        category, slash, name = info.category, "", wanted
    if not name:
        raise UsageError("The new name is empty.", "Give a title, or a name like people/<name>.")
    if not slash:
        category = info.category
    title = None
    slug = name.removesuffix(".md")
    if slug != info.slug and (pages or not _SLUG.fullmatch(slug)):
        title, slug = slug, _stem_for(info, slug, habits)
    folder = f"knowledge/{category}" if category else "knowledge"
    return NewName(checked_path(f"{folder}/{slug}.md"), title if title != info.title else None)


def _stem_for(info: Entry | EntryInfo, title: str, habits: Habits) -> str:
    """Return the file name for a new title in the old one's style, with its date or hierarchy."""
    template = habits.template_in(info.category)
    if template and "date" not in template.parts and (own := template.id_of(info.slug)):
        return template.stem(title, local_now(), own)
    if is_number(info.slug) and info.title != info.slug and habits.in_place:
        return info.slug
    prefix = hierarchy_of(info.slug) if habits.in_place else ""
    if prefix:
        return prefix + KEBAB.stem(title, MAX_SLUG)
    naming = habits.naming_in(info.category)
    if isinstance(naming, PageNames):
        return naming.stem(title)
    naming = naming_of(info.slug) or habits.naming_in(info.category)
    dated = DATED.match(info.slug)
    prefix = dated.group() if dated and not DATED.match(title) else ""
    return prefix + naming.stem(title, MAX_SLUG - len(prefix))


def titled(data: bytes, title: str, new: str | None) -> bytes:
    """Replace the title in the frontmatter and the first heading; `new` None: no change."""
    if new is None:
        return data
    if "title" in frontmatter.parse(data).values:
        data = frontmatter.set_keys(data, {"title": new})
    parts = frontmatter.split(data)
    body = parts.body.decode()
    for each in read_body(body).headings:
        if each.level == 1 and body[each.start : each.end] == title:
            body = body[: each.start] + new + body[each.end :]
            break
    return data[: len(data) - len(parts.body)] + body.encode()


@dataclass(frozen=True, slots=True)
class Move:
    """An entry before and after a rename, with the indexes before and after."""

    old: EntryNames
    new: EntryNames
    before: LinkIndex
    after: LinkIndex
    entry_at: Callable[[str], EntryNames | None]
    file_exists: Callable[[str], bool]
    retitled: bool = False

    def heading_of(self, link: Link, source: str) -> str | None:
        """Return the new heading of a link to the renamed title, or None if unchanged."""
        if not self.retitled or self.before.resolve(link, source) != self.old.path:
            return None
        return new_heading(link, {self.old.title: self.new.title})

    def target_of(self, link: Link, source: str) -> str | None:
        """Return the new target of a link in the file `source` (old path), None if unchanged."""
        now = self.new.path if source == self.old.path else source
        found = self.before.find(link, source)
        if found is None:
            return self._file_target(link, source, now)
        if not link.target:
            return None
        target_entry = self.new if found.path == self.old.path else self.entry_at(found.path)
        if target_entry is None or still_leads(
            self.after.find(link, now), found, target_entry.path
        ):
            return None
        target = new_target(link, found.by, now, target_entry, self.after)
        return None if target == link.target else target

    def _file_target(self, link: Link, source: str, now: str) -> str | None:
        """Return the new relative path of a linked file when the linking file moves."""
        if link.kind != "markdown" or link.target.startswith("/"):
            return None
        if posixpath.dirname(source) == posixpath.dirname(now):
            return None
        path = _joined(source, link)
        return relative_target(link, now, path) if self.file_exists(path) else None


def _joined(source: str, link: Link) -> str:
    """Return the path that a relative Markdown link in the file `source` names."""
    target = unquote(link.target)
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def relative_target_of_file(
    link: Link,
    source: tuple[str, str],
    folders: Mapping[str, str],
    exists: Callable[[str], bool],
) -> str | None:
    """Return the new target of a dead link to a file that isn't an entry; None if it isn't known.

    `source` is the linking file's path before and after, `folders` are those that moved.
    """
    before, now = source
    if link.kind != "markdown" or link.target.startswith("/") or exists(_joined(now, link)):
        return None
    path = _joined(before, link)
    folder, _, name = path.rpartition("/")
    for place in (path, f"{folders.get(folder, folder)}/{name}"):
        if exists(place):
            return relative_target(link, now, place)
    return None


def still_leads(now: Found | None, before: Found, path: str) -> bool:
    """Return whether a link still leads to `path`, by no weaker rule than before."""
    if now is None or now.path != path:
        return False
    return RULES.index(now.by) <= RULES.index(before.by)


def new_heading(link: Link, headings: Mapping[str, str]) -> str | None:
    """Return a link's new ``#heading`` after headings were renamed, or None if unchanged."""
    if not link.heading or link.heading.startswith("^"):
        return None
    parts = unquote(link.heading).split("#")
    renamed = [_heading(part, headings, link) for part in parts]
    if renamed == parts:
        return None
    return "#".join(_encoded(part, link) if link.kind == "markdown" else part for part in renamed)


def _heading(part: str, headings: Mapping[str, str], link: Link) -> str:
    """Return one part of a link's heading, renamed in the same form: as text or as an anchor."""
    old = next((each for each in headings if is_named(part, each)), None)
    if old is not None:
        is_anchor = part == slugify(old) != old and ("-" in part or link.kind == "markdown")
        new = headings[old]
        part = slugify(new) if is_anchor else " ".join(_NOT_IN_HEADING.sub(" ", new).split())
    return part


def retargeted(
    data: bytes,
    read: Callable[[Link], Link],
    decide: Callable[[Link], str | None],
    head: Callable[[Link], str | None] = lambda _: None,
) -> bytes:
    """Rewrite link targets by `decide` and headings by `head`; all other bytes stay.

    `read` returns a link in its intended order.
    """

    def in_value(key: str, value: str) -> str | None:
        if key == "related":
            link = related_link(value)
            target = decide(link)
            if target is None:
                return None
            return value.replace(link.target, target, 1)
        return _edited(value, links_in_value(value), in_text)

    wikilinks = _wikilink_texts(data) if b"]:" in data else frozenset()

    def in_text(placed: PlacedLink) -> Iterator[_Edit]:
        placed = _in_order(placed, read)
        target, heading = decide(placed.link), head(placed.link)
        if target is not None:
            target = _as_placed(target, placed)
            yield placed.target_start, placed.target_end, target
        if heading is not None:
            end = placed.heading_start + len(placed.link.heading or "")
            yield placed.heading_start, end, heading
        if placed.definition and placed.text in wikilinks:  # Foam's definition of that wikilink
            name = placed.text.partition("|")[0]
            if (new := decide(Link(name, "wiki", placed.link.line))) is not None:
                yield placed.label_start, placed.label_start + len(name), new

    return _with_body(_with_values(data, in_value), in_text)


def _as_placed(target: str, placed: PlacedLink) -> str:
    """Return a new target as it has to be written where a link stands."""
    if not placed.raw:
        return target.replace("'", "%27") if placed.quoted else target
    target = unquote(target)
    return target if placed.quoted or " " not in target else f'"{target}"'


def _with_values(data: bytes, replace: Callable[[str, str], str | None]) -> bytes:
    """Replace scalars of the frontmatter, unless it can't be read: then its bytes stay."""
    if frontmatter.parse(data).problem:
        return data
    return frontmatter.replace_scalars(data, replace)


def _wikilink_texts(data: bytes) -> frozenset[str]:
    """Return the texts inside a file's wikilinks, without headings."""
    body = frontmatter.split(data).body.decode("utf-8", "replace")
    links = (placed.link for placed in links_in_body(body) if placed.link.kind == "wiki")
    return frozenset(f"{each.target}|{each.alias}" if each.alias else each.target for each in links)


def follow(data: bytes, source: str, move: Move) -> bytes:
    """Return a file with its links updated after a move; `source` is its path before."""
    return retargeted(
        data,
        move.before.read,
        lambda link: move.target_of(link, source),
        lambda link: move.heading_of(link, source),
    )


def unlinked(
    data: bytes, title: str, read: Callable[[Link], Link], is_gone: Callable[[Link], bool]
) -> bytes:
    """Remove links to something gone: entirely from ``related``, elsewhere keeping their text.

    That is the displayed text, or `title` (unless empty) if the link is just a path or slug.
    """

    def in_value(key: str, value: str) -> str | None:
        return value if key == "related" else _edited(value, links_in_value(value), in_text)

    def in_text(placed: PlacedLink) -> Iterator[_Edit]:
        placed = _in_order(placed, read)
        if not placed.definition and is_gone(placed.link):
            link, text = placed.link, placed.text
            has_no_label = link.kind == "wiki" and not link.alias and shows_title(link.target, text)
            yield placed.start, placed.end, (has_no_label and title) or text

    def in_body(placed: PlacedLink) -> Iterator[_Edit]:
        in_cell = in_table_row(body, placed.start)
        for start, end, new in in_text(placed):
            yield start, end, new.replace("|", "\\|") if in_cell and new == title else new

    data = _without_related(_with_values(data, in_value), is_gone)
    before = None
    while data != before:  # again, for links around those that became text
        before, body = data, frontmatter.split(data).body.decode("utf-8", "replace")
        data = _with_body(data, in_body)
    return data


def _without_related(data: bytes, is_gone: Callable[[Link], bool]) -> bytes:
    related = frontmatter.parse(data).values.get("related")
    if isinstance(related, list):
        kept = [item for item in related if not _is_only_gone(item, is_gone)]
        return data if kept == related else frontmatter.set_keys(data, {"related": kept})
    if isinstance(related, str) and _is_only_gone(related, is_gone):
        return frontmatter.set_keys(data, {"related": None})
    return data


def _is_only_gone(item: object, is_gone: Callable[[Link], bool]) -> bool:
    """Return whether an item of ``related`` names only what is gone."""
    if isinstance(item, list):  # YAML parses an unquoted [[name]] as nested lists
        return bool(item) and all(_is_only_gone(part, is_gone) for part in item)
    return isinstance(item, str) and bool(item.strip()) and is_gone(related_link(item))


def _in_order(placed: PlacedLink, read: Callable[[Link], Link]) -> PlacedLink:
    return placed.turned() if read(placed.link).turned_round else placed


def _with_body(data: bytes, edit: Callable[[PlacedLink], Iterable[_Edit]]) -> bytes:
    parts = frontmatter.split(data)
    try:
        body = parts.body.decode()
    except UnicodeDecodeError as error:
        raise UnreadableError("The text isn't valid UTF-8.", "It is left as it is.") from error
    edited = _edited(body, links_in_body(body), edit)
    if edited == body:
        return data
    return parts.join()[: len(data) - len(parts.body)] + edited.encode()


def _edited(
    text: str, links: Iterable[PlacedLink], edit: Callable[[PlacedLink], Iterable[_Edit]]
) -> str:
    """Apply the edits of links, but for those that contain another's."""
    within = len(text)
    for start, end, new in sorted((e for placed in links for e in edit(placed)), reverse=True):
        if end <= within:
            text = text[:start] + new + text[end:]
            within = start
    return text


def new_target(link: Link, by: str, source: str, target: EntryNames, index: LinkIndex) -> str:
    """Return the new target text of a link in the file `source` to the entry `target`.

    `by` is the rule that found it before (`Found.by`); `index` is the one after the change.
    """
    written = unquote(link.target) if link.kind == "markdown" else link.target
    candidates = _candidates(written, by, source, target)
    if written.startswith(IN_VAULT):
        vault = index.dendron.address(target.path, slug_of(target.path)) if index.dendron else None
        same_vault = f"{written.rpartition('/')[0]}/{slug_of(target.path)}"
        candidates = [same_vault, *([vault] if vault else []), slug_of(target.path)]
    for candidate in candidates:
        encoded = _encoded(candidate, link) if link.kind == "markdown" else candidate
        retried = replace(link, target=encoded)
        if index.resolve(retried, source) == target.path:
            return encoded
    full = target.path.removeprefix(_ROOT)
    return _encoded(full, link) if link.kind == "markdown" else full


def relative_target(link: Link, source: str, path: str) -> str:
    """Return a relative Markdown target from the file `source` to another file."""
    return _encoded(_relative(unquote(link.target), source, path), link)


def _candidates(written: str, by: str, source: str, target: EntryNames) -> list[str]:
    """Return the targets to try, the one most like the written one first."""
    full = target.path.removeprefix(_ROOT)
    dotted = written.lower().endswith(".md")
    if by == "relative":
        relative = _relative(written, source, target.path)
        return [relative if dotted else relative[:-3]]
    if by == "title":
        return [target.title, slug_of(target.path), full[:-3]]
    if by == "alias":
        return [full[:-3]]
    page = page_name(slug_of(target.path))
    if by == "name" and page == target.title != slug_of(target.path):
        return [page, full[:-3]]
    if by == "name":
        folders = written.strip("/").count("/")
        parts = full.split("/")[-1 - folders :]
        full = "/".join(parts)
    elif written.lstrip("/").startswith(_ROOT):
        full = target.path
    full = full if dotted else full[:-3]
    lead = "/" if written.startswith("/") else ""
    return [lead + full, target.path.removeprefix(_ROOT)[: None if dotted else -3]]


def _relative(written: str, source: str, path: str) -> str:
    relative = posixpath.relpath(path, posixpath.dirname(source) or ".")
    is_dotted = written.startswith("./../" if relative.startswith("../") else "./")
    return f"./{relative}" if is_dotted else relative


def _encoded(target: str, link: Link) -> str:
    """Percent-encode a Markdown target as far as the old one was, or as necessary."""
    if "%" in link.target:
        keep = "" if link.target.isascii() else "".join(c for c in target if not c.isascii())
        return quote(target, safe="/@:!$&'*+,;=~" + keep)
    if " " in link.target:  # it is in angle brackets
        return re.sub(r"[<>%#\n]", lambda found: quote(found.group(), safe=""), target)
    return _MUST_ESCAPE.sub(lambda found: quote(found.group(), safe=""), target)
