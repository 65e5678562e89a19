"""Slash commands and actions on messages, with the pickers and screens that they open.

A command is a row in `kbtui.tui.actions.registry` and a function in `chat_commands` or
`memory_commands`, which gets the pane as a `kbtui.tui.chat.host.ChatHost`; an action on a message
is a function in `item_actions`.
"""
