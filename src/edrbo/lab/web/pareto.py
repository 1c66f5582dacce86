"""The front of several main outcomes as the answer page shows it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from edrbo.lab.report.pareto_page import NOTE, front_chart
from edrbo.lab.study import Study
from edrbo.lab.web.answer import plain
from edrbo.text import describe_doubt, describe_hypervolume, front_table


def front_of(study: Study, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Thinks, for the learned distribution or for one context."""
    found = study.front() if context is None else study.front(context=dict(context))
    state, doubt = study.state, describe_doubt(found)
    heads, rows = front_table(state.settings, found)
    return {
        "context": context,
        "record": plain(found),
        "front": {"words": NOTE, "volume": describe_hypervolume(found), "heads": heads, "rows": rows},
        "doubts": [] if doubt is None else [doubt],
        "observations": len(state.reported),
        "at": time.time(),
    }


def front_pictures(study: Study) -> list[tuple[str, str, list[str]]]:
    """Thinks; gives sections of (title, words, charts)."""
    found, state = study.front(), study.state
    drawn = [front_chart(state, found, *pair).svg() for pair in itertools.combinations(found.reference, 2)]
    words = (
        "Designs of which none is better in every main outcome, and faintly what runs gave. "
        + describe_hypervolume(found)
    )
    return [("ParetoFront", words, drawn)]
