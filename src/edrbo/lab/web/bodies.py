"""What the API takes. The names are those of the command line; numbers may be text with a decimal comma."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from edrbo.records.settings import Purpose

Number = Annotated[float | str, Field(description="a number, or a text such as 1,7")]
Text = Annotated[str, Field(max_length=2000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Values = Annotated[dict[str, Number], Field(max_length=100, description="numbers by name")]
Design = Annotated[dict[str, float | str | bool], Field(max_length=100, description="values by name")]
Key = Annotated[str, Field(min_length=8, max_length=80, pattern=r"^[A-Za-z0-9_-]+$")]


class Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Entry(Body):
    """``key`` is the sender's own: sent twice, an entry is stored once. ``waited``: seconds since it was typed."""

    key: Key
    by: Annotated[str, Field(max_length=100)] | None = None
    note: Text | None = None
    waited: Annotated[float, Field(ge=0, le=31e6)] = 0.0


class Ask(Entry):
    count: Annotated[int, Field(ge=1, le=20)] = 1
    context: Values | None = None
    forecast: Annotated[str, Field(max_length=20_000)] | Annotated[list[Values], Field(max_length=1000)] | None = Field(
        None, description="contexts to expect: by name; or a line each, numbers in the order of the context variables"
    )
    fixed: Design | None = Field(None, description="settings that are held")
    candidates: Annotated[list[Design], Field(min_length=1, max_length=1000)] | None = Field(
        None, description="the only designs to choose from"
    )
    repeat: bool | None = Field(None, description="whether a candidate may come that was reported already")


class Claim(Entry):
    """``stale_after``: seconds since a suggestion was handed out, or since its worker gave a sign of life."""

    stale_after: Annotated[float, Field(gt=0, le=31e6)] = 60.0


class ReportedRow(Body):
    """One row of a run that has several."""

    value: Number | None = None
    outcomes: Values | None = None  # of several, by name, in place of the value
    context: Values | None = None
    noise_variance: Number | Values | None = None  # a variance; of several outcomes by name


class Tell(Entry):
    """``id`` of a suggestion, or a ``design`` of one's own; with both, the design is what was really set. ``rows`` in
    place of value, context and noise tell several of them."""

    id: int | None = None
    value: Number | None = None
    outcomes: Values | None = None  # of several, by name, in place of the value
    context: Values | None = None
    noise_variance: Number | Values | None = None  # a variance; of several outcomes by name
    rows: Annotated[list[ReportedRow], Field(min_length=1, max_length=1000)] | None = None
    control: Number | None = None  # what a reference run gave in the same context; the value counts relative to it
    cost: Number | None = None
    failed: bool = False
    design: Design | None = None
    why: Text | None = None


class Check(BaseModel):
    """An entry of any kind, of which what is not asked about does not matter."""

    model_config = ConfigDict(extra="ignore")
    id: int | None = None
    value: Number | None = None
    control: Number | None = None
    outcomes: Values | None = None
    context: Values | None = None
    design: Design | None = None


class ContextTell(Entry):
    id: int
    context: Values


class ContextAdd(Entry):
    rows: Annotated[list[Values], Field(min_length=1, max_length=1000)]
    weights: Annotated[list[float], Field(max_length=1000)] | None = None


class Correct(Entry):
    id: int
    value: Number | None = None
    outcomes: Values | None = None
    noise_variance: Number | Values | None = None  # a variance; of several outcomes by name
    context: Values | None = None
    control: Number | None = None
    cost: Number | None = None
    design: Design | None = None
    row: int | None = None
    why: Text | None = None


class OfRun(Entry):
    id: int
    why: Text | None = None


class Note(Entry):
    id: int | None = Field(None, description="the run; without one it is about the study")


class Undo(Entry):
    ref: Annotated[str, Field(max_length=200)] | None = None
    table: bool = Field(False, description="all rows of the table that was imported last")


class Import(Entry):
    """Nothing is stored without ``confirm``. ``columns`` says what a column holds where its heading does not.
    ``workbook`` is an .xlsx file in base64, in place of the text."""

    text: Annotated[str, Field(max_length=3_000_000)] = ""
    workbook: Annotated[str, Field(max_length=4_000_000)] | None = None
    columns: Annotated[dict[str, Annotated[str, Field(max_length=300)]], Field(max_length=500)] = Field(
        default_factory=dict
    )
    confirm: bool = False


class Variable(Body):
    """A variable as people describe it; ``choices`` separated by commas."""

    name: Name
    kind: str = "real"
    low: Number | None = None
    high: Number | None = None
    log: bool = False
    step: Number | None = None
    choices: Annotated[str, Field(max_length=5000)] = ""
    unit: Annotated[str, Field(max_length=40)] = ""
    before: Annotated[float | str, Field(description="what older runs had of a new variable")] | None = None


Constraints = Annotated[
    list[Annotated[str, Field(max_length=500)]],
    Field(max_length=50, description="what must hold between settings, such as speed * dose <= 80"),
]


DistributionText = Annotated[
    str, Field(max_length=2000, description="the distribution of contexts, such as humidity = norm(55, 12), or none")
]
Cost = Annotated[str, Field(max_length=500, description="what a run costs, such as 5 + 2 * layers, or none")]


More = Annotated[
    dict[str, Number], Field(max_length=50, description="settings by name, as edrbo new takes them; none ends one")
]
Outcomes = Annotated[
    list[Annotated[str, Field(max_length=300)]],
    Field(max_length=20, description="of several, what each is for: gloss=maximize, roughness <= 2 um"),
]


class New(Body):
    name: Name
    design: Annotated[list[Variable], Field(min_length=1, max_length=60)]
    context: Annotated[list[Variable], Field(max_length=60)] = Field(default_factory=list)
    constraints: Constraints = Field(default_factory=list)
    direction: str = "maximize"
    goal: Annotated[str, Field(max_length=500)] = ""
    aim: Purpose = "operate"
    outcome: Annotated[str, Field(max_length=100)] = ""
    unit: Annotated[str, Field(max_length=40)] = ""
    context_distribution: DistributionText = ""
    cost: Cost = ""
    outcomes: Outcomes = Field(default_factory=list)
    settings: More = Field(default_factory=dict)


class Amend(Entry):
    design: Annotated[list[Variable], Field(max_length=60)] | None = None
    context: Annotated[list[Variable], Field(max_length=60)] | None = None
    constraints: Constraints | None = Field(None, description="all that must hold from now on; left out, as it was")
    goal: Annotated[str, Field(max_length=500)] | None = None
    aim: Purpose | None = None
    context_distribution: DistributionText | None = None
    cost: Cost | None = None
    outcomes: Outcomes | None = None
    settings: More = Field(default_factory=dict)


class ProblemDetails(BaseModel):
    """What went wrong (RFC 9457): ``title`` says it, ``detail`` what to do about it; ``code`` is that of the error in
    Python."""

    type: str
    title: str
    status: int
    detail: str = ""
    code: str = ""
