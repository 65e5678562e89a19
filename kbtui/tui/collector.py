"""Keeping Python's garbage collector from freezing the screen.

A full collection visits every object that there is. With an app, its libraries and 10,000 entries
in memory that takes 0.1 to 0.6 s, in whichever thread it happens, and no other thread runs
meanwhile. Nearly all of these objects live until the end, so they are taken out of the
collector's sight; what is made afterwards is collected in small steps.
"""

from __future__ import annotations

import gc

# New objects until the youngest are visited, and how many times more for each older generation.
_RARELY = (10_000, 5, 40)


def collect_rarely() -> None:
    """Make full collections rare; called once, when the app starts."""
    gc.set_threshold(*_RARELY)


def spare_what_stays() -> None:
    """Never again visit what exists now; called after something large was loaded.

    What is garbage at this moment, and part of a cycle, stays in memory: a price paid once for
    each call, so this is for milestones and not for every day. Without `collect_rarely` nothing
    is done: then the process is somebody else's.
    """
    if gc.get_threshold() == _RARELY:
        gc.freeze()
