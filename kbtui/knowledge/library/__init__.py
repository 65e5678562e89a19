"""Reading and changing the entries of a workspace as a whole.

Other packages use `library.Library`. `reader` reads entries as they are now or as of a commit
(`PastLibrary`); `overlay.Overlay` is the files with unwritten edits on top; `dates` updates
`created` and `updated` with each change.
"""
