"""Pages of HTML that need nothing else: templates with one style sheet."""

from __future__ import annotations

from typing import Any

import jinja2
from markupsafe import Markup

from . import style


def render(template: str, **values: Any) -> str:
    """The page of that template as text; its style sheet holds the colours of all pictures."""
    loader = jinja2.PackageLoader("gossamer.report", "")
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rules = loader.get_source(environment, "page.css")[0]
    style_sheet = Markup(style.variables() + rules)
    return environment.get_template(template).render(style_sheet=style_sheet, **values)
