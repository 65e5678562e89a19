"""The lives: scripts of what people do with the program, each for one corner of it."""

from importlib import import_module

from tests.replay.lives.life import LIVES as LIVES

MODULES = ("said", "hands", "history", "vaults", "model", "memory", "sync", "others")
for _name in MODULES:
    import_module(f"{__name__}.{_name}")
