"""The model card of a pruned model: what was kept, of what, and how to load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headcount import __version__

TEMPLATE = """---
library_name: transformers
tags: [headcount, pruned-attention-heads]
{base_line}---

# {title}

{kept} of {heads} attention heads of {base}, the others removed by headcount {version}.

| layer | heads before | heads kept | which |
|---|---|---|---|
{rows}

| | |
|---|---|
| parameters | {parameters:,} |
| architecture | {architecture} |

## How to load

{usage}"""

USAGE = """```python
import headcount

model = headcount.load("path/to/this/folder")
```

Plain `from_pretrained` refuses these weights, because layers have different numbers of heads.
`headcount export --to zeroed` writes a full-size copy that it takes, and `--to standalone` one
that needs only `trust_remote_code=True`.
"""


def write_card(model: Any, folder: Path) -> None:
    """Write README.md into the folder of a saved pruned model."""
    (folder / "README.md").write_text(card(model), encoding="utf-8")


def card(model: Any, usage: str = USAGE) -> str:
    """The card's text; `usage` says how to load what it lies beside."""
    sites = model.config.headcount["sites"]
    base = getattr(model.config, "_name_or_path", "")
    is_hub_name = bool(base) and not Path(base).is_absolute() and not Path(base).exists()
    rows = "\n".join(
        f"| {site['stack']} {site['layer']} | {site['heads']} | {len(site['kept'])} "
        f"| {', '.join(map(str, site['kept'])) or 'none'} |"
        for site in sites
    )
    untouched = _untouched_heads(model, sites)
    heads = untouched + sum(site["heads"] for site in sites)
    name = Path(base).name if base else type(model).__name__
    return TEMPLATE.format(
        base_line=f"base_model: {base}\n" if is_hub_name else "",
        title=f"{name} with {untouched + sum(len(s['kept']) for s in sites)} heads",
        base=f"`{name}`" if base else f"a {model.config.model_type} model",
        kept=untouched + sum(len(site["kept"]) for site in sites),
        heads=heads,
        version=__version__,
        rows=rows,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        architecture=type(model).__name__,
        usage=usage,
    )


def _untouched_heads(model: Any, sites: list[dict[str, Any]]) -> int:
    from headcount.models.sites import find_sites

    cut = {site["path"] for site in sites}
    return sum(site.heads for site in find_sites(model) if site.path not in cut)
