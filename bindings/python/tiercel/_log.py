"""The library's log, which goes to the logger "tiercel"."""

from __future__ import annotations

import logging
from typing import Any

from ._library import ffi, lib, text_of

_logger = logging.getLogger("tiercel")
_logger.addHandler(logging.NullHandler())  # silent, unless a program wants it
_LEVELS = {lib.TIERCEL_LOG_ERROR: logging.ERROR,
           lib.TIERCEL_LOG_WARNING: logging.WARNING}


def _log(_: Any, level: int, sentence: Any) -> None:
    _logger.log(_LEVELS.get(level, logging.INFO), "%s", text_of(sentence))


# Sessions may log for as long as the process lives.
log = ffi.callback("tiercel_log", _log)
