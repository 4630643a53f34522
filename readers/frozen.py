"""A frozen network driven by embeddings: pictures, tokens and latent vectors in one sequence, at given positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memharness.readers.network import Encoded, Network
from memharness.readers.sight import features
from memharness.types import UserError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Stretch:
    """Positions in a row: embeddings (n, width), and what DeepStack adds there, layer by layer (layers, n, width)."""

    embeddings: torch.Tensor
    deepstack: torch.Tensor | None = None

    def __len__(self) -> int:
        """Positions."""
        return len(self.embeddings)


def join(stretches: Sequence[Stretch]) -> Stretch:
    """Stretches one after the other; where DeepStack adds nothing, it adds zeros."""
    import torch

    embeddings = torch.cat([stretch.embeddings for stretch in stretches])
    layers = next((len(stretch.deepstack) for stretch in stretches if stretch.deepstack is not None), 0)
    if not layers:
        return Stretch(embeddings)
    added = [
        embeddings.new_zeros(layers, *stretch.embeddings.shape) if stretch.deepstack is None else stretch.deepstack
        for stretch in stretches
    ]
    return Stretch(embeddings, torch.cat(added, dim=1))


class Frozen:
    """A network as latent decoding uses it: embeddings in, last hidden states out, logits of the states that matter.

    Pictures are embedded here and positions are always given, so nothing is left in the model or read from it. Its own
    M-RoPE offset (`rope_deltas`) is that of whoever came last, which is wrong as soon as two decode by turns.

    Attributes:
        network: the network.
        width: of embeddings and hidden states.
    """

    def __init__(self, network: Network) -> None:
        """Bind to a loaded network, and check on three tokens that driving it this way gives its own logits.

        Raises:
            UserError: it does not: it caps or scales them, or takes no embeddings.
        """
        self.network = network
        self._table = network.model.get_input_embeddings()
        self._decoder = network.model.get_decoder()
        self._head = network.model.get_output_embeddings()
        self.width = int(self._table.weight.shape[1])
        vision = getattr(network.config, "vision_config", None)
        self._layers = len(getattr(vision, "deepstack_visual_indexes", None) or ())
        self._check()

    def _check(self) -> None:
        import torch

        name = type(self.network.model).__name__
        ids = torch.tensor([[1, 2, 3]], device=self.network.device)
        try:
            with torch.no_grad():
                own = self.network.model(input_ids=ids).logits[0].float()
                ours = self.logits(self.states(self.tokens([1, 2, 3]), torch.arange(3, device=ids.device)[None]))
            away = float((own - ours).abs().max() / own.abs().max().clamp(min=1e-6))
        except (AttributeError, TypeError, ValueError) as error:
            raise UserError(
                f"{name} cannot be decoded from embeddings ({type(error).__name__}: {error}); take another model for "
                "latent decoding"
            ) from error
        if not away < 0.02:
            raise UserError(
                f"{name} changes its logits after the output layer, which latent decoding does not follow; take "
                "another model for it"
            )

    # --------------------------------------------------------------------------------------------- what is fed

    def prompt(self, prompt: Encoded) -> tuple[Stretch, torch.Tensor, torch.Tensor]:
        """A prompt embedded, its pictures by the model's own encoder.

        Returns:
            the embeddings, their positions, and the position of what follows: (1, n) and (1, 1), or with M-RoPE
            (3, 1, n) and (3, 1, 1).
        """
        import torch

        batch = self.network.batch([prompt])
        embeddings, deepstack = self._table(batch.ids)[0], None
        pictures = {name: batch.extras[name] for name in ("pixel_values", "image_grid_thw") if name in batch.extras}
        if pictures:
            seen, *added = features(self.network.model.get_image_features(**pictures))
            places = batch.ids[0] == self.network.config.image_token_id
            embeddings = embeddings.clone()
            embeddings[places] = seen.to(embeddings)
            if added:
                deepstack = embeddings.new_zeros(len(added), *embeddings.shape)
                deepstack[:, places] = torch.stack(added).to(embeddings)
        return Stretch(embeddings, deepstack), batch.positions, batch.following

    def tokens(self, ids: Sequence[int]) -> Stretch:
        """Tokens embedded."""
        import torch

        return Stretch(self._table(torch.tensor(ids, dtype=torch.long, device=self.network.device)))

    def latents(self, latents: Any) -> Stretch:
        """Latent vectors, shape (n, width), or with DeepStack's additions (n, 1 + layers, width), as they are fed.

        Raises:
            ValueError: for another shape.
        """
        import torch

        made = torch.as_tensor(latents).to(self.network.device, self.network.dtype)
        whole = (made.ndim == 2 or (made.ndim == 3 and made.shape[1] == 1 + self._layers)) and made.shape[0] > 0
        if not whole or made.shape[-1] != self.width:
            stacked = f" or (n, {1 + self._layers}, {self.width})" if self._layers else ""
            raise ValueError(f"latents of shape {tuple(made.shape)}: expected (n, {self.width}){stacked} with n ≥ 1")
        if made.ndim == 2:
            return Stretch(made)
        return Stretch(made[:, 0], made[:, 1:].transpose(0, 1) if self._layers else None)

    def places(self, following: torch.Tensor, n: int) -> torch.Tensor:
        """Positions of n vectors from a position on, which M-RoPE counts alike in all three of its directions."""
        import torch

        return following + torch.arange(n, device=following.device)

    def nothing(self) -> torch.Tensor:
        """No states, shape (0, width)."""
        import torch

        return torch.empty(0, self.width, dtype=self.network.dtype, device=self.network.device)

    # --------------------------------------------------------------------------------------------- what comes out

    def states(self, stretch: Stretch, positions: torch.Tensor, cache: Any = None) -> torch.Tensor:
        """Last-layer hidden states, after the final norm, of what follows the cache: (n, width)."""
        return self._decoded(stretch.embeddings[None], stretch.deepstack, positions, cache)[0]

    def beside(self, stretches: Sequence[Stretch], positions: Sequence[torch.Tensor]) -> torch.Tensor:
        """States of whole sequences in one pass, (b, longest, width). Those behind a sequence's end mean nothing.

        Args:
            stretches: of any lengths.
            positions: of each, as many as the longest needs: (1, longest), or (3, 1, longest) with M-RoPE.
        """
        import torch

        longest, device = max(map(len, stretches)), self.network.device

        def filled(stretch: Stretch) -> Stretch:  # on the right: no sequence sees what follows it
            rest = stretch.embeddings.new_zeros(longest - len(stretch), self.width)
            return join([stretch, Stretch(rest)])

        rows = [filled(stretch) for stretch in stretches]
        layers = next((len(row.deepstack) for row in rows if row.deepstack is not None), 0)
        nothing = torch.zeros(layers, longest, self.width, dtype=self.network.dtype, device=device)
        added = [nothing if row.deepstack is None else row.deepstack for row in rows]
        ways = max(one.ndim for one in positions)
        places = torch.cat([one.expand(3, -1, -1) if one.ndim < ways else one for one in positions], dim=-2)
        embeddings = torch.stack([row.embeddings for row in rows])
        return self._decoded(embeddings, torch.cat(added, dim=1) if layers else None, places)

    def _decoded(
        self, embeddings: torch.Tensor, deepstack: torch.Tensor | None, positions: torch.Tensor, cache: Any = None
    ) -> torch.Tensor:
        """(b, n, width) in and out; DeepStack's additions are (layers, b · n, width)."""
        import torch

        more: dict[str, Any] = {}
        if deepstack is not None:
            everywhere = torch.ones(embeddings.shape[:2], dtype=torch.bool, device=self.network.device)
            more = {"visual_pos_masks": everywhere, "deepstack_visual_embeds": list(deepstack)}
        if cache is not None:
            more[self.network.cache_word] = cache
        output = self._decoder(inputs_embeds=embeddings, position_ids=positions, use_cache=cache is not None, **more)
        states: torch.Tensor = output.last_hidden_state
        return states

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Logits of states (n, width), f32 of shape (n, vocabulary)."""
        logits: torch.Tensor = self._head(states)
        return logits.float()


def bytes_per_position(network: Network) -> int:
    """Bytes of one position in a key-value cache whose every layer keeps all of them; 0 for a model without heads."""
    text = network.config.get_text_config()
    queries = getattr(text, "num_attention_heads", None) or 0
    heads = getattr(text, "num_key_value_heads", None) or queries
    head = getattr(text, "head_dim", None) or (text.hidden_size // queries if queries else 0)
    return int(2 * text.num_hidden_layers * heads * head * network.dtype.itemsize)


def entropy(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """Entropy in nats of softmax(logits / temperature) over the last dimension.

    Source: L²-VMAS, appendix C.3.
    """
    import torch

    logs = torch.log_softmax(logits if temperature == 1 else logits / temperature, dim=-1)
    return -(logs.exp() * logs.clamp(min=-1e4)).sum(-1)  # a token that cannot come, at -inf, adds nothing
