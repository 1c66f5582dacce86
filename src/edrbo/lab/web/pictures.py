"""The charts of the report, and the outcome against each context, as SVG text."""

from __future__ import annotations

from edrbo.lab.report import charts
from edrbo.lab.report.contents import gather
from edrbo.lab.study import Study

Section = tuple[str, str, list[str]]


def pictures_of(study: Study) -> list[Section]:
    """Thinks; gives sections of (title, words, charts)."""
    facts = gather(study)
    sections: list[Section] = [
        (
            "Progress",
            "Every outcome, and the best so far. The green band is what can be expected of the answer on average.",
            [charts.progress(facts).svg()],
        ),
        (
            "Along each setting",
            "The expected outcome with its 95 % band, the other settings as in the answer.",
            [charts.slice_chart(facts, part).svg() for part in facts.slices],
        ),
    ]
    if facts.goal is not None:
        drawn = [charts.goal_chart(facts, part).svg() for part in facts.slices]
        if facts.space.d_c:
            drawn.append(charts.tradeoff_chart(facts.optimizer.tradeoff()).svg())
        sections.append(("Under the goal", f"The goal along each setting: {facts.goal}.", drawn))
    if facts.space.d_c and len(facts.contexts):
        met = [charts.outcome_by_context(facts, k).svg() for k in range(facts.space.d_c)]
        sections.append(("Outcome against conditions", "Every outcome at the conditions it met.", met))
        words = "Too few to look for a shift yet." if facts.shift is None else facts.shift.describe()
        drawn = []
        for k in range(facts.space.d_c):
            drawn += [charts.context_over_time(facts, k).svg(), charts.context_distribution(facts, k).svg()]
        sections.append(("Shift of the conditions", words, drawn))
    if facts.calibration is not None:
        sections.append(("Can the model be trusted?", facts.trust, [charts.calibration(facts).svg()]))
    return sections
