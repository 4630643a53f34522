"""An agent's report: taken apart by rule, whatever a model wrote, and what of it is passed on."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from memharness.methods.vmas.config import Content
from memharness.reader import Reply
from memharness.scoring.choice import after_thinking

SECTIONS = ("perception", "thinking", "conclusion")
# "Perception:", "**Thinking:** it", "## Conclusion" alone on its line; `Next:` is no part of what is told.
_HEADING = re.compile(
    r"^[ \t>*_#\d.()-]*\b(?P<name>perception|thinking|conclusion|next)\b[ \t]*(?:[*_]*[:：][*_]*|[*_]*[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_TAGS = re.compile(r"</?(?:think|thinking|thought)>|◁/?think▷")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Report:
    """What an agent said, in parts.

    Attributes:
        whole: everything it said but its thinking mode.
        reasoning: what a thinking model thought before, kept apart by its reader or between `<think>` tags.
        perception: the facts it saw, read or was told; empty if it names none.
        thinking: what it inferred.
        conclusion: its answer in one line.
        next: the agent it named to go on, by number, if any.
        flags: `empty`, `truncated`, `refused`, `unclosed_thinking`, `unstructured` (no section at all),
            `no_conclusion` (a last line stands for it).
    """

    whole: str
    reasoning: str = ""
    perception: str = ""
    thinking: str = ""
    conclusion: str = ""
    next: int | None = None
    flags: tuple[str, ...] = ()

    def sections(self) -> dict[str, Any]:
        """Its parts for the record, empty ones left out."""
        return {name: text for name, text in asdict(self).items() if name in SECTIONS and text}

    def told(self, content: Content, *, reasoning: bool = True) -> str:
        """What is passed on of it (appendix B.1): the conclusion, with perception or thinking, or everything.

        Args:
            content: of the four.
            reasoning: whether `full` includes the thinking mode's text. `thinking` is the section, or where there is
                none what the model thought.
        """
        if content == "full":
            return "\n".join(filter(None, (self.reasoning if reasoning else "", self.whole)))
        named = {"perception": self.perception, "thinking": self.thinking or self.reasoning}
        lines = [f"{content.capitalize()}: {named[content]}"] if named.get(content) else []
        return "\n".join([*lines, *([f"Conclusion: {self.conclusion}"] if self.conclusion else [])])


def read_reply(reply: Reply) -> Report:
    """The report in a reply. Nothing a model writes is an error: what is missing is filled by rule and flagged.

    Without any section the text is `thinking`; without a conclusion its last line is one. Thinking that was never
    closed is reasoning, and there is no report.
    """
    whole = (after_thinking(reply.text) or "").strip()
    thought = _TAGS.sub("", reply.text[: reply.text.rfind(whole)] if whole else reply.text).strip()
    reasoning = "\n".join(filter(None, (reply.reasoning.strip(), thought)))
    flags = {
        "empty": not whole,
        "truncated": reply.finish == "length",
        "refused": reply.finish == "refused",
        "unclosed_thinking": after_thinking(reply.text) is None,
    }
    report = split(whole)
    return replace(report, reasoning=reasoning, flags=(*(name for name, yes in flags.items() if yes), *report.flags))


def split(text: str) -> Report:
    """A text's sections. Words before the first heading belong to thinking; a heading that comes twice goes on."""
    headings = [*_HEADING.finditer(text)]
    starts, ends = [0, *(h.end() for h in headings)], [*(h.start() for h in headings), len(text)]
    names = ["thinking", *(heading["name"].lower() for heading in headings)]
    bodies = [(name, text[at:end].strip()) for name, at, end in zip(names, starts, ends, strict=True)]
    found = {name: "\n".join(body for other, body in bodies if other == name and body) for name in (*SECTIONS, "next")}
    flags = ["unstructured"] if text and not set(names[1:]) & set(SECTIONS) else []
    if text and not found["conclusion"]:
        flags.append("no_conclusion")
        said = [line for name, body in bodies if name != "next" for line in body.splitlines()]
        found["conclusion"] = said[-1].strip() if said else ""
    number = _NUMBER.search(found.pop("next"))
    return Report(text, **found, next=int(number[0]) if number else None, flags=tuple(flags))
