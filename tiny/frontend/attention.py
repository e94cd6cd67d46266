"""Scaled dot-product attention."""
from tiny.ir.dtype import accumulator_dtype, dtypes


class Attention:
    """Attention of Tensor, which holds the queries."""

    def scaled_dot_product_attention(self, key, value, attn_mask=None, dropout_p: float = 0.0,
                                     is_causal: bool = False, scale: float | None = None,
                                     enable_gqa: bool = False):
        """softmax(self @ key^T * scale + mask) @ value, over (..., heads, positions, size of a head).

        attn_mask: bool, True where a query may look, or numbers that are added. is_causal: a query looks at
        positions up to its own only. A query that may look nowhere gives zeros. scale: 1 / sqrt(size) if
        None. enable_gqa: several heads of queries share one of keys and values; their numbers must divide.
        dropout_p: share of the attention that is dropped in training.
        """
        if enable_gqa:
            key, value = self._shared_heads(key, "key"), self._shared_heads(value, "value")
        wide = accumulator_dtype(self.dtype)
        factor = self.shape[-1] ** -0.5 if scale is None else scale
        scores = self.matmul(key.transpose(-2, -1), dtype=wide) * factor
        allowed = None
        if is_causal:
            if attn_mask is not None:
                raise ValueError("scaled_dot_product_attention: give is_causal or attn_mask, not both")
            allowed = self._causal_mask(self.shape[-2], key.shape[-2])
        elif attn_mask is not None and attn_mask.dtype is dtypes.bool:
            allowed = attn_mask
        elif attn_mask is not None:
            scores = scores + attn_mask.cast(wide)
        if allowed is not None:
            scores = allowed.where(scores, float("-inf"))
        weights = self._attention_weights(scores, masked=allowed is not None or attn_mask is not None)
        return weights.cast(self.dtype).dropout(dropout_p) @ value

    def _shared_heads(self, other, name: str):
        """Keys or values with each head repeated for all the query heads that share it."""
        heads, own = self.shape[-3], other.shape[-3]
        if heads % own:
            raise ValueError(f"scaled_dot_product_attention: {heads} heads of queries, {own} of {name}s; "
                             "with enable_gqa the first must be a multiple of the second")
        return other.repeat_interleave(heads // own, dim=-3)

    def _causal_mask(self, queries, keys):
        """True where the key's position is not after the query's; both start at 0."""
        rows = type(self).arange(queries, device=self.device).reshape(queries, 1)
        return type(self).arange(keys, device=self.device).reshape(1, keys) <= rows

    @staticmethod
    def _attention_weights(scores, masked: bool):
        """Softmax over the last axis; zeros where all scores are -inf, at no cost where none can be."""
        if not masked:
            return scores.softmax(-1)
        highest = scores.max(-1, keepdim=True).detach()
        exponentials = (scores - highest.eq(float("-inf")).where(0, highest)).exp()
        sums = exponentials.sum(-1, keepdim=True)
        return exponentials / sums.eq(0).where(1, sums)
