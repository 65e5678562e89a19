"""The replay: what a change of the program changes for those who live with it.

    python -m tests.replay [--life NAME] [--same] [--list] [--jobs N] [--keep DIR]

It plays recorded lives on an earlier build and on the working tree, with clock, ids and names of
machines fixed, and compares what is left: every file that isn't derived, after every step; the
history; `why` of every line; the first hits of fifty queries; and what commands and tools answered.
A difference fails, unless ``accepted.toml`` says in a sentence why it is better for a person.

`lives` are the scripts, on the few words of `stage`; `player` plays them, in the build's own
process; `fixed` holds still what would differ by itself; `asked` is all that is asked of kbtui
besides its commands, so the one place that knows names within it; `builds` fetches a build;
`compare` and `accepted` judge. What is stored is in the user's cache folder.
"""
