"""The tools of the deployment loop, in one registry."""

from __future__ import annotations

from collections.abc import Mapping

from memharness.methods.cma.tools import back_end, looking, pixels, web
from memharness.methods.cma.tools.desk import Desk
from memharness.methods.cma.tools.tool import Arguments, Result, Tool, ToolError
from memharness.methods.cma.tools.web import Hit, Offline, Web, open_web

REGISTRY: Mapping[str, Tool] = {
    tool.name: tool for tool in (*back_end.TOOLS, *pixels.TOOLS, *looking.TOOLS, *web.TOOLS)
}

__all__ = ["REGISTRY", "Arguments", "Desk", "Hit", "Offline", "Result", "Tool", "ToolError", "Web", "open_web"]
