"""The programs whose exports can be read: one module each, whose `SOURCE` implements the port.

`nanobot` also reads and converts sessions in place, and `nanobot_condensed` records what nanobot
had condensed of them; `nanobot_workspace` migrates a whole nanobot workspace, reports on it, and
translates its memory settings.
"""
