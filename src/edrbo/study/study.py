"""A study: an optimizer whose every suggestion, context and outcome is durable before the call returns."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, overload

from edrbo.acquisition.methods import DEFAULT
from edrbo.errors import InvalidValueError
from edrbo.optimizer.optimizer import INITIAL, Direction, Optimizer, Suggestion
from edrbo.optimizer.recommendation import Recommendation
from edrbo.records.context_log import ContextLog
from edrbo.records.observations import Observations
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.study.fits import Fits
from edrbo.study.ledger import Ledger
from edrbo.study.opening import open_study
from edrbo.study.records import CONTEXTS, LATE, Snapshot, told_record
from edrbo.study.settings import Settings
from edrbo.study.storage import describe
from edrbo.study.turns import Turns


class Study:
    """An ``Optimizer`` that lives longer than a process, and may be shared by many.

    >>> import edrbo, tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "coating.db"
    >>> space = edrbo.Space(design={"speed": (1, 9)}, context={"humidity": (0, 1)})
    >>> study = Study.open(file, space)
    >>> suggestion = study.ask()

    and tomorrow, in another process:

    >>> study = Study.open(file)
    >>> study.tell(study.pending[0], {"humidity": 0.4}, 1.7)

    The methods are those of ``Optimizer``. Any number of processes and threads may use one study at once: no
    suggestion is handed out twice, and each knows of those before it. A suggestion's id is its trial number.
    ``ledger`` reads and writes the records themselves.
    """

    def __init__(self, ledger: Ledger, settings: Settings, name: str) -> None:
        """The study whose records are in ``ledger``; ``Study.open`` finds it."""
        self.settings = settings
        self.name = name
        self.ledger = ledger
        self._optimizer = settings.optimizer()
        self._fits = Fits(ledger)
        self._turns = Turns(ledger)
        self._lock = threading.RLock()
        self._sync()

    @classmethod
    def open(
        cls,
        where: str | Path,
        space: Space | None = None,
        *,
        name: str | None = None,
        method: str = DEFAULT,
        direction: Direction = "maximize",
        seed: int = 0,
        forgetting: float | None = None,
        initial: int = INITIAL,
    ) -> Study:
        """The study in a file, or in PostgreSQL by URL (``postgresql://user@host/database``).

        With a ``space`` it is made if it does not exist; if it does, its settings must be these. Without one it must
        exist. ``name`` tells several studies in one place apart.
        """
        settings = None if space is None else Settings(space, method, direction, seed, forgetting, initial)
        storage, study_id, stored = open_study(where, name, settings)
        ledger = Ledger(storage, study_id, stored.space, where)
        return cls(ledger, stored, storage.get_study_name_from_id(study_id))

    def __repr__(self) -> str:
        return f"Study({self.name!r} in {describe(self.ledger.where)!r}, {len(self._optimizer)} observations)"

    # ---------------------------------------------------------------- what is known

    @property
    def space(self) -> Space:
        return self.settings.space

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer behind the study, up to date; tell it nothing."""
        self._sync()
        return self._optimizer

    @property
    def state(self) -> State:
        return self.optimizer.state

    @property
    def observations(self) -> Observations:
        return self.optimizer.observations

    @property
    def pending(self) -> list[Suggestion]:
        """Asked and not yet told, by whomever."""
        return self.optimizer.pending

    @property
    def context_log(self) -> ContextLog:
        return self.optimizer.context_log

    def __len__(self) -> int:
        return len(self.optimizer)

    def _sync(self) -> Snapshot:
        """Begins every call: what others wrote is taken over, what an earlier call failed to write is dropped."""
        with self._lock:
            snapshot = self.ledger.read()
            self._fits.restore(self._optimizer, snapshot.state)
            return snapshot

    # ---------------------------------------------------------------- ask

    @overload
    def ask(self, n: None = None, *, forecast: Any = None, context: Any = None) -> Suggestion: ...
    @overload
    def ask(self, n: int, *, forecast: Any = None, context: Any = None) -> list[Suggestion]: ...
    def ask(self, n: int | None = None, *, forecast: Any = None, context: Any = None) -> Suggestion | list[Suggestion]:
        """As ``Optimizer.ask``; the suggestion is stored, and stays pending until somebody tells it."""
        if n is None:
            return self._ask(forecast, context)
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")
        return [self._ask(forecast, context) for _ in range(n)]

    def _ask(self, forecast: Any, context: Any) -> Suggestion:
        """Compute first, take a number next: a process killed while computing leaves nothing behind.

        If others took numbers meanwhile, wait for their designs and compute again, knowing them.
        """
        with self._lock:
            before = self._sync()
            suggestion = self._optimizer.ask(forecast=forecast, context=context)
            with self._turns.take() as number:
                if number != suggestion.id or before.open:
                    state = self._turns.wait(number)
                    self._fits.restore(self._optimizer, state)
                    suggestion = self._optimizer.ask(forecast=forecast, context=context)
                self.ledger.publish(number, suggestion.design, self._optimizer.state.pending[number])
            self._fits.save(self._optimizer)
            return suggestion

    # ---------------------------------------------------------------- tell

    def tell(
        self,
        suggestion: Suggestion | Mapping[str, Any] | int,
        context: Any = None,
        value: float | None = None,
        *,
        noise: float | None = None,
        failed: bool = False,
    ) -> None:
        """As ``Optimizer.tell``; any process may tell any suggestion, once."""
        with self._lock:
            snapshot = self._sync()
            # The optimizer checks everything first; what it accepted is then written.
            self._optimizer.tell(suggestion, context, value, noise=noise, failed=failed)
            state = self._optimizer.state
            rows = None if context is None else state.log.batches[-1].rows
            outcome = None if failed else float(state.observations.y[-1])
            record = told_record(snapshot.clock + 1, rows, outcome, None if failed else noise)
            if isinstance(suggestion, Mapping):
                x = list(state.failed.values())[-1] if failed else state.observations.x[-1]
                self.ledger.create(x, record)
            else:
                self.ledger.finish(suggestion.id if isinstance(suggestion, Suggestion) else suggestion, record)

    # ---------------------------------------------------------------- contexts

    def tell_context(self, suggestion: Suggestion | int, context: Any) -> None:
        """As ``Optimizer.tell_context``."""
        with self._lock:
            snapshot = self._sync()
            self._optimizer.tell_context(suggestion, context)
            number = suggestion.id if isinstance(suggestion, Suggestion) else suggestion
            row = self._optimizer.context_log.batches[-1].rows[0].tolist()
            self.ledger.add(LATE, {"clock": snapshot.clock + 1, "number": number, "context": row})

    def observe_context(self, samples: Any, weights: Any = None) -> None:
        """As ``Optimizer.observe_context``; of a long batch only its summary is stored."""
        with self._lock:
            snapshot = self._sync()
            before = len(self._optimizer.context_log.batches)
            self._optimizer.observe_context(samples, weights)
            for batch in self._optimizer.context_log.to_list()[before:]:
                self.ledger.add(CONTEXTS, {"clock": snapshot.clock + 1, "batch": batch})

    # ---------------------------------------------------------------- recommend

    def recommend(self, *, forecast: Any = None, context: Any = None, ball: float = 0.1) -> Recommendation:
        """As ``Optimizer.recommend``."""
        with self._lock:
            self._sync()
            recommendation = self._optimizer.recommend(forecast=forecast, context=context, ball=ball)
            self._fits.save(self._optimizer)
            return recommendation
