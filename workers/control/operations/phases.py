"""The phases of operations, and which may follow which.

`workers/control/operations/steps.py` decides when an operation goes on. No phase is entered that the table
does not allow.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Kind = Literal["deploy", "undeploy", "upgrade"]


class OperationPhase(StrEnum):
    PENDING = "PENDING"
    VALIDATE = "VALIDATE"
    PLACE = "PLACE"
    TOPICS = "TOPICS"
    START = "START"
    RUN = "RUN"
    ORDER = "ORDER"
    OWN = "OWN"
    SETTLE = "SETTLE"
    READ = "READ"
    RETIRE = "RETIRE"
    DELIVER = "DELIVER"
    STOP = "STOP"
    DELETE = "DELETE"


P = OperationPhase

_ADD, _MAKE, _REMOVE = "there are groups to add", "there are streams to make", "there are groups to remove"
_DELIVERS = "the groups have ended, and some have deliverers"
_DELIVERS_NOT = "the groups have ended, and none has a deliverer"
_CHANGE, _CLEAR = "there are groups to change", "there are streams to delete"

NEXT: dict[Kind, dict[P, dict[P, str]]] = {
    "deploy": {
        P.PENDING: {P.VALIDATE: "control takes it up"},
        P.VALIDATE: {P.PLACE: "the document is valid"},
        P.PLACE: {P.TOPICS: "each group has a node"},
        P.TOPICS: {P.START: "the streams are there", P.STOP: "it gives up"},
        P.START: {P.RUN: "each group has its order to own", P.STOP: "it gives up"},
        P.RUN: {P.STOP: "it gives up"},
        P.STOP: {P.DELETE: "nothing of it runs"},
    },
    "upgrade": {  # a phase that has nothing to do is left out
        P.PENDING: {P.PLACE: _ADD, P.TOPICS: _MAKE, P.SETTLE: _REMOVE, P.ORDER: _CHANGE, P.DELETE: _CLEAR},
        P.PLACE: {P.TOPICS: _MAKE, P.SETTLE: _REMOVE, P.ORDER: _CHANGE, P.START: _ADD},
        P.TOPICS: {P.SETTLE: _REMOVE, P.ORDER: _CHANGE, P.START: _ADD, P.DELETE: _CLEAR},
        P.SETTLE: {
            P.READ: "others go on from the groups that go",
            P.RETIRE: "nobody goes on from the groups that go",
        },
        P.READ: {P.RETIRE: "the groups that go have read all", P.SETTLE: "somebody moves one of them"},
        P.RETIRE: {P.DELIVER: _DELIVERS, P.STOP: _DELIVERS_NOT},
        P.DELIVER: {P.STOP: "their rows are delivered"},
        P.STOP: {
            P.ORDER: _CHANGE,
            P.SETTLE: "others go after those that have stopped",
            P.START: _ADD,
            P.DELETE: _CLEAR,
        },
        P.ORDER: {P.OWN: "nobody moves the next group to change", P.START: _ADD, P.DELETE: _CLEAR},
        P.OWN: {P.ORDER: "the group owns"},
        P.START: {P.RUN: "each added group has its order to own"},
        P.RUN: {P.DELETE: _CLEAR},
    },
    "undeploy": {
        P.PENDING: {P.SETTLE: "control takes it up"},
        P.SETTLE: {
            P.READ: "nothing else is under way, and some groups have deliverers",
            P.RETIRE: "nothing else is under way, and no group has a deliverer",
        },
        P.READ: {P.RETIRE: "the groups that end next have read all"},
        P.RETIRE: {
            P.DELIVER: _DELIVERS,
            P.READ: "others read what these have put out",
            P.STOP: _DELIVERS_NOT,
        },
        P.DELIVER: {P.STOP: "their rows are delivered"},
        P.STOP: {P.DELETE: "nothing of it runs"},
    },
}
"""Kind -> phase -> each phase that may follow it -> when it does. The usual one stands first."""

DONE_AFTER: dict[Kind, tuple[P, ...]] = {
    "deploy": (P.RUN,),
    "upgrade": (P.PENDING, P.TOPICS, P.STOP, P.ORDER, P.RUN, P.DELETE),
    "undeploy": (P.DELETE,),
}
"""The phases after which an operation may be done. The last of them ends the whole way.

A deployment that gave up ends as failed, after DELETE.
"""
