"""Errors a user can meet. Each says what is wrong and, where we know it, what to do about it."""

from __future__ import annotations

import re


class EdrboError(Exception):
    """Base of every error edrbo raises on purpose.

    ``message`` says what is wrong, ``hint`` what to do; ``str()`` gives both.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    @property
    def code(self) -> str:
        """What kind of error it is, for programs: invalid-design, study, … The same at every interface."""
        words = re.findall("[A-Z][a-z]+", type(self).__name__.removesuffix("Error"))
        return "-".join(words).lower()

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message} (hint: {self.hint})"


class InvalidSpaceError(EdrboError, ValueError):
    """The space itself makes no sense: empty bounds, repeated names, no design variable."""


class InvalidDesignError(EdrboError, ValueError):
    """A design that is not a point of the space."""


class InvalidContextError(EdrboError, ValueError):
    """A context with wrong names, a wrong length, or a value that is not a finite number."""


class InvalidValueError(EdrboError, ValueError):
    """An outcome, weight or setting that cannot be used: NaN, infinite, negative, out of range."""


class UnknownNameError(EdrboError, KeyError):
    """A method, problem, expert or other registered thing that does not exist."""


class UnknownSuggestionError(EdrboError, KeyError):
    """A suggestion was reported that was never asked, or has been reported already."""


class MissingExtraError(EdrboError, ImportError):
    """A feature needs an optional package that is not installed."""


class StudyError(EdrboError):
    """A study that cannot be opened, written or understood."""


class UnknownStudyError(StudyError):
    """There is no study there, or none of this name."""


class ExistsAlreadyError(StudyError):
    """A file or a study stands where one would be written."""


class OtherSettingsError(StudyError):
    """A study was opened with settings that are not its own."""


class UnavailableError(StudyError):
    """The disk or the database with the study cannot be used now: try again later."""


class NotStorableError(EdrboError, ValueError):
    """Python code, or a part that no name is known of: a study and JSON cannot hold it."""


class NothingReportedError(EdrboError):
    """There is no outcome yet to answer from."""


class SeveralOutcomesError(EdrboError):
    """A question that has an answer with one main outcome only."""


class AllTriedError(EdrboError):
    """Every candidate was tried, or is being tried."""


class StoppedError(EdrboError):
    """A computation was stopped: nobody waits for it, or it took too long. Nothing was recorded."""


class EdrboWarning(UserWarning):
    """Base of every warning edrbo gives on purpose."""


class ContextBoundsWarning(EdrboWarning):
    """An observed context lies outside its stated bounds; it is kept as it is."""


class ConstraintWarning(EdrboWarning):
    """A design that was run breaks a constraint of its space; it is kept as it is."""


class ImplausibleWarning(EdrboWarning):
    """An outcome or a context is so far from what was expected that it may be a slip; it is kept as it is."""


class NarrowContextsWarning(EdrboWarning):
    """The contexts seen fill a small part of their bounds only, so that the model takes its scale from them."""


class NoScaleWarning(EdrboWarning):
    """One outcome says nothing of how far another may be: an answer's intervals are infinite."""


class InvalidEventError(EdrboError, ValueError):
    """A record that is no event, or one that cannot have happened in this order."""


class DamagedStudyError(StudyError):
    """The file or database of a study does not hold what was written to it."""


class RecordedAlreadyError(InvalidEventError):
    """An entry with this key is recorded already: it was sent twice."""


class NetworkFileWarning(EdrboWarning):
    """A study file is on a network file system, where its locks do not hold between machines."""
