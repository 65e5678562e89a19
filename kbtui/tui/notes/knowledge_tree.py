"""The tree of categories and entries: its data model and its widget."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.content import Content

from kbtui.presentation.notes import OTHER, kind_of, title_of
from kbtui.presentation.times import format_day
from kbtui.text import clean_line, fold, natural
from kbtui.tui.notes.fuzzy import matched_spans
from kbtui.tui.notes.pages import DAYS
from kbtui.tui.widgets.kinds import KIND_STYLE, sign
from kbtui.tui.widgets.row_list import RowList, justified_row
from kbtui.workspace.layout import CATEGORIES, ENTRIES

if TYPE_CHECKING:
    from kbtui.knowledge.library.library import EntryInfo

_CHANGE_SIGN = "✎ "
_MIN_TITLE_CELLS = 24
"""Cells that a title keeps; the note to its right is dropped if it has fewer."""
SMALL_TREE_ENTRIES = 40
"""Number of entries up to which a tree starts unfolded."""


class LeftOut(NamedTuple):
    """A file that can't be an entry, and why; `is_text` if it can still be read."""

    path: str
    why: str
    is_text: bool = False

    @property
    def remark(self) -> str:
        """The remark shown after its name."""
        return self.why if self.is_text else f"left out: {self.why}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


@dataclass(slots=True)
class Folder:
    """A category and its contents; `count` includes the entries of subfolders.

    Folders of pages, whose paths start with ``@``, come first, after pages outside of any folder.
    """

    path: str
    name: str
    folders: dict[str, Folder] = field(default_factory=dict)
    entries: list[EntryInfo] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    count: int = 0


class Row(NamedTuple):
    """A visible row of the tree: a folder, an entry, or a file that can't be one."""

    depth: int
    of: Folder | EntryInfo | LeftOut

    @property
    def key(self) -> str:
        """A key that is stable when the tree is rebuilt."""
        return f"{self.of.path}/" if isinstance(self.of, Folder) else self.of.path

    @property
    def folder(self) -> Folder | None:
        """The folder if the row is one, else None."""
        return self.of if isinstance(self.of, Folder) else None

    @property
    def entry(self) -> EntryInfo | None:
        """The entry if the row is one, else None."""
        return None if isinstance(self.of, Folder | LeftOut) else self.of


def build_tree(
    entries: Iterable[EntryInfo],
    left_out: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
) -> Folder:
    """Build the tree of entries and of files that can't be one; runs in a thread."""
    root = Folder("", "")
    by_title = sorted(entries, key=lambda entry: natural(fold(title_of(entry))))
    for entry in sorted(by_title, key=_newest_day_first):
        *above, folder = _folder_chain(root, entry.category)
        for each in (*above, folder):
            each.count += 1
        folder.entries.append(entry)
    for is_text, named in ((False, left_out), (True, texts)):
        for path, why in sorted((named or {}).items()):
            if path.startswith("knowledge/"):
                category = path.removeprefix("knowledge/").rpartition("/")[0]
                _folder_chain(root, category)[-1].left_out.append(LeftOut(path, why, is_text))
    return root


def _newest_day_first(entry: EntryInfo) -> int:
    """Return a sort key that orders days newest first, and keeps the order of all else."""
    if entry.category != DAYS:
        return 0
    return -date.fromisoformat(entry.slug.replace("_", "-")).toordinal()


def _folder_chain(root: Folder, category: str) -> list[Folder]:
    """Return the chain of folders from the root to a category, creating missing ones."""
    chain = [root]
    for name in filter(None, category.split("/")):
        path = f"{chain[-1].path}/{name}" if chain[-1].path else name
        chain.append(chain[-1].folders.setdefault(name, Folder(path, name.removeprefix("@"))))
    return chain


def visible_rows(root: Folder, expanded: Collection[str]) -> list[Row]:
    """Return the visible rows, given the unfolded folders, from top to bottom."""
    return list(_rows(root, expanded, 0))


def _rows(folder: Folder, expanded: Collection[str], depth: int) -> Iterator[Row]:
    pages = [entry for entry in folder.entries if not entry.is_entry and not depth]
    for entry in pages:
        yield Row(depth, entry)
    for name in sorted(
        folder.folders, key=lambda name: (not name.startswith("@"), name.casefold())
    ):
        inner = folder.folders[name]
        yield Row(depth, inner)
        if inner.path in expanded:
            yield from _rows(inner, expanded, depth + 1)
    for entry in folder.entries:
        if entry not in pages:
            yield Row(depth, entry)
    yield from (Row(depth, each) for each in folder.left_out)


def all_folders(root: Folder) -> set[str]:
    """Return the paths of all folders, to unfold everything."""
    found = set()
    pending = list(root.folders.values())
    while pending:
        folder = pending.pop()
        found.add(folder.path)
        pending += folder.folders.values()
    return found


def ancestors(category: str) -> list[str]:
    """Return the folder paths from the top down to `category` itself."""
    parts = category.split("/") if category else []
    return ["/".join(parts[: index + 1]) for index in range(len(parts))]


class ChangeMark(NamedTuple):
    """A change of an entry since it was last viewed.

    `machine` is the name of the actor that wrote, empty for a person; `word` replaces the default
    text.
    """

    new: bool
    machine: str
    word: str = ""


class KnowledgeTree(RowList[Row]):
    """A tree of folders and entries with change marks; the cursor stays on its entry."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "fold", "Fold", show=False),
        Binding("right", "unfold", "Unfold", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        self._root = Folder("", "")
        self.items: Sequence[Row] = ()
        self._expanded: set[str] = set()
        self._query = ""
        self._filtered: Folder | None = None
        self._marks: Mapping[str, ChangeMark] = {}
        self._change_counts: dict[str, int] = {}
        self._is_loaded = False
        self.message = "Opening the knowledge base …"
        super().__init__(id=id)

    # Data

    def show_tree(self, root: Folder) -> None:
        """Show a reloaded tree, keeping folds, cursor and, unless focused, the scroll position."""
        top = self.scroll_y
        if root.count <= SMALL_TREE_ENTRIES:
            new = all_folders(root) - (all_folders(self._root) if self._is_loaded else set())
            self._expanded |= {path for path in new if not path.startswith("@")}
        self._is_loaded = True
        self._root = root
        self._rebuild()
        if not self.has_focus:
            self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def show_matches(self, query: str, root: Folder, best: str | None) -> None:
        """Show only the matches of a filter, unfolded, with the cursor on the best."""
        self._query, self._filtered = query, root
        self._rebuild(best)

    def clear_filter(self) -> None:
        """Show everything again, keeping the entry at the cursor visible."""
        entry = self.entry
        self._query, self._filtered = "", None
        if entry is not None:
            self._expanded.update(ancestors(entry.category))
        self._rebuild()

    def show_marks(self, marks: Mapping[str, ChangeMark]) -> None:
        """Set the change marks, by path."""
        self._marks = marks
        self._change_counts = {}
        for path in marks:
            category = path.removeprefix("knowledge/").rpartition("/")[0]
            for folder in ancestors(category):
                self._change_counts[folder] = self._change_counts.get(folder, 0) + 1
        self._strips.clear()
        self.refresh()

    @property
    def filtering(self) -> bool:
        """Whether only the matches of a filter are shown."""
        return self._filtered is not None

    @property
    def entry(self) -> EntryInfo | None:
        return self.item.entry if self.item is not None else None

    @property
    def category(self) -> str:
        """The category at the cursor; empty if there is none."""
        if self.entry is not None:
            return self.entry.category.partition("@")[0]
        folder = self.item.folder if self.item is not None else None
        return folder.path.partition("@")[0] if folder is not None else ""

    def reveal(self, path: str, category: str) -> None:
        """Move the cursor to an entry, unfolding its folders."""
        if self._filtered is None:
            self._expanded.update(ancestors(category))
        self._rebuild(path)

    def scroll_to_entry(self, path: str) -> None:
        """Scroll to an entry if its folder is unfolded, without moving the cursor."""
        places = (index for index, row in enumerate(self.items) if row.key == path)
        if (index := next(places, None)) is not None:
            self.scroll_to_row(index)

    def shows(self, path: str) -> bool:
        """Return whether an entry has a visible row."""
        return any(row.key == path for row in self.items)

    def _rebuild(self, key: str | None = None) -> None:
        key = key or (self.item.key if self.item is not None else None)
        if self._filtered is None:
            self.items = visible_rows(self._root, self._expanded)
        else:
            self.items = visible_rows(self._filtered, all_folders(self._filtered))
        places = (index for index, row in enumerate(self.items) if row.key == key)
        self.rows_changed(next(places, None))

    # Folding

    def action_fold(self) -> None:
        """Fold the folder at the cursor, or move to the parent of the row."""
        row = self.item
        if row is None:
            return
        if row.folder is not None and self._is_open(row.folder) and self._filtered is None:
            self.toggle(row.folder)
            return
        for index in range(self.cursor - 1, -1, -1):
            if self.items[index].depth < row.depth:
                self.cursor = index
                return

    def action_unfold(self) -> None:
        """Unfold the folder at the cursor, move into it, or open the entry."""
        row = self.item
        if row is None:
            return
        if row.folder is None:
            self.action_select()
        elif self._is_open(row.folder):
            self.cursor += 1
        else:
            self.toggle(row.folder)

    def toggle(self, folder: Folder) -> None:
        if self._filtered is None:
            self._expanded ^= {folder.path}
            self._rebuild()

    def _is_open(self, folder: Folder) -> bool:
        return self._filtered is not None or folder.path in self._expanded

    # Drawing

    def empty_text(self) -> Content:
        if self._filtered is not None:
            text = "Nothing matches. Enter searches the text of all notes."
        elif self._is_loaded:
            text = "Nothing here yet: n writes a note."
        else:
            text = self.message
        return Content.styled(text, ".rows--muted")

    def render_row(self, index: int, width: int) -> Sequence[Content]:
        depth, of = self.items[index]
        indent = "  " * depth
        if isinstance(of, Folder):
            return [self._folder_line(of, indent, width)]
        if isinstance(of, LeftOut):
            text = f"{indent}  {clean_line(of.name)} ({of.remark})"
            return [Content.styled(text, ".rows--muted").truncate(width, ellipsis=True)]
        return [self._entry_line(of, indent, width)]

    def _folder_line(self, folder: Folder, indent: str, width: int) -> Content:
        is_open = self._is_open(folder)
        is_ours = folder.path in CATEGORIES or folder.path.startswith("@")
        kind = OTHER if is_ours else kind_of(None, f"{ENTRIES}{folder.path}/-")
        parts: list[str | tuple[str, str]] = [
            (f"{indent}{'▾' if is_open else '▸'} ", f"{KIND_STYLE}{kind.name}"),
            (_folder_name(folder), ".rows--strong"),
        ]
        changed = self._change_counts.get(folder.path, 0)
        if changed and not is_open:
            parts.append((f"  {_CHANGE_SIGN}{changed}", ".rows--accent"))
        line = Content.assemble(*parts)
        return justified_row(line, Content.styled(f"{folder.count:,}", ".rows--muted"), width)

    def _entry_line(self, entry: EntryInfo, indent: str, width: int) -> Content:
        title, lead = title_of(entry), Content(f"{indent}  ")
        if entry.is_entry:
            lead += sign(kind_of(entry.type, entry.path))
        name = marked(lead + Content(title), title, self._query)
        if entry.problem:
            name += Content.styled(" !", ".rows--bad")
        right = self._change_note(entry)
        room = width - right.cell_length - 2
        if room < _MIN_TITLE_CELLS and name.cell_length > room:
            right = Content()
        return justified_row(name, right, width)

    def _change_note(self, entry: EntryInfo) -> Content:
        """Return who changed an entry since it was last viewed, else the day of its last change."""
        mark = self._marks.get(entry.path)
        if mark is not None and mark.machine:
            return Content.styled(f"{_CHANGE_SIGN}{mark.machine}", ".rows--accent")
        if mark is not None:
            label = mark.word or ("new" if mark.new else "changed")
            return Content.styled(label, ".rows--second")
        return Content.styled(_changed_day(entry), ".rows--muted")


def _changed_day(entry: EntryInfo) -> str:
    """Return the day an entry says it was changed or created, or an empty string."""
    try:
        return format_day(date.fromisoformat((entry.updated or entry.created or "")[:10]))
    except ValueError:
        return ""


def _folder_name(folder: Folder) -> str:
    """Return the name of a folder, capitalized for those kbtui creates."""
    name = clean_line(folder.name)
    return name.capitalize() if folder.path in CATEGORIES or folder.path.startswith("@") else name


def marked(name: Content, title: str, query: str) -> Content:
    """Highlight matches of a query in the title at the end of a name."""
    lead = len(name.plain) - len(title)
    for start, end in matched_spans(title, query) if query else ():
        name = name.stylize(".rows--match", start + lead, end + lead)
    return name
