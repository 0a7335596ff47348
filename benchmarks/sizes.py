"""The models whose steps are timed: the paper's (Table 8), and those of the mini scale.

They stand here because a machine with a GPU may lack what reads ``config/scales``; a test holds them against it.
"""

from dataclasses import dataclass, replace

from poet.training.spec import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """A model and what a method's parameters are on it. The paper's (Table 8), or those of ``config/scales/mini.yaml``."""

    architecture: Architecture  # with the feed-forward width of rows that block sizes need not divide
    divisible: int  # that of the others
    width_divisor: int = 1  # what block sizes and ranks are divided by
    parameters: dict[str, dict] | None = None  # method -> what else differs from its defaults

    def of(self, ffn: str) -> Architecture:
        """The architecture for rows of the kind "standard" or "divisible"."""
        return replace(self.architecture, intermediate_size=self.divisible) if ffn == "divisible" else self.architecture


def _size(hidden: int, standard: int, divisible: int, layers: int, heads: int, **others) -> Size:
    vocabulary, length = (32000, 256) if hidden >= 512 else (1024, 64)
    architecture = Architecture(
        hidden_size=hidden, intermediate_size=standard, layers=layers, heads=heads,
        vocabulary=vocabulary, sequence_length=length,
    )  # fmt: skip
    return Size(architecture=architecture, divisible=divisible, **others)


def _mini(*numbers: int, rank: int) -> Size:
    own = {"poet": {"merge_every": 5, "clip_ramp_steps": 0}, "galore": {"refresh_every": 20, "rank": rank}}
    return _size(*numbers, width_divisor=16, parameters=own)


SIZES = {
    "60m": _size(512, 1376, 1280, 8, 8),
    "350m": _size(1024, 2736, 2816, 24, 16),
    "mini-60m": _mini(32, 88, 80, 2, 2, rank=8),
    "mini-130m": _mini(48, 128, 128, 3, 3, rank=16),
    "mini-350m": _mini(64, 176, 176, 6, 4, rank=16),
    "mini-1.3b": _mini(128, 344, 336, 6, 8, rank=64),
}
