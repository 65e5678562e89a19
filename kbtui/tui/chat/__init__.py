"""The chat: conversation, prompt, and the slash commands of chat and memory.

`chat_pane.ChatPane` is what the main screen shows. `conversation/` has what is said, `commands/`
what slash commands and keys on a message do, which see the pane as `host.ChatHost`; `prompt` and
`completion` are what one types into, `start` and `nearby` an empty workspace's first screen.
"""
