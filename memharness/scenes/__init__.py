"""Scenes: pictures that are drawn, described, read, changed and checked without any model.

    scene = read_scene("a red wooden lamp and a blue mug in a workshop at dusk", seed=7)
    picture = png(scene)                                    # the same bytes every time; the scene rides along
    change = read_change("make the lamp green")
    greener = apply(change, [scene_of(picture)])
    all(holds(check, draw(greener)) for check in checks(change, greener))   # by pixels alone

Drawing is by Pillow; the bytes are those of one version of it. A scene's `scene` text chunk is for image back ends,
which stand in for a model that would see the picture. Memory methods must not read it.
"""

from memharness.scenes.changes import Change, apply
from memharness.scenes.checking import Check, checks, holds
from memharness.scenes.drawing import draw, png, scene_of
from memharness.scenes.reading import read_change, read_scene
from memharness.scenes.scene import Scene, Thing, from_json, to_json
from memharness.scenes.wording import describe

VERSION = 1  # raised by hand when the same words give another picture

__all__ = [
    "VERSION",
    "Change",
    "Check",
    "Scene",
    "Thing",
    "apply",
    "checks",
    "describe",
    "draw",
    "from_json",
    "holds",
    "png",
    "read_change",
    "read_scene",
    "scene_of",
    "to_json",
]
