"""OFT (orthogonal finetuning): block-diagonal orthogonal matrices on the inputs, never merged, never resampled."""

from __future__ import annotations

from dataclasses import dataclass

from poet.methods.adapters import AdapterMethod
from poet.methods.contract import scales_with_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """b = 64 is Table 12's; that it acts on the input side follows from its count, 8.52M.

    Attributes:
        lr: of embeddings, head and norms.
        adapter_lr: of the orthogonal blocks.
        neumann_terms: of peft's Cayley-Neumann map.
    """

    lr: float = 1e-2
    adapter_lr: float = 1e-3
    block_size: int = scales_with_width(64)
    neumann_terms: int = 5


class OFT(AdapterMethod):
    name = "oft"
    Parameters = Parameters

    def adapter_config(self, targets):
        from peft import OFTConfig

        p = self.parameters
        return OFTConfig(
            r=0,
            oft_block_size=p.block_size,
            use_cayley_neumann=True,
            num_cayley_neumann_terms=p.neumann_terms,
            target_modules=targets,
        )


METHOD = OFT
