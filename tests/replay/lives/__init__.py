"""The lives: scripts of what people do with the program, each for one corner of it."""

from tests.replay.lives import hands, model, said, vaults
from tests.replay.lives.life import LIVES

__all__ = ["LIVES", "hands", "model", "said", "vaults"]
