"""Compressors and gate: the mask, the residual as printed, shapes, gradients, annealing."""

from __future__ import annotations

import math

import pytest
import torch

from memharness.methods.l2vmas.compressor import Compressor, _Layer
from memharness.methods.l2vmas.gate import Gate, annealed, relaxed
from memharness.methods.l2vmas.synthesis import Learned, Means, matched


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def compressor(length: int = 2, **more: object) -> Compressor:
    options = {"inner": 8, "layers": 2, "heads": 2, "residual": "preln", **more}
    return Compressor(6, length, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("residual", ["preln", "paper"])
@pytest.mark.parametrize("length", [1, 8])
def test_any_number_in_a_fixed_number_out(length: int, residual: str) -> None:
    made = compressor(length, residual=residual)
    for read in (1, 5, 40):
        out = made(torch.randn(read, 6))
        assert out.shape == (length, 6) and out.isfinite().all()
    with pytest.raises(ValueError, match="nothing to compress"):
        made(torch.zeros(0, 6))
    with pytest.raises(ValueError, match="3 heads do not divide"):
        compressor(heads=3)


def test_what_is_read_does_not_see_the_tokens() -> None:
    """Eq. 12: with two layers, a token changed at will leaves what the others read untouched but for themselves."""
    layer = _Layer(8, 2, "preln")
    z, x = torch.randn(7, 8), 5
    mask = torch.zeros(7, 7)
    mask[:x, x:] = -math.inf
    before = layer(z, mask)
    changed = z.clone()
    changed[x:] += 3
    after = layer(changed, mask)
    assert torch.equal(before[:x], after[:x]) and not torch.allclose(before[x:], after[x:])


@pytest.mark.parametrize("positions", [0, 3])
def test_what_is_read_beside_each_other_is_what_is_read_alone(positions: int) -> None:
    made = compressor(3, positions=positions)
    reads = [torch.randn(n, 6) for n in (4, 1, 7, 4)]
    for read, written in zip(reads, made.many(reads), strict=True):
        assert torch.allclose(written, made(read), atol=1e-6)
    with pytest.raises(ValueError, match="nothing to compress"):
        made.many([reads[0], reads[0][:0]])


def test_eq_11_as_printed() -> None:
    layer, z = _Layer(8, 1, "paper"), torch.randn(4, 8)
    mask = torch.zeros(4, 4)
    mask[:3, 3:] = -math.inf
    normed = layer._before(z)
    query, key, value = layer._to(normed).chunk(3, dim=-1)
    seen = layer._from(torch.softmax(query @ key.T / math.sqrt(8) + mask, dim=-1) @ value)
    assert torch.allclose(layer(z, mask), layer._forward(layer._between(z + seen)) + z, atol=1e-6)


def test_order_does_not_matter_unless_positions_are_asked_for() -> None:
    read = torch.randn(5, 6)
    plain, placed = compressor(), compressor(positions=3)
    assert torch.allclose(plain(read), plain(read.flip(0)), atol=1e-6)
    assert not torch.allclose(placed(read), placed(read.flip(0)), atol=1e-6)


def test_gradients_reach_every_parameter() -> None:
    made = Learned(6, length=3, merged=2, inner=8, layers=1, heads=2, residual="preln", gate=4)
    value = torch.randn(5, 6)
    logit = made.gate(value)
    (made.refine(value).sum() + made.merge(value).sum() + made.key(value).pow(2).sum() + logit).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in made.parameters())
    assert made.key(value).shape == (6,) and made.merge(value[:1]).shape == (1, 6)
    assert 0 < made.perception(value) < 1


def test_the_gate_anneals_towards_a_switch() -> None:
    logits = torch.linspace(-4, 4, 2000)
    soft = relaxed(logits, 5.0, torch.Generator().manual_seed(1))
    hard = relaxed(logits, 0.05, torch.Generator().manual_seed(1))
    assert ((soft > 0) & (soft < 1)).all()
    assert ((hard < 0.05) | (hard > 0.95)).float().mean() > 0.9
    assert torch.equal(soft > 0.5, hard > 0.5)  # the same noise: the temperature changes how sure, not which
    assert abs(float((hard > 0.5).float().mean()) - float(torch.sigmoid(logits).mean())) < 0.03  # P(1) = sigmoid(a)
    assert [annealed(step, 2.0, 0.5, 0.5) for step in range(4)] == [2.0, 1.0, 0.5, 0.5]
    window = torch.randn(4, 6, requires_grad=True)
    relaxed(Gate(6, 4)(window), 1.0, torch.Generator()).backward()
    assert window.grad is not None and window.grad.abs().sum() > 0


def test_without_training() -> None:
    plain = Means(length=2, merged=3)
    value = torch.tensor([[1.0, 0], [3, 0], [0, 2], [0, 4]])
    assert plain.key(value).tolist() == [1.0, 1.5]
    assert plain.refine(value).tolist() == [[2, 0], [0, 3]]
    assert plain.merge(value).shape == (3, 2) and plain.merge(value[:1]).tolist() == [[1, 0]]
    assert plain.refine(value[:1]).tolist() == [[1, 0], [1, 0]]
    assert matched(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), 10.0).tolist() == [[6.0, 8.0], [0.0, 0.0]]
