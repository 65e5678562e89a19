"""The inbox: changes that machines propose, decided on place by place.

`inbox.InboxScreen` is the screen, `proposals` holds its list, its difference and the field to
write in; `inbox_watch.InboxWatch` tells a widget what comes and goes, for the status line.
"""
