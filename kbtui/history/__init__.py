"""The history: the one door for every write, and what was written, by whom and why.

Others hold a `history.History` and use what `change` (Change, Actor, Origin, Sink), `looking.diff`
and `merging.conflict` name. To write: ``with history.change(actor, reason, origin) as change``,
whose commit is `change.result` afterwards. To let a change wait for a decision instead, give
``sink=``: `History.propose` makes it a commit under ``refs/proposals/ID`` whose parent is what it
was made from, and moves nothing. `proposals`, `proposal(id)` list and read them (a `ProposalRef`:
id, commit), `changes_of(ref.commit.id)` is the diff, `accept_preview` what accepting would do now,
`accept(id, hunks=, decisions=)` merges it whole or by hunks as one commit, raising
`UndoConflictError` as `undo` does, and `drop(id, hunks=)` puts it away. Proposals survive packing,
purges rewrite them, a sync leaves them at home.
"""
