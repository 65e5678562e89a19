"""The programs whose exports can be read, a file each with a `SOURCE` that fills the port.

`nanobot` also reads its sessions where they lie, `nanobot_workspace` takes over and reports a whole
workspace, and gives its memory settings by our names.
"""
