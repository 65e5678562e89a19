"""Is everything whole?"""

from __future__ import annotations

from dataclasses import asdict

import click

from kbtui.cli.context import Place, json_option, pass_place
from kbtui.cli.output import ProgressLine, note, say_json, say_line, say_styled


@click.command()
@json_option
@pass_place
def check(place: Place, as_json: bool) -> int:
    """Read everything, and say what is damaged or doesn't fit.

    History, files, memory, inbox, entries, links. Exits with 1 if something is wrong.
    """
    progress = ProgressLine()
    with place.opened() as kb:
        try:
            problems = kb.checking.run(progress)
        finally:
            progress.end()
    if as_json:
        say_json([asdict(problem) for problem in problems])
        return 1 if problems else 0
    for problem in problems:
        say_line(say_styled(problem.area.ljust(8), fg="red"), " ", say_styled(problem.text))
        if problem.hint:
            say_line(" " * 9, say_styled(problem.hint, dim=True))
    count = len(problems)
    things = "thing is" if count == 1 else "things are"
    note(f"{count:,} {things} wrong." if count else "All is well.")
    return 1 if problems else 0
