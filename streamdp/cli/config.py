"""``streamdp config``: the settings in force, as a commented settings file."""

from __future__ import annotations

import sys

from streamdp.likelihoods.neighbours import FULL
from streamdp.settings import Settings
from streamdp.settings.assemble import (
    ANY,
    build_likelihood,
    build_prior,
    is_sparse,
    likelihood_class,
    warmup_length,
)
from streamdp.settings.options import AUTO, Option, grouped
from streamdp.settings.schema import setting_fields
from streamdp.settings.templates import template_bounds, template_terms


def config(settings: Settings) -> None:
    """Print a settings file that means just these settings, and what is automatic in them."""
    lines = ["# Settings of streamdp; those behind a # are at their defaults.", ""]
    lines += [f"# {line}" for line in automatic(settings)]
    for title, fields in grouped(setting_fields()):
        lines += ["", f"# {title}"]
        for field in fields:
            lines += ["", *_entry(field, getattr(settings, field.name))]
    sys.stdout.write("\n".join(lines) + "\n")


def automatic(settings: Settings) -> list[str]:
    """What the automatic settings come to, for texts and for vectors as far as both are possible."""
    if settings.of_lines:
        terms = template_terms(settings)
        given = (f"{name} {getattr(terms, name):g}" for name in ("concentration", "discount", "rho_word"))
        bounds = template_bounds(settings)
        most = f"at most {bounds.lines:,} distinct lines and {bounds.templates:,} templates"
        return [f"lines: templates, {', '.join(given)}, {most}"]
    sparse, found = is_sparse(settings), []
    if sparse is not False:
        what = "categories" if settings.of_categories else "texts"
        found.append(f"{what}: {build_likelihood(settings, None)}, {build_prior(settings, True)}")
    if sparse is not True:
        held = warmup_length(settings)
        scale = f", its scale learned from the first {held} vectors" if held else ""
        few, many = type(build_likelihood(settings, ANY)), likelihood_class(settings, FULL + 1)
        beyond = "" if few is many else f" ({many.__name__} beyond {FULL} dimensions)"
        found.append(f"vectors: {few.__name__}{beyond}{scale}, {build_prior(settings, False)}")
    return found


def _entry(field: Option, value: object) -> list[str]:
    off = "" if value != field.default else "# "
    return [f"# {field.description}: {field.allowed}", f"{off}{field.name} = {_toml(value)}"]


def _toml(value: object) -> str:
    if value is None:
        return f'"{AUTO}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
