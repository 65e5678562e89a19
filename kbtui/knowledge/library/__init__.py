"""The entries of a workspace as one thing to ask and to change.

Others hold a `library.Library`. `reader` looks entries up in a state of the files, now or as of a
commit (`PastLibrary`); `overlay.Overlay` is a state with edits on top that aren't written yet;
`dates` keeps `created` and `updated` in step with each change.
"""
