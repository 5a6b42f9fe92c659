"""The card of a data set: a README whose head tells Hugging Face's `datasets` which files there are.

https://huggingface.co/docs/hub/datasets-manual-configuration
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from localsim.store.schema import VIEWS


def card_of(run: Mapping[str, Any], files: Sequence[Path]) -> str:
    """Return the card for the parquet files of a run; they are in the folder `data` beside it."""
    plan = json.loads(run["plan_json"])
    tables = {file.stem: file for file in files}
    configs = [
        {"config_name": name, "data_files": f"data/{file.name}", **({"default": True} if name == "turns" else {})}
        for name, file in tables.items()
    ]
    head = yaml.safe_dump(
        {
            "pretty_name": f"localsim run {run['run_id']}",
            "tags": ["localsim", "simulated-conversations"],
            "configs": configs,
        },
        sort_keys=False,
        allow_unicode=True,
    )
    rows = [f"| `{name}` | {VIEWS[f'v_{name}'][0].replace('|', '/')} |" for name in tables]
    lines = [
        f"# localsim run {run['run_id']}",
        "",
        f"Simulated conversations: modes {', '.join(plan['modes'])}, model {plan['model']}, seed {run['seed']}.",
        "",
        "| table | what it holds |",
        "|---|---|",
        *rows,
        "",
        "```python",
        "from datasets import load_dataset",
        'turns = load_dataset("FOLDER", "turns", split="train")',
        "```",
    ]
    return f"---\n{head}---\n\n" + "\n".join(lines) + "\n"
