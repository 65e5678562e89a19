"""The search index of a workspace: one object for the app, the command line and the agent.

`SearchIndex` answers from what is indexed at the moment, and says in a notice what is still being
done. Everything it keeps is derived: deleted or damaged, it is made again from the files.

Importing this module imports no engine; the first search or sync does.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from kbtui.documents.documents import is_beside_notes
from kbtui.errors import KbtuiError, StorageError, UsageError
from kbtui.listeners import Listeners
from kbtui.search.background import Pause as Pause, Watcher as Watcher
from kbtui.search.index.builder import Scopes
from kbtui.search.query.privacy_filter import Withheld as Withheld
from kbtui.search.results import MOST_COUNTED, IndexReport, IndexStatus, SearchResult
from kbtui.text import counted
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kbtui.search.background import Background
    from kbtui.search.embedding.prepared import EmbeddingModel
    from kbtui.search.index.bm25f import Corpus, Mask
    from kbtui.search.index.chunk_rows import TreeReader
    from kbtui.search.index.chunker import ChunkLimits
    from kbtui.search.index.generation import Generations
    from kbtui.search.query.fusion import Comparison
    from kbtui.search.query.hits import Rows
    from kbtui.search.query.parser import Query
    from kbtui.search.query.semantic import Semantic
    from kbtui.search.results import Hit, Preparation
    from kbtui.settings import RoleSettings, SearchSettings
    from kbtui.workspace.layout import Workspace


_LOG = logging.getLogger(__name__)
MOST_HITS = 1000
_LOCK_SECONDS = 5.0
_FIRST_ANSWER_SECONDS = 2.0
_WORTH_TELLING = 50  # files
_DOCUMENTS_SECONDS = 10.0  # that a single search spends on reading documents
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Request:
    """A question to `SearchIndex.search`, with the query as it was understood."""

    asked: Query
    query: str
    scope: str
    limit: int
    semantic: bool
    wait: bool
    relevant_only: bool
    statements_only: bool
    by_chance: bool
    before: tuple[str, int] | None


class SearchIndex:
    """Search over one workspace; all methods may be called from any thread."""

    def __init__(
        self,
        workspace: Workspace,
        scanner: Scanner,
        settings: SearchSettings,
        embed: RoleSettings,
        *,
        tree_at: Callable[[str], Iterable[tuple[str, bytes]]] | None = None,
        withheld: Withheld | None = None,
        model: EmbeddingModel | None = None,
        apart: Callable[[], Preparation] | None = None,
    ) -> None:
        """Opens nothing yet.

        Args:
            workspace: Whose files are searched, and whose cache holds the index.
            scanner: Says which files there are, and their content's hashes.
            settings: Chunk sizes, weights, folders.
            embed: The embedding model.
            tree_at: Gives the files of a revision, for searches `at` one.
            withheld: What a remote embedding model must not see; None: what says so itself.
            model: The embedding model, if it is not the one that `embed` names.
            apart: Has another process do what a search has no time for, where nothing is done in
                the background of this one; tells how far it is.
        """
        self.on_outside_edit: Callable[[], None] | None = None
        self._workspace = workspace
        self._scanner = scanner
        self._settings = settings
        self._scopes = Scopes(settings.roots)
        self._embed = embed
        self._model = model
        self._apart = apart
        self._tree_at = tree_at
        self._withheld = withheld or Withheld(workspace)
        self._lock = threading.RLock()  # held for moments only; the others while files are opened
        self._opening = threading.RLock()
        self._opened: Generations | None = None
        self._meaning: Semantic | None = None
        self._background: Background | None = None
        self._listeners: Listeners[IndexStatus] = Listeners()
        self._beside_notes = (
            Scanner(workspace, beside_notes=is_beside_notes) if workspace.in_place else None
        )
        self._reading = threading.Lock()
        self._waiting: dict[str, str] = {}
        self._read: set[tuple[str, str]] = set()
        self._pending: set[str] = set()
        self._synced = threading.Event()
        self._stop = threading.Event()
        self._activity = ""
        self._progress = (0, 0)
        self.pause = Pause()
        self._first: tuple[str, ...] = ()
        self._trees: TreeReader | None = None

    # Keeping up with the files

    def sync(self, documents_seconds: float | None = None) -> IndexReport:
        """Bring the words index up to date with all files; heals any damage by rebuilding.

        Args:
            documents_seconds: How long to read documents, where that isn't done in the background;
                None: until all are read.

        Raises:
            StorageError: there is no room for the index.
        """
        report = self._healing(lambda: self._sync(None))
        if self._background is None and self.read_documents(documents_seconds):
            later = self.refresh_now() or report
            report = replace(report, files=later.files, chunks=later.chunks, skipped=later.skipped)
        return report

    def read_documents(self, seconds: float | None = None) -> int:
        """Read the text of the documents that wait for it, one by one; tells how many it did.

        What was read is indexed by the next `refresh_now`. A child process reads them; documents
        are never read while files wait to be indexed.
        """
        from kbtui.documents.documents import Documents

        done = 0
        until = None if seconds is None else time.monotonic() + seconds
        with self._reading, Documents(self._workspace, self._stop.is_set) as documents:
            while not self._stop.is_set() and (until is None or time.monotonic() < until):
                with self._lock:
                    if not self._waiting:
                        break
                    left = len(self._waiting)
                    path = min(self._waiting)
                    # Once each: what can't be kept would wait for ever.
                    self._read.add((path, self._waiting.pop(path)))
                self._activity = f"Reading documents: {left:,} to go"
                self._between_batches(done, left)
                try:
                    documents.read(path)
                except (KbtuiError, OSError) as error:
                    _LOG.info("A document can't be read: %s", error)
                self.refresh([path])
                done += 1
            self._activity = ""
        if done:
            self._tell()
        return done

    def rebuild(self) -> IndexReport:
        """Make the words index again from the files; vectors stay, as they go by their texts.

        Raises:
            StorageError: another process is writing the index, or there is no room for it.
        """
        self._generations().renew(_LOCK_SECONDS)
        self._synced.clear()
        return self.sync()

    def refresh(self, paths: Iterable[str]) -> None:
        """Take note that these files changed: searches see it within a second."""
        self._keep_pending(paths)
        with self._lock:
            background = self._background
        if background is not None:
            background.wake()

    def _keep_pending(self, paths: Iterable[str]) -> None:
        with self._lock:
            self._pending.update(paths)

    def refresh_now(self) -> IndexReport | None:
        """Index what `refresh` was told; None if it was nothing."""
        with self._lock:
            paths, self._pending = self._pending, set()
        if not paths:
            return None
        try:
            return self._healing(lambda: self._sync(frozenset(paths)))
        except BaseException:
            self._keep_pending(paths)
            raise

    def _sync(self, only: frozenset[str] | None) -> IndexReport:
        from kbtui.search.index.builder import Builder
        from kbtui.search.index.generation import CacheBusyError

        started = time.perf_counter()
        builder = Builder(
            self._workspace,
            self._limits(),
            int(self._settings.max_file_megabytes * 2**20),
            self._scopes.roots,
        )
        counts = (0, 0, 0)
        generations = self._generations()
        try:
            with generations.writing(_LOCK_SECONDS) as generation:
                known = generation.store.files(only)
                found = builder.scan(self._scanner, self._scopes.all, only, known)
                if self._beside_notes is not None:
                    found = {
                        **found,
                        **builder.scan(self._beside_notes, ("knowledge",), only, known),
                    }
                counts = builder.update(generation, found, known, self._report_progress)
                if only is None and not self._stop.is_set():
                    generations.swap()
                    builder.keep_texts_of(found)
            self._await(builder.waiting, only)
        except CacheBusyError:
            _LOG.info("Another process is writing the search index.")
            self._keep_pending(only or ())
        finally:
            self._activity, self._progress = "", (0, 0)
        if only is None:
            self._synced.set()
        self._tell()
        files, chunks = generations.serving.store.counts()
        rebuilt, generations.rebuilt = generations.rebuilt, ""
        return IndexReport(
            files,
            chunks,
            *counts,
            took_ms=(time.perf_counter() - started) * 1000,
            rebuilt=rebuilt,
            skipped=tuple(sorted([*generations.serving.store.problems(), *self._passed_over()])),
        )

    def _passed_over(self) -> Iterable[tuple[str, str]]:
        """The files that could be searched but not even be looked at, and why."""
        found = self._scanner.left_out(recorded=False)
        if self._beside_notes is not None:
            found |= self._beside_notes.left_out(recorded=False)
        return found.items() - self._scanner.left_out().items()

    def _await(self, found: Mapping[str, str], only: frozenset[str] | None) -> None:
        """Remember which documents, with what content, are to be read."""
        with self._lock:
            if only is None:
                self._waiting.clear()
            self._waiting |= {
                path: blob for path, blob in found.items() if (path, blob) not in self._read
            }

    def _report_progress(self, done: int, of: int) -> bool:
        if of >= _WORTH_TELLING:
            self._activity = f"Reading files: {done:,} of {of:,}"
            self._progress = done, of
            self._tell()
        return not self._stop.is_set()

    def tidy(self) -> None:
        """Write the index in fewer files where there are many; for idle moments."""
        from kbtui.search.index.generation import CacheBusyError

        generations = self._generations()
        try:
            with generations.writing(0.0) as generation:
                generation.tidy()
                if self._meaning is not None:
                    self._meaning.tidy(generation.store)
        except CacheBusyError:
            pass

    # Background

    def start(self) -> None:
        """Work in the background from now on: sync, watch the files, prepare the model, embed."""
        from kbtui.search.background import Background

        with self._lock:
            if self._background is None and not self._stop.is_set():
                self._background = Background(self, self._workspace, self._scopes.all)
                self._background.start(
                    self._settings.sync_interval_seconds, semantic=self._settings.semantic
                )

    def close(self) -> None:
        """Stop the background work and close all files; takes well under a second."""
        self._stop.set()
        with self._lock:
            background, self._background = self._background, None
        if background is not None:
            background.stop()
        with self._opening:
            if self._meaning is not None:
                self._meaning.close()
                self._meaning = None
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def status(self) -> IndexStatus:
        """How far the index is, in words as well."""
        with self._lock:
            opened, meaning = self._opened, self._meaning
        if opened is None:
            return IndexStatus("opening")
        from kbtui.search.query.semantic import status_of

        status = status_of(
            opened.serving.store,
            meaning if self._settings.semantic else None,
            self._activity,
            synced=self._synced.is_set(),
        )
        return replace(status, reading=self._progress)

    def subscribe(self, listener: Callable[[IndexStatus], None]) -> Callable[[], None]:
        """Be told of every change of the status, in whatever thread; returns what unsubscribes."""
        return self._listeners.add(listener)

    def _tell(self) -> None:
        if self._listeners:
            self._listeners.tell(self.status())

    # Meaning

    def load_model(self) -> bool:
        """Get the embedding model ready, preparing it if needed; tells whether it is."""
        meaning = self._semantic()
        meaning.retry()
        self._tell()
        ready = meaning.load(self._stop)
        if ready:
            meaning.count_missing(self._generations().serving.store)
        self._tell()
        return ready

    def read_first(self, paths: Iterable[str]) -> None:
        """Embed these files before all others, the last of them first; costs nothing to call."""
        self._first = tuple(paths)

    def embed_missing(self, seconds: float = math.inf) -> int:
        """Embed passages that have no vector yet, for so long; tells how many it did."""
        try:
            store = self._generations().serving.store
            return self._semantic().embed_missing(
                store,
                self._stop,
                self._between_batches,
                roughly_first=self._background is not None,
                seconds=seconds,
            )
        finally:
            self._tell()

    def _between_batches(self, _done: int, _left: int) -> None:
        """Tell how far it is, and let whoever types go first."""
        self._tell()
        if self._background is not None:
            self.pause.wait(self._stop)

    def _semantic(self) -> Semantic:
        with self._opening:
            if self._meaning is None:
                from kbtui.search.embedding.prepared import ConfiguredModel
                from kbtui.search.query.semantic import Semantic

                folder = self._generations().folder / "vectors"
                model = self._model or ConfiguredModel(self._embed)
                self._meaning = Semantic(
                    folder,
                    model,
                    self._withheld.is_withheld,
                    lambda: self._first,
                    self._apart,
                )
            return self._meaning

    @property
    def _is_local(self) -> bool:
        """True if no text leaves this machine to be embedded."""
        from kbtui.search.embedding.prepared import is_local

        return self._model is not None or is_local(self._embed)

    # Searching

    def search(  # noqa: PLR0913 — names of what can be asked
        self,
        query: str,
        scope: str = "default",
        limit: int = 10,
        *,
        semantic: bool = True,
        wait: bool = False,
        at: str | None = None,
        relevant_only: bool = False,
        statements_only: bool = False,
        by_chance: bool = False,
        before: tuple[str, int] | None = None,
        sendable: bool = True,
    ) -> SearchResult:
        """Find the places that answer a query, by words and by meaning.

        Args:
            query: Any text; see `kbtui.search.query.parser` for what it may hold.
            scope: ``default`` (knowledge, memory, docs), ``all``, or folders, with commas.
            limit: At most so many hits; the first ones are the same for any limit.
            semantic: Compare by meaning too, if the model is there.
            wait: Wait for the model and for all vectors.
            at: A revision: search the files as they were then; by meaning if they have vectors.
            relevant_only: Leave out what probably doesn't answer the query: a query that nothing
                answers has no hits.
            statements_only: Of conversations leave out what kbtui said, and what was only asked.
            by_chance: Show also what is no nearer by meaning than others are by chance.
            before: A session and a message of it: what it said from there on is left out.
            sendable: The query may be sent to an embedding model elsewhere.

        Raises:
            UsageError: `at` where there is no history.
        """
        from kbtui.search.query.parser import parse

        started = time.perf_counter()
        asked = parse(query)
        request = _Request(
            asked,
            query,
            scope,
            max(1, min(limit, MOST_HITS)),
            semantic=semantic and self._settings.semantic and (sendable or self._is_local),
            wait=wait,
            relevant_only=relevant_only,
            statements_only=statements_only,
            by_chance=by_chance,
            before=before,
        )
        if at is not None:
            result = self._search_tree(request, at)
        elif not asked.has_words and not asked.conditions:
            result = SearchResult(query, scope, 0.0, semantic=False, hits=())
        else:
            result = self._healing(lambda: self._search(request))
        return replace(result, took_ms=(time.perf_counter() - started) * 1000)

    def in_conversations(self, query: str, scope: str = "default") -> int:
        """Count the places in conversations that answer a query by words, up to `MOST_COUNTED`.

        A `scope` that takes conversations in has shown them: nothing is counted.
        """
        if not {"sessions", "all"}.isdisjoint(part.strip() for part in scope.split(",")):
            return 0
        found = self.search(query, "sessions", MOST_COUNTED, semantic=False)
        return sum(hit.is_relevant for hit in found.hits)

    def _search(self, request: _Request) -> SearchResult:
        from kbtui.search.query.hits import suggest

        notice = self._catch_up()
        generation = self._generations().serving
        corpus = generation.corpus()
        meaning, said = None, ""
        if request.semantic:
            meaning, said = self._semantic().answer(
                request.asked,
                corpus,
                generation.store,
                self._stop,
                load=request.wait or self._background is None,
                wait=request.wait,
            )
        return SearchResult(
            request.query,
            request.scope,
            0.0,
            semantic=meaning is not None,
            hits=self._hits(request, corpus, generation.store, meaning, self._settings.decay_days),
            notice=" ".join(filter(None, (notice, said))),
            suggestion=suggest(corpus, request.asked, generation.store.words),
        )

    def _search_tree(self, request: _Request, at: str) -> SearchResult:
        from kbtui.search.index.chunk_rows import TreeReader

        if self._tree_at is None:
            raise UsageError("There is no history to search.", "Leave out the revision.")
        with self._opening:
            self._trees = self._trees or TreeReader(self._limits(), self._tree_at)
        tree = self._trees.at(at)
        meaning, said = None, ""
        if request.semantic and request.asked.has_words:
            meaning, said = self._semantic().compare_tree(
                request.asked.text,
                tree,
                self._stop,
                load=request.wait or self._background is None,
                wait=request.wait,
            )
        hits = self._hits(request, tree.corpus, tree, meaning, {})
        return SearchResult(request.query, request.scope, 0.0, meaning is not None, hits, said)

    def _hits(
        self,
        request: _Request,
        corpus: Corpus,
        rows: Rows,
        meaning: Comparison | None,
        half_lives: Mapping[str, float],
    ) -> tuple[Hit, ...]:
        from kbtui.search.query.hits import best_hits
        from kbtui.search.query.ranking import rank

        ranking = rank(
            corpus,
            request.asked,
            self._scopes.folders(request.scope),
            meaning,
            (self._settings.vector_weight, self._settings.text_weight),
            half_lives=half_lives,
            left_out=_left_out(request, corpus, rows),
        )
        if request.relevant_only and request.asked.has_words and not ranking.evidence.is_answered:
            return ()
        return best_hits(
            corpus,
            rows,
            request.asked,
            ranking,
            request.limit,
            withheld=self._withheld,
            by_chance=request.by_chance,
        )

    def _catch_up(self) -> str:
        """See that the index is as new as it should be; gives a notice where it isn't."""
        with self._lock:
            background = self._background
        if background is None:
            return self._index_here()
        if not self._synced.is_set() and not self._generations().serving.complete:
            self._synced.wait(_FIRST_ANSWER_SECONDS)
        return f"{self._activity}." if self._activity and not self._synced.is_set() else ""

    def _index_here(self) -> str:
        """Index what is new, as nothing else does; gives a notice of what takes too long."""
        if not self._synced.is_set():
            self._sync(None)
        elif self._pending:
            self.refresh_now()
        if self._waiting and self.read_documents(_DOCUMENTS_SECONDS):
            self.refresh_now()
        if not self._waiting:
            return ""
        left = counted(len(self._waiting), "document")
        return f"{left} still to be read: search again, or `kbtui reindex`."

    # Opening and healing

    def _limits(self) -> ChunkLimits:
        from kbtui.search.index.chunker import ChunkLimits

        return ChunkLimits(self._settings.chunk_tokens, self._settings.chunk_overlap)

    def _generations(self) -> Generations:
        with self._opening:
            if self._stop.is_set():
                raise KbtuiError("The search index is closed.")
            if self._opened is None:
                from kbtui.search.index.generation import Generations

                self._opened = Generations(self._workspace.cache / "search", self._limits())
            return self._opened

    def _healing(self, work: Callable[[], _Result]) -> _Result:
        """Do some work; if the index turns out to be damaged, rebuild it and do it again."""
        generations = self._generations()
        before = (generations.building, generations.serving)
        try:
            return work()
        except KbtuiError:
            raise
        except Exception as error:
            from kbtui.search.index.generation import is_no_room

            if self._stop.is_set():
                raise KbtuiError("The search index is closed.") from error
            if is_no_room(error):
                raise StorageError(f"There is no room for the search index: {error}") from error
            for generation in set(before):
                generations.start_over(generation, error)
            self._synced.clear()
        if self._background is None:
            self._sync(None)
        else:
            self._background.sync_soon()
        return work()


def _left_out(request: _Request, corpus: Corpus, rows: Rows) -> Mask:
    """The documents of conversations that aren't to be found."""
    from kbtui.search.index.chunk_rows import ASKED, ASSISTANT

    found = corpus.holding("said", (ASSISTANT, ASKED) if request.statements_only else ())
    if request.before is not None:
        session, first = request.before
        numbers = corpus.holding("path", [f"sessions/{session}.jsonl"]).nonzero()[0]
        chunks = corpus.chunks[numbers].tolist()
        said = rows.rows(chunks)
        for number, chunk in zip(numbers.tolist(), chunks, strict=True):
            messages = said[chunk].chunk.messages if chunk in said else None
            found[number] |= messages is not None and messages[1] >= first
    return found
