"""Any embedding model that litellm can call: ``models.embed.model = "litellm:NAME"``.

litellm takes seconds to import, so it is imported with the first call, in a background thread.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kbtui.errors import (
    ModelAccessError,
    ModelAnswerError,
    ModelError,
    ModelOverloadedError,
    ModelUnreachableError,
)
from kbtui.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbtui.search.embedding.embedder import Vectors
    from kbtui.settings import RoleSettings

PREFIX = "litellm:"
_BATCH = 64
_TIMEOUT_SECONDS = 60.0
_RETRIES = 2
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_KINDS: dict[str, type[ModelError]] = {
    "AuthenticationError": ModelAccessError,
    "PermissionDeniedError": ModelAccessError,
    "NotFoundError": ModelAccessError,
    "BadRequestError": ModelAccessError,
    "RateLimitError": ModelOverloadedError,
    "ServiceUnavailableError": ModelOverloadedError,
    "InternalServerError": ModelOverloadedError,
    "APIConnectionError": ModelUnreachableError,
    "Timeout": ModelUnreachableError,
}


class RemoteEmbedder:
    """An embedding model behind an API; its vectors are normalised here."""

    def __init__(self, role: RoleSettings) -> None:
        """Ask the model once, to learn the length of its vectors.

        Raises:
            ModelError: it can't be reached, or doesn't answer with vectors.
        """
        self._model = str(role.model).removeprefix(PREFIX)
        self._base = role.api_base
        self._key = role.api_key.get_secret_value() if role.api_key else None
        self._dimension = len(self._ask(["kbtui"])[0])

    @property
    def identity(self) -> str:
        """Model and endpoint: both decide what the vectors mean."""
        return hashlib.sha256(f"{self._model} {self._base} {self._dimension}".encode()).hexdigest()[
            :24
        ]

    @property
    def name(self) -> str:
        """The name that litellm knows it by."""
        return self._model

    @property
    def dimension(self) -> int:
        """Floats in a vector."""
        return self._dimension

    @property
    def is_local(self) -> bool:
        """True if the endpoint is this machine."""
        return urlsplit(self._base or "").hostname in _LOOPBACK

    def documents(self, texts: Sequence[str]) -> Vectors:
        """Embed passages."""
        import numpy as np

        parts = [self._ask(texts[i : i + _BATCH]) for i in range(0, len(texts), _BATCH)]
        return np.concatenate(parts)

    def query(self, text: str) -> Vectors:
        """Embed one query as a flat vector."""
        vector: Vectors = self._ask([text])[0]
        return vector

    def close(self) -> None:
        """Nothing is held."""

    def _ask(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        answer = self._call(list(texts))
        try:
            rows = sorted(answer["data"], key=lambda row: row["index"])
            vectors: Vectors = np.asarray([row["embedding"] for row in rows], dtype=np.float32)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelAnswerError(f"{self._model} did not answer with vectors.") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():  # noqa: PLR2004
            raise ModelAnswerError(f"{self._model} did not answer with one vector a text.")
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1), dtype=np.float32)

    def _call(self, texts: list[str]) -> Any:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
        import litellm

        litellm.suppress_debug_info = True
        try:
            return litellm.embedding(
                model=self._model,
                input=texts,
                api_base=self._base,
                api_key=self._key,
                timeout=_TIMEOUT_SECONDS,
                num_retries=_RETRIES,
            )
        except Exception as error:
            kind = _kind_of(error)
            raise kind(
                f"The embedding model {self._model} failed: {shorten(str(error), 200)}"
            ) from error


def _kind_of(error: BaseException) -> type[ModelError]:
    """The kind of an error, by its cause: litellm reports a lost connection as a server's."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    names = [base.__name__ for each in chain for base in type(each).__mro__]
    if "APIConnectionError" in names or "ConnectError" in names:
        return ModelUnreachableError
    return next((_KINDS[name] for name in names if name in _KINDS), ModelError)
