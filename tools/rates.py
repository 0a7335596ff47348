"""The learning rates of a sweep, as tables for a page."""

from analyses.common.layout import markdown_table

#: Columns of ``lr_sweep.csv`` that hold rates, by the words for them.
RATES = {"lr": "lr", "adapter_lr": "adapter", "poet_lr": "R and P"}


def rates(sweep: list[dict[str, str]]) -> str:
    """The chosen rates of each row on each model; a star on those at an end of their grid."""
    models = list(dict.fromkeys(line["model"] for line in sweep))
    variants = list(dict.fromkeys(line["variant"] for line in sweep))
    chosen = {(line["variant"], line["model"]): line for line in sweep if line["chosen"] == "yes"}
    body = [[f"`{v}`", *(_rates(chosen.get((v, m))) for m in models)] for v in variants]
    at_end = sum(bool(line["at_grid_end"]) for line in chosen.values())
    poet = [line for (variant, _), line in chosen.items() if variant.startswith("poet")]
    said = (
        f"{len(chosen)} choices; {at_end} of them have a rate at an end of its grid (\\*). "
        f"Of POET's {len(poet)}, {sum(bool(line['at_grid_end']) for line in poet)} have."
    )
    return "\n".join([markdown_table(["row", *models], "l" + "r" * len(models), body), "", said])


def grids(sweep: list[dict[str, str]]) -> str:
    """How many settings each row tried on each model."""
    models = list(dict.fromkeys(line["model"] for line in sweep))
    variants = list(dict.fromkeys(line["variant"] for line in sweep))
    tried = [(line["variant"], line["model"]) for line in sweep]
    body = [[f"`{v}`", *(str(tried.count((v, m)) or "–") for m in models)] for v in variants]
    return markdown_table(["row", *models], "l" + "r" * len(models), body)


def _rates(line: dict[str, str] | None) -> str:
    if line is None:
        return "–"
    at_end = line["at_grid_end"].split()
    found = {column: line[column] for column in RATES if line[column]}
    shown = [f"{float(value):g}{chr(92) + '*' if column in at_end else ''}" for column, value in found.items()]
    return shown[0] if len(shown) == 1 else "; ".join(f"{RATES[c]} {s}" for c, s in zip(found, shown, strict=True))
