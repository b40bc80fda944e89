"""Pictures of streams and of finite sets; matplotlib is imported when the first one is drawn.

Functions take plain data and, as ``ax``, where to draw; without it they make a figure of their own.
"""

from streamdp.plots.curves import similarity, trace
from streamdp.plots.data import Answered, read_answers, read_events
from streamdp.plots.lives import Life, life_lines, lives_of_answers, lives_of_clusters, lives_of_events
from streamdp.plots.pages import names_of, of_fit, of_stream
from streamdp.plots.stream import Stack, prominent, stack, streamgraph
from streamdp.plots.style import Clock

__all__ = [
    "Answered",
    "Clock",
    "Life",
    "Stack",
    "life_lines",
    "lives_of_answers",
    "lives_of_clusters",
    "lives_of_events",
    "names_of",
    "of_fit",
    "of_stream",
    "prominent",
    "read_answers",
    "read_events",
    "similarity",
    "stack",
    "streamgraph",
    "trace",
]
