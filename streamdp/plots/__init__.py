"""The picture of a stream: how many records clusters have over time; matplotlib is imported when it is drawn.

Functions take plain data and, as ``ax``, where to draw; without it they make a figure of their own.
"""

from streamdp.plots.data import Answered, read_answers
from streamdp.plots.stream import Stack, names_of, prominent, stack, streamgraph
from streamdp.plots.style import Clock

__all__ = ["Answered", "Clock", "Stack", "names_of", "prominent", "read_answers", "stack", "streamgraph"]
