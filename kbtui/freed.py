"""Memory that was freed and is still this process's, as the allocator of GNU keeps it.

It can't give back by itself what stands before anything that is still needed.
"""

from __future__ import annotations

from contextlib import suppress


def give_back() -> None:
    """Return it to the system, in some milliseconds; where that can't be asked for, do nothing."""
    import ctypes

    with suppress(AttributeError, OSError, TypeError):  # another allocator, another system
        ctypes.CDLL(None).malloc_trim(0)
