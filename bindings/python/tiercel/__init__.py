"""Tiercel: language models over long texts on small machines.

    import tiercel

    with tiercel.Model("model.gguf") as model:
        session = tiercel.Session(model, context=8192)
        for piece in session.chat("Who founded Debian?", stream=True):
            print(piece, end="", flush=True)

Arguments have the names of the fields in tiercel.h, which documents them. A
wrong type is a TypeError, a number out of range a ValueError; all else that
fails is an Error.
"""

from ._document import Chapter, Document, Page, Part, Section
from ._errors import (Cancelled, Error, Failed, InvalidInput, IO, NoDevice,
                      OutOfMemory, Usage)
from ._library import lib as _lib, version
from ._mask import Mask
from ._model import Message, Model, devices, plan
from ._progress import Progress
from ._session import Session
from ._stream import Stream, Token

# Values of arguments.
ADAPTIVE: int = _lib.TIERCEL_ADAPTIVE
PROMPT_CACHE_BEGIN_ANEW: int = _lib.TIERCEL_PROMPT_CACHE_BEGIN_ANEW
PROMPT_CACHE_UNFINISHED_ALONE: int = _lib.TIERCEL_PROMPT_CACHE_UNFINISHED_ALONE

__version__: str = version().split()[0]

__all__ = [
    "ADAPTIVE", "Cancelled", "Chapter", "Document", "Error", "Failed",
    "InvalidInput", "IO", "Mask", "Message", "Model", "NoDevice", "OutOfMemory",
    "PROMPT_CACHE_BEGIN_ANEW", "PROMPT_CACHE_UNFINISHED_ALONE", "Page", "Part",
    "Progress", "Section", "Session", "Stream", "Token", "Usage", "devices",
    "plan", "version",
]
