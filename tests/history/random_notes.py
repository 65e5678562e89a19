"""A note that is edited at random, with a record of what each edit did to which line.

Every line and every key has an identity, so a test knows which later edits touched the same ones,
and can work out what the note would say if one edit had never happened.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "glade", "haven", "inlet", "jetty")


@dataclass
class Edit:
    """One edit: the lines and keys that it touched, and what it was."""

    kind: str
    touched: set[str] = field(default_factory=set)


@dataclass
class Note:
    """Sections of (identity, text) lines under frontmatter keys."""

    rng: random.Random
    keys: dict[str, str] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    sections: list[list[tuple[str, str]]] = field(default_factory=list)
    count: int = 0

    @classmethod
    def fresh(cls, seed: int) -> Note:
        note = cls(random.Random(seed))
        note.keys = {
            "type": "topic",
            "created": "2026-01-01",
            "updated": "2026-01-01",
            "status": "open",
        }
        note.tags = ["first", "second"]
        for _ in range(3):
            note.add_section()
        return note

    def text(self) -> str:
        front = [f"{key}: {value}" for key, value in self.keys.items()]
        front.append(f"tags: [{', '.join(self.tags)}]")
        body = [line for section in self.sections for _, line in section]
        return "\n".join(["---", *front, "---", *body]) + "\n"

    def lines(self) -> list[str]:
        return [line for section in self.sections for _, line in section]

    def phrase(self) -> str:
        self.count += 1
        return f"{' '.join(self.rng.sample(WORDS, 3))} {self.count}"

    def identity(self) -> str:
        self.count += 1
        return f"line {self.count}"

    def add_section(self) -> Edit:
        section = [(self.identity(), f"## {self.phrase().title()}")]
        section += [(self.identity(), f"- {self.phrase()}") for _ in range(self.rng.randint(1, 4))]
        self.sections.append(section)
        return Edit("add section", {identity for identity, _ in section})

    def add_bullet(self) -> Edit:
        section = self.rng.choice(self.sections)
        item = (self.identity(), f"- {self.phrase()}")
        section.insert(self.rng.randint(1, len(section)), item)
        return Edit("add bullet", {item[0]})

    def edit_line(self) -> Edit:
        section = self.rng.choice(self.sections)
        index = self.rng.randrange(len(section))
        identity, text = section[index]
        section[index] = (identity, f"{text} {self.phrase()}")
        return Edit("edit line", {identity})

    def delete_bullet(self) -> Edit:
        section = max(self.sections, key=len)
        if len(section) < 2:
            return self.add_bullet()
        identity, _ = section.pop(self.rng.randrange(1, len(section)))
        return Edit("delete bullet", {identity})

    def move_section(self) -> Edit:
        section = self.sections.pop(self.rng.randrange(len(self.sections)))
        places = range(len(self.sections) + 1)
        self.sections.insert(self.rng.choice(places), section)
        return Edit("move section", {f"place of {identity}" for identity, _ in section})

    def set_key(self) -> Edit:
        key = self.rng.choice(["updated", "status", f"extra{self.rng.randint(1, 3)}"])
        self.keys[key] = self.phrase()
        return Edit("set key", {f"key {key}"})

    def add_tag(self) -> Edit:
        self.tags.append(f"tag{self.identity().split()[1]}")
        return Edit("add tag", {f"tag {self.tags[-1]}"})

    def change(self) -> Edit:
        return self.rng.choice(
            [
                self.add_bullet,
                self.add_bullet,
                self.edit_line,
                self.delete_bullet,
                self.set_key,
                self.add_tag,
                self.add_section,
                self.move_section,
            ]
        )()
