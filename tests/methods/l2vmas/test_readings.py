"""What the paper leaves open or prints otherwise: each reading is an option, and what it comes to, worked out by hand.

Other places have their own files: the trigger's inequality and wait (`test_trigger`), delimiters, draws and the tail of
a reply (`test_chunks`), the compressors' mask, residual and lengths and the gate's annealing (`test_modules`), sets,
pruning and merging (`test_banks`), what each stage unlocks (`test_training`), the reader's blocks (`test_sight`).
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from memharness.methods.l2vmas.banks import Bank, Thinking, Unit
from memharness.methods.l2vmas.config import L2VMASConfig
from memharness.methods.l2vmas.dual import DualMemory, Which
from memharness.methods.l2vmas.synthesis import Means
from memharness.methods.l2vmas.trigger import Fixed
from memharness.methods.vmas.config import VmasConfig
from memharness.readers.frozen import entropy
from memharness.readers.sight import levels_of


class Gated(Means):
    """Plain means, and a gate that always says the same."""

    def __init__(self, chance: float) -> None:
        super().__init__(1, 8)
        self._chance = chance

    def perception(self, window: torch.Tensor) -> float:
        return self._chance


def memory(chance: float, *, other: bool = True, apart: bool = True, k: int = 5) -> DualMemory:
    banks: tuple[Which, ...] = ("perception", "thinking")
    return DualMemory(Gated(chance), capacity=50, k=k, norm=None, other=other, banks=banks, apart=apart)


X, Y = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])


# -------------------------------------------------------------------------------- 2: vectors of a block, by granularity


@pytest.mark.parametrize(("g", "vectors"), [(1, [1]), (2, [4, 1]), (3, [16, 4, 1]), (4, [64, 16, 4, 1])])
def test_a_block_of_2_to_the_g_patches_gives_these_vectors(g: int, vectors: list[int]) -> None:
    """At merge 2. The printed l_i = 2^(g-2i+1) is the same at g = 3, and 32, 8, 2, ½ at g = 4."""
    assert levels_of(2**g, 2) == g
    assert [(2**g // 2**level // 2) ** 2 for level in range(g)] == vectors
    assert ([2 ** (g - 2 * level + 1) for level in range(g)] == vectors) == (g == 3)


# ------------------------------------------------------------------------------------------- 4: the entropy of a greedy


def test_where_decoding_is_greedy_entropy_is_that_at_temperature_one() -> None:
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))
    assert float(entropy(logits, 1.0)) == pytest.approx(1.5 * math.log(2))
    assert float(entropy(logits, 0.05)) < 1e-4  # towards temperature 0 a draw would never cut and never call
    assert float(entropy(torch.zeros(1, 7), 1.0)) == pytest.approx(math.log(7))  # log |V|, of as many logits


# ---------------------------------------------------------------------------------- 8: retrieval, and what is not there


@pytest.mark.parametrize("other", [True, False])
def test_where_the_chosen_memory_is_empty(other: bool) -> None:
    held = memory(0.9, other=other)  # the gate wants perception
    assert held.call(X[None]) is None and held.calls == 0  # both are empty: nothing
    held.think([Y[None]])
    recalled = held.call(X[None])
    assert (recalled is not None and recalled.which == "thinking") == other
    assert held.calls == int(other)
    held.see(torch.stack([X[None]]))
    recalled = held.call(X[None])
    assert recalled is not None and recalled.which == "perception"


def test_a_gate_of_exactly_a_half_calls_on_thinking() -> None:
    held = memory(0.5)
    held.see(torch.stack([X[None]]))
    held.think([Y[None]])
    recalled = held.call(X[None])
    assert recalled is not None and (recalled.which, recalled.units) == ("thinking", 1)  # of fewer than k, all


def test_without_attribution_units_of_both_are_looked_for_together() -> None:
    held = memory(0.9, apart=False, k=2)
    held.see(torch.stack([X[None], -X[None]]))
    held.think([(X + 0.1 * Y)[None], Y[None]])
    recalled = held.call(X[None])
    assert recalled is not None and (recalled.which, recalled.units) == ("both", 2)
    assert recalled.latents.tolist() == [[1.0, pytest.approx(0.05)]]  # X and X + .1 Y, the nearest two of four
    assert [unit.called for unit in held.perception.units] == [1, 0]
    assert [unit.called for unit in held.thinking.units] == [1, 0]
    assert memory(0.9, apart=False).call(X[None]) is None


# ----------------------------------------------------------------------------------------- 9: alone, nothing is similar


def test_one_unit_alone_has_no_similarity_and_no_rate() -> None:
    """m = 1 would divide by m - 1 = 0; no call since would divide by 0 too."""
    bank = Thinking(1, lambda value: value.mean(0), lambda values: values[:1])
    bank.units = [Unit(X, X[None])]
    assert list(bank._spread().values()) == [0.0]
    bank._manage(calls=0)
    assert len(bank) == 1


def test_bytes_count_keys_values_and_what_was_merged() -> None:
    bank = Bank()
    bank.units = [Unit(X, torch.zeros(3, 2)), Unit(X, torch.zeros(3, 2).half(), merged=torch.zeros(5, 2))]
    assert bank.bytes == (2 + 6) * 4 + 2 * 4 + 6 * 2 + 10 * 4
    assert bank.vectors == 4 + 4


# ----------------------------------------------------------------------------------- Table 6: calls without the entropy


@given(st.integers(1, 20), st.integers(0, 200), st.booleans())
def test_fixed_calls_every_window_and_never_closer(window: int, n: int, answered: bool) -> None:
    caller, at = Fixed(window), []
    for step in range(1, n + 1):
        if caller.step(0.0):
            at.append(step)
            if answered:
                caller.fired()
    if answered:
        assert at == list(range(window, n + 1, window))
        assert all(later - earlier == window for earlier, later in itertools.pairwise(at))
    else:  # where nothing was given, the wait does not begin anew
        assert at == list(range(window, n + 1))


# ----------------------------------------------------------------------------------------------- the options themselves


def test_every_reading_is_an_option_with_the_tables_defaults() -> None:
    plain, literal = L2VMASConfig().settled(), L2VMASConfig(preset="paper-literal").settled()
    table = (plain.window, plain.threshold, plain.length, plain.granularity, plain.capacity, plain.k)
    assert table == (16, 0.5, 8, 3, 50, 5)  # Table 4
    assert (plain.turns, VmasConfig().turns) == (5, 5)  # N_A of Tables 1-3: not said
    assert [(c.trigger, c.other, c.match, c.hub, c.routes) for c in (plain, literal)] == [
        ("rise", True, True, "last", "drawn"), ("literal", False, False, "both", "redirect"),
    ]  # fmt: skip
    both = L2VMASConfig(preset="paper-literal", trigger="rise").settled()
    assert (both.trigger, both.other) == ("rise", False)  # a reading that is named wins over the preset
    for name in ("trigger", "other", "match", "remainder", "delimiters", "chunk", "merged", "calls", "attribution"):
        told = L2VMASConfig.model_fields[name].json_schema_extra
        assert isinstance(told, dict) and told["source"], name
