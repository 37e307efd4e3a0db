// What must not compile. Behind each such line, the one error that it is to have; refused.py compares. The types differ
// from line to line: a compiler says of each type once what is wrong with it. T-06, T-39 and T-91 are among them.
#include <wengert/wengert.h>

#include <unordered_map>

namespace {

template <int n> struct Bare {
  wg::Tensor a;
};
template <int n> struct Model : wg::nn::Module {
  wg::Tensor operator()(const wg::Tensor &x) const { return x; }
};
struct Joined : wg::nn::Module {
  wg::Tensor operator()(const wg::Tensor &a, const wg::Tensor &b) const { return a + b; }
};
using Unordered = std::unordered_map<std::string, wg::Variable>;
using Tensors = std::vector<wg::Tensor>;
using Nested = std::tuple<wg::Tensor, std::unordered_map<int, wg::Tensor>>;

[[maybe_unused]] void refused() {
  wg::GradientTape tape;
  wg::Tensor x(1.0f), y(1.0f);
  Joined joined;
  wg::nn::Dense layer(2, 2);

  tape.watch(Bare<0>());                          // list the fields of this struct inside of it
  tape.watch(std::vector<float>());               // have no gradient; give a tensor
  (void)tape.gradient(y, std::vector<Bare<1>>()); // list the fields of this struct inside of it
  (void)tape.gradient(y, x,
                      wg::GradientOptions{.unconnected = "nonsense"}); // cannot initialize a member subobject of type
  (void)tape.gradient(y, Unordered());                                 // an unordered container has no order
  (void)tape.gradient(y, std::map<int, wg::Variable>(), x);            // the keys of a map are std::string here
  wg::function("f", [](const std::optional<Bare<2>> &) {})(Bare<2>()); // list the fields of this struct inside of it
  wg::function("f", [](const Model<0> &) {})(Model<0>());              // a model is captured, not passed
  wg::function("f", [](const Nested &) {})(Nested());                  // an unordered container has no order
  wg::function("f", [](const wg::Tensor &x) { return &x; })(x);        // not a tensor, a variable, a number
  wg::value_and_grad([](const Model<1> &m) { return m(wg::Tensor(1)); })(Model<1>()); // a model is captured, not passed
  wg::value_and_grad([](const wg::Tensor &) {})(x);                   // a function that returns nothing has no gradient
  wg::grad_wrt_variables([](const wg::Tensor &) {})(x);               // a function that returns nothing has no gradient
  wg::jacobian([](const Bare<3> &b) { return b.a; })(Bare<3>());      // list the fields of this struct inside of it
  wg::hessian([](const wg::Tensor &) {})(x);                          // a function that returns nothing has no gradient
  wg::hessian([](const wg::Tensor &x) { return x; }, wg::has_aux)(x); // with wg::has_aux f returns a pair
  wg::batch_jacobian([](const Tensors &x) { return x[0]; })(Tensors{x}); // by one tensor of examples
  wg::vmap([](const wg::Tensor &) {})(x, x);                             // the function of this wg::vmap does not take
  wg::nn::functional_call(layer, x, x, 3);                               // the model does not take these arguments
  wg::nn::functional_call(layer, Bare<4>(), x);                          // list the fields of this struct inside of it
  wg::nn::Sequential layers(joined);                                     // this layer's operator() needs more than
  wg::nn::Sequential functions(wg::softmax);                             // default arguments are lost with its name
  wg::nn::Dense wrong(2, 2, 3);                                          // is called with one tensor
  wg::reduce_sum(x, true);                                               // could not bind to an rvalue of type 'bool'
  wg::Located one(x), other(one);                                        // call to deleted constructor
  x[0] = y;                                                              // no viable overloaded '='
  wg::optim::SGD(0.1).apply(std::vector<wg::Grad>(), std::vector<wg::Tensor>()); // is a wg::Variable: give one
  wg::optim::EarlyStopping stopping{std::array<double, 2>()};                    // is a wg::Variable: give one
}

} // namespace
