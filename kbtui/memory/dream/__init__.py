"""Dream: the slow curation of lasting knowledge, in the background.

`dream.Dream` reads what is new in the archive and edits the lasting files; `report` describes the
outcome, and `writing.DreamLog` lists earlier runs.
"""
