"""What the tests of this room stand on."""

from tests.fixtures import archive, history, sessions, tombstones, workspace

__all__ = ["archive", "history", "sessions", "tombstones", "workspace"]
