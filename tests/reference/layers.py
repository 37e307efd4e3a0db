"""Losses, and layers as functions."""
import numpy as np

from reductions import softmax
from tables import *

family("layers")


def reduced(f):
    return lambda *operands, reduction="mean", **o: {"mean": np.mean, "sum": np.sum, "none": lambda v: v}[reduction](f(*operands, **o))


def huber(p, t, delta=1.0):
    d = np.abs(p - t)
    return np.where(d <= delta, d * d / 2, delta * (d - delta / 2))


def log_cosh(p, t):
    d = np.abs(p - t)
    return d + np.log1p(np.exp(-2 * d)) - np.log(d.dtype.type(2))


def poisson(rate, target, log_rate=False):
    return np.exp(rate) - target * rate if log_rate else rate - np.where(target == 0, 0, target * np.log(rate))


def kl_divergence(q, p):
    return np.sum(np.where(p == 0, 0, p * np.log(p / q)), -1)


def cosine_similarity(a, b, axis=-1):
    sizes = np.linalg.norm(a, axis=axis) * np.linalg.norm(b, axis=axis) if a.dtype != np.longdouble else np.sqrt(np.sum(a * a, axis)) * np.sqrt(np.sum(b * b, axis))
    return np.where(sizes == 0, 0, np.sum(a * b, axis) / np.where(sizes == 0, 1, sizes))


def bounded(p, epsilon=1e-7):
    """In the dtype: of f32, 1 - 1e-7 is 1 - 1.19e-7."""
    return np.clip(p, p.dtype.type(epsilon), p.dtype.type(1 - epsilon))


def binary_cross_entropy(p, y, positive_weight=1.0, label_smoothing=0.0):
    y = (1 - label_smoothing) * y + label_smoothing / 2
    return -positive_weight * y * np.log(p) - (1 - y) * np.log1p(-p)


def smoothed_cross_entropy(logits, labels, label_smoothing=0.0, ignore_index=None, reduction="mean"):
    z = logits - np.max(logits, -1, keepdims=True)
    logs = z - np.log(np.sum(np.exp(z), -1, keepdims=True))
    classes = logits.shape[-1]
    q = labels if labels.dtype.kind == "f" else np.arange(classes) == labels[..., None]
    losses = -np.sum(((1 - label_smoothing) * q + label_smoothing / classes) * logs, -1)
    counted = np.ones(losses.shape) if ignore_index is None else labels != ignore_index
    losses = np.where(counted, losses, 0)
    return {"mean": lambda: np.sum(losses) / np.sum(counted), "sum": lambda: np.sum(losses), "none": lambda: losses}[reduction]()


for dtype, reduction in each(FLOATS, ["mean", "sum", "none"]):
    p, t = draw(dtype, 3, 4), draw(dtype, 3, 4, salt=1)
    close = Within(2, of=8 if reduction == "sum" else 4)
    case("nn::mean_absolute_error", wide(reduced(lambda a, b: np.abs(a - b))), p, t, reduction=reduction, within=close)
    for delta in (1.0, 2.5):
        case("nn::huber", wide(reduced(huber)), p, t, delta=delta, reduction=reduction, within=close)
    case("nn::log_cosh", wide(reduced(log_cosh)), p, t, reduction=reduction, within=close)
    case("nn::poisson", wide(reduced(poisson)), draw(dtype, 5, low=0.1), array(dtype, [0, 1, 2, 3, 0.5]), reduction=reduction, within=close)
    case("nn::poisson", wide(reduced(poisson)), p, t, log_rate=True, reduction=reduction, within=Within(1, of=32))
    signs = array(dtype, [[1, -1, 1, 1]] * 3)
    case("nn::hinge", wide(reduced(lambda s, y: np.maximum(0, 1 - y * s))), p, signs, reduction=reduction, within=close)
    case("nn::squared_hinge", wide(reduced(lambda s, y: np.maximum(0, 1 - y * s) ** 2)), p, signs, reduction=reduction, within=Within(1, of=32))
    q = array(dtype, [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125]])
    case("nn::kl_divergence", wide(reduced(kl_divergence)), q, array(dtype, [[0.25, 0.75, 0], [0.125, 0.75, 0.125]]), reduction=reduction, within=Within(1, of=1))
    case("nn::cosine_similarity_loss", wide(reduced(lambda a, b: 1 - cosine_similarity(a, b))), p, t, reduction=reduction, within=Within(2, of=2))
    case("nn::binary_cross_entropy", wide(reduced(binary_cross_entropy)), draw(dtype, 4, low=0.05, high=0.95), array(dtype, [0, 1, 0.5, 1]), reduction=reduction, positive_weight=2.0, label_smoothing=0.1, within=close)
    labels = array("i64", [0, 3, 2])
    case("nn::cross_entropy", wide(smoothed_cross_entropy), p, labels, reduction=reduction, label_smoothing=0.1, within=close, closed="have no last axis of static size")
    case("nn::cross_entropy", wide(smoothed_cross_entropy), p, labels, reduction=reduction, ignore_index=3, within=close, closed="have no last axis of static size")
    logs = np.log(wide(softmax)(p)).astype(DTYPES[dtype])
    case("nn::nll", reduced(lambda l, y: -np.take_along_axis(l, y[:, None], -1)[:, 0]), logs, labels, reduction=reduction, within=close, closed="have no last axis of static size")
for dtype in FLOATS:
    a, b = draw(dtype, 3, 4), draw(dtype, 3, 4, salt=1)
    for axis in (0, -1):
        case("nn::cosine_similarity", wide(cosine_similarity), a, b, axis=axis, within=Within(1, of=1))
    case("nn::cosine_similarity", array(dtype, [0, 1]), array(dtype, [[0, 0], [3, 4]]), array(dtype, [[1, 2], [3, 4]]), axis=-1, within=Within(1))
    case("nn::binary_cross_entropy", lambda p, y, reduction: wide(binary_cross_entropy)(bounded(p), y), array(dtype, [0, 1]), array(dtype, [1, 0]), reduction="none", within=Within(2))

# ---- Normalisation: weight and bias are operands 1 and 2


def layer_norm(x, w, b, axes=1, epsilon=1e-5):
    over = tuple(range(-axes, 0))
    return (x - np.mean(x, over, keepdims=True)) / np.sqrt(np.var(x, over, keepdims=True) + epsilon) * w + b


def rms_norm(x, w, b, axes=1, epsilon=1e-5):
    return x / np.sqrt(np.mean(x * x, tuple(range(-axes, 0)), keepdims=True) + epsilon) * w + b


def group_norm(x, w, b, groups, epsilon=1e-5):
    parts = x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)
    axes = (*range(1, x.ndim - 1), x.ndim)
    y = (parts - parts.mean(axes, keepdims=True)) / np.sqrt(parts.var(axes, keepdims=True) + epsilon)
    return y.reshape(x.shape) * w + b


def batch_norm(x, w, b, epsilon=1e-5):
    axes = tuple(range(x.ndim - 1))
    mean, variance = x.mean(axes), x.var(axes)
    return (x - mean) / np.sqrt(variance + epsilon) * w + b, mean, variance


def each_wide(f):
    """`wide` of a list of results."""

    def rounded(*operands, **options):
        wider = np.longdouble if operands[0].dtype == np.float64 else np.float64
        return [np.asarray(y).astype(operands[0].dtype) for y in f(*[x.astype(wider) for x in operands], **options)]

    return rounded


for dtype in FLOATS:
    x, w, b = draw(dtype, 2, 3, 4), draw(dtype, 4, low=0.5), draw(dtype, 4, salt=1)
    near = Within(3, of=4)
    channels = "has no last axis of static size"
    case("nn::layer_norm", wide(layer_norm), x, w, b, within=near)
    case("nn::layer_norm", wide(layer_norm), x, draw(dtype, 3, 4, low=0.5), draw(dtype, 3, 4, salt=1), axes=2, epsilon=1e-3, within=near)
    case("nn::layer_norm", wide(layer_norm), array(dtype, [[5, 5, 5, 5]]), w, b, within=near)  # what is constant becomes 0
    case("nn::rms_norm", wide(rms_norm), x, w, b, within=near)
    for groups in (1, 2, 4):
        case("nn::group_norm", wide(group_norm), x, w, b, groups=groups, within=near, closed=channels)
    case("nn::instance_norm", wide(lambda x, w, b: group_norm(x, w, b, x.shape[-1])), x, w, b, within=near)
    case("nn::batch_norm", each_wide(batch_norm), x, w, b, within=Within(2, of=8), closed=channels)

# ---- Attention: the mask is operand 3


SIZE = "with d of static size"


def weights_of(q, k, mask=None, causal=False, scale=None):
    n, m = q.shape[-2], k.shape[-2]
    scores = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.dtype.type(q.shape[-1])) if scale is None else scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    if causal:
        scores = np.where(np.tril(np.ones((n, m), bool)), scores, -np.inf)
    largest = np.max(scores, -1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    total = np.sum(e, -1, keepdims=True)
    return np.where(total == 0, 0, e / np.where(total == 0, 1, total))  # zeros where all is masked


def attention(q, k, v, mask=None, **options):
    return weights_of(q, k, mask, **options) @ v


for dtype in FLOATS:
    q, k, v = draw(dtype, 2, 3, 4), draw(dtype, 2, 5, 4, salt=1), draw(dtype, 2, 5, 2, salt=2)
    allowed = bools(3, 5) | (np.arange(5) == 0)
    allowed[1] = False
    for options in ({}, {"causal": True}, {"scale": 0.25}):
        case("nn::attention", wide(attention), q, k, v, **options, within=Within(2, of=4), closed=SIZE)
        case("nn::attention_weights", wide(weights_of), q, k, **options, within=Within(1, of=1), closed=SIZE)
    case("nn::attention", wide(attention), q, k, v, allowed, within=Within(2, of=4), closed=SIZE)
    case("nn::attention", wide(attention), q, k, v, np.where(allowed, 0, -np.inf).astype(DTYPES[dtype]), within=Within(2, of=4), closed=SIZE)
