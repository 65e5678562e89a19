"""Git's objects on disk: commits, trees, packs, the branch and the refs of proposals.

The bottom of the history; knows no working files and no lock. `repository.Repository` reads and
stores, `commit` says what a commit is to us (Actor, Origin, Commit, Changed), `packing` keeps it
small, `lineage.check_history` says if it is whole.
"""
