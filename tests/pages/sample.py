"""Blocks that the tests of pages share: five short pieces of original prose in Latin script."""

from __future__ import annotations

from memharness.pages import Block

BLOCKS = (
    Block("b1", "Cape Arrow", "The tower was finished in the autumn of 1874 after two winters of storms.",
          "archive, page 3", kind="place", when="1874-10", spans=((26, 44),)),
    Block("b2", "Maurice", "We should meet at the quay, not at the station.", "turn 31",
          when="2023-06-09T18:05", spans=((0, 26),)),
    Block("b3", "Kitchen", "The mug is in the sink.\nThe kettle on the stove is full.", "step 7", kind="done",
          when="2024", spans=((0, 22),)),
    Block("b4", "", "Words without a title stand alone.", ""),
    Block("b5", "Johanna Vik", "She kept the light for 27 years and wrote the weather down three times a day.",
          "archive, page 9", when="1889-03-17", spans=((0, 31), (36, 41))),
)  # fmt: skip
