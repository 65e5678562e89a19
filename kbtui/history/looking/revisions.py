"""From what people type to a commit: ids, short ids, HEAD~2, dates."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from kbtui.errors import NotFoundError, UsageError
from kbtui.history.looking.log_table import LogFilter

if TYPE_CHECKING:
    from kbtui.history.looking.log import CommitLog
    from kbtui.history.objects.repository import Repository

_REVISION = re.compile(r"^(?P<base>.+?)(?P<steps>(?:~\d*|\^)*)$")
_ID = re.compile(r"^[0-9a-f]{4,40}$")
_DATE = re.compile(r"^\d{4}-\d{2}-\d{2}")
_FULL = 40


def resolve(repository: Repository, log: CommitLog, rev: str) -> str:
    """The id of the commit that `rev` names.

    Args:
        repository: Where ids are looked up.
        log: Where dates are looked up.
        rev: An id or its first 4 or more digits, ``HEAD``, or an ISO date or time (the last commit
            up to then; a bare date means the end of that day, local time). ``~n`` and ``^`` after
            it go to ancestors.

    Raises:
        NotFoundError: No commit is named so.
        UsageError: Several are.
    """
    match = _REVISION.match(rev.strip())
    if match is None:
        raise NotFoundError("An empty revision names no commit.", "See `kbtui log`.")
    commit = _base(repository, log, match["base"])
    for step in re.findall(r"~\d*|\^", match["steps"]):
        for _ in range(1 if step in {"~", "^"} else int(step[1:])):
            parents = repository.read_commit(commit).parents
            if not parents:
                raise NotFoundError(f"{rev} lies before the first commit.", "See `kbtui log`.")
            commit = parents[0]
    return commit


def _base(repository: Repository, log: CommitLog, name: str) -> str:
    if name.upper() in {"HEAD", "@"}:
        head = repository.head()
        if head is None:
            raise NotFoundError("There is no commit yet.")
        return head
    if _ID.match(name.lower()):
        found = _by_id(repository, name.lower())
        if found is not None:
            return found
    if _DATE.match(name):
        return _by_date(log, name)
    raise NotFoundError(
        f"No commit is named {name!r}.", "Take an id from `kbtui log`, HEAD~1, or a date."
    )


def _by_id(repository: Repository, prefix: str) -> str | None:
    found = repository.with_prefix(prefix)
    if len(found) > 1:
        shown = ", ".join(identifier[:12] for identifier in found[:5])
        raise UsageError(f"{prefix} is short for several commits: {shown}.", "Add more digits.")
    return found[0] if found else None


def _by_date(log: CommitLog, name: str) -> str:
    try:
        moment = datetime.fromisoformat(name)
    except ValueError as error:
        raise NotFoundError(f"{name} is no date.", "Write it like 2026-11-21.") from error
    if len(name) == len("2026-11-21"):
        moment = datetime.combine(moment.date(), time(23, 59, 59))
    found = next(log.commits(None, LogFilter(until=moment.astimezone(UTC)), 1), None)
    if found is None:
        raise NotFoundError(f"There is no commit up to {name}.", "See `kbtui log` for the first.")
    return found.id
