"""The chat: conversation, prompt, and the slash commands of chat and memory.

`chat_pane.ChatPane` is the pane of the main screen, and `host.ChatHost` its interface for commands.
`conversation/` has the transcript, `commands/` the slash commands and actions on messages, `prompt`
and `completion` the input, and `start` and `nearby` the start panel of an empty workspace.
"""
