"""LoRA from random initialization: W0 frozen, a rank-r update trained (as GaLore's comparison has it)."""

from __future__ import annotations

from dataclasses import dataclass

from poet.methods.adapters import AdapterMethod
from poet.methods.contract import Row, scales_with_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """r = 64 is the paper's; alpha 32 and dropout 0.05 are those of GaLore's comparison (the paper gives neither).

    Attributes:
        lr: of embeddings, head and norms.
        adapter_lr: of the low-rank factors.
    """

    lr: float = 1e-2
    adapter_lr: float = 1e-2
    rank: int = scales_with_width(64)
    alpha: int = scales_with_width(32)
    dropout: float = 0.05


class LoRA(AdapterMethod):
    name = "lora"
    Parameters = Parameters
    rows = (Row("lora-r64", "LoRA r=64", {"rank": 64}, ffn="divisible"),)

    def adapter_config(self, targets):
        from peft import LoraConfig

        p = self.parameters
        return LoraConfig(r=p.rank, lora_alpha=p.alpha, lora_dropout=p.dropout, target_modules=targets)


METHOD = LoRA
