"""The search index of a workspace: one object for the app, the command line and the agent.

`SearchIndex` answers from what is indexed so far, with a notice of what is still in progress. All
its data is derived: if deleted or damaged, it is rebuilt from the files.

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
from kbtui.errors import KbtuiError, ModelError, StorageError, UsageError
from kbtui.listeners import Listeners
from kbtui.search.background import Pause as Pause, Watcher as Watcher
from kbtui.search.index.scopes import Scopes
from kbtui.search.query.privacy_filter import PrivacyFilter as PrivacyFilter
from kbtui.search.results import (
    LANGUAGE_NAMES,
    MAX_COUNTED,
    IndexReport,
    IndexStatus,
    LanguageReport,
    SearchResult,
    SimilarNotes,
)
from kbtui.text import counted
from kbtui.workspace.scan import Scanner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
    from kbtui.workspace.scan import FileState


_LOG = logging.getLogger(__name__)
_MAX_HITS = 1000
SIMILAR = 5
"""The similar notes beside a note."""
_LOCK_SECONDS = 5.0
_FIRST_ANSWER_SECONDS = 2.0
_PROGRESS_FROM = 50  # files
_DOCUMENTS_SECONDS = 10.0  # how long one search may read documents
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of `SearchIndex.search`, with the parsed query."""

    parsed: Query
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
    """The search index of one workspace; thread-safe."""

    def __init__(
        self,
        workspace: Workspace,
        scanner: Scanner,
        settings: SearchSettings,
        embed: RoleSettings,
        *,
        tree_at: Callable[[str], Iterable[tuple[str, bytes]]] | None = None,
        privacy: PrivacyFilter | None = None,
        model: EmbeddingModel | None = None,
        second: EmbeddingModel | None = None,
        start_detached: Callable[[], Preparation] | None = None,
    ) -> None:
        """Create the index object; files are opened on first use.

        Args:
            workspace: Provides the files to search, and the cache folder of the index.
            scanner: Lists the files with their content hashes.
            settings: Chunk sizes, weights, folders.
            embed: The settings of the embedding model.
            tree_at: Returns the files of a revision, for searches `at` one.
            privacy: What a remote embedding model must not see; None: files marked private.
            model: An embedding model to use in place of the one in `embed`.
            second: A multilingual one beside `model`; the bundled model has one of its own.
            start_detached: Leaves what a search has no time for to another process, if this one has
                no background threads, and returns the state of the model.
        """
        self.on_outside_edit: Callable[[], None] | None = None
        self._workspace = workspace
        self._scanner = scanner
        self._settings = settings
        self._scopes = Scopes(settings.roots)
        self._embed = embed
        self._model = model
        self._second = second
        self._start_detached = start_detached
        self._tree_at = tree_at
        self._privacy = privacy or PrivacyFilter(workspace)
        self._lock = threading.RLock()  # held briefly only; `_opening` while files are opened
        self._opening = threading.RLock()
        self._opened: Generations | None = None
        self._semantic_index: Semantic | None = None
        self._background: Background | None = None
        self._listeners: Listeners[IndexStatus] = Listeners()
        self._scanners: list[tuple[Scanner, Sequence[str]]] = [(scanner, self._scopes.all)]
        if workspace.in_place:
            beside_notes = Scanner(workspace, beside_notes=is_beside_notes)
            self._scanners.append((beside_notes, ("knowledge",)))
        self._documents_lock = threading.Lock()
        self._unread_documents: dict[str, str] = {}
        self._tried_documents: set[tuple[str, str]] = set()
        self._pending: set[str] = set()
        self._synced = threading.Event()
        self._stop = threading.Event()
        self._activity = ""
        self._progress = (0, 0)
        self.pause = Pause()
        self._priority_paths: tuple[str, ...] = ()
        self._trees: TreeReader | None = None

    # Keeping up with the files

    def sync(self, documents_seconds: float | None = None) -> IndexReport:
        """Bring the lexical index up to date with all files, rebuilding it if it is damaged.

        Args:
            documents_seconds: How long to read documents if no background thread does so;
                None: until all are read.

        Raises:
            StorageError: there is no room for the index.
        """
        report = self._with_repair(lambda: self._sync(None))
        if self._background is None and self.read_documents(documents_seconds):
            later = self.refresh_now() or report
            report = replace(report, files=later.files, chunks=later.chunks, skipped=later.skipped)
        return report

    def read_documents(self, seconds: float | None = None) -> int:
        """Extract the text of queued documents in a child process, and return their number.

        The next `refresh_now` indexes it.
        """
        from kbtui.documents.documents import Documents

        done = 0
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._documents_lock, Documents(self._workspace, self._stop.is_set) as documents:
            while not self._stop.is_set() and (deadline is None or time.monotonic() < deadline):
                with self._lock:
                    if not self._unread_documents:
                        break
                    left = len(self._unread_documents)
                    path = min(self._unread_documents)
                    # Once each: if the text can't be stored, it would be queued for ever.
                    self._tried_documents.add((path, self._unread_documents.pop(path)))
                self._activity = f"Reading documents: {left:,} to go"
                self._between_batches()
                try:
                    documents.read(path)
                except (KbtuiError, OSError) as error:
                    _LOG.info("A document can't be read: %s", error)
                self.refresh([path])
                done += 1
            self._activity = ""
        if done:
            self._notify()
        return done

    def rebuild(self) -> IndexReport:
        """Rebuild the lexical index from the files; vectors stay, as they are keyed by text.

        Raises:
            StorageError: another process is writing the index, or there is no room for it.
        """
        self._generations().reset(_LOCK_SECONDS)
        self._synced.clear()
        return self.sync()

    def refresh(self, paths: Iterable[str]) -> None:
        """Queue changed files for indexing; searches see the changes within a second."""
        self._add_pending(paths)
        with self._lock:
            background = self._background
        if background is not None:
            background.wake()

    def _add_pending(self, paths: Iterable[str]) -> None:
        with self._lock:
            self._pending.update(paths)

    def refresh_now(self) -> IndexReport | None:
        """Index the files queued by `refresh`; return None if there are none."""
        with self._lock:
            paths, self._pending = self._pending, set()
        if not paths:
            return None
        try:
            return self._with_repair(lambda: self._sync(frozenset(paths)))
        except BaseException:
            self._add_pending(paths)
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
                self._workspace.confirm()  # or all would be gone from the index
                found: dict[str, FileState] = {}
                for scanner, areas in self._scanners:
                    found |= builder.scan(scanner, areas, only, known)
                self._workspace.confirm()
                counts = builder.update(generation, found, known, self._report_progress)
                if only is None and not self._stop.is_set():
                    generations.swap()
                    builder.keep_texts_of(found)
            self._queue_documents(builder.waiting, only)
        except CacheBusyError:
            _LOG.info("Another process is writing the search index.")
            self._add_pending(only or ())
        finally:
            self._activity, self._progress = "", (0, 0)
        if only is None:
            self._synced.set()
        self._notify()
        files, chunks = generations.serving.store.counts()
        rebuilt, generations.rebuilt = generations.rebuilt, ""
        return IndexReport(
            files,
            chunks,
            *counts,
            took_ms=(time.perf_counter() - started) * 1000,
            rebuilt=rebuilt,
            skipped=tuple(sorted([*generations.serving.store.problems(), *self._unscannable()])),
        )

    def _unscannable(self) -> Iterable[tuple[str, str]]:
        """Return searchable files that the scanner couldn't examine, with the reasons."""
        found: dict[str, str] = {}
        for scanner, _ in self._scanners:
            found |= scanner.left_out(recorded=False)
        return found.items() - self._scanner.left_out().items()

    def _queue_documents(self, found: Mapping[str, str], only: frozenset[str] | None) -> None:
        """Queue documents, by path and blob id, whose text hasn't been extracted."""
        with self._lock:
            if only is None:
                self._unread_documents.clear()
            self._unread_documents |= {
                path: blob
                for path, blob in found.items()
                if (path, blob) not in self._tried_documents
            }

    def _report_progress(self, done: int, of: int) -> bool:
        if of >= _PROGRESS_FROM:
            self._activity = f"Reading files: {done:,} of {of:,}"
            self._progress = done, of
            self._notify()
        return not self._stop.is_set()

    def tidy(self) -> None:
        """Merge the index's files if there are many; called when idle."""
        from kbtui.search.index.generation import CacheBusyError

        generations = self._generations()
        try:
            with generations.writing(0.0) as generation:
                generation.tidy()
                if self._semantic_index is not None:
                    self._semantic_index.queue.tidy(generation.store)
        except CacheBusyError:
            pass

    # Background

    def start(self) -> None:
        """Start background threads that sync, watch files, prepare the model and embed."""
        from kbtui.search.background import Background

        with self._lock:
            if self._background is None and not self._stop.is_set():
                self._background = Background(self, self._workspace, self._scopes.all)
                self._background.start(
                    self._settings.sync_interval_seconds, semantic=self._settings.semantic
                )

    def close(self) -> None:
        """Stop the background threads and close all files; takes well under a second."""
        self._stop.set()
        with self._lock:
            background, self._background = self._background, None
        if background is not None:
            background.stop()
        with self._opening:
            if self._semantic_index is not None:
                self._semantic_index.queue.close()
                self._semantic_index = None
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def status(self) -> IndexStatus:
        """Return the progress of indexing, with a message for display."""
        with self._lock:
            opened, semantic = self._opened, self._semantic_index
        if opened is None:
            return IndexStatus("opening")
        from kbtui.search.query.notices import status_of

        status = status_of(
            opened.serving.store,
            semantic.queue if semantic and self._settings.semantic else None,
            self._activity,
            synced=self._synced.is_set(),
        )
        return replace(status, reading=self._progress)

    def subscribe(self, listener: Callable[[IndexStatus], None]) -> Callable[[], None]:
        """Call `listener` on every status change, in any thread; return the unsubscriber."""
        return self._listeners.add(listener)

    def _notify(self) -> None:
        if self._listeners:
            self._listeners.tell(self.status())

    # Semantic search

    def load_model(self) -> bool:
        """Load the embedding model, preparing it if needed; return whether it is ready."""
        queue = self._semantic().queue
        queue.first.retry()
        self._notify()
        ready = queue.load()
        if ready:
            queue.count_missing(self._generations().serving.store)
        self._notify()
        return ready

    def use_model(self, embed: RoleSettings) -> None:
        """Embed by another model from now on; the one before answers until it has read enough."""
        with self._opening:
            self._semantic_index, self._embed = None, embed
        with self._lock:
            background = self._background
        if background is not None:
            background.embed_soon()
        self._notify()

    def prioritize(self, paths: Iterable[str]) -> None:
        """Embed these files before all others, the last of them first; cheap to call."""
        self._priority_paths = tuple(paths)

    def embed_missing(self, seconds: float = math.inf) -> int:
        """Embed passages without a vector for at most `seconds`, and return their number."""
        semantic = self._semantic()

        def goes_on() -> bool:
            self._between_batches()
            return self._semantic_index is semantic  # or another model takes over

        try:
            return semantic.queue.read(
                self._generations().serving.store,
                goes_on,
                roughly_first=self._background is not None,
                seconds=seconds,
            )
        finally:
            self._notify()

    def _between_batches(self) -> None:
        """Report progress, and pause while the user is typing."""
        self._notify()
        if self._background is not None:
            self.pause.wait(self._stop)

    def _semantic(self) -> Semantic:
        with self._opening:
            if self._semantic_index is None:
                from kbtui.search.embedding.prepared import ConfiguredModel, multilingual_beside
                from kbtui.search.query.reading import ReadingQueue
                from kbtui.search.query.semantic import Semantic
                from kbtui.settings import RoleSettings

                model = self._model or ConfiguredModel(self._embed)
                beside = None if self._model else multilingual_beside(self._embed)
                before = None if self._model else multilingual_beside(RoleSettings())
                queue = ReadingQueue(
                    self._generations().folder / "vectors",
                    model,
                    self._stop,
                    self._corpus,
                    second=self._second or beside,
                    second_before=before if beside is None else None,
                    is_hidden=self._privacy.hides,
                    priority_paths=lambda: self._priority_paths,
                    start_detached=self._start_detached,
                )
                self._semantic_index = Semantic(queue)
            return self._semantic_index

    def _corpus(self) -> Corpus:
        return self._generations().serving.corpus()

    def languages(self) -> LanguageReport:
        """Return the languages of the indexed passages, and what the multilingual model read."""
        from kbtui.search.embedding.prepared import MULTILINGUAL_LANGUAGES
        from kbtui.search.index.language import ENGLISH

        corpus = self._corpus()
        codes = [code.decode() for code in corpus.terms_from("language")]
        counts = {
            code: int((corpus.holding("language", [code]) & corpus.live).sum()) for code in codes
        }
        foreign = corpus.holding("language", [code for code in codes if code != ENGLISH])
        second = self._semantic().queue.second
        others = tuple(n for code, n in MULTILINGUAL_LANGUAGES.items() if code != ENGLISH)
        unread = sum(n for code, n in counts.items() if code not in MULTILINGUAL_LANGUAGES)
        return LanguageReport(
            counts,
            corpus.count,
            int((foreign & corpus.live).sum()),
            second.name,
            second.embedded,
            second.message,
            others,
            unread,
        )

    def _unread_language(self, text: str) -> str:
        """Return a notice if no model that is here reads a question's language, or ``""``."""
        from kbtui.search.embedding.prepared import MULTILINGUAL_LANGUAGES, multilingual_beside
        from kbtui.search.index.language import ENGLISH, language_of

        language = language_of(text)
        if language in {"", ENGLISH} or self._model or multilingual_beside(self._embed) is None:
            return ""
        if language in MULTILINGUAL_LANGUAGES and not self._semantic().queue.second.message:
            return ""
        return (
            f"No model here reads {LANGUAGE_NAMES[language]} by meaning (`kbtui setup --search`)."
        )

    @property
    def _is_local(self) -> bool:
        """Whether texts are embedded on this machine."""
        from kbtui.search.embedding.prepared import is_local

        return self._model is not None or is_local(self._embed)

    # Searching

    def search(  # noqa: PLR0913 — independent options, all by name
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
        """Search by words and by meaning.

        Args:
            query: Any text; see `kbtui.search.query.parser` for the syntax.
            scope: ``default`` (knowledge, memory, docs), ``all``, or folders separated by commas.
            limit: The maximum number of hits; it doesn't affect which come first.
            semantic: Use semantic search too, if the model is available.
            wait: Wait for the model and for all vectors.
            at: A revision to search instead of the current files; semantically if it has vectors.
            relevant_only: Return no hits if none is likely to answer the query.
            statements_only: In conversations, leave out the assistant's messages and questions.
            by_chance: Include hits whose similarity is no higher than chance.
            before: A session and a message id: messages of it from that one on are left out.
            sendable: Whether the query may be sent to a remote embedding model.

        Raises:
            UsageError: `at` where there is no history.
        """
        from kbtui.search.query.parser import parse

        started = time.perf_counter()
        parsed = parse(query)
        request = _Request(
            parsed,
            query,
            scope,
            max(1, min(limit, _MAX_HITS)),
            semantic=semantic and self._settings.semantic and (sendable or self._is_local),
            wait=wait,
            relevant_only=relevant_only,
            statements_only=statements_only,
            by_chance=by_chance,
            before=before,
        )
        if at is not None:
            result = self._search_tree(request, at)
        elif not parsed.has_words and not parsed.has_conditions:
            result = SearchResult(query, scope, 0.0, semantic=False, hits=())
        else:
            result = self._with_repair(lambda: self._search(request))
        notice = " ".join(filter(None, (parsed.notice, result.notice)))
        took = (time.perf_counter() - started) * 1000
        conditions = "" if parsed.operators is None else str(parsed.operators)
        return replace(result, took_ms=took, notice=notice, conditions=conditions)

    def in_conversations(self, query: str, scope: str = "default") -> int:
        """Count the relevant lexical hits in conversations, up to `MAX_COUNTED`.

        Return 0 for a `scope` that includes conversations, as it has shown them.
        """
        if not {"sessions", "all"}.isdisjoint(part.strip() for part in scope.split(",")):
            return 0
        found = self.search(query, "sessions", MAX_COUNTED, semantic=False)
        return sum(hit.is_relevant for hit in found.hits)

    def similar(
        self,
        path: str,
        limit: int = SIMILAR,
        *,
        wait: bool = False,
        hides: Callable[[str], bool] = lambda _path: False,
    ) -> SimilarNotes:
        """Return the notes and documents that are like one, by meaning, nearest first.

        Args:
            path: The note.
            limit: How many at most.
            wait: Prepare the model and embed all passages first.
            hides: Whether whoever asks may not see a path.
        """
        if not self._settings.semantic:
            return SimilarNotes((), "Similar notes are found by meaning, which is switched off.")
        return self._with_repair(lambda: self._similar(path, limit, wait=wait, hides=hides))

    def _similar(
        self, path: str, limit: int, *, wait: bool, hides: Callable[[str], bool]
    ) -> SimilarNotes:
        from kbtui.search.query.notices import notice_of
        from kbtui.search.query.similar import most_similar

        self._catch_up()
        generation, semantic = self._generations().serving, self._semantic()
        corpus = generation.corpus()
        try:
            if wait or self._background is None:
                semantic.queue.get_ready(generation.store, wait=wait)
            spaces = semantic.spaces(corpus, generation.store)
            own = corpus.holding("path", [path]) & corpus.live
            allowed = corpus.live & corpus.holding("scope", self._scopes.notes)
            found = (
                most_similar(corpus, generation.store, spaces, own, allowed, limit, hides)
                if spaces and own.any()
                else ()
            )
        except ModelError as error:
            return SimilarNotes((), error.message)
        return SimilarNotes(found, notice_of(generation.store, semantic.queue))

    def _search(self, request: _Request) -> SearchResult:
        from kbtui.search.query.hits import suggest

        notice = self._catch_up()
        generation = self._generations().serving
        corpus = generation.corpus()
        compared, progress, unread = None, "", ""
        if request.semantic:
            unread = self._unread_language(request.parsed.text)
            compared, progress = self._semantic().answer(
                request.parsed,
                corpus,
                generation.store,
                load=request.wait or self._background is None,
                wait=request.wait,
            )
            if self._background is not None and self._semantic().queue.left(generation.store) < 0:
                self._background.embed_soon()
        return SearchResult(
            request.query,
            request.scope,
            0.0,
            semantic=compared is not None,
            hits=self._hits(request, corpus, generation.store, compared, self._settings.decay_days),
            notice=" ".join(filter(None, (notice, progress, unread))),
            suggestion=suggest(corpus, request.parsed, generation.store.words),
        )

    def _search_tree(self, request: _Request, at: str) -> SearchResult:
        from kbtui.search.index.chunk_rows import TreeReader

        if self._tree_at is None:
            raise UsageError("There is no history to search.", "Leave out the revision.")
        with self._opening:
            self._trees = self._trees or TreeReader(self._limits(), self._tree_at)
        tree = self._trees.at(at)
        compared, progress = None, ""
        if request.semantic and request.parsed.has_words:
            compared, progress = self._semantic().compare_tree(
                request.parsed.text,
                tree,
                load=request.wait or self._background is None,
                wait=request.wait,
            )
        hits = self._hits(request, tree.corpus, tree, compared, {})
        return SearchResult(request.query, request.scope, 0.0, compared is not None, hits, progress)

    def _hits(
        self,
        request: _Request,
        corpus: Corpus,
        rows: Rows,
        comparison: Comparison | None,
        half_lives: Mapping[str, float],
    ) -> tuple[Hit, ...]:
        from kbtui.search.query.hits import best_hits
        from kbtui.search.query.ranking import rank

        ranking = rank(
            corpus,
            request.parsed,
            self._scopes.folders(request.scope),
            comparison,
            (self._settings.vector_weight, self._settings.text_weight),
            half_lives=half_lives,
            excluded=_exclusion_mask(request, corpus, rows),
            texts=rows.texts,
        )
        if request.relevant_only and request.parsed.has_words and not ranking.evidence.is_answered:
            return ()
        return best_hits(
            corpus,
            rows,
            request.parsed,
            ranking,
            request.limit,
            privacy=self._privacy,
            by_chance=request.by_chance,
        )

    def _catch_up(self) -> str:
        """Bring the index up to date as far as a search may wait; return a notice or ``""``."""
        with self._lock:
            background = self._background
        if background is None:
            return self._index_inline()
        if not self._synced.is_set() and not self._generations().serving.complete:
            self._synced.wait(_FIRST_ANSWER_SECONDS)
        return f"{self._activity}." if self._activity and not self._synced.is_set() else ""

    def _index_inline(self) -> str:
        """Index changes in this thread, and return a notice of unread documents, or ``""``."""
        if not self._synced.is_set():
            self._sync(None)
        elif self._pending:
            self.refresh_now()
        if self._unread_documents and self.read_documents(_DOCUMENTS_SECONDS):
            self.refresh_now()
        if not self._unread_documents:
            return ""
        left = counted(len(self._unread_documents), "document")
        return f"{left} still to be read: search again, or `kbtui reindex`."

    # Opening and repair

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

    def _with_repair(self, work: Callable[[], _Result]) -> _Result:
        """Run `work`; if the index turns out to be damaged, rebuild it and retry."""
        generations = self._generations()
        before = (generations.building, generations.serving)
        try:
            return work()
        except KbtuiError:
            raise
        except Exception as error:
            from kbtui.search.index.generation import is_out_of_resources

            if self._stop.is_set():
                raise KbtuiError("The search index is closed.") from error
            if is_out_of_resources(error):
                raise StorageError(f"There is no room for the search index: {error}") from error
            for generation in set(before):
                generations.replace_damaged(generation, error)
            self._synced.clear()
        if self._background is None:
            self._sync(None)
        else:
            self._background.sync_soon()
        return work()


def _exclusion_mask(request: _Request, corpus: Corpus, rows: Rows) -> Mask:
    """Return a mask of conversation documents that the request excludes."""
    from kbtui.search.index.chunk_rows import ASKED, ASSISTANT

    mask = corpus.holding("said", (ASSISTANT, ASKED) if request.statements_only else ())
    if request.before is not None:
        session, first = request.before
        numbers = corpus.holding("path", [f"sessions/{session}.jsonl"]).nonzero()[0]
        chunks = corpus.chunks[numbers].tolist()
        chunk_rows = rows.rows(chunks)
        for number, chunk in zip(numbers.tolist(), chunks, strict=True):
            messages = chunk_rows[chunk].chunk.messages if chunk in chunk_rows else None
            mask[number] |= messages is not None and messages[1] >= first
    return mask
