"""Other programs' files, one file a source; each reads, and says what it could not read.

nanobot: `nanobot_workspace` takes over a whole workspace and reports it, `nanobot_sessions` reads
its conversations where they lie, `nanobot_settings` gives its memory settings by our names. Nothing
here decides when to import: commands and migration do.
"""
