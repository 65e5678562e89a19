"""The history: the one door for every write, and what was written, by whom and why.

Its public modules, the only ones that other packages import:

history            `History`, which looks, writes and undoes; `HistoryReader`, of which another
                   repository's `ForeignHistory` is one as well; what their methods give
change             what is said of a write: Actor, Origin, Change, Commit, Sink
looking.diff       differences of files and of texts: FileDiff, Hunk, diff_file, as_patch
merging.tree_merge two versions in one: merge_three, Conflict and its Resolution, Clash, Resolver
places             a proposal against the files as they are: Proposal, Plan, ProposedPlace
sync.sync          what a sync is told and gives back: Address, SyncRules, SyncWatcher, SyncReport

To write: ``with history.change(actor, reason, origin) as change``, whose commit is `change.result`
afterwards. To let a change wait for a decision instead, give ``sink=history.proposals.add``, which
makes it a commit under ``refs/proposals/ID`` whose parent is what it was made from, and moves
nothing. There, `all` and `get` read them, `preview` says place by place what accepting would do to
the files as they are (`places.Plan`), `accept(id, places=)` merges it whole or by places as one
commit, `reword` lets a person's own text wait instead, and `drop(id, places=)` puts it away.
Proposals survive packing, purges rewrite them, a sync leaves them at home.
"""
