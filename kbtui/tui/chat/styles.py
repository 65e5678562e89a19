"""The looks of the conversation, by the names that its lines use.

These aren't component classes of the transcript: each of those costs the stylesheet a pass over
all rules, at the start and whenever the focus moves.
"""

from __future__ import annotations

STYLES = {
    "chat--user": "on $panel",
    "chat--user-text": "$foreground",
    "chat--user-mark": "bold $primary",
    "chat--queued": "italic $text-muted",
    "chat--muted": "$text-muted",
    "chat--tool": "$secondary",
    "chat--good": "$success",
    "chat--bad": "$error",
    "chat--warning": "$warning",
    "chat--info": "bold $primary",
    "chat--link": "underline $link-color",
    "chat--cite": "$primary",
    "chat--cursor": "$accent",
    "md--h1": "bold $primary",
    "md--h2": "bold $primary",
    "md--h3": "bold $secondary",
    "md--h4": "bold $text-muted",
    "md--rule": "$text-muted",
    "md--strong": "bold",
    "md--em": "italic",
    "md--strike": "strike",
    "md--mark": "$warning on $warning-muted",
    "md--code": "$accent on $panel",
    "md--block": "on $panel",
    "md--link": "underline $link-color",
    "md--missing": "underline $link-color",
    "md--tag": "$secondary",
    "md--bullet": "$primary",
    "md--done": "$success",
    "md--quote-bar": "$secondary",
    "md--callout": "bold $warning",
    "md--muted": "$text-muted",
}
