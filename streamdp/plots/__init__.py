"""Pictures of streams and of finite sets; matplotlib is imported when the first one is drawn.

Functions take plain data and, as ``ax``, where to draw; without it they make a figure of their own.
"""

from streamdp.plots.curves import similarity, trace
from streamdp.plots.data import Answered, read_answers
from streamdp.plots.pages import names_of, of_fit, of_stream
from streamdp.plots.stream import Stack, prominent, stack, streamgraph
from streamdp.plots.style import Clock

__all__ = [
    "Answered",
    "Clock",
    "Stack",
    "names_of",
    "of_fit",
    "of_stream",
    "prominent",
    "read_answers",
    "similarity",
    "stack",
    "streamgraph",
    "trace",
]
