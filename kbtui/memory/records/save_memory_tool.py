"""The tool by which a model hands over what a conversation leaves behind.

One call, three outputs: the archive's paragraph, the memory's facts, the knowledge entries. Small
models keep facts when asked for a list of them, and lose them when asked for the whole memory.
"""

from __future__ import annotations

from kbtui.knowledge.templates import ENTRY_TYPES
from kbtui.models.port import ToolSpec

_STRINGS = {"type": "array", "items": {"type": "string"}}
SAVE_MEMORY = ToolSpec(
    "save_memory",
    "Save what this conversation leaves behind.",
    {
        "type": "object",
        "properties": {
            "history_entry": {
                "type": "string",
                "description": "A paragraph (2-5 sentences) summarizing key events, decisions and "
                "topics. Start with [YYYY-MM-DD HH:MM]. Include detail useful for grep search.",
            },
            "memory_update": {
                "type": "object",
                "description": "What changes in the long-term memory; empty lists if nothing.",
                "properties": {
                    "facts": {
                        **_STRINGS,
                        "description": "New lasting facts about the user and the work, one short "
                        "line each, with absolute dates. None that is known already.",
                    },
                    "corrections": {
                        "type": "array",
                        "description": "Lines of the memory that are no longer true.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "old": {
                                    "type": "string",
                                    "description": "The line exactly as it stands there.",
                                },
                                "new": {"type": "string", "description": "What is true now."},
                            },
                            "required": ["old", "new"],
                            "additionalProperties": False,
                        },
                    },
                },
                "required": ["facts", "corrections"],
                "additionalProperties": False,
            },
            "knowledge_entries": {
                "type": "array",
                "description": "Subjects worth an entry of their own: people, projects, decisions "
                "with their reasons, preferences. Empty if there are none.",
                "items": {
                    "type": "object",
                    "properties": {
                        "type": {"type": "string", "enum": list(ENTRY_TYPES)},
                        "title": {"type": "string", "description": "The subject's name."},
                        "summary": {"type": "string", "description": "One sentence."},
                        "body": {"type": "string", "description": "Markdown, without a title."},
                        "tags": _STRINGS,
                        "related": {
                            **_STRINGS,
                            "description": "Other entries, such as people/alice.",
                        },
                    },
                    "required": ["type", "title", "summary", "body", "tags", "related"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["history_entry", "memory_update", "knowledge_entries"],
        "additionalProperties": False,
    },
)
