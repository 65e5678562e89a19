"""A companion of every change that keeps the `created` and `updated` dates current.

Not touched are: edits adopted from other programs, undo and restore, link repairs, renames, and
notes a person keeps without frontmatter. An `updated` set by the writer is kept, and so is one that
isn't an ISO date.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

from kbtui.clock import local_now
from kbtui.errors import UnreadableError
from kbtui.history.change import Change
from kbtui.knowledge.entries.entry import category_of, is_entry
from kbtui.knowledge.entries.templates import TYPE_OF_FOLDER
from kbtui.knowledge.format import frontmatter
from kbtui.knowledge.format.frontmatter import Frontmatter
from kbtui.workspace.layout import Workspace

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?P<time>[T ]\d{2}:\d{2}(?P<seconds>:\d{2})?)?")


def _like(written: str, day: date) -> str | int | None:
    """Return a day in the form of ``2026-1-5``, ``2026/1/5`` or ``20260105``; None of another."""
    read = frontmatter.day_word({"": written}, "")
    if read == written or len(read) != len("2026-01-05"):
        return None
    sign = next((each for each in "-/" if each in written), "")
    return f"{day.year}{sign}{day.month}{sign}{day.day}" if sign else int(f"{day:%Y%m%d}")


class DateKeeper:
    """A companion that sets the dates of entries whose content a change alters."""

    def __init__(self, workspace: Workspace, now: Callable[[], datetime] | None = None) -> None:
        self._layout = workspace
        self._in_place = workspace.in_place
        self._now = now or local_now

    def companion(self, change: Change) -> None:
        """Set the dates in a change that is about to be applied."""
        if change.adopted or change.is_restoration:
            return
        for path, data in list(change.edits.items()):
            if data is None or path in change.repairs:
                continue
            if not is_entry(path):
                continue
            dated = self._dated(path, data, change)
            if dated != data:
                change.replace(path, dated)

    def _dated(self, path: str, data: bytes, change: Change) -> bytes:
        matter = frontmatter.parse(data)
        if matter.problem:
            return data
        before = change.before(path)
        if before == data:
            return data
        try:
            if before is None:
                return self._new(path, data, matter, by_machine=change.actor.is_machine)
            return self._edited(data, matter, frontmatter.parse(before))
        except UnreadableError:
            return data  # YAML that can't be edited in place: the date stays as it is

    def _new(self, path: str, data: bytes, matter: Frontmatter, *, by_machine: bool) -> bytes:
        """Add missing dates to a new entry; one by a machine gets frontmatter if it has none.

        Notes in a user's own folder are left alone.
        """
        if self._in_place or (not matter.values and not by_machine):
            return data
        today = self._now().date()
        values_of = matter.values.get
        usual = {
            "type": by_machine and TYPE_OF_FOLDER.get(category_of(path).partition("/")[0]),
            "created": values_of("updated") or today,
            "updated": values_of("created") or today,
        }
        keys = {key: value for key, value in usual.items() if value and not values_of(key)}
        return frontmatter.set_keys(data, keys) if keys else data

    def _edited(self, data: bytes, matter: Frontmatter, before: Frontmatter) -> bytes:
        if not matter.values:
            return data
        written = matter.values.get("updated")
        if self._in_place and not written:
            return data
        if written and written != before.values.get("updated"):
            return data
        stamp = self._stamp(written)
        return data if stamp is None else frontmatter.set_keys(data, {"updated": stamp})

    def _stamp(self, written: Any) -> str | int | None:
        """Return the current time in the format of the old date; None if that isn't ISO."""
        now = self._now()
        if not written:
            return now.date().isoformat()
        found = _ISO.match(written) if isinstance(written, str) else None
        if found is None:
            return _like(written, now.date()) if isinstance(written, str) else None
        if not found["time"]:
            return now.date().isoformat() if found.end() == len(written) else None
        spec = "seconds" if found["seconds"] else "minutes"
        text = now.replace(tzinfo=None).isoformat(sep=found["time"][0], timespec=spec)
        zone = written[found.end() :]
        if zone == "Z":
            utc = now.astimezone(UTC).replace(tzinfo=None)
            return f"{utc.isoformat(sep=found['time'][0], timespec=spec)}Z"
        return text if not zone else None
