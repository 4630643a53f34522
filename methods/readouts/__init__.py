"""The readouts that MEMO is compared with: text-only, visual-only, MemAgent, MemOCR and AgentOCR."""

from memharness.methods.readouts.agentocr import AgentOCR
from memharness.methods.readouts.recurrent import MemAgent, MemOCR
from memharness.methods.readouts.text import TextOnly
from memharness.methods.readouts.visual import VisualOnly

__all__ = ["AgentOCR", "MemAgent", "MemOCR", "TextOnly", "VisualOnly"]
