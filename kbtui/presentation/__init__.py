"""How things are presented to people, in the same words in the app and on the command line.

`notes.Names` names files, `notes.kind_of` gives their sign; `actors.committer` names the author of
a commit, `times.format_time` formats its time, and `commit_summary.summarize` describes what it
did. All results are plain data; a front end adds the colours.
"""
