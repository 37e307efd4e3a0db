// Attention: weighted means of values, by how well keys fit queries.
#pragma once

#include <wengert/nn/Module.h>

namespace wg::nn {

struct AttentionOptions {
  /// Broadcasts to [..., n, m]. Bools: which of the m keys each of the n queries may attend to; floats are added to the
  /// scores, -inf where it may not. Undefined: all.
  Tensor mask = {};
  bool causal = false;              ///< query i may attend to the keys 0 to i only, beside what the mask says
  std::optional<double> scale = {}; ///< default: 1 / sqrt(d)
};

/// softmax(q k^T scale + mask) v over the keys (Vaswani et al. 2017, section 3.2.1). A query that may attend to no key
/// gets zeros, and passes no gradient on. Leading axes are a batch and broadcast: heads, say.
/// Shapes: q float[..., n, d], k float[..., m, d], v float[..., m, e] -> float[..., n, e]. Errors: sizes or dtypes that
/// differ; a mask that does not broadcast.
WENGERT_API Tensor attention(const Located &q, const Located &k, const Located &v,
                             const AttentionOptions &options = {});
/// The weights alone: softmax(q k^T scale + mask), rows of which sum to 1, or to 0 where all keys are masked.
/// Shapes: q float[..., n, d], k float[..., m, d] -> float[..., n, m].
WENGERT_API Tensor attention_weights(const Located &q, const Located &k, const AttentionOptions &options = {});

struct MultiHeadAttentionOptions {
  int64_t key_features = 0, value_features = 0; ///< of the inputs k and v; 0: as the queries'
  bool bias = true;
  DType dtype = f32;
  Initializer weight = glorot_uniform();
};

/// Attention by `heads` heads, each of features / heads features, on linear maps of the inputs, and a linear map of
/// what they give, joined (Vaswani et al. 2017, section 3.2.2). Layers `query`, `key`, `value` and `out`, each a Dense.
/// A mask is [..., n, m], the same for all heads. Errors: heads that do not divide the features.
/// Shapes: q float[..., n, features], k float[..., m, key_features], v float[..., m, value_features] ->
/// float[..., n, features].
class WENGERT_API MultiHeadAttention : public Module {
public:
  MultiHeadAttention(int64_t features, int64_t heads, MultiHeadAttentionOptions options = {},
                     Where where = Where::current());
  Tensor operator()(const Tensor &q, const Tensor &k, const Tensor &v, const AttentionOptions &options = {},
                    Where where = Where::current()) const;
  /// Of x to itself.
  Tensor operator()(const Tensor &x, const AttentionOptions &options = {}, Where where = Where::current()) const;

private:
  int64_t heads_;
  Dense query_, key_, value_, out_;
};

} // namespace wg::nn
