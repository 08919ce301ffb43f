"""Notes which rows of a stream a system already has, if the system takes rows one by one. Pure."""

from __future__ import annotations

from pipeline_runtime.connectors.sdk import Batch, Refused


class Sent:
    """Lives as long as its process. A batch that failed in its middle comes again as a whole. Its first rows
    are not sent again then."""

    def __init__(self) -> None:
        self._through = 0  # the offset before which the system has all rows
        self._refused: dict[int, str] = {}  # offset -> why, until they are in the dead letters
        self._end = 0

    def missing(self, batch: Batch) -> list[int]:
        """Returns the places of the rows that are still to be sent."""
        return [place for place, offset in enumerate(batch.offsets) if offset >= self._through]

    def note(self, offset: int, why: str | None = None) -> None:
        """Tells that the system has the rows up to this one. `why`: it refuses this one."""
        if why:
            self._refused[offset] = why
        self._through = offset + 1

    def refused(self, batch: Batch) -> list[Refused]:
        """Returns the rows of a batch that the system refuses. All of its rows are sent."""
        self._end = batch.end
        return [
            Refused(place, self._refused[offset])
            for place, offset in enumerate(batch.offsets)
            if offset in self._refused
        ]

    def settle(self) -> None:
        """Tells that the refused rows are in the dead letters."""
        self._refused = {offset: why for offset, why in self._refused.items() if offset >= self._end}
