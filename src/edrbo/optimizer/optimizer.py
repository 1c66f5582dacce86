"""ask / tell / recommend: the only stateful class of the core.

State changes only at the end of a call that succeeded, so a raised error leaves the optimizer as it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from edrbo.acquisition.maximizer import maximize
from edrbo.acquisition.methods import DEFAULT, Method, get_method
from edrbo.context.laws import sobol_points
from edrbo.errors import EdrboError, InvalidContextError, InvalidValueError
from edrbo.optimizer.belief import Belief, believe
from edrbo.optimizer.recommendation import (
    Z95,
    Prediction,
    Recommendation,
    best_design,
    context_effects,
    design_beliefs,
    worst_case,
)
from edrbo.optimizer.training import Evidence
from edrbo.records.context_log import ContextLog
from edrbo.records.observations import Observations
from edrbo.records.state import State
from edrbo.space import Space
from edrbo.streams import stream_seed
from edrbo.surrogate.ensemble import Ensemble
from edrbo.surrogate.exact_gp import Hyperparameters
from edrbo.surrogate.schedule import FittedModel, advance

Array = NDArray[np.float64]
Direction = Literal["maximize", "minimize"]

INITIAL = 5  # quasi-random designs before the model takes over, as in the paper
FORMAT = 1  # version of the JSON record


@dataclass(frozen=True)
class Suggestion:
    """A design to evaluate. ``id`` names it until it is told."""

    id: int
    design: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.design[name]


class Optimizer:
    """Bayesian optimization of E_c f(x, c) by ask and tell.

    >>> from edrbo import Optimizer, Space
    >>> optimizer = Optimizer(Space(design={"order": (0, 1)}, context={"demand": (0, 1)}), seed=0)
    >>> suggestion = optimizer.ask()
    >>> optimizer.tell(suggestion, context={"demand": 0.3}, value=1.2)

    ``method`` is a name (``edrbo.method_names()``) or a ``Method``; ``forgetting`` halves a context's weight for every
    so many later ones; ``initial`` quasi-random designs come first. Same seed and data, same suggestions.
    """

    def __init__(
        self,
        space: Space,
        method: str | Method = DEFAULT,
        *,
        direction: Direction = "maximize",
        seed: int = 0,
        forgetting: float | None = None,
        initial: int = INITIAL,
    ) -> None:
        if direction not in ("maximize", "minimize"):
            raise InvalidValueError(f"direction is {direction!r}", 'write "maximize" or "minimize"')
        if forgetting is not None and not (math.isfinite(forgetting) and forgetting > 0):
            raise InvalidValueError(f"forgetting is {forgetting!r}", "give a half-life in contexts, above zero")
        if initial < 1:
            raise InvalidValueError(f"initial is {initial!r}", "at least one design must come before the model")
        self.space = space
        self.method = get_method(method)
        self.method_name = method if isinstance(method, str) else None
        self.direction: Direction = direction
        self.seed = int(seed)
        self.forgetting = forgetting
        self.initial = int(initial)
        self._state = State.empty(space)
        self._fitted: FittedModel | None = None
        self._stored: tuple[int, Hyperparameters] | None = None  # of a fit made before this process

    # ---------------------------------------------------------------- what is known

    @property
    def observations(self) -> Observations:
        return self._state.observations

    @property
    def pending(self) -> list[Suggestion]:
        """Asked and not yet told."""
        return [Suggestion(key, self.space.decode_designs(x)[0]) for key, x in self._state.pending.items()]

    @property
    def state(self) -> State:
        """Everything asked, told and observed: an immutable value."""
        return self._state

    def restore(self, state: State, stored: tuple[int, Hyperparameters] | None = None) -> None:
        """Go on from ``state``; ``stored`` is a fit (rows, hyper-parameters) made on a beginning of its data."""
        self._state, self._stored, self._fitted = state, stored, None

    @property
    def fit(self) -> tuple[int, Hyperparameters] | None:
        """The last fit (rows, hyper-parameters), as ``restore`` takes it; None before the first."""
        return self._stored if self._fitted is None else (self._fitted.fitted, self._fitted.hyper)

    @property
    def model(self) -> Ensemble | None:
        """The surrogate of the observations it is fitted to, None without any. It maximizes, whatever the direction."""
        return self._model(self._evidence())

    @property
    def context_log(self) -> ContextLog:
        return self._state.log

    def __len__(self) -> int:
        return len(self.observations)

    # ---------------------------------------------------------------- ask

    @overload
    def ask(self, n: None = None, *, forecast: Any = None, context: Any = None) -> Suggestion: ...
    @overload
    def ask(self, n: int, *, forecast: Any = None, context: Any = None) -> list[Suggestion]: ...
    def ask(self, n: int | None = None, *, forecast: Any = None, context: Any = None) -> Suggestion | list[Suggestion]:
        """The next design, or a list of ``n`` that are aware of each other and of everything pending.

        ``forecast`` (samples of contexts) is the law for this ask; ``context`` fixes the next context.
        """
        count = 1 if n is None else n
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InvalidValueError(f"cannot ask for {n!r} suggestions", "ask for one or more")
        law = self._read_law(forecast, context)
        designs: list[Array] = []
        belief: Belief | None = None
        asked, evidence = self._state.asked, self._evidence()
        for i in range(count):
            if self._wants_initial(len(designs)):
                designs.append(self._initial_design(asked + i))
                continue
            if belief is None:
                belief = self._belief(evidence, law, [*self._state.pending.values(), *designs])
            x = self._best(belief, evidence.starts(), asked + i)
            designs.append(x)
            if i + 1 < count:
                belief = belief.with_pending(torch.from_numpy(x)[None])
        names = self.space.decode_designs(np.stack(designs))
        suggestions = [Suggestion(asked + i, design) for i, design in enumerate(names)]
        self._state = self._state.ask(designs)
        return suggestions[0] if n is None else suggestions

    def _wants_initial(self, more: int) -> bool:
        state = self._state
        known = len(self) + len(state.failed) + len(state.pending) + more
        return len(self) == 0 or known < self.initial

    def _initial_design(self, index: int) -> Array:
        points = sobol_points(self.space.d_x, index + 1, stream_seed(self.seed, "initial design"))
        design: Array = self.space.snap(points[-1].numpy())
        return design

    def _best(self, belief: Belief, starts: Tensor, index: int) -> Array:
        seed = stream_seed(self.seed, "maximize", index)
        ladder, kinks = belief.acquisition().ladder(), belief.functional.has_kinks
        found = maximize(ladder, self.space, seed=seed, starts=starts, kinks=kinks)
        return self.space.snap(found.x.numpy())

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
        """Report an evaluation of a suggestion (or of a design of your own).

        ``context`` may be left out and told later with ``tell_context``, or never. ``noise`` is the known variance of
        ``value``. ``failed=True`` reports an evaluation that gave no value.
        """
        key, x = self._identify(suggestion)
        rows = None if context is None else self._read_context(context)
        if failed:
            if value is not None:
                raise InvalidValueError("a failed evaluation has no value", "leave the value or `failed` out")
            state = self._state.fail(key, x)
        else:
            state = self._state.tell(key, x, rows, _read_value(value), noise)
        self._state = state if rows is None else replace(state, log=state.log.add(self.space, rows))

    def tell_context(self, suggestion: Suggestion | int, context: Any) -> None:
        """The context of an evaluation that was told without one."""
        key = suggestion.id if isinstance(suggestion, Suggestion) else suggestion
        rows = self._read_context(context)
        state = self._state.tell_context(key, rows)
        self._state = replace(state, log=state.log.add(self.space, rows))
        self._fitted = self._stored = None  # the order of complete observations has changed

    def observe_context(self, samples: Any, weights: Any = None) -> None:
        """Contexts seen without an outcome; ``weights`` (one per sample) default to one."""
        self._need_contexts()
        rows = self.space.read_contexts(samples)
        log = self._state.log.add(self.space, rows, weights, self.forgetting)
        self._state = replace(self._state, log=log)

    def _identify(self, suggestion: Suggestion | Mapping[str, Any] | int) -> tuple[int | None, Array]:
        if isinstance(suggestion, Mapping):
            return None, self.space.encode_designs(dict(suggestion))[0]
        key = suggestion.id if isinstance(suggestion, Suggestion) else suggestion
        return key, self._state.design_of(key)

    def _read_context(self, context: Any) -> Array:
        self._need_contexts()
        rows = self.space.read_contexts(context if isinstance(context, Mapping) else [context])
        if len(rows) != 1:
            raise InvalidContextError(f"{len(rows)} contexts for one evaluation", "an evaluation has one context")
        return rows

    def _need_contexts(self) -> None:
        if not self.space.d_c:
            raise InvalidContextError("this space has no context variables", "name them in Space(context=...)")

    # ---------------------------------------------------------------- recommend

    def recommend(self, *, forecast: Any = None, context: Any = None, ball: float = 0.1) -> Recommendation:
        """The design with the best expected value, for the estimated law, a ``forecast`` or one ``context``."""
        if not (math.isfinite(ball) and ball >= 0):
            raise InvalidValueError(f"ball is {ball!r}", "it is a distance, as a fraction of the context range")
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be recommended", "tell at least one value")
        evidence = self._evidence()
        belief = self._belief(evidence, self._read_law(forecast, context), pending=[])
        x = best_design(belief, self.space, evidence.starts(), stream_seed(self.seed, "recommend", len(self)))
        x = torch.from_numpy(self.space.snap(x.numpy()))
        found = design_beliefs(belief, x[None])
        effects = context_effects(belief, x)  # none for a model of x alone
        lower, upper = evidence.box(evidence.scale())
        worst = worst_case(belief, x, ball, lower[: len(effects)], upper[: len(effects)])
        user = evidence.to_user
        ends = sorted(user([found.mean[0] - Z95 * found.sd[0], found.mean[0] + Z95 * found.sd[0]]))
        spreads = np.abs(user([found.disagreement[0], *effects]))
        return Recommendation(
            design=self.space.decode_designs(x.numpy())[0],
            expected=float(user(found.mean[0])),
            interval=(float(ends[0]), float(ends[1])),
            robust=float(user(found.robust[0])),
            worst_case=float(user(worst)),
            ball=ball,
            disagreement=float(spreads[0]),
            context_effect=dict(zip(self.space.context_names if effects else (), spreads[1:].tolist(), strict=True)),
            law_error=belief.points.compression_error,
            observations=len(self),
        )

    def predict(self, designs: Any, *, forecast: Any = None, context: Any = None) -> Prediction:
        """What is believed of the expected value of ``designs`` (a dict, dicts, rows or a frame)."""
        x = torch.from_numpy(self.space.encode_designs(designs))
        if len(self) == 0:
            raise EdrboError("nothing was told yet, so nothing can be predicted", "tell at least one value")
        evidence = self._evidence()
        found = design_beliefs(self._belief(evidence, self._read_law(forecast, context), pending=[]), x)
        reach = Z95 * evidence.sign * found.sd  # so that lower is lower in the user's direction
        return Prediction(
            evidence.to_user(found.mean),
            evidence.to_user(found.mean - reach),
            evidence.to_user(found.mean + reach),
            np.abs(evidence.to_user(found.disagreement)),
        )

    # ---------------------------------------------------------------- model and law

    def _evidence(self) -> Evidence:
        sign = 1.0 if self.direction == "maximize" else -1.0
        return Evidence(self.space, self._state, sign, self.method.score.uses_context)

    def _model(self, evidence: Evidence) -> Ensemble | None:
        """The surrogate on all complete observations, brought up to date; None if there is none."""
        rows = evidence.trains
        n = int(rows.sum())
        if n == 0:
            return None
        if self._fitted is None or self._fitted.rows != n:
            noise = evidence.noise[rows]
            self._fitted = advance(
                self.method.surrogate,
                self._fitted,
                n,
                evidence.inputs,
                torch.from_numpy(evidence.outcomes[rows]),
                None if np.isnan(noise).all() else torch.from_numpy(noise),
                self._stored,
            )
        return self._fitted.model

    def _belief(self, evidence: Evidence, law: tuple[Array | None, Array | None], pending: list[Array]) -> Belief:
        forecast, fixed = law
        model = self._model(evidence)
        scale = evidence.scale()
        return believe(
            self.method,
            model,
            evidence.extras(pending),
            evidence.history(scale, self.forgetting, forecast),
            None if fixed is None else torch.from_numpy(scale.encode(fixed)),
            len(self),
            stream_seed(self.seed, "law", len(self)),
        )

    def _read_law(self, forecast: Any, context: Any) -> tuple[Array | None, Array | None]:
        if forecast is not None and context is not None:
            raise InvalidContextError("both a forecast and a context were given", "give one of them")
        if forecast is not None:
            self._need_contexts()
            rows = self.space.read_contexts(forecast)
            if not len(rows):
                raise InvalidContextError("the forecast is empty", "give at least one sample, or no forecast")
            return rows, None
        return None, None if context is None else self._read_context(context)

    # ---------------------------------------------------------------- JSON

    def to_json(self) -> str:
        """Everything as text; ``from_json`` gives an optimizer that goes on exactly as this one would."""
        if self.method_name is None:
            raise InvalidValueError("a method of your own has no name to store", "store the data and rebuild it")
        stored = self.fit
        record = {
            "format": FORMAT,
            "space": self.space.to_dict(),
            "method": self.method_name,
            "direction": self.direction,
            "seed": self.seed,
            "forgetting": self.forgetting,
            "initial": self.initial,
            **self._state.to_dict(),
            "hyper": None if stored is None else {"rows": stored[0], **stored[1].to_dict()},
        }
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Optimizer:
        """The inverse of ``to_json``."""
        try:
            record = json.loads(text)
            version = record["format"]
        except (ValueError, TypeError, KeyError):
            raise InvalidValueError("this is not an optimizer stored by to_json") from None
        if version != FORMAT:
            raise InvalidValueError(f"this optimizer was stored in format {version!r}", "upgrade edrbo")
        space = Space.from_dict(record["space"])
        optimizer = cls(
            space,
            record["method"],
            direction=record["direction"],
            seed=record["seed"],
            forgetting=record["forgetting"],
            initial=record["initial"],
        )
        hyper = record["hyper"]
        stored = None if hyper is None else (hyper["rows"], Hyperparameters.from_dict(hyper))
        optimizer.restore(State.from_dict(record, space), stored)
        return optimizer


def _read_value(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InvalidValueError(f"the value is {value!r}", "give a number, or failed=True") from None
    if not math.isfinite(number):
        raise InvalidValueError(f"the value is {number!r}", "tell a failed evaluation with failed=True")
    return number
