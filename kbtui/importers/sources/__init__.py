"""The programs whose exports can be read, a file each with a `SOURCE` that fills the port.

Of nanobot there is more: `nanobot_workspace` takes over a whole workspace and reports it,
`nanobot_sessions` reads its conversations where they lie, `nanobot_settings` gives its memory
settings by our names.
"""
