"""Judges as instruments: versioned rubrics, strict readings of a judge's reply, and banks to measure a judge on.

    >>> from memharness.judging import Judge
    >>> str(Judge("locomo-strict.v1"))
    'Judge(rubric=locomo-strict.v1)'

A rubric is one file in `rubrics/`: prompt, schema, parser and score name. `binary.v1` (score `judge`) fits any
benchmark with reference answers; the others are worded after one benchmark's own judge: `atm.v1` (`judge_atm`),
`mem-gallery.v1` (`judge_mem_gallery`), `memeye.v1` (`judge_memeye`), `h2hmem.v1` (`judge_h2hmem`, all questions of one
`Gold.group` in one call), `simplevqa.v1` (`co`, `in`, `na`), `locomo-generous.v1` (`judge_generous`) and
`locomo-strict.v1` (`judge_strict`). What is read as the benchmark's own parser reads it (`verdict=official`) has a name
that ends in `_official`.
"""

from memharness.judging.judge import Judge
from memharness.judging.rubric import Rubric, rubric, rubrics

__all__ = ["Judge", "Rubric", "rubric", "rubrics"]
