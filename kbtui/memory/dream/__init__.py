"""Dream: the slow curation of what is known, while nobody waits.

`dream.Dream` reads what is new in the archive and edits the lasting files; `report` says what came
of it, `writing.DreamLog` what it did before.
"""
