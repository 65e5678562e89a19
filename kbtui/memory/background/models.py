"""The models that background work may use: each of its role, counted against the allowance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbtui.memory.background.budget import MeteredModel

if TYPE_CHECKING:
    from kbtui.memory.background.budget import Allowance
    from kbtui.models.roles import ModelRegistry
    from kbtui.settings import Settings

_FIELDS = {"consolidate": "consolidate", "dream": "dream", "import": "extract"}


class BackgroundModels:
    """Hands out metered models.

    Args:
        registry: Knows which model does what.
        settings: Where one may have been chosen.
        allowance: What checks and charges each call.
    """

    def __init__(self, registry: ModelRegistry, settings: Settings, allowance: Allowance) -> None:
        self._registry = registry
        self._settings = settings
        self._allowance = allowance

    def get(self, role: str) -> MeteredModel:
        """The model of a role: consolidate, dream or import.

        Raises:
            ModelAccessError: it needs a key that nobody has given.
        """
        model = self._registry.chat(role)
        return MeteredModel(model, self._allowance, ask_first=not self._is_chosen(role))

    def _is_chosen(self, role: str) -> bool:
        """Whether a person chose the model, or it was found in the environment."""
        own = getattr(self._settings.models, _FIELDS[role])
        return own.model is not None or not self._registry.describe().reason
