"""The charts of the report, and the outcome against each context, as SVG text."""

from __future__ import annotations

import numpy as np

from edrbo.report import charts
from edrbo.report.contents import Facts, gather
from edrbo.report.svg import Chart, number, span
from edrbo.study.study import Study

Section = tuple[str, str, list[str]]


def pictures_of(study: Study) -> list[Section]:
    """Thinks; gives sections of (title, words, charts)."""
    facts = gather(study)
    sections: list[Section] = [
        (
            "Progress",
            "Every outcome, and the best so far. The band is what can be expected of the answer.",
            [charts.progress(facts).svg()],
        ),
        (
            "Along each setting",
            "The expected outcome with its 95 % band, the other settings as in the answer.",
            [charts.slice_chart(facts, part).svg() for part in facts.slices],
        ),
    ]
    if facts.space.d_c and len(facts.contexts):
        sections.append(("Outcome against conditions", "Every outcome at the conditions it met.", _against(facts)))
        words = "Too few to look for a shift yet." if facts.shift is None else facts.shift.words()
        drawn = []
        for k in range(facts.space.d_c):
            drawn += [charts.context_over_time(facts, k).svg(), charts.context_law(facts, k).svg()]
        sections.append(("Shift of the conditions", words, drawn))
    if facts.calibration is not None:
        sections.append(("Can the model be trusted?", facts.trust, [charts.calibration(facts).svg()]))
    return sections


def _against(facts: Facts) -> list[str]:
    """One chart a context variable, all with the same axis of outcomes."""
    data = facts.optimizer.observations
    known = np.isfinite(data.c).all(axis=1)
    y, height = data.y[known], span(data.y.tolist())
    drawn = []
    for k, name in enumerate(facts.space.context_names):
        c = data.c[known][:, k]
        chart = Chart(f"Outcome against {name}", span(c.tolist()), height, name, "outcome")
        tips = [f"{name} {number(a)}: {number(b)}" for a, b in zip(c.tolist(), y.tolist(), strict=True)]
        chart.dots(c.tolist(), y.tolist(), tips, "blue")
        drawn.append(chart.svg())
    return drawn
