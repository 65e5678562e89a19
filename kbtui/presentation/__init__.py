"""How what happened and what there is is said to people: the app and the command line say it alike.

`notes.Names` names a file, `notes.kind_of` its sign; `actors.committer` names who made a commit,
`moments.said` when, and `deeds.deed` says in a sentence what was done. All of it is plain data;
a front end adds the colours.
"""
