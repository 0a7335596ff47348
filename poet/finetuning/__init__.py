"""Finetuning by POET, OFT, LoRA and in full (Tables 4 and 12), and the adapters that keep what POET learned."""
