"""The history: the one door for every write, and what was written, by whom and why.

Others hold a `history.History` and use what `change` (Change, Actor, Origin, Sink), `looking.diff`
and `merging.line_merge` name. To write: ``with history.change(actor, reason, origin) as change``,
whose commit is `change.result` afterwards. To let a change wait for a decision instead, give
``sink=history.proposals.add``, which makes it a commit under ``refs/proposals/ID`` whose parent is
what it was made from, and moves nothing. There, `all` and `get` read them, `preview` says place by
place what accepting would do to the files as they are (`places.Plan`), `accept(id, places=)` merges
it whole or by places as one commit, `reword` lets a person's own text wait instead, and
`drop(id, places=)` puts it away. Proposals survive packing, purges rewrite them, a sync leaves them
at home.
"""
