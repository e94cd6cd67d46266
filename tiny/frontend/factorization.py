"""Factorizations of matrices, in the last two axes; axes before are batches."""
import numpy as np

from tiny.frontend.shaping import expand
from tiny.ir import ops
from tiny.ir.dtype import dtypes
from tiny.ir.node import Node

JACOBI_SWEEPS = 10                                          # float32 converges in 6 to 8 for up to 64 columns


class Factorization:
    """Factorizations of Tensor."""

    def qr(self) -> tuple:
        """(Q, R) with Q @ R = self, Q orthogonal (m x m) and R upper triangular (m x n), by reflections.

        Householder, "Unitary Triangularization of a Nonsymmetric Matrix", 1958.
        """
        m, n = self._matrix_sizes("qr")
        dtype, r = self._float_dtype(), self._widened().contiguous()
        line = self._wrap(Node(ops.IOTA, dtypes.int32, (), m))
        q = line.unsqueeze(0).eq(line.unsqueeze(1)).cast(r.dtype).expand(*self.shape[:-2], m, m)
        for k in range(min(m - 1, n)):
            column = (line >= k).where(r[..., k], 0)
            head = column[..., k:k + 1]
            length = column.square().sum(-1, keepdim=True).sqrt()
            # the reflection takes the column to -sign(head) * length in place k: nothing cancels
            mirror = column + line.eq(k).where((head < 0).where(-length, length), 0)
            size = mirror.square().sum(-1, keepdim=True)
            weighted = mirror * size.eq(0).where(0, 2 / size.eq(0).where(1, size))
            r = (r - weighted.unsqueeze(-1) * (mirror.unsqueeze(-2) @ r)).contiguous()
            q = (q - (q @ mirror.unsqueeze(-1)) * weighted.unsqueeze(-2)).contiguous()
        return q.cast(dtype), r.triu().cast(dtype)

    def svd(self, full_matrices: bool = True) -> tuple:
        """(U, S, Vh) with U @ diag(S) @ Vh = self, U and Vh orthogonal, S falling, none below 0.

        full_matrices=False leaves out what U or Vh hold beyond the smaller size. One-sided Jacobi rotations
        (Hestenes, 1958), all disjoint pairs of columns at once.
        """
        m, n = self._matrix_sizes("svd")
        if m < n:
            u, s, vh = self.transpose(-1, -2).svd(full_matrices)
            return vh.transpose(-1, -2), s, u.transpose(-1, -2)
        dtype, a = self._float_dtype(), self._widened()
        line = self._wrap(Node(ops.IOTA, dtypes.int32, (), n))
        v = line.unsqueeze(0).eq(line.unsqueeze(1)).cast(a.dtype).to(a.device).expand(*self.shape[:-2], n, n)
        rounds = _rounds(n)
        for _ in range(JACOBI_SWEEPS if n > 1 else 0):
            for left, right, back in rounds:
                a, v = a._rotated(v, left, right, back)
        size = a.square().sum(-2).sqrt()
        s, order = size.sort(-1, descending=True)
        places = order.unsqueeze(-2)
        a, v = a.gather(-1, places.expand(a.shape)), v.gather(-1, places.expand(v.shape))
        direction = a / s.eq(0).where(1, s).unsqueeze(-2)
        q, r = direction.qr()                               # fills up what is missing, and turns some signs
        sign = (r.diagonal(dim1=-2, dim2=-1) < 0).where(-1.0, 1.0).cast(q.dtype)
        rest = self._wrap(expand(Node(ops.CONST, q.dtype, (), 1.0), (*self.shape[:-2], m - n)))
        u = q * sign.cat(rest, dim=-1).unsqueeze(-2)
        u = u if full_matrices else u[..., :n]
        return u.cast(dtype), s.cast(dtype), v.transpose(-1, -2).cast(dtype)

    def _matrix_sizes(self, name: str) -> tuple[int, int]:
        if len(self.shape) < 2 or any(isinstance(size, Node) for size in self.shape):
            raise ValueError(f"{name}: a tensor of shape {self.shape}; a matrix of fixed sizes is needed")
        return self.shape[-2:]

    def _rotated(self, v, left: np.ndarray, right: np.ndarray, back: np.ndarray) -> tuple:
        """self and v with each pair of columns turned so that those of self are orthogonal."""
        a, b = self[..., left], self[..., right]
        first, second, mixed = a.square().sum(-2), b.square().sum(-2), (a * b).sum(-2)
        still = mixed.abs() <= 1e-30
        zeta = (second - first) / (2 * still.where(1, mixed))
        tangent = (zeta < 0).where(-1, 1) / (zeta.abs() + (zeta.square() + 1).sqrt())
        tangent = still.where(0, tangent)
        cosine = (tangent.square() + 1).rsqrt()
        sine = (cosine * tangent).unsqueeze(-2)
        cosine = cosine.unsqueeze(-2)

        def turned(matrix):
            x, y, others = matrix[..., left], matrix[..., right], matrix[..., back[2 * len(left):]]
            turned = (cosine * x - sine * y).cat(sine * x + cosine * y, others, dim=-1)
            return turned[..., np.argsort(back)].contiguous()
        return turned(self), turned(v)


def _rounds(n: int) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rounds of disjoint pairs that meet every pair of n columns once: (left, right, all in that order).

    The circle method of tournaments: one column stays, the others go round.
    """
    players = list(range(n + n % 2))
    rounds = []
    for _ in range(len(players) - 1):
        half = len(players) // 2
        pairs = [(a, b) for a, b in zip(players[:half], players[half:][::-1], strict=True) if max(a, b) < n]
        left, right = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
        alone = [column for column in range(n) if column not in left and column not in right]
        rounds.append((left, right, np.concatenate([left, right, alone]).astype(int)))
        players = [players[0], players[-1], *players[1:-1]]
    return rounds
