"""Prompts that a person picks by name in a client: remember something, recall something."""

from __future__ import annotations

from dataclasses import dataclass

from kbtui.errors import NotFoundError, UsageError
from kbtui.text import clean_line, shorten

_MOST_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt with one argument, `about`, which takes the place of ``{}`` in its text."""

    name: str
    description: str
    about: str
    asks: str
    text: str


PROMPTS = (
    Prompt(
        "remember",
        "Keep something in the knowledge base",
        "what",
        "what to keep, in your own words",
        """Keep this in my knowledge base: {}

Search with memory_search first. If there is an entry about it, read it with read_entry and change
it with the smallest edit_entry; else write one with write_entry, about one subject. Keep to what I
said, and add nothing. Then tell me in a sentence what you wrote, and where.""",
    ),
    Prompt(
        "recall",
        "Answer from the knowledge base",
        "about",
        "a question, or what to tell of",
        """Tell me what my knowledge base says about this: {}

Search with memory_search, in other words too if the first finds little; read what matters with
read_entry, and follow entry_links where it leads on. Answer from what you read and name the entries
that you used. If nothing is there about it, say so.""",
    ),
)


def render(name: str, arguments: dict[str, str]) -> tuple[Prompt, str]:
    """A prompt with its text filled in.

    Raises:
        NotFoundError: there is none of that name.
        UsageError: its argument is missing, empty or too long.
    """
    prompt = next((each for each in PROMPTS if each.name == name), None)
    if prompt is None:
        names = ", ".join(each.name for each in PROMPTS)
        raise NotFoundError(
            f"There is no prompt {shorten(clean_line(name), 60)!r}.", f"There are: {names}."
        )
    about = arguments.get(prompt.about, "").strip()
    if not about or len(about) > _MOST_CHARACTERS:
        raise UsageError(
            f"{prompt.name} needs {prompt.about!r}: {prompt.asks}.",
            f"At most {_MOST_CHARACTERS:,} characters.",
        )
    return prompt, prompt.text.replace("{}", about)
