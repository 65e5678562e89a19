"""The inbox: changes proposed by machines, accepted or rejected place by place.

`inbox.InboxScreen` is the screen; `proposals` holds its list, diff view and editor.
`inbox_watch.InboxWatch` notifies a widget, such as the status line, of new and decided proposals.
"""
