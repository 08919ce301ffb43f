"""The errors that a user may look up. `make reference` makes docs/errors/ from this table, a page for each.

A code is shown at the element that failed, or in the answer of the REST API.
It is made of words, so that it says something by itself and is found by any search.
"""

from pipeline_runtime.model.error_codes.at_elements import AT_ELEMENTS
from pipeline_runtime.model.error_codes.at_start import AT_START
from pipeline_runtime.model.error_codes.in_answers import IN_ANSWERS
from pipeline_runtime.model.error_codes.in_orders import IN_ORDERS
from pipeline_runtime.model.error_codes.known_error import KnownError

__all__ = ["AT_ELEMENTS", "AT_START", "ERRORS", "IN_ANSWERS", "IN_ORDERS", "KnownError"]

ERRORS = {error.code: error for error in (*AT_ELEMENTS, *IN_ANSWERS, *IN_ORDERS, *AT_START)}
