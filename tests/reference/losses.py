"""Losses and what is made for training: means over logarithms of softmax, counts, norms of gradients."""
import numpy as np
from scipy import special

from tables import *

family("losses")

CLASSES = "have no last axis of static size"


def mean_squared_error(prediction, target):
    return np.mean(np.square(prediction - target))


def softmax_cross_entropy(logits, labels):
    """-log softmax(logits)[label]; of a distribution p, -sum(p log softmax(logits)), where 0 * -inf counts."""
    z = logits - np.max(logits, -1, keepdims=True)
    logs = np.log(np.sum(np.exp(z), -1))
    if labels.dtype.kind == "f":
        return np.sum(labels, -1) * logs - np.sum(labels * z, -1)
    return logs - np.take_along_axis(z, labels[..., None].astype(int), -1)[..., 0]


def sigmoid_cross_entropy(logits, targets):
    return np.mean(targets * np.logaddexp(0, -logits) + (1 - targets) * np.logaddexp(0, logits))


def accuracy(logits, labels):
    return np.asarray(np.mean(np.argmax(logits, -1) == labels)).astype(logits.dtype if logits.dtype.kind == "f" else np.float32)


def clip_by_global_norm(*gradients, max_norm):
    norm = np.sqrt(sum(np.sum(np.square(g)) for g in gradients))
    return [g * (max_norm / norm if norm > max_norm else 1) for g in gradients] + [norm]


for dtype in FLOATS:
    logits, close = draw(dtype, 4, 5), Within(1, of=4)
    case("mean_squared_error", wide(mean_squared_error), draw(dtype, 3, 4), draw(dtype, 3, 4, salt=1), within=Within(2))
    case("mean_squared_error", mean_squared_error, eighths(dtype, 4, 4), array(dtype, 0.5))
    case("mean_squared_error", mean_squared_error, array(dtype, [1, np.inf, 2]), array(dtype, [1, 1, 1]))
    case("mean_squared_error", mean_squared_error, array(dtype, []), array(dtype, []))
    for integer in INTEGERS:
        case("softmax_cross_entropy", wide(softmax_cross_entropy), logits, array(integer, [0, 4, 2, 2]), within=close, closed=CLASSES)
    case("softmax_cross_entropy", wide(softmax_cross_entropy), logits, draw(dtype, 4, 5, low=0, high=1), within=Within(1, of=8), closed=CLASSES)
    case("softmax_cross_entropy", wide(softmax_cross_entropy), draw(dtype, 2, 2, 3), array("i64", [[0, 1], [2, 0]]), within=close, closed=CLASSES)
    case("softmax_cross_entropy", wide(softmax_cross_entropy), draw(dtype, 3), array("i32", 1), within=close, closed=CLASSES)
    rows = array(dtype, [[1000, 0, -1000], [-np.inf, 0, 1], [np.nan, 0, 1]])
    case("softmax_cross_entropy", wide(softmax_cross_entropy), rows, array("i64", [2, 1, 1]), within=Within(2), closed=CLASSES)
    case("softmax_cross_entropy", wide(softmax_cross_entropy), rows, array(dtype, [[0, 0, 1], [0, 1, 0], [1, 0, 0]]), within=Within(2), closed=CLASSES)
    case("nn::cross_entropy", wide(lambda x, y: np.mean(softmax_cross_entropy(x, y))), logits, array("i64", [1, 3, 0, 2]), within=close, closed=CLASSES)
    case("nn::sigmoid_cross_entropy", wide(sigmoid_cross_entropy), logits, draw(dtype, 4, 5, low=0, high=1), within=Within(2))
    for z, y in [(-800, 0.25), (800, 1), (800, 0), (-30, 1), (-30, 0), (20, 1), (0, 0.5)]:  # sure of what is right and of what is wrong: the relative accuracy stays
        case("nn::sigmoid_cross_entropy", wide(sigmoid_cross_entropy), array(dtype, [z]), array(dtype, y), within=Within(2))
for dtype in NUMBERS:
    case("nn::accuracy", accuracy, eighths(dtype, 4, 3), array("i64", np.argmax(eighths(dtype, 4, 3), -1) * [1, 0, 1, 1]))
case("nn::accuracy", accuracy, array("f64", [[1, 1], [np.nan, 2], [3, np.nan]]), array("u8", [0, 0, 1]))
for dtype, max_norm in each(FLOATS, [0.5, 2.5, 100.0]):
    case("optim::clip_by_global_norm", clip_by_global_norm, array(dtype, [[3, 0], [0, 0]]), array(dtype, [-4]), within=Within(1), max_norm=max_norm)
