#!/usr/bin/env python3
"""Publish a finished study in docs/results/, and write docs/results.md and its picture from all that are published.

    .venv/bin/python scripts/results.py                      # write the page and the picture anew
    .venv/bin/python scripts/results.py --add study NAME     # first copy the study in this folder to docs/results/NAME

Every number of the page is read from the files of the studies; a test compares page and files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from localsim.families import family_of, in_order, title_of  # noqa: E402
from localsim.reports.figures import draw  # noqa: E402
from localsim.reports.paper.published import GOAL, Quantity  # noqa: E402
from localsim.study.beside import CONTRASTS, FILE, Finished, Place, read, remarks, sum_of, tables  # noqa: E402
from scripts.tables import markdown_table  # noqa: E402

DOCS = ROOT / "docs"
FOLDER, PAGE, PICTURE = DOCS / "results", DOCS / "results.md", DOCS / "results.svg"
KEPT = (FILE, "study.md", "report.html")
"""Files of a study that are published beside its tables; its database stays with whoever ran it."""
SCALE = 10
"""The paper's goal scores go from 0 to this."""


def published() -> list[Finished]:
    """Return the models of all published studies, by the name of their folder."""
    return [each for folder in sorted(FOLDER.iterdir()) if folder.is_dir() for each in read(folder)]


def add(study: Path, name: str) -> None:
    """Copy a finished study to docs/results/NAME, without the places where its files stood."""
    read(study)
    for file in (*(study / part for part in KEPT), *study.glob("tables/*.csv")):
        target = FOLDER / name / file.relative_to(study)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text(encoding="utf-8")
        target.write_text(text.replace(f"{study.resolve()}/", ""), encoding="utf-8", newline="")


# ---- the page --------------------------------------------------------------------------------------------------------


def page(found: Sequence[Finished]) -> str:
    """Return docs/results.md."""
    lines = [_INTRODUCTION, "", *(f"- {line}" for line in remarks(found)), ""]
    for table in tables(found):
        lines += [f"## {table.title}", "", markdown_table([str(head) for head in table.heads], table.rows), ""]
        lines += [*(f"- {note}" for note in table.notes), ""]
    for each in found:
        lines += [*_about(each), ""]
    return "\n".join(lines) + _ADD


_INTRODUCTION = """# Results

How much of their success do models owe to what they could not know? Each study below asked this of one model. Its
command and versions stand with it. This page is made by `scripts/results.py` from the files in `docs/results/`.

![Two differences of success for each model and task, with 95% lines](results.svg)

*Seeing every side*: success as mindreaders minus success as agents. *One author for both sides*: success in scripts
minus success as mindreaders. Right of 0, the setting helps. Hollow marks: too many talks are no conversations, so
nothing follows. Rules on the text tell our success. GPT-4 scored the paper's models from 0 to 10 (diamonds, divided by
10, without intervals). The [log](log/study.md) has a run of more searches."""
_ADD = """
## Add a study

```
localsim study -m path/to/model.gguf --size small --dir mine
.venv/bin/python scripts/results.py --add mine NAME
```

The first command goes on where it was interrupted. The second copies the results to `docs/results/NAME` and writes this
page anew. Send both as a pull request; a test compares the page with the files. `localsim compare docs/results/A
docs/results/B` shows any of them side by side.
"""


def _about(each: Finished) -> Iterator[str]:
    """Yield what one study says: how it was made, and its answer."""
    size = each.size
    yield f"## {each.model}"
    yield ""
    yield (
        f"`{each.command}`; {each.identity}; {sum_of(each)} scenarios (checksum {each.scenarios}), "
        f"{size['episodes']} of each scenario and condition. localsim {each.versions}. All tables: "
        f"[study.md](results/{each.study}/study.md); talks: [report.html](results/{each.study}/report.html)."
    )
    for about, sentences in each.answer:
        yield ""
        yield f"**{about}**"
        yield ""
        yield from (f"- {sentence}" for sentence in sentences)
    if each.judge:
        yield ""
        yield "**The judge of goals**"
        yield ""
        yield from (f"- {sentence}" for sentence in each.judge)


# ---- the picture -----------------------------------------------------------------------------------------------------


def picture(found: Sequence[Finished]) -> Any:
    """Return the figure: a row for each model and family, a column for each difference; the paper's models last."""
    draw.ready()
    families = in_order({place.family for each in found for place in each.differences})
    rows = [(each, family) for each in found for family in families]
    goals = [row for row in GOAL if row.what != "overall"]
    figure, axes = draw.grid([0.28 * (len(rows) + len(goals)) + 0.9], width=9.6)
    for axis, (contrast, title) in zip(axes[0], CONTRASTS.items(), strict=True):
        for height, (each, family) in enumerate(rows):
            if (value := each.differences.get(Place(family, title))) is None:
                continue
            doubtful = family in each.withheld
            colour = draw.COLOURS["mindreaders" if contrast == "information" else "script"]
            ends = [value.value if end is None else end for end in (value.low, value.high)]
            axis.plot(
                [100 * end for end in ends], [height] * 2, color=colour, linewidth=1.4, alpha=0.5 if doubtful else 1
            )
            axis.plot([100 * value.value], [height], "o", color=colour, markerfacecolor="white" if doubtful else colour)
        for height, row in enumerate(goals, start=len(rows)):
            axis.plot([100 * _of_paper(row, contrast)], [height], "D", color=draw.PAPER, markersize=5)
        axis.axvline(0, color="#444444", linewidth=0.8)
        axis.set_title(title, fontsize=11, loc="left")
        axis.set_xlabel("difference of success, points", fontsize=9)
        axis.set_xlim(-105, 105)
        axis.set_ylim(len(rows) + len(goals) - 0.5, -0.5)
    labels = [f"{each.model}, {title_of(family_of(family))}" for each, family in rows]
    labels += [f"{row.by}, {row.what} (judge)" for row in goals]
    axes[0][0].set_yticks(range(len(labels)), labels, fontsize=9)
    axes[0][1].set_yticks(range(len(labels)), [""] * len(labels))
    return figure


def _of_paper(row: Quantity, contrast: str) -> float:
    first, second = ("agents", "mindreaders") if contrast == "information" else ("mindreaders", "script")
    return (row.values[second].value - row.values[first].value) / SCALE  # type: ignore[operator]


@click.command(help=__doc__)
@click.option("--add", "added", nargs=2, metavar="FOLDER NAME", help="Publish the study in FOLDER as NAME first.")
def main(added: tuple[str, str] | None) -> None:
    """Write the page and the picture."""
    if added:
        add(Path(added[0]), added[1])
    found = published()
    PAGE.write_text(page(found), encoding="utf-8")
    draw.save([("results", picture(found))], DOCS, ("svg",))
    print(f"{PAGE.relative_to(ROOT)}: {len(found)} models", file=sys.stderr)


if __name__ == "__main__":
    main()
