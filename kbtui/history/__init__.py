"""The history: the only way to write durable files, with the author and reason of every change.

Its public modules, the only ones that other packages import:

history            `History`, which reads, writes and undoes; `HistoryReader`, the read-only part,
                   which `ForeignHistory` implements for other repositories; their result types
change             the metadata of a write: Actor, Origin, Change, Commit, Sink
queries.diff       diffs of files and of texts: FileDiff, Hunk, diff_file, as_patch
merging.tree_merge three-way merge: merge_three, Conflict and its Resolution, Clash, Resolver
places             proposals compared with the current files: Proposal, Plan, ProposedPlace
sync.sync          arguments and results of a sync: Address, SyncRules, SyncWatcher, SyncReport

To write: ``with history.change(actor, reason, origin) as change``; afterwards the commit is
`change.result`. To propose a change instead, pass ``sink=history.proposals.add``, which stores it
as a commit under ``refs/proposals/ID``, whose parent is the version it is based on, and leaves the
working files alone. `history.proposals` has `all` and `get` to read proposals, `preview` to show
hunk by hunk what accepting one would do to the current files (`places.Plan`), `accept(id, places=)`
to merge it or some of its hunks as one commit, `reword` to replace the proposed text by the user's
own, and `drop(id, places=)` to discard it. Proposals survive packing, purges rewrite them, and a
sync doesn't transfer them.
"""
