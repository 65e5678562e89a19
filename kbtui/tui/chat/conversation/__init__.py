"""A conversation on the screen: the layout of its items, and the sending and display of turns.

`items`, `cards` and `written` are the items of a conversation, independent of widgets; `flow_view`
and `transcript` render them. `conversation` sends messages, `turn_view` shows a turn's events.
"""
