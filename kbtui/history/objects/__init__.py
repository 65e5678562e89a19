"""Git's objects on disk: commits, trees, packs, the branch and the refs of proposals.

The bottom layer of the history; it knows nothing of working files or the workspace lock.
`repository.Repository` reads and stores objects, `commit` defines kbtui's view of a commit (Actor,
Origin, Commit, Changed), `packing` keeps the repository small, `lineage.check_history` verifies its
integrity.
"""
