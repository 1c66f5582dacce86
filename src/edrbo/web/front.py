"""The front of several main outcomes as the answer page shows it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from edrbo.report.front_page import NOTE, front_chart
from edrbo.study.study import Study
from edrbo.text import doubt_words, front_table, volume_words
from edrbo.web.answer import plain


def front_of(study: Study, context: Mapping[str, Any] | None) -> dict[str, Any]:
    """Thinks, for the learned law or for one context."""
    found = study.front() if context is None else study.front(context=dict(context))
    state, doubt = study.state, doubt_words(found)
    heads, rows = front_table(state.settings, found)
    return {
        "context": context,
        "record": plain(found),
        "front": {"words": NOTE, "volume": volume_words(found), "heads": heads, "rows": rows},
        "doubts": [] if doubt is None else [doubt],
        "observations": len(state.told),
        "at": time.time(),
    }


def front_pictures(study: Study) -> list[tuple[str, str, list[str]]]:
    """Thinks; gives sections of (title, words, charts)."""
    found, state = study.front(), study.state
    drawn = [front_chart(state, found, *pair).svg() for pair in itertools.combinations(found.reference, 2)]
    words = "Designs of which none is better in every main outcome, and faintly what runs gave. " + volume_words(found)
    return [("Front", words, drawn)]
